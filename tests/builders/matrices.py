"""Small, random and structured matrices: dense ones, offset-labelled MTBDDs of them, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import BlockTasks, Device
from mtbdd.offset.offset import Level, OffsetMTBDD, zero_matrix
from mtbdd.offset.tuples import distinct_rows

__all__ = [
    "all_ones",
    "banded",
    "block_tasks",
    "dense_from_coo",
    "from_coo",
    "from_dense",
    "random_codes",
    "random_sparse",
    "to_dense",
]


def from_coo(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    values: NDArray[np.float64],
    row_codes: NDArray[np.int64],
    column_codes: NDArray[np.int64],
    n_bits: int,
) -> OffsetMTBDD:
    """Build bottom-up, sharing equal submatrices; entry (r, c) lies at codes (row_codes[r], column_codes[c]).

    The codes are the sorted assignments of the row and column bits that exist, and the entries are distinct
    and not zero.
    """
    shape = (len(row_codes), len(column_codes))
    if len(values) == 0:
        return zero_matrix(n_bits, *shape)
    terminals, node = np.unique(values, return_inverse=True)
    row_block, column_block = row_codes[rows], column_codes[columns]
    order = np.lexsort((column_block, row_block))
    row_block, column_block, node = row_block[order], column_block[order], node[order]
    ones = np.ones(len(terminals), np.int64)
    levels: list[Level] = []
    row_counts, column_counts = [ones], [ones]
    for bit in range(n_bits):
        for is_row in (False, True):
            own = row_block if is_row else column_block
            key, branch = own >> 1, own & 1
            if is_row:
                row_block = key
            else:
                column_block = key
            order = np.lexsort((branch, column_block, row_block))
            row_block, column_block = row_block[order], column_block[order]
            node, branch = node[order], branch[order]
            start = np.ones(len(node), bool)
            start[1:] = (row_block[1:] != row_block[:-1]) | (column_block[1:] != column_block[:-1])
            parent = np.cumsum(start) - 1
            low = np.full(parent[-1] + 1, -1, np.int64)
            high = low.copy()
            low[parent[branch == 0]] = node[branch == 0]
            high[parent[branch == 1]] = node[branch == 1]
            row_block, column_block = row_block[start], column_block[start]
            row_shift, column_shift = bit + int(is_row), bit + 1
            row_count = _count(row_codes, row_block, row_shift)
            column_count = _count(column_codes, column_block, column_shift)
            if is_row:
                offset = _count(row_codes, row_block << 1, row_shift - 1)
            else:
                offset = _count(column_codes, column_block << 1, column_shift - 1)
            first, node = distinct_rows((low, high, offset, row_count, column_count))
            levels.append(Level(low[first].astype(np.int32), high[first].astype(np.int32), offset[first]))
            row_counts.append(row_count[first])
            column_counts.append(column_count[first])
    return OffsetMTBDD(
        tuple(reversed(levels)),
        terminals,
        *shape,
        tuple(reversed(row_counts)),
        tuple(reversed(column_counts)),
    )


def _count(codes: NDArray[np.int64], block: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    low, high = np.searchsorted(codes, block << shift), np.searchsorted(codes, (block + 1) << shift)
    return (high - low).astype(np.int64)


def from_dense(
    dense: NDArray[np.float64],
    row_codes: NDArray[np.int64] | None = None,
    column_codes: NDArray[np.int64] | None = None,
    n_bits: int | None = None,
) -> OffsetMTBDD:
    """Build from a dense array; without codes, row i has code i and column j has code j."""
    row_codes = np.arange(dense.shape[0]) if row_codes is None else row_codes
    column_codes = np.arange(dense.shape[1]) if column_codes is None else column_codes
    if n_bits is None:
        n_bits = max(int(codes.max(initial=0)).bit_length() for codes in (row_codes, column_codes))
    rows, columns = np.nonzero(dense)
    return from_coo(rows, columns, dense[rows, columns], row_codes, column_codes, n_bits)


def to_dense(matrix: OffsetMTBDD) -> NDArray[np.float64]:
    """Expand by walking every path, one node at a time: slow, and independent of the code under test."""
    dense = np.zeros(matrix.shape)
    stack = [(0, 0, 0, 0)] if matrix.nodes[0] else []
    while stack:
        k, node, row, column = stack.pop()
        if k == matrix.n_levels:
            dense[row, column] += matrix.terminals[node]
            continue
        level = matrix.levels[k]
        step = int(level.offset[node])
        if level.low[node] >= 0:
            stack.append((k + 1, int(level.low[node]), row, column))
        if level.high[node] >= 0:
            stack.append((k + 1, int(level.high[node]), row + step * (k % 2 == 0), column + step * (k % 2)))
    return dense


def random_codes(rng: np.random.Generator, n_bits: int, size: int) -> NDArray[np.int64]:
    """Sorted distinct codes of ``size`` states among the 2^n_bits assignments."""
    return np.sort(rng.choice(1 << n_bits, size=size, replace=False)).astype(np.int64)


def random_sparse(
    rng: np.random.Generator, n_rows: int, n_columns: int, density: float, n_values: int = 3
) -> NDArray[np.float64]:
    """Dense array with the given share of non-zeros drawn from few values, some rows left empty."""
    values = rng.uniform(0.1, 2.0, size=n_values)
    dense = np.where(rng.random((n_rows, n_columns)) < density, rng.choice(values, (n_rows, n_columns)), 0.0)
    dense[rng.random(n_rows) < 0.1] = 0.0
    return dense


def dense_from_coo(
    shape: tuple[int, int], rows: NDArray[np.int64], columns: NDArray[np.int64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Dense array with the entries added up."""
    dense = np.zeros(shape)
    np.add.at(dense, (rows, columns), values)
    return dense


def banded(size: int) -> np.ndarray:
    """A birth-death chain whose rates depend on the state: equal blocks up to a scale."""
    dense = np.zeros((size, size))
    for i in range(size):
        if i + 4 < size:
            dense[i, i + 4] = 0.1 * (i // 16 + 1)
        if i >= 1:
            dense[i, i - 1] = 0.3
        if i % 5 == 0:
            dense[i, (i * 7) % size] += 1 / 3
    return dense


def all_ones(n_bits: int) -> OffsetMTBDD:
    """A matrix of ones with 2^n_bits rows: one node a level, 4^n_bits paths."""
    zero = np.zeros(1, np.int32)
    levels = tuple(
        Level(zero, zero, np.full(1, 2 ** (n_bits - 1 - k // 2), np.int64)) for k in range(2 * n_bits)
    )
    rows = tuple(np.full(1, 2 ** (n_bits - (k + 1) // 2), np.int64) for k in range(2 * n_bits + 1))
    columns = tuple(np.full(1, 2 ** (n_bits - k // 2), np.int64) for k in range(2 * n_bits + 1))
    return OffsetMTBDD(levels, np.ones(1), 2**n_bits, 2**n_bits, rows, columns)


def block_tasks(device: Device, matrix: OffsetMTBDD, k: int, wide: bool = False) -> BlockTasks:
    """The tasks of a level on a device, the second representation of [Tealdi13] §4.4.1.2."""
    from hybrid.matrix.gpu.product import tasks_on_device
    from hybrid.matrix.injection.injected import cut_tasks, inject_level

    return tasks_on_device(device, matrix.shape, cut_tasks(inject_level(matrix, k)), wide)
