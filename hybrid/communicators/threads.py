"""Parts of a matrix in one process: a thread a part, of which one runs at a time.

The threads take turns: one runs until it has to wait for the others.  So diagrams may be shared, nothing else
needs a lock, and two runs make the same bits.  It shows what a division costs and tests what other
communicators run; it is no faster than one part.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.errors import HybridError
from mtbdd.communicator import Communicator, Float64Array

T = TypeVar("T")

END = "the end of an answer"
_ENDED = "another part ended with an error"


class PartEndedError(HybridError):
    """Another part ended with an error, so that this one cannot go on."""


class _Meeting:
    """Where the threads wait for each other; whoever runs holds `turn`."""

    def __init__(self, size: int) -> None:
        self.turn = threading.Condition()
        self._places: list[Any] = [None] * size
        self._purpose, self._arrived, self._round = "", 0, 0
        self._results: list[Any] = []
        self._left = -1
        self.failure: BaseException | None = None

    def gathered(self, rank: int, purpose: str, own: object) -> list[Any]:
        """Return what all threads bring, once they all are here."""
        self._refuse_if_failed()
        if self._arrived and self._purpose != purpose:
            self._part_ways(purpose)
        self._purpose, self._places[rank] = purpose, own
        self._arrived += 1
        if self._arrived == len(self._places):
            self._results, self._places = self._places, [None] * len(self._places)
            self._arrived, self._round = 0, self._round + 1
            self.turn.notify_all()
            return self._results
        awaited = self._round
        while self._round == awaited:
            self._refuse_if_failed()
            if self._left == awaited:
                raise PartEndedError(_ENDED)
            self.turn.wait()
        if self._left == awaited:
            raise PartEndedError(_ENDED)
        return self._results

    def _part_ways(self, purpose: str) -> None:
        """Let a part whose answer failed be at its end before the others: these fail, too, and follow."""
        if self._purpose == END:
            raise PartEndedError(_ENDED)
        if purpose != END:
            self.fail(RuntimeError(f"parts ask each other for {self._purpose} and {purpose} at once"))
            self._refuse_if_failed()
        self._left, self._places = self._round, [None] * len(self._places)
        self._arrived, self._round = 0, self._round + 1
        self.turn.notify_all()

    def fail(self, failure: BaseException) -> None:
        """Have all others end, too."""
        if self.failure is None:
            self.failure = failure
        self.turn.notify_all()

    def _refuse_if_failed(self) -> None:
        if self.failure is not None:
            raise PartEndedError(_ENDED) from self.failure


class ThreadCommunicator(Communicator):
    """See `Communicator`; made by `in_threads`."""

    def __init__(self, meeting: _Meeting, rank: int, size: int) -> None:
        self._meeting, self.rank, self.size = meeting, rank, size

    def gather(self, numbers: ArrayLike) -> Float64Array:
        """See `Communicator.gather`."""
        own = np.array(numbers, np.float64).reshape(-1)
        return np.stack(self._meeting.gathered(self.rank, f"{own.size} numbers", own))

    def gather_bytes(self, own: bytes) -> list[bytes]:
        """See `Communicator.gather_bytes`."""
        return list(self._meeting.gathered(self.rank, "bytes", own))

    def exchange(self, outgoing: Sequence[NDArray[Any]], incoming: Sequence[NDArray[Any]]) -> None:
        """See `Communicator.exchange`."""
        # Copies: whoever goes on first may write to its own arrays again before the others have read them.
        found = self._meeting.gathered(self.rank, "columns", [array.copy() for array in outgoing])
        for rank, place in enumerate(incoming):
            if rank != self.rank and place.size:
                place[...] = found[rank][self.rank]

    def meet(self, failure: str | None) -> str | None:
        """See `Communicator.meet`."""
        found = [text for text in self._meeting.gathered(self.rank, END, failure) if text is not None]
        return next(filter(None, found), "") if found else None


def in_threads(size: int, run: Callable[[Communicator], T]) -> list[T]:
    """Run a function as so many parts at once, and return what each of them returns.

    Parameters
    ----------
    size : int
    run : callable
        Called with a communicator.  The first part runs in the calling thread.

    Raises
    ------
    BaseException
        What the first part to fail raised; the others are ended.
    """
    meeting = _Meeting(size)
    results: list[Any] = [None] * size

    def part(rank: int) -> None:
        with meeting.turn:
            try:
                results[rank] = run(ThreadCommunicator(meeting, rank, size))
            except BaseException as failure:  # noqa: BLE001 - told by the calling thread
                meeting.fail(failure)

    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(part, rank), name=f"part {rank}")
        for rank in range(1, size)
    ]
    for thread in threads:
        thread.start()
    part(0)
    for thread in threads:
        thread.join()
    if meeting.failure is not None:
        raise meeting.failure
    return results
