"""Structure of a matrix: entries in a grid of cells, counted on the diagram or on rows; measures; plots.

On the diagram a node whose submatrix lies within one cell is counted at once, by the non-zeros below it. Only
nodes that straddle a border between cells are descended. The grid is exact at any size: that of a matrix with
10^10 entries takes no more than that of its smallest relative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels.runtime.coded import array_module, owners, pointers, ranges
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.arrays import Array, to_host
from hybrid.base.errors import OptionError
from hybrid.base.figures import check_ending, new_figure, save_figure, shown_text, styled, whole_ticks
from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD

# Breadth-first numbering of the states ([WB13] §3.1).
#
# States are numbered in the order of a breadth-first search from the initial states. It visits successors of
# a state in the order of their old numbers. Neighbours in the chain so become neighbours in the matrix. Where
# the search ends and states are left, it goes on from the first of them.

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


# Locality of a matrix: bandwidth, mean distance from the diagonal, cache lines of x that a warp reads.
#
# A warp is 32 consecutive rows, a thread a row, as in the row-per-thread kernels of [WB13]. The bytes that it
# touches are 128 times the number of distinct 128-byte lines of x, 16 doubles each, that hold an element
# for any of its rows: what the warp must be given even if nothing is ever read twice.

WARP_ROWS = 32
LINE_BYTES = 128
_LINE = LINE_BYTES // 8
_CHUNK = 1 << 22


@dataclass(frozen=True)
class StructureMeasures:
    """Measures of a matrix's structure.

    Attributes
    ----------
    bandwidth : int
        Greatest ``|row - column|`` of an entry; 0 for a diagonal or empty matrix.
    mean_distance : float
        Mean ``|row - column|`` over the entries; 0 without entries.
    bytes_per_warp : float
        Mean bytes of x touched by 32 consecutive rows, in lines of 128 bytes.
    least_bytes_per_warp : float
        What it would be if the elements that a warp reads lay side by side.
    """

    bandwidth: int
    mean_distance: float
    bytes_per_warp: float
    least_bytes_per_warp: float

    def record(self) -> dict[str, float]:
        """Return the measures as plain JSON values."""
        return asdict(self)


def measure_structure(matrix: CsrArrays) -> StructureMeasures:
    """Measure a matrix.

    Parameters
    ----------
    matrix : CsrArrays
        On the host or on the device.

    Returns
    -------
    StructureMeasures

    Notes
    -----
    Time: O(entries log entries), some rows at a time. Synchronises: yes.
    """
    xp, n_rows = matrix.xp, matrix.shape[0]
    if matrix.nnz == 0:
        return StructureMeasures(0, 0.0, 0.0, 0.0)
    ptr = matrix.row_starts.astype(np.int64)
    warp_ptr = np.append(np.arange(0, n_rows, WARP_ROWS), n_rows)
    entries = to_host(ptr[xp.asarray(warp_ptr)])
    bandwidth, total, lines, elements = 0, 0, 0, 0
    begin, warps = 0, len(warp_ptr) - 1
    while begin < warps:
        end = max(begin + 1, int(np.searchsorted(entries, entries[begin] + _CHUNK, "right")) - 1)
        first, last = int(warp_ptr[begin]), int(warp_ptr[end])
        low, high = int(entries[begin]), int(entries[end])
        if high > low:
            row = first + owners(xp, ptr[first : last + 1] - low, high - low)
            column = matrix.columns[low:high].astype(np.int64)
            distance = abs(row - column)
            bandwidth = max(bandwidth, int(distance.max()))
            total += int(distance.sum())
            # A number for (warp, element); the lines follow from the sorted elements.
            key = xp.sort((row - first) // WARP_ROWS * (-(-matrix.shape[1] // _LINE) * _LINE) + column)
            elements += 1 + int((key[1:] != key[:-1]).sum())
            key //= _LINE
            lines += 1 + int((key[1:] != key[:-1]).sum())
        begin = end
    # At least one line a warp that reads anything; counted per warp on average.
    return StructureMeasures(bandwidth, total / matrix.nnz, lines * LINE_BYTES / warps, elements * 8 / warps)


Int64Array = NDArray[np.int64]


def density_of_rows(matrix: CsrArrays, cells: int) -> Int64Array:
    """Count the entries of an explicit matrix in each cell of a grid.

    Parameters
    ----------
    matrix : CsrArrays
    cells : int
        Cells along the longer side, at most; a matrix with fewer rows gets one cell a row.

    Returns
    -------
    ndarray, shape (grid rows, grid columns), int64
        Row r lies in grid row ``r * grid_rows // n_rows``, columns alike; on the host.

    Notes
    -----
    Time: O(entries), some at a time. Synchronises: yes.
    """
    xp = matrix.xp
    grid_rows, grid_columns = grid_of(matrix.shape, cells)
    grid = xp.zeros(grid_rows * grid_columns, np.int64)
    ptr = matrix.row_starts.astype(np.int64)
    begin = 0
    while begin < matrix.nnz:
        end = min(begin + _CHUNK, matrix.nnz)
        first = int(xp.searchsorted(ptr, xp.asarray([begin]), "right")[0]) - 1
        last = int(xp.searchsorted(ptr, xp.asarray([end]), "left")[0])
        cut = xp.clip(ptr[first : last + 1], begin, end) - begin
        row = first + owners(xp, cut, end - begin)
        column = matrix.columns[begin:end].astype(np.int64)
        cell = row * grid_rows // matrix.shape[0] * grid_columns + column * grid_columns // matrix.shape[1]
        grid += xp.bincount(cell, minlength=len(grid))
        begin = end
    result: Int64Array = to_host(grid).reshape(grid_rows, grid_columns)
    return result


def density_of_diagram(matrix: OffsetMTBDD, cells: int) -> Int64Array:
    """Count the entries of a matrix in each cell of a grid without expanding it.

    Parameters
    ----------
    matrix : OffsetMTBDD
    cells : int
        As for :func:`density_of_rows`, which counts the same.

    Returns
    -------
    ndarray, shape (grid rows, grid columns), int64

    Notes
    -----
    Time: O(levels * paths that straddle borders between cells).
    """
    grid_rows, grid_columns = grid_of(matrix.shape, cells)
    grid = np.zeros(grid_rows * grid_columns, np.int64)
    below = matrix.entries_below
    node = np.arange(matrix.nodes[0], dtype=np.int64)
    row, column = np.zeros(len(node), np.int64), np.zeros(len(node), np.int64)
    for k in range(matrix.n_levels + 1):
        last_row, last_column = row + matrix.rows[k][node] - 1, column + matrix.columns[k][node] - 1
        cell_row, cell_column = row * grid_rows // matrix.n_rows, column * grid_columns // matrix.n_columns
        within = (cell_row == last_row * grid_rows // matrix.n_rows) & (
            cell_column == last_column * grid_columns // matrix.n_columns
        )
        np.add.at(grid, (cell_row * grid_columns + cell_column)[within], below[k][node[within]])
        if k == matrix.n_levels:
            break
        straddling = np.flatnonzero(~within)
        node, row, column = node[straddling], row[straddling], column[straddling]
        node, row, column = descend(np, matrix, k, node, row, column)
    return grid.reshape(grid_rows, grid_columns)


def grid_of(shape: tuple[int, int], cells: int) -> tuple[int, int]:
    """Return the rows and columns of the grid: as many cells a side as requested, or as there are rows."""
    if cells < 1:
        raise ValueError(f"cells: expected at least 1, got {cells}")
    n_rows, n_columns = shape
    longest: Any = max(n_rows, n_columns, 1)
    return (
        max(1, min(n_rows, -(-n_rows * min(cells, longest) // longest))),
        max(1, min(n_columns, -(-n_columns * min(cells, longest) // longest))),
    )


# Structure plots ([WB13] figures 2 and 3): where a matrix has entries, by density over a grid of cells.

_INCHES = 6.0
_POINTS = 240  # a single entry, or a line of them, is at least this part of the side wide
_PIXELS = 2  # of a cell, at least


def plot_structures(
    grids: Sequence[tuple[str, NDArray[np.int64]]],
    path: str | Path,
    title: str = "",
    shape: tuple[int, int] | None = None,
) -> None:
    """Draw one panel a grid, side by side on one scale of grey.

    Parameters
    ----------
    grids : sequence of (str, ndarray of int64, shape (grid rows, grid columns))
        Titles of the panels and entries a cell, from `density_of_diagram` or `density_of_rows`. A cell with
        any entry is drawn, however few they are, and where it stands alone, large enough to be seen.
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    title : str
    shape : tuple of int, optional
        Rows and columns of the matrix, for the axes; default those of the grid.

    Raises
    ------
    OptionError
        Another ending, no grid, no matplotlib, or a file that cannot be written.
    """
    check_ending(path, "a structure plot")
    if not grids:
        raise OptionError("a structure plot needs at least one grid")
    figure, panels = new_figure(_INCHES * len(grids) + 1.0, _INCHES + 0.6, len(grids))
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    most = max(int(grid.max(initial=1)) for _, grid in grids)
    # A single entry must show, so the palest greys are left out.
    shades = ListedColormap(colormaps["Greys"](np.linspace(0.55 if most > 1 else 1.0, 1.0, 256)))
    image: Any = None
    with styled():
        for panel, (name, grid) in zip(panels, grids, strict=True):
            rows, columns = shape if shape is not None else grid.shape
            image = panel.imshow(
                np.ma.masked_equal(visible(grid), 0),
                norm=LogNorm(1, max(2, most)),
                cmap=shades,
                interpolation="nearest",
                aspect="equal" if rows == columns else "auto",
                extent=(0, columns, rows, 0),
            )
            panel.set_title(shown_text(name), fontsize=10)
            panel.xaxis.tick_top()
            panel.tick_params(labelsize=7)
            panel.grid(visible=False)
            panel.spines[:].set_visible(True)
            panel.spines[:].set_color("#adb3b9")
            for axis in (panel.xaxis, panel.yaxis):
                whole_ticks(axis)
        if most > 1:
            _scale(figure.colorbar(image, ax=list(panels), label="entries a cell", shrink=0.8), most)
        if title:
            figure.suptitle(shown_text(title))
    cells = max(max(grid.shape) for _, grid in grids)
    # The panel is a little smaller than the figure.
    save_figure(figure, path, dpi=max(150, -(-_PIXELS * cells * 10 // int(8 * _INCHES))))


def visible(grid: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a grid in which cells with few neighbours are wide enough to be seen on a large grid.

    Parameters
    ----------
    grid : ndarray of int64, shape (grid rows, grid columns)

    Returns
    -------
    ndarray of int64, shape (grid rows, grid columns)
        Cells with entries as they are; empty ones beside a point or a thin line have the value of that.
    """
    reach = (-(-max(grid.shape) // _POINTS)) // 2
    if reach == 0:
        return grid
    is_there = np.pad(grid > 0, 1).astype(np.int8)
    height, width = grid.shape
    around = sum(is_there[i : i + height, j : j + width] for i in range(3) for j in range(3))
    thin = np.pad(np.where(around <= 5, grid, 0), reach)  # itself and four others
    spread = np.zeros_like(grid)
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            np.maximum(spread, thin[i : i + height, j : j + width], out=spread)
    return np.where(grid > 0, grid, spread)


def _scale(bar: Any, most: int) -> None:
    """Label a scale of grey with whole numbers."""
    powers = [10**k for k in range(len(str(most)))]
    ticks = powers if most >= 1000 else [m * p for p in powers for m in (1, 2, 5)]
    ticks = [tick for tick in ticks if tick <= most]
    bar.set_ticks(ticks, labels=[f"{tick:,}" if tick < 10**6 else f"{tick:.0e}" for tick in ticks])
    bar.ax.minorticks_off()
