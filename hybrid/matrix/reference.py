"""The reference backend: products by coordinate submatrices over paths and over tasks, in plain NumPy.

Written to be obviously right; every other representation is tested against it. Definitions: let (r, c, S) be
the instances of an injection level. Then ``y = M x`` means ``y[r + i] += S[i, j] * x[c + j]`` for every
instance and every entry (i, j) of its submatrix S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.scipy_routines import csr_multiplier
from hybrid.matrix.injection.injected import InjectedMatrix, TaskList
from hybrid.matrix.injection.submatrices import Submatrix
from hybrid.matrix.space.base import Product

if TYPE_CHECKING:
    from hybrid.matrix.space.swept import RowSweeps

Float64Array = NDArray[np.float64]

_BLOCK_ENTRIES = 1 << 18
"""Products formed at once: bounds the memory for temporary arrays."""

_PIECE = 1 << 14
"""Elements relaxed at once: their temporary results stay in the cache."""


class _Group(NamedTuple):
    """A submatrix, where each of its rows begins, and its k instances: rows and columns, shape (k, 1).

    Of a single instance `sums` makes the products, from the elements of x that it meets.
    """

    submatrix: Submatrix
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    sums: Callable[[Float64Array], Float64Array] | None


def _groups_of(injected: InjectedMatrix) -> list[_Group]:
    """Return submatrices with the paths that lead to them.  Time: O(entries of submatrices + instances)."""
    found = []
    for number, instances in injected.instances_by_submatrix():
        submatrix = injected.submatrix(number)
        # Entries are sorted by row, so that the products of a row are neighbours and are added up before y.
        starts = np.flatnonzero(np.diff(submatrix.row, prepend=-1))
        row, column = (instances[name][:, None].astype(np.int64) for name in ("row", "column"))
        sums = None
        if len(row) == 1:
            ends, seen = np.append(starts, len(submatrix.value)), injected.shape[1] - int(column[0, 0])
            sums = csr_multiplier(ends, submatrix.column, submatrix.value, seen)
        found.append(_Group(submatrix, starts, submatrix.row[starts].astype(np.int64), row, column, sums))
    return found


def multiply_by_paths(injected: InjectedMatrix, x: Float64Array) -> Float64Array:
    """Return M x, shape (n_rows,), submatrix by submatrix over the paths that lead to it.

    Notes
    -----
    Time: O(non-zeros of M), with a Python step for every submatrix.
    """
    return _multiply_groups(_groups_of(injected), x, injected.shape[0])


def _multiply_groups(groups: list[_Group], x: Float64Array, size: int) -> Float64Array:
    """Return M x, shape (size,); see `multiply_by_paths`."""
    y = np.zeros(size)
    for group in groups:
        value = group.submatrix.value
        if group.sums is not None:
            # No row is met twice.
            y[group.row[0] + group.rows] += group.sums(x[int(group.column[0, 0]) :])
            continue
        step = max(1, _BLOCK_ENTRIES // len(value))
        for begin in range(0, len(group.row), step):
            columns = group.column[begin : begin + step] + group.submatrix.column
            sums = np.add.reduceat(x[columns] * value, group.starts, axis=1)
            np.add.at(y, group.row[begin : begin + step] + group.rows, sums)
    return y


def multiply_by_tasks(tasks: TaskList, x: Float64Array) -> Float64Array:
    """Return M x, shape (n_rows,), task by task; a task adds to its own 256 rows only."""
    y = np.zeros(tasks.shape[0])
    for task in tasks:
        segment = y[task.first_row : task.first_row + task.n_rows]
        for row, column, number, begin, end in task.instances.tolist():
            submatrix = tasks.blocks[number]
            kept = slice(begin, end)
            products = submatrix.value[kept] * x[column + submatrix.column[kept].astype(np.int64)]
            np.add.at(segment, row + submatrix.row[kept].astype(np.int64) - task.first_row, products)
    return y


def relax_in_place(
    x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
) -> tuple[float, float]:
    """Turn ``out`` = M x into ``(1 - omega) x + omega (b + M x) / diagonal`` and measure the change.

    Returns
    -------
    tuple of float, float
        Greatest absolute change and greatest change relative to the new value; an element that stays the same
        counts as no relative change, also where it is zero. NaN if some change is undefined.
    """
    absolute = relative = np.float64(0.0)
    x = x[: out.size]  # behind the rows' own elements there may be others
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for begin in range(0, out.size, _PIECE):
            piece = slice(begin, begin + _PIECE)
            new, old = out[piece], x[piece]
            if b is not None:
                new += b[piece]
            new /= diagonal[piece]
            if omega != 1.0:
                # At omega = 1 the old iterate must not enter at all: 0 * inf would be NaN.
                new *= omega
                new += (1.0 - omega) * old
            change = np.abs(new - old)
            absolute = np.maximum(absolute, change.max())
            relative = np.maximum(relative, np.where(change == 0.0, 0.0, change / np.abs(new)).max())
    return float(absolute), float(relative)


class OutgrownError(Exception):
    """More products were asked of NumPy than it makes before compiled kernels are quicker."""


_NANOSECONDS = 30, 4
"""Of a product and a recurrence's passes beside it, for each row and for each entry."""

