"""Which submatrix of a level lies where: the entries of a matrix on a grid, distinguished by submatrix.

The paths of the diagram are followed once, from the root to where what is below a node lies within one cell
of the grid. At such a place the entries of a cell are known. The levels that the path went through give the
submatrices of the levels above. How they spread over the submatrices of the levels below is a sum over the
diagram, not over paths. The explicit matrix is never built: a grid of 10^10 entries takes as long as that of
a small relative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.explicit.density import grid_of
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]

CELLS = 96
"""Cells a side of the grid."""

SHOWN = 8
"""Submatrices of a level with a colour of their own, those with the most entries; others share one."""

_MOST_PATHS = 1 << 20  # followed at a time; more take a coarser grid
_MOST_OUTLINES = 400
_MOST_NODES = 1 << 19  # of all levels; the sums over a larger diagram would take minutes
_SIDE = 4096  # units in which outlines are measured


@dataclass(frozen=True)
class ShownBlock:
    """A submatrix of a level: its sides, its entries, and how often it occurs."""

    rows: int
    columns: int
    entries: int
    paths: int


@dataclass(frozen=True, eq=False)
class LevelBlocks:
    """The submatrices of one level on the grid.

    `shown`: at most `SHOWN`, the one with the most entries of the matrix first. `kinds` (ndarray, shape
    (cells with entries,), uint8): which of them holds the most entries of each cell; ``len(shown)`` stands
    for all others. `outlines` (ndarray, shape (blocks, 5), int64, or None): row, column, rows, columns, each
    in 4096ths of the matrix's side, and the kind of every occurrence that is larger than a cell; None if they
    are too many to be seen.
    """

    shown: tuple[ShownBlock, ...]
    kinds: NDArray[np.uint8]
    outlines: Int64Array | None


@dataclass(frozen=True, eq=False)
class BlockPicture:
    """A matrix on a grid, at every level.

    Attributes
    ----------
    shape : tuple of int
        Of the matrix.
    grid : tuple of int
        Rows and columns of the grid. Row r of the matrix is in grid row ``r * grid[0] // shape[0]``.
    cells : ndarray, shape (cells with entries,), int64
        ``grid row * grid[1] + grid column``, ascending.
    entries : ndarray, shape (cells with entries,), int64
    levels : tuple of LevelBlocks
        2n + 1.
    """

    shape: tuple[int, int]
    grid: tuple[int, int]
    cells: Int64Array
    entries: Int64Array
    levels: tuple[LevelBlocks, ...]


def block_picture(matrix: OffsetMTBDD, cells: int = CELLS) -> BlockPicture | None:
    """Find which submatrices of every level lie where.

    Parameters
    ----------
    matrix : OffsetMTBDD
    cells : int
        Cells along the longer side, at most; fewer if more than 2**20 paths straddle their borders.

    Returns
    -------
    BlockPicture or None
        None for diagrams of more than 2**19 nodes.

    Notes
    -----
    Time: O(levels * (nodes + paths that straddle borders of cells)).
    """
    if sum(matrix.nodes) > _MOST_NODES:
        return None
    shown = [_most_entries(matrix, k) for k in range(matrix.n_levels + 1)]
    kinds = [_kinds(size, nodes) for size, nodes in zip(matrix.nodes, shown, strict=True)]
    found = _follow(matrix, kinds, cells)
    while found is None:
        cells //= 2
        found = _follow(matrix, kinds, cells)
    return found.picture(matrix, shown, kinds)


def _most_entries(matrix: OffsetMTBDD, k: int) -> Int64Array:
    """Return the nodes of a level whose occurrences together hold the most entries, most first."""
    held = matrix.paths_above[k].astype(np.float64) * matrix.entries_below[k]
    return np.argsort(-held, kind="stable")[:SHOWN].astype(np.int64)


def _kinds(size: int, shown: Int64Array) -> NDArray[np.uint8]:
    """Return the kind of every node of a level."""
    kinds = np.full(size, len(shown), np.uint8)
    kinds[shown] = np.arange(len(shown), dtype=np.uint8)
    return kinds


def _follow(matrix: OffsetMTBDD, kinds: list[NDArray[np.uint8]], cells: int) -> _Followed | None:
    """Follow the paths until they lie within cells; None if they become too many for more than one cell."""
    grid = grid_of(matrix.shape, cells)
    sides, halves = np.array(matrix.shape), np.array(grid)
    found = _Followed(grid, [], [])
    node = np.arange(matrix.nodes[0], dtype=np.int64)
    row, column = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
    history = np.zeros((len(node), 0), np.uint8)
    for k in range(matrix.n_levels + 1):
        if len(node) > _MOST_PATHS and cells > 1:
            return None
        history = np.column_stack((history, kinds[k][node]))
        rows, columns = matrix.rows[k][node], matrix.columns[k][node]
        found.outlines.append(_outlines(matrix, grid, row, column, rows, columns, history[:, -1]))
        first = np.stack((row, column)) * halves[:, None] // sides[:, None]
        last = np.stack((row + rows - 1, column + columns - 1)) * halves[:, None] // sides[:, None]
        within = (first == last).all(axis=0)
        cell = first[0, within] * grid[1] + first[1, within]
        found.within.append(_Within(node[within], cell, history[within]))
        if k < matrix.n_levels:
            left = np.flatnonzero(~within)
            node, row, column, history = descend(
                np, matrix, k, node[left], row[left], column[left], history[left]
            )
    return found


def _outlines(
    matrix: OffsetMTBDD,
    grid: tuple[int, int],
    row: Int64Array,
    column: Int64Array,
    rows: Int64Array,
    columns: Int64Array,
    kinds: NDArray[np.uint8],
) -> Int64Array | None:
    """Return the outlines of the blocks that are larger than a cell, None if they are too many."""
    n_rows, n_columns = matrix.shape
    large = (rows * grid[0] > n_rows) | (columns * grid[1] > n_columns)
    if large.sum() > _MOST_OUTLINES:
        return None
    # In doubles: sides of 10^15 times 4096 do not fit 63 bits, and the drawing has fewer pixels.
    top, left = row[large] / n_rows, column[large] / n_columns
    bottom, right = (row + rows)[large] / n_rows, (column + columns)[large] / n_columns
    edges = [np.rint(edge * _SIDE).astype(np.int64) for edge in (top, left, bottom, right)]
    own = (edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1], kinds[large].astype(np.int64))
    return np.column_stack(own)


@dataclass(frozen=True, eq=False)
class _Within:
    """Paths of one level that lie within cells: nodes, cells, kinds of the levels above and of their own."""

    node: Int64Array
    cell: Int64Array
    history: NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class _Followed:
    """Nodes of a level at which every path lies within a cell."""

    grid: tuple[int, int]
    within: list[_Within]
    outlines: list[Int64Array | None]

    def picture(
        self, matrix: OffsetMTBDD, shown: list[Int64Array], kinds: list[NDArray[np.uint8]]
    ) -> BlockPicture:
        """Count the entries of the cells by kind, level by level."""
        below = matrix.entries_below
        total = np.zeros(self.grid[0] * self.grid[1], np.int64)
        for k, own in enumerate(self.within):
            np.add.at(total, own.cell, below[k][own.node])
        cells = np.flatnonzero(total).astype(np.int64)
        place = np.zeros(total.size, np.int64)
        place[cells] = np.arange(cells.size)
        counts = [self._counts(k, place, matrix.nodes[k], cells.size) for k in range(len(self.within))]
        levels = []
        for k in range(matrix.n_levels + 1):
            held = self._above(matrix, k, place, cells.size) + self._below(matrix, k, kinds[k], counts)
            names = tuple(
                ShownBlock(
                    *(int(a[k][node]) for a in (matrix.rows, matrix.columns, below, matrix.paths_above))
                )
                for node in shown[k]
            )
            levels.append(LevelBlocks(names, held.argmax(axis=1).astype(np.uint8), self.outlines[k]))
        return BlockPicture(matrix.shape, self.grid, cells, total[cells], tuple(levels))

    def _counts(self, k: int, place: Int64Array, nodes: int, cells: int) -> Any:
        """Return how often every node of a level lies within every cell, shape (cells, nodes), sparse."""
        from scipy.sparse import coo_array

        own = self.within[k]
        ones = np.ones(own.node.size)
        return coo_array((ones, (place[own.cell], own.node)), shape=(cells, nodes)).tocsr()

    def _above(self, matrix: OffsetMTBDD, k: int, place: Int64Array, cells: int) -> NDArray[np.float64]:
        """Return the entries of the cells, by kind at level k, of paths that are followed to it at least."""
        held = np.zeros(cells * (SHOWN + 1))
        for j in range(k, matrix.n_levels + 1):
            own = self.within[j]
            if own.node.size:
                at = place[own.cell] * (SHOWN + 1) + own.history[:, k]
                held += np.bincount(at, matrix.entries_below[j][own.node].astype(np.float64), held.size)
        return held.reshape(cells, SHOWN + 1)

    def _below(self, matrix: OffsetMTBDD, k: int, kinds: NDArray[np.uint8], counts: list[Any]) -> Any:
        """Return the entries of the cells, by kind at level k, of paths that ended above it."""
        held = np.zeros((counts[k].shape[0], SHOWN + 1))
        first = next((j for j in range(k) if self.within[j].node.size), k)
        entries = np.zeros((matrix.nodes[k] + 1, SHOWN + 1))  # the last one of zero, that -1 leads to
        entries[np.arange(matrix.nodes[k]), kinds] = matrix.entries_below[k]
        for j in range(k - 1, first - 1, -1):
            level = matrix.levels[j]
            entries = np.vstack((entries[level.low] + entries[level.high], np.zeros(SHOWN + 1)))
            if self.within[j].node.size:
                held += counts[j] @ entries[:-1]
        return held
