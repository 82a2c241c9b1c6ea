"""Communicators of processes that share the states of a model; a single process communicates with itself.

Every process runs the same program. It holds vectors over its own states, and decides by numbers that all of
them have agreed on. Calls are collective: all processes make them in the same order, so that all take the
same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtbdd.base.records import Record

Float64Array = NDArray[np.float64]
Made = TypeVar("Made")


class AgreedMemoryError(MemoryError):
    """Some process has no room: raised in all processes at the same call, so that all can go on alike."""


class Communicator:
    """The communicator of a process that is alone; others override `gather`, `gather_bytes`, `exchange`.

    `rank`: number of this process. `size`: how many there are. `carries`: whether the parts are processes of
    their own, which messages or links of devices reach. `links`: what carries elements between devices, where
    somebody has looked for it: False where nothing does. `links_reason`: why it is nothing quicker, in words.
    """

    rank: int = 0
    size: int = 1
    carries: bool = False
    links: Any = None
    links_reason: str = ""

    def gather(self, numbers: ArrayLike) -> Float64Array:
        """Return the numbers of all processes.

        `numbers` (array_like, shape (k,), float64): as many in every process. Returns ndarray, shape (size,
        k), float64: the same bits in every process.
        """
        return np.asarray(numbers, np.float64).reshape(1, -1)

    def gather_bytes(self, own: bytes) -> list[bytes]:
        """Return the bytes of all processes, of any length each."""
        return [own]

    def exchange(self, outgoing: Sequence[NDArray[Any]], incoming: Sequence[NDArray[Any]]) -> None:
        """Send an array to every other process and receive one from each.

        `outgoing`, `incoming`: the lengths of a pair agree; empty ones are neither sent nor awaited. The own
        ones are not used.
        """

    def finish(self, failure: str | None) -> str | None:
        """Wait for all processes at the end of an answer.

        `failure`: why this process has none; empty where it was ended by another one's failure. Returns str
        or None: why some process has none, the same in all; None if all have one.
        """
        return failure

    def local_rank(self) -> tuple[int, int]:
        """Return the rank of this process on its machine, and the number of processes there.

        All processes call it at once.
        """
        return self.rank, self.size

    def abort(self, message: str) -> None:
        """End all processes, with a message, where this one alone fails; a single process only fails."""

    # ------------------------------------------------------------------ what all agree on

    def any(self, flag: object) -> bool:
        """Return whether a flag is set in some process."""
        return bool(self.gather([float(bool(flag))]).any())

    def all(self, flag: object) -> bool:
        """Return whether a flag is set in every process."""
        return bool(self.gather([float(bool(flag))]).all())

    def greatest(self, number: float) -> float:
        """Return the greatest number; NaN if there is one."""
        return float(self.gather([number]).max())

    def least(self, number: float) -> float:
        """Return the least number; NaN if there is one."""
        return float(self.gather([number]).min())

    def total(self, numbers: ArrayLike) -> Float64Array:
        """Return sums of numbers, in the order of the processes, shape (k,)."""
        return np.asarray(np.add.reduce(self.gather(numbers), axis=0))

    def with_room(self, make: Callable[[], Made]) -> Made:
        """Return what a function makes, if every process has room for its own.

        `make`: makes something of this process alone; it asks the others nothing. Raises AgreedMemoryError:
        in all processes, if some has no room; of the first such, with its number. All processes call it at
        once.
        """
        if self.size == 1:
            return make()
        made, fault = None, None
        try:
            made = make()
        except MemoryError as failure:
            fault = f"process {self.rank}: {failure or 'out of memory'}"
        told = self.first_text(fault)
        if told is not None:
            raise AgreedMemoryError(told)
        return cast("Made", made)

    def if_room(self) -> suppress:
        """Return a context that an agreed want of memory ends; that of one process alone is raised."""
        return suppress(MemoryError if self.size == 1 else AgreedMemoryError)

    def first_text(self, text: str | None) -> str | None:
        """Return the text of the first process that has one; None if none has."""
        own = b"" if text is None else b"+" + text.encode()
        return next((found[1:].decode() for found in self.gather_bytes(own) if found), None)


ALONE = Communicator()
"""The communicator of a process that shares nothing."""


def communicator_of(holder: object) -> Communicator:
    """Return the communicator that a matrix or a space has; that of a process alone where it has none."""
    found: Communicator = getattr(holder, "communicator", ALONE)
    return found


# Ownership of states where several processes share the vectors of a model.
#
# Diagrams stand for all states in every process; a vector has the process's own states alone.  A manager that
# has a share (`Manager.sharing`) numbers the own members of every set, and sets that are made of vectors are
# united over all processes.


class Share(Record, eq=False):
    """One process's share of the states.

    `owners`: for every process its states, over row bits; disjoint, and all states together.
    """

    communicator: Communicator
    owners: tuple[Any, ...]

    @property
    def own(self) -> Any:
        """The states of this process."""
        return self.owners[self.communicator.rank]