_LONG = 7e8
"""Nanoseconds that products may take, about as many as compiled kernels are loaded in."""


def end_when_long(product: Product, entries: int) -> None:
    """Let NumPy's products end with an `OutgrownError` once they have been many; those of others go on."""
    if isinstance(product, ReferenceProduct):
        row, entry = _NANOSECONDS
        product.left = _LONG / (row * product.held.shape[0] + entry * entries)


class ReferenceProduct(Product):
    """Products and relaxation steps of a matrix in submatrices: path by path, or task by task.

    Parameters
    ----------
    held : InjectedMatrix or TaskList
        The matrix.

    Attributes
    ----------
    left : float
        Products that may still be made.
    """

    def __init__(self, held: InjectedMatrix | TaskList) -> None:
        self.held, self.left = held, math.inf

    def count(self) -> None:
        """Count a product, or a sweep.

        Raises
        ------
        OutgrownError
            There are none left.
        """
        self.left -= 1.0
        if self.left < 0.0:
            raise OutgrownError(f"NumPy has made many products of {self.held.shape[0]} rows")

    @cached_property
    def _groups(self) -> list[_Group]:
        assert isinstance(self.held, InjectedMatrix)
        return _groups_of(self.held)

    def sweeps(self) -> RowSweeps | None:
        """Return sweeps over the rows of a square matrix that is one submatrix; None of others."""
        held = self.held
        if isinstance(held, TaskList) or held.shape[0] != held.shape[1] or len(held) != 1:
            return None
        from hybrid.matrix.space.swept import TriangularSweeps

        ((row, column, number),) = held.instances.tolist()
        own, n = held.submatrix(number), held.shape[0]
        starts = np.searchsorted(own.row + row, np.arange(n + 1))
        rows = CsrArrays(held.shape, starts, own.column + column, own.value)
        return TriangularSweeps(rows, self.count)

    @property
    def nbytes(self) -> int:
        """Bytes of submatrices and instances, and of task pointers where there are tasks."""
        return self.held.nbytes

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``."""
        self.count()
        held = self.held
        with np.errstate(invalid="ignore", over="ignore"):
            if isinstance(held, TaskList):
                out[:] = multiply_by_tasks(held, x)
            else:
                out[:] = _multiply_groups(self._groups, x, held.shape[0])

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``, column by column."""
        for column in range(x.shape[1]):
            self.multiply(np.ascontiguousarray(x[:, column]), out[:, column])

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``; see :func:`relax_in_place`."""
        self.multiply(x, out)
        return relax_in_place(x, b, diagonal, omega, out)
