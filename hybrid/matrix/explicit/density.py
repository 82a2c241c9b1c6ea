"""How the entries of a matrix spread over a grid of cells, counted on the diagram or on explicit rows.

On the diagram a node whose submatrix lies within one cell is counted at once, by the non-zeros below it;
only nodes that straddle a border between cells are descended. The grid is exact at any size: that of a
matrix with 10^10 entries takes no more than that of its smallest relative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import owners
from hybrid.base.arrays import to_host
from mtbdd.offset.descent import descend
from mtbdd.offset.offset import OffsetMTBDD

Int64Array = NDArray[np.int64]

_CHUNK = 1 << 22


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
    """Return the rows and columns of the grid: as many cells a side as asked for, or as there are rows."""
    if cells < 1:
        raise ValueError(f"cells: expected at least 1, got {cells}")
    n_rows, n_columns = shape
    longest: Any = max(n_rows, n_columns, 1)
    return (
        max(1, min(n_rows, -(-n_rows * min(cells, longest) // longest))),
        max(1, min(n_columns, -(-n_columns * min(cells, longest) // longest))),
    )
