"""From the diagram to an explicit matrix, by array sweeps, on the CPU or on the device.

The diagram is cut at the level where paths above and entries below are fewest together, that of few entries
at the root. Both are small lists
even where the matrix is huge. All paths that begin at the same row cover the same rows, and form a group. A
row of the matrix is then, for every path of its group in the order of columns, one row of a submatrix. So the
rows come out in order, and nothing is sorted that has the size of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kernels.runtime.coded import owners, pointers
from gpu_kernels.runtime.csr import CsrArrays, index_types
from hybrid.base.arrays import Array, concatenated_ranges
from hybrid.matrix.injection.injected import enumerate_paths
from hybrid.matrix.injection.submatrices import FEW_ENTRIES, expand_nodes, level_blocks
from mtbdd.base.errors import either
from mtbdd.base.memory import free_memory_bytes, is_small, require_memory
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import inverse

if TYPE_CHECKING:
    # Only choices take it; a model is loaded sooner without.
    from gpu_kernels import ChoiceRows


BACKENDS = ("cpu", "gpu")

_CHUNK_HOST = 1 << 20
"""Entries written at a time: temporary arrays stay in the processor's caches."""

_CHUNK_DEVICE = 1 << 25
"""The same on a device."""

_TEMPORARY = 96
"""Bytes of temporary arrays an entry of a chunk, at most."""


class ExplicitSizes(Record):
    """Sizes of the explicit matrix of a diagram.

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
    free, place = None, "in the host's memory"
    if backend == "gpu":
        from gpu_kernels import current_device, device_problem

        problem = device_problem()
        if problem is not None:
            raise ValueError(f"backend: 'gpu' cannot run here: {problem}; or use 'cpu'")
        device = current_device()
        xp, free, place = device.xp, device.free_bytes(), f"on {device.name}"
    sizes = explicit_sizes(matrix, backend)
    available = free if memory_budget is None else memory_budget
    if available is None:
        available = sizes.peak_bytes if is_small(sizes.peak_bytes) else free_memory_bytes()
    if sizes.peak_bytes > available:
        raise MemoryError(
            f"the explicit matrix has {sizes.entries} entries and needs {sizes.peak_bytes} bytes {place} "
            f"({sizes.matrix_bytes} of them to stay), {available} are available; choose smaller constants "
            + either("or --engine hybrid, which compresses it", "or the compressed matrix (hybrid.inject)")
        )
    if sizes.level == 0 and xp is np:
        whole = level_blocks(matrix, 0)
        starts, index = index_types(matrix.n_columns, sizes.entries)
        row_starts = pointers(np, np.bincount(whole.row, minlength=matrix.n_rows)).astype(starts)
        return CsrArrays(matrix.shape, row_starts, whole.column.astype(index), whole.value)
    return _Assembly(xp, matrix, sizes).run(_CHUNK_HOST if backend == "cpu" else _CHUNK_DEVICE)


def _cut(matrix: OffsetMTBDD) -> tuple[int, int, int]:
    """Return the level to cut at, the length of its lists, and an estimate of its largest group's entries."""
    if matrix.n_entries <= FEW_ENTRIES:
        # One submatrix, before levels are compared.
        return 0, matrix.n_entries + matrix.n_rows + 1, matrix.n_entries
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


# The layers of a decision process in one: a row a choice, the choices of every state one after another.


class LayerRows(Record, eq=False):
    """The choices of one layer, by state.

    Attributes
    ----------
    number : int
        The layer's.
    states : ndarray, shape (choices,), int64, or None
        The states that have a choice, ascending; None for those with transitions.
    lengths : ndarray, shape (choices,), integers
        Transitions of every choice; where `states` is None, of every state.
    columns : ndarray, shape (transitions,), int32 or int64
        Their targets, choice after choice.
    values : ndarray, shape (transitions,), float64, or None
        Their probabilities, for all layers or for none.
    gains : ndarray, shape (choices,), float64, or None
        Reward of each choice, for all layers or for none.
    """

    number: int
    states: NDArray[np.int64] | None
    lengths: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[np.float64] | None = None
    gains: NDArray[np.float64] | None = None


