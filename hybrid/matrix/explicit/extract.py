"""From the diagram to an explicit matrix, by array sweeps, on the CPU or on the device.

The diagram is cut at the level where paths above and entries below are fewest together. Both are small
lists even where the matrix is huge. All paths that begin at the same row cover the same rows, and form a
group; a row of the matrix is then, for every path of its group in the order of columns, one row of a
submatrix. So the rows come out in order, and nothing is sorted that has the size of the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays, index_types
from gpu_kernels.runtime.ragged import owners, pointers
from hybrid.base.arrays import Array
from hybrid.matrix.injection.injected import enumerate_paths
from hybrid.matrix.injection.submatrices import expand_nodes
from mtbdd.base.memory import free_memory_bytes
from mtbdd.base.wording import either
from mtbdd.offset.offset import OffsetMTBDD

BACKENDS = ("cpu", "gpu")

_CHUNK_HOST = 1 << 20
"""Entries written at a time: temporary arrays stay in the processor's caches."""

_CHUNK_DEVICE = 1 << 25
"""The same on a device."""

_TEMPORARY = 96
"""Bytes of temporary arrays an entry of a chunk, at most."""


@dataclass(frozen=True)
class ExplicitSizes:
    """What the explicit matrix of a diagram takes.

    Attributes
    ----------
    shape : tuple of int
    entries : int
        Non-zeros.
    matrix_bytes : int
        Row starts, columns and values.
    peak_bytes : int
        The same and the temporary arrays of the extraction, estimated.
    level : int
        Where the diagram is cut for it.
    """

    shape: tuple[int, int]
    entries: int
    matrix_bytes: int
    peak_bytes: int
    level: int


def explicit_sizes(matrix: OffsetMTBDD, backend: str = "cpu") -> ExplicitSizes:
    """Return the size of the explicit matrix without making it.

    Parameters
    ----------
    matrix : OffsetMTBDD
    backend : {"cpu", "gpu"}

    Returns
    -------
    ExplicitSizes

    Notes
    -----
    Time: O(nodes).
    """
    entries = matrix.n_entries
    starts, index = index_types(matrix.n_columns, entries)
    size = (matrix.n_rows + 1) * np.dtype(starts).itemsize + entries * (8 + np.dtype(index).itemsize)
    level, lists, widest = _cut(matrix)
    chunk = _CHUNK_HOST if backend == "cpu" else _CHUNK_DEVICE
    peak = size + 8 * matrix.n_rows + 64 * lists + _TEMPORARY * (min(entries, chunk) + widest)
    return ExplicitSizes(matrix.shape, entries, size, peak, level)


def explicit_matrix(
    matrix: OffsetMTBDD, backend: str = "cpu", *, memory_budget: int | None = None
) -> CsrArrays:
    """Write a diagram out as compressed sparse rows.

    Parameters
    ----------
    matrix : OffsetMTBDD
        For example ``model.transitions``.
    backend : {"cpu", "gpu"}
        Where the arrays shall lie; on the gpu they are filled there.
    memory_budget : int, optional
        Bytes that the extraction may take; default what is free.

    Returns
    -------
    CsrArrays
        Columns ascend within the rows.  Rows and columns are in the order of the diagram; those of
        ``model.transitions.to_scipy()`` go by the states' numbers, which may differ.

    Raises
    ------
    MemoryError
        If there is no room, before anything is allocated; with required and available bytes.
    ValueError
        If the backend is not one of these or cannot run here.
    TypeError
        If the matrix is not an OffsetMTBDD.

    Notes
    -----
    Time: O(entries + nodes).
    """
    if not isinstance(matrix, OffsetMTBDD):
        raise TypeError(
            f"matrix: expected an OffsetMTBDD such as model.transitions, got {type(matrix).__name__}"
        )
    if backend not in BACKENDS:
        raise ValueError(f"backend: expected cpu or gpu, got {backend!r}")
    xp: Any = np
    free, place = free_memory_bytes(), "in the host's memory"
    if backend == "gpu":
        from gpu_kernels import current_device, device_problem

        problem = device_problem()
        if problem is not None:
            raise ValueError(f"backend: 'gpu' cannot run here: {problem}; or use 'cpu'")
        device = current_device()
        xp, free, place = device.xp, device.free_bytes(), f"on {device.name}"
    sizes = explicit_sizes(matrix, backend)
    available = free if memory_budget is None else memory_budget
    if sizes.peak_bytes > available:
        raise MemoryError(
            f"the explicit matrix has {sizes.entries} entries and needs {sizes.peak_bytes} bytes {place} "
            f"({sizes.matrix_bytes} of them to stay), {available} are available; choose smaller constants "
            + either("or --engine hybrid, which compresses it", "or the compressed matrix (hybrid.inject)")
        )
    return _Assembly(xp, matrix, sizes).run(_CHUNK_HOST if backend == "cpu" else _CHUNK_DEVICE)


