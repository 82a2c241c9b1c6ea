"""Halos: elements of x of other processes (ghost values), received before a product, after the own ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import aligned_empty
from mtbdd.offset.distributed import DistributedMTBDD, places_of
from mtbdd.offset.states import merge_ranges

Vector = NDArray[np.float64]


class ArrivingVector:
    """The own elements of a vector, and room for all; leaving its ``with`` block waits for the others.

    `own`: ndarray, shape (own columns,), float64. `whole` (ndarray, shape (n_columns,), float64): room for
    the own elements, and behind them those of others. `own`, `whole`: `received` copies all own elements to
    `whole`; before, `whole` has those that `Halo.cover` names.
    """

    def __init__(self, own: Vector, whole: Vector) -> None:
        self.own, self.whole = own, whole
        self._is_copied = False

    def finish(self) -> None:
        """Wait for the elements of others, where they are under way."""

    def received(self) -> Vector:
        """Return all elements: wait, and put the own ones before the others."""
        if not self._is_copied:
            self.whole[: self.own.size] = self.own
            self._is_copied = True
        self.finish()
        return self.whole

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


Int64Array = NDArray[np.int64]


class Halo(ABC):
    """Elements that a process receives before products with matrices over the same columns.

    `size`: elements that are received. `way`: how they are carried, in words; empty for messages between
    hosts.
    """

    size: int
    way: str = ""

    @abstractmethod
    def cover(self, stretches: Int64Array) -> None:
        """From now on copy these ranges of own elements, shape (k, 2), into `whole` at every exchange."""

    @abstractmethod
    def exchange(self, x: Vector) -> ArrivingVector:
        """Send the elements of x that other processes need, and receive theirs, or begin to.

        All processes call it at once, and enter what it returns. Time: O(elements sent, received and
        covered).
        """

    @abstractmethod
    def ones(self) -> ArrivingVector:
        """Return the vector of ones, without an exchange."""


class HostHalo(Halo):
    """Room for own elements and for those that are received, and who sends what.

    `divided`: a matrix over these columns; all matrices that share a halo have the same. `whole` (ndarray,
    shape (own columns and halo,), float64): see `ArrivingVector`. `size`: elements that are received.
    """

    def __init__(self, divided: DistributedMTBDD) -> None:
        self._communicator = divided.communicator
        self._outgoing = [places_of(runs) for runs in divided.outgoing]
        self._own, self.size = divided.own_columns, int(sum(divided.incoming))
        self.whole: Vector = aligned_empty(divided.n_columns, 1).reshape(-1)
        self._stretches: list[list[int]] = []
        ends = self._own + np.cumsum((0, *divided.incoming))
        self._places = [self.whole[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def cover(self, stretches: Int64Array) -> None:
        """See `Halo.cover`."""
        known = np.array(self._stretches, np.int64).reshape(-1, 2)
        self._stretches = merge_ranges(np.concatenate((known, stretches))).tolist()

    def exchange(self, x: Vector) -> ArrivingVector:
        """See `Halo.exchange`."""
        self._communicator.exchange([x[places] for places in self._outgoing], self._places)
        for begin, end in self._stretches:
            self.whole[begin:end] = x[begin:end]
        return ArrivingVector(x, self.whole)

    def ones(self) -> ArrivingVector:
        """See `Halo.ones`."""
        self.whole.fill(1.0)
        return ArrivingVector(self.whole[: self._own], self.whole)