def merge_layers(
    layers: Sequence[LayerRows], n_states: int, number: DTypeLike = np.uint16, n_columns: int | None = None
) -> ChoiceRows:
    """Merge layers by counting.

    Parameters
    ----------
    layers : sequence of LayerRows
        In the order that the choices of a state shall have.
    n_states : int
        Sources.
    number : dtype
        Of the layers' numbers.
    n_columns : int, optional
        Targets; default as many.

    Returns
    -------
    ChoiceRows
        On the host; with values and gains if the layers have them.

    Notes
    -----
    Time: O(transitions + states * layers).
    """
    choices, transitions = np.zeros(n_states, np.int64), np.zeros(n_states, np.int64)
    for own in layers:
        if own.states is None:
            choices += own.lengths > 0
            transitions += own.lengths
        else:
            choices[own.states] += 1
            transitions[own.states] += own.lengths
    choice, cursor = pointers(np, choices), pointers(np, transitions)[:-1]
    total, entries = int(choice[-1]), int(transitions.sum())
    index, column = index_types(n_states if n_columns is None else n_columns, max(entries, total))
    choice_ptr = choice.astype(index)
    offsets: NDArray[Any] = np.full(total + 1, entries, index)
    columns: NDArray[Any] = np.empty(entries, column)
    values = None if any(own.values is None for own in layers) else np.empty(entries)
    gains = None if any(own.gains is None for own in layers) else np.empty(total)
    numbers: NDArray[Any] = np.empty(total, number)
    for own in layers:
        states = np.flatnonzero(own.lengths) if own.states is None else own.states
        lengths = (own.lengths[states] if own.states is None else own.lengths).astype(np.int64)
        here, starts = choice[states], cursor[states]
        where = concatenated_ranges(starts, lengths)
        columns[where] = own.columns
        if values is not None:
            values[where] = own.values
        offsets[here], numbers[here] = starts, own.number
        if gains is not None:
            gains[here] = own.gains
        cursor[states] += lengths
        choice[states] += 1
    from gpu_kernels import ChoiceRows

    return ChoiceRows(choice_ptr, offsets, columns, values, gains, numbers)


# A model's transitions as a diagram that can be written out for SciPy, states numbered as users see them.


class ModelTransitions(OffsetMTBDD):
    """The offset-labelled matrix of a model, or of one layer of it, over all states.

    It is used like any `mtbdd.OffsetMTBDD`; its own rows and columns are in the diagram's order, those of
    `to_scipy` are the states' numbers.
    """

    @classmethod
    def of(cls, matrix: OffsetMTBDD, numbering: Callable[[], NDArray[np.int64] | None]) -> ModelTransitions:
        """Return a matrix, with all that it knows, over states that `numbering` puts in users' order."""
        made = cls.__new__(cls)
        made.__dict__.update(matrix.__dict__)
        made.__dict__["_numbering"] = numbering
        return made

    @cached_property
    def places(self) -> NDArray[np.int64] | None:
        """The index in the diagram of every state by number, shape (n,); None: the same."""
        found: NDArray[np.int64] | None = self.__dict__["_numbering"]()
        return found

    def transpose(self) -> ModelTransitions:
        """Return the transposed matrix, states numbered alike."""
        return ModelTransitions.of(super().transpose(), self.__dict__["_numbering"])

    def to_scipy(self, memory_budget: int | None = None) -> Any:
        """Write the matrix out as a sparse matrix of SciPy.

        Parameters
        ----------
        memory_budget : int, optional
            Bytes that it may take; default what is free.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n, n), float64
            Probabilities, in a CTMC rates, self-loops included; row and column k are state k of
            ``model.state_table()``.  Columns ascend within the rows.

        Raises
        ------
        MemoryError
            There is no room: raised before anything is allocated, with required and available bytes.

        Notes
        -----
        Time: O(entries + nodes); with a variable order other than the text's O(entries log entries).
        """
        matrix = explicit_matrix(self, memory_budget=memory_budget)
        if self.places is not None:
            matrix = renumbered(matrix, self.places)
        return matrix.to_scipy()


def renumbered(matrix: CsrArrays, places: NDArray[np.int64]) -> CsrArrays:
    """Return a square matrix with rows and columns in another order, shape (n, n).

    Parameters
    ----------
    matrix : CsrArrays
        On the host.
    places : ndarray of int64, shape (n,)
        Row and column k of the result are row and column ``places[k]`` of the matrix.

    Raises
    ------
    MemoryError
        There is no room for the lists that this takes.
    """
    entries = len(matrix.values)
    require_memory(44 * entries, f"{entries} entries in another order", "load the model with order='model'")
    lengths = np.diff(matrix.row_starts).astype(np.int64)[places]
    source = concatenated_ranges(matrix.row_starts[:-1].astype(np.int64)[places], lengths)
    columns: Any = inverse(places)[matrix.columns[source]]
    rows = np.repeat(np.arange(matrix.shape[0]), lengths)
    order = np.lexsort((columns, rows))
    return CsrArrays(
        matrix.shape,
        pointers(np, lengths).astype(matrix.row_starts.dtype),
        columns[order].astype(matrix.columns.dtype),
        matrix.values[source[order]],
    )
