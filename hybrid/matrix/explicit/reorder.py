"""Breadth-first numbering of the states ([WB13] §3.1).

States are numbered in the order of a breadth-first search from the initial states. It visits successors of a
state in the order of their old numbers. Neighbours in the chain so become neighbours in the matrix. Where
the search ends and states are left, it goes on from the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpu_kernels.runtime.coded import array_module, owners, pointers, ranges
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import Array

_UNSEEN = np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class Reordering:
    """A permutation of the states, and what it does to matrices and vectors.

    Attributes
    ----------
    order : ndarray, shape (n,), int64
        ``order[i]`` is the old number of the state that is i in the new order.
    """

    order: Array

    @cached_property
    def rank(self) -> Array:
        """The new number of every old state, shape (n,), int64."""
        xp = array_module(self.order)
        rank = xp.empty(len(self.order), np.int64)
        rank[self.order] = xp.arange(len(self.order), dtype=np.int64)
        return rank

    def __len__(self) -> int:
        return len(self.order)

    def reorder(self, x: Array) -> Array:
        """Return a vector, or the rows of an array, in the new order."""
        self._check(x)
        return x[self.order]

    def restore(self, x: Array) -> Array:
        """Return a vector of the new order in the original one: answers are given back so."""
        self._check(x)
        return x[self.rank]

    def _check(self, x: Array) -> None:
        if len(x) != len(self):
            raise ValueError(f"x: expected {len(self)} elements, one a state, got {len(x)}")

    def permute(self, matrix: CsrArrays) -> CsrArrays:
        """Return the matrix with rows and columns in the new order.

        Raises
        ------
        ValueError
            If the matrix is not square or has another number of states.

        Notes
        -----
        Time: O(entries log entries). Synchronises: yes.
        """
        n = len(self)
        if matrix.shape != (n, n):
            raise ValueError(f"matrix: expected shape ({n}, {n}), one row a state, got {matrix.shape}")
        xp = matrix.xp
        first = matrix.row_starts[:-1].astype(np.int64)
        lengths = (matrix.row_starts[1:] - matrix.row_starts[:-1])[self.order]
        ptr = pointers(xp, lengths)
        source, row = ranges(xp, first[self.order], ptr, matrix.nnz)
        column = self.rank[matrix.columns[source]]
        # Rows are in place; only the columns within a row are not.
        by_place = xp.argsort(row * n + column if n < 2**31 else _two_keys(xp, row, column))
        return CsrArrays(
            matrix.shape,
            ptr.astype(matrix.row_starts.dtype),
            column[by_place].astype(matrix.columns.dtype),
            matrix.values[source[by_place]],
        )


def _two_keys(xp: Any, row: Array, column: Array) -> Array:
    """Return the places of pairs whose product would not fit 63 bits."""
    by_column = xp.argsort(column, kind="stable")
    order = by_column[xp.argsort(row[by_column], kind="stable")]
    places = xp.empty(len(order), np.int64)
    places[order] = xp.arange(len(order), dtype=np.int64)
    return places


def bfs_order(matrix: CsrArrays, initial: ArrayLike = (0,)) -> Reordering:
    """Return the states in breadth-first order.

    Parameters
    ----------
    matrix : CsrArrays
        Square; an entry (r, c) is a transition from r to c.
    initial : array_like of int
        States that the search begins with, in this order.

    Returns
    -------
    Reordering
        On the side where the matrix lies.

    Raises
    ------
    ValueError
        If the matrix is not square or an initial state does not exist.

    Notes
    -----
    Time: O(states + entries) on the host, by a compiled queue (Numba) where there is one, otherwise and on
    the device by :func:`frontier_order`.
    """
    start = _check_start(matrix, initial)
    if matrix.xp is np:
        try:
            from hybrid.matrix.cpu.graph_kernels import breadth_first_order
        except ImportError:
            return frontier_order(matrix, start)
        order = np.empty(matrix.shape[0], np.int64)
        breadth_first_order(matrix.row_starts, matrix.columns, start, order)
        return Reordering(order)
    return frontier_order(matrix, start)


def frontier_order(matrix: CsrArrays, initial: ArrayLike = (0,)) -> Reordering:
    """Return what :func:`bfs_order` does, found a whole frontier at a time, on NumPy or CuPy arrays.

    Parameters
    ----------
    matrix : CsrArrays
        Square, on the host or on a device.
    initial : array_like of int
        The states to begin with.

    Returns
    -------
    Reordering

    Notes
    -----
    Time: O(states + entries) in sweeps, one round of them a distance from the initial states.
    Synchronises: yes, every round.
    """
    start = _check_start(matrix, initial)
    xp, n = matrix.xp, matrix.shape[0]
    starts = matrix.row_starts.astype(np.int64)
    # Unsigned: CuPy has no minima of int64 to be scattered. 0 is met, a search's own places begin at 1.
    met = xp.full(n, _UNSEEN, np.uint64)
    order = xp.empty(n, np.int64)
    frontier, done, scanned = xp.asarray(start), 0, 0
    while done < n:
        if len(frontier) == 0:
            scanned = _next_unseen(xp, met, scanned)
            frontier = xp.asarray([scanned], dtype=np.int64)
        order[done : done + len(frontier)] = frontier
        met[frontier] = 0
        done += len(frontier)
        first = starts[frontier]
        ptr = pointers(xp, starts[frontier + 1] - first)
        total = int(ptr[-1])
        row = owners(xp, ptr, total)
        item = xp.arange(total, dtype=np.int64)
        found = matrix.columns[item + (first - ptr[:-1])[row]].astype(np.int64)
        place = (item + 1).astype(np.uint64)
        # Of several ways to a state the first counts; states met before keep their 0.
        xp.minimum.at(met, found, place)
        frontier = found[met[found] == place]
    return Reordering(order)


def _next_unseen(xp: Any, met: Array, begin: int) -> int:
    """Return the first state that no search has met, looking at ever more states from ``begin`` on."""
    width = 1024
    while True:
        there = xp.flatnonzero(met[begin : begin + width] == _UNSEEN)
        if len(there):
            return begin + int(there[0])
        begin += width
        width *= 2


def _check_start(matrix: CsrArrays, initial: ArrayLike) -> Any:
    n = matrix.shape[0]
    if matrix.shape != (n, n):
        raise ValueError(f"matrix: a reordering of states needs a square matrix, got {matrix.shape}")
    start = np.atleast_1d(np.asarray(initial, dtype=np.int64))
    if n == 0:
        return start[:0]
    if start.size and (int(start.min()) < 0 or int(start.max()) >= n):
        raise ValueError(f"initial: expected states 0..{n - 1}, got {start.min()}..{start.max()}")
    _, first = np.unique(start, return_index=True)
    return start[np.sort(first)]
