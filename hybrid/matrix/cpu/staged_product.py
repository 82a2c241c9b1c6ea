"""Products and steps of the CPU in stages: one kernel for both, and a second way where numbers overflow."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import ArrivingVector
from hybrid.matrix.cpu.arguments import PerPart, SharedArguments
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.reference import relax_in_place
from hybrid.matrix.space.base import Product
from mtbdd.base.records import Record

# A product in stages: interior rows read own elements where they are, boundary rows a copy beside those of
# others.

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]
_LEAST_TERMS = 1 << 16
"""Terms of interior rows, about fifty microseconds of work, below which calls of their own do not pay."""

Vector = NDArray[np.float64] | NDArray[np.float32]
Stage = SharedArguments
"""Arguments of a kernel that stand for the matrix, or for a part of its rows."""


class Stages(Record, eq=False):
    """The rows of a product in stages.

    Attributes
    ----------
    all : Stage
        All rows.
    interior, boundary : Stage or None
        Rows that read no ghost columns, and the other rows; both None where there are too few interior rows
        for a call of their own, late None where there is no other row.
    """

    all: Stage
    interior: Stage | None = None
    boundary: Stage | None = None

    def run(self, run: Callable[[Vector, Stage], Float64Array], x: ArrivingVector) -> Float64Array:
        """Return the changes of each call of the kernel, shape (calls, 3): interior rows go first."""
        if self.interior is None:
            return run(x.received(), self.all)
        changes = run(x.own, self.interior)
        return changes if self.boundary is None else np.concatenate((changes, run(x.whole, self.boundary)))


def greatest_changes(found: Float64Array) -> tuple[float, float] | None:
    """Return the greatest absolute and relative change of a step.

    Parameters
    ----------
    found : ndarray, shape (calls, 3), float64
        Of every call of the kernel: greatest absolute and relative change, and a number that is finite only
        if all new values are.

    Returns
    -------
    tuple of float, float, or None
        None where some new value is no finite number.
    """
    absolute, relative, check = (found[0] if len(found) == 1 else found.max(axis=0)).tolist()
    return (absolute, relative) if math.isfinite(check) else None


def is_stage(terms: int) -> bool:
    """Return whether interior rows of so many terms are worth a call of their own."""
    return terms >= _LEAST_TERMS


# boundary rows: those that read ghost columns, which other processes send.
#
# Own columns are those of a process's own states: their elements of x need not be received.

_BLOCK = 1 << 10
"""Elements that are copied or not as one."""


class GhostColumns(Record, eq=False):
    """Which groups of rows are late, and which own columns these groups read besides.

    Attributes
    ----------
    is_boundary : ndarray, shape (groups,), bool
    stretches : ndarray, shape (stretches, 2), int64
        Half-open ranges of own columns, ascending: those that boundary groups read, and those with the
        numbers of their rows, whose old values a relaxation reads.
    """

    is_boundary: NDArray[np.bool_]
    stretches: Int64Array


def find_ghost_columns(
    ptr: Int64Array, rows: Int64Array, reach: Int64Array, n_own: int | None
) -> GhostColumns:
    """Separate groups of rows that read ghost columns from others.

    Parameters
    ----------
    ptr : ndarray, shape (groups + 1,), int64
        Submatrices of every group.
    rows : ndarray, shape (groups, 2), int64
        Half-open range of the rows of every group.
    reach : ndarray, shape (submatrices, 2), int64
        Half-open range of the columns that are loaded for every submatrix.  What is loaded only to be
        multiplied by zero counts, since it must not be infinite by chance.
    interior : int or None
        Number of own columns, which are the first ones; None where all are.

    Notes
    -----
    Time: O(submatrices + columns / 1024).
    """
    groups = len(ptr) - 1
    if n_own is None:
        return GhostColumns(np.zeros(groups, bool), np.zeros((0, 2), np.int64))
    owner = np.repeat(np.arange(groups), np.diff(ptr))
    is_boundary = np.zeros(groups, bool)
    is_boundary[owner[reach[:, 1] > n_own]] = True
    ranges = np.clip(np.concatenate((reach[is_boundary[owner]], rows[is_boundary])), 0, n_own)
    ranges = ranges[ranges[:, 0] < ranges[:, 1]]
    blocks = -(-n_own // _BLOCK)
    steps = np.zeros(blocks + 1, np.int64)
    np.add.at(steps, ranges[:, 0] // _BLOCK, 1)
    np.add.at(steps, -(-ranges[:, 1] // _BLOCK), -1)
    edges = np.diff(np.cumsum(steps[:-1]) > 0, prepend=False, append=False)
    return GhostColumns(is_boundary, np.minimum(np.flatnonzero(edges).reshape(-1, 2) * _BLOCK, n_own))


Operands = tuple[bool, Float64Array, bool, Float64Array, float]
"""Whether to relax, and with what, as kernels take them."""

_NOTHING = np.zeros(0)
NO_STEP: Operands = (False, _NOTHING, False, _NOTHING, 1.0)
"""A product alone."""


class StagedProduct(Product):
    """Products and steps by a kernel that takes the rows in stages.

    Parameters
    ----------
    kernel : callable
        ``kernel(counter, *stage, x, *operands, changes, out)``, compiled.
    stages : Stages
        Of the arguments that stand for the matrix.
    stretches : ndarray, shape (stretches, 2), int64
        Ranges of own columns that boundary rows read; see `GhostColumns`.
    """

    def __init__(self, kernel: Any, stages: Stages, stretches: Int64Array) -> None:
        self._kernel, self._stages = kernel, stages
        self.stretches = stretches if stages.interior is not None else stretches[:0]
        self._spare: dict[int, list[tuple[NDArray[np.int64], PerPart]]] = {}

    @abstractmethod
    def _threads(self, x: Vector) -> int:
        """Return how many threads a sweep is worth."""

    @abstractmethod
    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out`` where the kernel has met numbers that are not finite."""

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``; both contiguous float64 vectors that do not overlap."""
        changes = self._run(NO_STEP, out, x, self._stages.all)
        if greatest_changes(changes) is None:
            self._multiply_exactly(x, out)

    def multiply_overlapped(self, x: ArrivingVector, out: Float64Array) -> None:
        """See `Product.multiply_overlapped`; every row has the bits of `multiply`."""
        changes = self._stages.run(partial(self._run, NO_STEP, out), x)
        if greatest_changes(changes) is None:
            self._multiply_exactly(x.received(), out)

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

        Returns
        -------
        tuple of float, float
            Greatest absolute change and greatest change relative to the new value.
        """
        changes = self._run(_step(b, diagonal, omega), out, x, self._stages.all)
        if (greatest := greatest_changes(changes)) is not None:
            return greatest
        # The compiled step multiplies the old iterate by 1 - omega also where that is zero.
        self._multiply_exactly(x, out)
        return relax_in_place(x, b, diagonal, omega, out)

    def relax_overlapped(
        self,
        x: ArrivingVector,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float,
        out: Float64Array,
    ) -> tuple[float, float]:
        """See `Product.relax_overlapped`."""
        changes = self._stages.run(partial(self._run, _step(b, diagonal, omega), out), x)
        if (greatest := greatest_changes(changes)) is not None:
            return greatest
        self._multiply_exactly(x.received(), out)
        return relax_in_place(x.own, b, diagonal, omega, out)

    def _run(self, operands: Operands, out: Vector, x: Vector, stage: Stage) -> Float64Array:
        threads = self._threads(x)
        if threads == 1:
            # Short products are no longer than a few frames of Python.
            found = np.zeros((1, 3))
            self._kernel(np.zeros(1, np.int64), *stage.arguments, x, *operands, found[0], out)
            return found
        # The same counters and changes serve again, so that the words of a call are known; callers at the
        # same time have their own.
        spare = self._spare.setdefault(threads, [])
        counter, changes = spare.pop() if spare else (np.zeros(1, np.int64), PerPart(np.zeros((threads, 3))))
        counter[0] = 0
        try:
            run_kernel(self._kernel, threads, counter, stage, x, *operands, changes, out)
            found = np.array(changes.values)
        finally:
            spare.append((counter, changes))
        return found


def _step(b: Float64Array | None, diagonal: Float64Array, omega: float) -> Operands:
    return True, _NOTHING if b is None else b, b is not None, diagonal, omega