def _cut(matrix: OffsetMTBDD) -> tuple[int, int, int]:
    """Return the level to cut at, the length of its lists, and an estimate of its largest group's entries."""
    above, below = matrix.paths_above, matrix.entries_below
    best, lists, least = 0, 0, float("inf")
    for k in range(matrix.n_levels + 1):
        # Every path meets every row of its submatrix once; rows without entries cost as much as others.
        rows = float(above[k].astype(np.float64) @ matrix.rows[k].astype(np.float64))
        own = int(above[k].sum()) + int(below[k].sum()) + int(matrix.rows[k].sum())
        cost = 8.0 * own + rows
        if cost < least:
            best, least, lists = k, cost, own
    # A group's rows, with twice as many entries each as rows have on average.
    mean = matrix.n_entries / max(matrix.n_rows, 1)
    return best, lists, int(2.0 * mean * float(matrix.rows[best].max(initial=0)))


class _Assembly:
    """The lists of one cut, and the rows made from them.

    A segment is one row of one path: a row of a submatrix, moved to its place.
    """

    def __init__(self, xp: Any, matrix: OffsetMTBDD, sizes: ExplicitSizes) -> None:
        self._xp, self._sizes = xp, sizes
        k = sizes.level
        blocks = expand_nodes(np, matrix, k, np.arange(matrix.nodes[k]))
        first_row = pointers(np, blocks.n_rows)
        lengths = np.diff(blocks.ptr)
        number = np.repeat(first_row[:-1], lengths) + blocks.row
        row_ptr = pointers(np, np.bincount(number, minlength=int(first_row[-1])))
        row, column, node = enumerate_paths(matrix, k)
        starts = np.flatnonzero(np.diff(row, prepend=-1))
        self._slots = np.diff(np.append(starts, len(row)))
        self._rows: NDArray[np.int64] = blocks.n_rows[node[starts]]
        entries = pointers(np, lengths[node])
        self._entry_ptr = entries[np.append(starts, len(row))]
        # From here on everything lies where the result shall lie.
        self._block_column, self._block_value = xp.asarray(blocks.column), xp.asarray(blocks.value)
        self._row_ptr = xp.asarray(row_ptr)
        self._path_row = xp.asarray(first_row[node])
        self._path_column = xp.asarray(column)
        self._first_path = xp.asarray(starts)
        self._first_row = xp.asarray(row[starts])
        self._group_rows, self._group_slots = xp.asarray(self._rows), xp.asarray(self._slots)

    def run(self, chunk: int) -> CsrArrays:
        """Fill the arrays, some groups at a time."""
        xp, sizes = self._xp, self._sizes
        starts_type, index_type = index_types(sizes.shape[1], sizes.entries)
        columns = xp.empty(sizes.entries, index_type)
        values = xp.empty(sizes.entries)
        counts = xp.zeros(sizes.shape[0], np.int64)
        work = pointers(np, self._rows * self._slots) + self._entry_ptr
        begin, groups = 0, len(self._rows)
        while begin < groups:
            end = max(begin + 1, int(np.searchsorted(work, work[begin] + chunk, "right")) - 1)
            self._fill(begin, end, columns, values, counts)
            begin = end
        row_starts = pointers(xp, counts).astype(starts_type)
        return CsrArrays(sizes.shape, row_starts, columns, values)

    def _fill(self, begin: int, end: int, columns: Array, values: Array, counts: Array) -> None:
        """Write the rows of the groups begin .. end."""
        xp = self._xp
        here = slice(begin, end)
        rows, slots = self._group_rows[here], self._group_slots[here]
        n_rows = int(self._rows[here].sum())
        n_segments = int((self._rows[here] * self._slots[here]).sum())
        segment_ptr = pointers(xp, rows * slots)
        group = owners(xp, segment_ptr, n_segments)
        local = xp.arange(n_segments, dtype=np.int64) - segment_ptr[group]
        local_row = local // slots[group]
        path = self._first_path[here][group] + (local - local_row * slots[group])
        source = self._path_row[path] + local_row
        first = self._row_ptr[source]
        item_ptr = pointers(xp, self._row_ptr[xp.add(source, 1)] - first)
        low, high = int(self._entry_ptr[begin]), int(self._entry_ptr[end])
        segment = owners(xp, item_ptr, high - low)
        item = xp.arange(high - low, dtype=np.int64) + (first - item_ptr[:-1])[segment]
        columns[low:high] = self._path_column[path][segment] + self._block_column[item]
        values[low:high] = self._block_value[item]
        row_ptr = pointers(xp, rows)
        owner = owners(xp, row_ptr, n_rows)
        place = self._first_row[here][owner] + xp.arange(n_rows, dtype=np.int64) - row_ptr[owner]
        ends = item_ptr[pointers(xp, slots[owner])]
        counts[place] = ends[1:] - ends[:-1]
