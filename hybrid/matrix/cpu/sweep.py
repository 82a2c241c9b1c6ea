"""Gauss-Seidel on the hybrid matrix: eight rows after the other, from the newest values, in either direction.

The rows of a slice, eight at most, are relaxed at once; all others of the same part see what was written
before them.  Parker calls such sweeps, by blocks, pseudo-Gauss-Seidel (D. Parker, Implementation of symbolic
model checking for probabilistic systems, PhD thesis, University of Birmingham 2002).

Rows are cut into parts of about equal cost, which threads take. A part sees the new values of its own rows
before, and of other parts the values that the sweep began with. So a sweep is a linear map of its start,
whichever thread is faster. Neighbouring rows mostly refer to one another, and few of those are cut apart.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as _untyped_cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.matrix.cpu.arguments import PerPart, SharedArguments
from hybrid.matrix.cpu.layout import CpuLayout, cuts_of_equal_cost
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.threads import thread_count
from hybrid.matrix.cpu.vector_code import (
    EIGHT,
    I64,
    VECTOR,
    Terms,
    constant,
    emit_either,
    fetch_add,
    inside,
    load_some,
    load_vector,
    splat,
    store_some,
    store_vector,
    truth,
)
from mtbdd.base.compiled import njit
from mtbdd.base.records import Record

# Vector code for sweeps: eight rows are relaxed at once, from the newest values that they may see.
#
# The terms are those of products (:mod:`hybrid.matrix.cpu.vector_code`).  Each one decides from which of two
# vectors it reads its eight elements: from the one that is being written, where that is known to hold what
# this slice is to see, or else from the one that the sweep began with.

cgutils: Any = _untyped_cgutils


@intrinsic
def sweep_slices(  # type: ignore[no-untyped-def]
    typingctx, checked, out, row, n_rows, x, base, scale, own, scaled, pattern, first_slice, q0, q1,
    descending, pattern_ptr, slot, shift, vector, coefficients, b, has_b, less, diagonal, omega,
    new_begin, new_end,
):  # fmt: skip
    """Relax slices of one group, one after the other.

    Relaxes the slices q0 .. q1 of the row type, the last one first if ``descending``, and writes rows
    ``row + 8 q``, ``n_rows`` of the group in all: ``out = (1 - omega) x + omega (sum + b - less) /
    diagonal``, where the sum is that of the terms (see `multiply` of the vector code), b is left
    out unless ``has_b``, and a term reads out if its eight elements lie in the rows ``new_begin .. new_end``,
    x otherwise.

    Unless ``checked``, all eight elements must exist for every term, dead lanes included.
    """
    signature = types.void(
        checked, out, row, n_rows, x, base, scale, own, scaled, pattern, first_slice, q0, q1, descending,
        pattern_ptr, slot, shift, vector, coefficients, b, has_b, less, diagonal, omega,
        new_begin, new_end,
    )  # fmt: skip

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def emit(checked: bool) -> None:
            code = _SweptSlices(context, builder, sig, args, checked)
            emit_either(builder, args[8], code.emit)

        emit_either(builder, args[0], emit)
        return context.get_dummy_value()

    return signature, generate


class _SweptSlices:
    """Emits the loop over the slices of a group."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, checked: bool) -> None:
        def array(i: int) -> Any:
            return context.make_array(sig.args[i])(context, builder, args[i])

        self._builder, self._checked = builder, checked
        x = array(4)
        self._out, self._x, self._size = array(1).data, x.data, x.nitems
        self._row, self._n_rows, self._own = args[2], args[3], args[7]
        self._q0, self._q1, self._descending = args[11], args[12], truth(builder, args[13])
        self._b, self._has_b, self._diagonal = array(19).data, truth(builder, args[20]), array(22).data
        self._less, self._omega = splat(builder, args[21], VECTOR), splat(builder, args[23], VECTOR)
        self._rest = builder.fsub(constant(1.0), self._omega)
        self._new_begin, self._new_end = args[24:26]
        matrix = [array(i).data for i in (5, 6, 9, 14, 15, 16, 17, 18)]
        self._terms = Terms(builder, matrix, args[10], self._elements)

    def emit(self, scaled: bool) -> None:
        b, one = self._builder, ir.Constant(I64, 1)
        bases, scales, totals = self._terms.members([self._own], scaled)
        count = b.sub(self._q1, self._q0)
        last = b.sub(self._q1, one)
        with cgutils.for_range(b, count, intp=I64) as loop:
            up, down = b.add(self._q0, loop.index), b.sub(last, loop.index)
            q = b.select(self._descending, down, up)
            self._terms.add_up(q, bases, scales, totals)
            local = b.mul(q, EIGHT)
            left = b.sub(self._n_rows, local)
            at, total = b.add(self._row, local), b.load(totals[0])
            is_full = b.icmp_signed(">=", left, EIGHT)
            with b.if_else(is_full, likely=True) as (then, otherwise):
                with then:
                    self._relax(at, total, None)
                with otherwise:
                    # The dead lanes of the last slice belong to other groups and must not be written.
                    self._relax(at, total, inside(b, ir.Constant(I64, 0), left))

    def _relax(self, at: Any, total: Any, mask: Any) -> None:
        b = self._builder

        def load(address: Any) -> Any:
            return load_vector(b, address) if mask is None else load_some(b, address, mask)

        right = cgutils.alloca_once_value(b, b.fsub(total, self._less))
        with b.if_then(self._has_b):
            b.store(b.fadd(b.load(right), load(b.gep(self._b, [at]))), right)
        solved = b.fdiv(b.load(right), load(b.gep(self._diagonal, [at])))
        place = b.gep(self._out, [at])
        old = load(b.gep(self._x, [at]))
        new = b.fadd(b.fmul(self._rest, old), b.fmul(self._omega, solved))
        if mask is None:
            store_vector(b, new, place)
        else:
            store_some(b, new, place, mask)

    def _elements(self, start: Any) -> Any:
        b = self._builder
        begins = b.icmp_signed(">=", start, self._new_begin)
        is_new = b.and_(begins, b.icmp_signed("<=", b.add(start, EIGHT), self._new_end))
        place = b.gep(b.select(is_new, self._out, self._x), [start])
        if self._checked:
            return load_some(b, place, inside(b, start, self._size))
        return load_vector(b, place)


_INTS, _INT32S, _DOUBLES = types.int64[::1], types.int32[::1], types.float64[::1]
_INPUT = types.Array(types.float64, 1, "C", readonly=True)


_SIGNATURE = types.void(
    *[_INTS] * 6, types.boolean,
    _INTS, _INTS, _INTS, _INTS, _DOUBLES, types.boolean,
    _INTS, _INTS, _INT32S, _INTS, _INT32S, _INT32S, _INT32S, types.float64[:, ::1],
    _INPUT, _INPUT, types.boolean, types.float64, _INPUT, types.float64, _DOUBLES,
)  # fmt: skip


# A division by zero is infinite, as in vector code.
@njit(_SIGNATURE, cache=True, nogil=True, boundscheck=False, error_model="numpy")
def sweep_parts(  # type: ignore[no-untyped-def]
    counter, part_ptr, piece_row, piece_group, piece_begin, piece_end, descending,
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients,
    x, b, has_b, less, diagonal, omega, out,
):  # fmt: skip
    """Sweep, taking parts until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter : ndarray, shape (1,), int64
        Zero before the first call; the part that comes next.
    part_ptr : ndarray, shape (parts + 1,), int64
        First piece of every part.
    piece_row : ndarray, shape (pieces + 1,), int64
        First row of every piece; together they have all rows.
    piece_group : ndarray, shape (pieces,), int64
        Group of a piece; less than zero where rows have no entries.  A group g whose terms may reach outside
        x is reported as ``g + groups``.
    piece_begin, piece_end : ndarray, shape (pieces,), int64
        Its slices.
    descending : bool
        Whether the last rows come first.
    row, row_type, ..., coefficients
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`.
    x : ndarray, shape (n,), float64
        What the sweep begins with; not changed.
    b, diagonal : ndarray, shape (n,), float64
        b is read if `has_b`.
    less : float64
        Taken from every element of b.
    omega : float64
        Relaxation weight.
    out : ndarray, shape (n,), float64
        Written: ``(1 - omega) x + omega (M z + b - less) / diagonal`` with the newest values z.
    """
    n_groups = len(row)
    while True:
        part = fetch_add(counter, 1)
        if part >= len(part_ptr) - 1:
            break
        first, last = part_ptr[part], part_ptr[part + 1]
        for k in range(last - first):
            p = last - 1 - k if descending else first + k
            begin, end = piece_row[p], piece_row[p + 1]
            which = piece_group[p]
            if which < 0:
                for r in range(begin, end):
                    right = b[r] - less if has_b else -less
                    out[r] = (1.0 - omega) * x[r] + omega * (right / diagonal[r])
                continue
            # Eight elements that a term reads may reach into rows that come next.
            for r in range(begin, end):
                out[r] = x[r]
            new_begin, new_end = (begin, piece_row[last]) if descending else (piece_row[first], end)
            g = which if which < n_groups else which - n_groups
            kind = row_type[g]
            sweep_slices(
                which >= n_groups, out, row[g], rows[kind], x, base, scale, slot_ptr[g], scaled, pattern,
                slice_ptr[kind], piece_begin[p], piece_end[p], descending, pattern_ptr, slot, shift, vector,
                coefficients, b, has_b, less, diagonal, omega, new_begin, new_end,
            )  # fmt: skip


# The work of a layout in the order of its rows, cut into parts, for sweeps that use the newest values.

Int64Array = NDArray[np.int64]

_PIECE_SLICES = 32
"""Slices of a piece, at most: their old and new values lie in the cache."""

_PART_TERMS = 20_000
"""Terms that are worth a part, and a thread."""

_PARTS = 4
"""Greatest number of parts: independent of the threads, as results are; more parts mean more sweeps."""

_MANY_TERMS = 4_000_000
"""Terms from which there are twice as many: a sweep takes so long then that many cores shall share it."""

_GAP_TERMS = 1 / 4
"""Terms that a row without entries costs."""


class SweepSchedule(Record, eq=False):
    """Pieces of a layout's groups in the order of their rows.

    Attributes
    ----------
    part_ptr : ndarray, shape (parts + 1,), int64
        First piece of every part.
    piece_row : ndarray, shape (pieces + 1,), int64
        First row of every piece; together they have all rows.
    piece_group, piece_begin, piece_end : ndarray, shape (pieces,), int64
        See `sweep_parts`.
    """

    part_ptr: Int64Array
    piece_row: Int64Array
    piece_group: Int64Array
    piece_begin: Int64Array
    piece_end: Int64Array

    def __len__(self) -> int:
        return len(self.part_ptr) - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.part_ptr.nbytes + self.piece_row.nbytes + 3 * self.piece_group.nbytes


def schedule_sweep(
    layout: CpuLayout, n_rows: int, parts: int | None = None, sharing: int = 1
) -> SweepSchedule:
    """Cut a layout into parts of consecutive rows.

    Parameters
    ----------
    layout : CpuLayout
    n_rows : int
        Rows of the matrix.
    parts : int, optional
        By default as many as the work is worth.
    sharing : int
        Processes that have parts of the same matrix: all of them together have about as many as one would.

    Notes
    -----
    Time: O(groups log groups + slices / 32).
    """
    table, row, kind = layout.table, layout.row, layout.row_type
    order = np.argsort(row, kind="stable")
    slices = np.diff(table.ptr)[kind[order]]
    cuts = -(-slices // _PIECE_SLICES)
    owner = np.repeat(order, cuts)
    begin = (np.arange(len(owner)) - np.repeat(pointers(np, cuts)[:-1], cuts)) * _PIECE_SLICES
    end = np.minimum(begin + _PIECE_SLICES, np.repeat(slices, cuts))
    reaches_out = np.zeros(len(row), bool)
    reaches_out[layout.piece_group[layout.piece_count == 0]] = True
    terms = np.append(0, np.cumsum(table.terms_of_slices))
    first_slice = table.ptr[kind[owner]]
    # A slice costs about two terms besides its own.
    cost = 2.0 * (end - begin) + terms[first_slice + end] - terms[first_slice + begin]
    at = row[owner] + 8 * begin
    group = owner + np.where(reaches_out[owner], len(row), 0)
    gap_begin, gap_end = _cut_gaps(layout)
    if len(gap_begin):
        nothing, zero = np.full(len(gap_begin), -1), np.zeros(len(gap_begin), np.int64)
        at, group = np.append(at, gap_begin), np.append(group, nothing)
        begin, end = np.append(begin, zero), np.append(end, zero)
        cost = np.append(cost, _GAP_TERMS * (gap_end - gap_begin))
        by_row = np.argsort(at, kind="stable")
        at, group, begin, end, cost = at[by_row], group[by_row], begin[by_row], end[by_row], cost[by_row]
    done = np.cumsum(cost)
    total = float(done[-1]) if len(done) else 0.0
    inner = cuts_of_equal_cost(done, parts_for(total, sharing) if parts is None else parts)
    ptr = np.concatenate(([0], inner, [len(at)])).astype(np.int64)
    piece_row = np.append(at, n_rows).astype(np.int64)
    return SweepSchedule(ptr, piece_row, group.astype(np.int64), begin, end)


def parts_for(terms: float, sharing: int = 1) -> int:
    """Return the parts that so many terms, or entries, are worth in each of some processes."""
    most = 2 * _PARTS if terms * sharing >= _MANY_TERMS else _PARTS
    return int(min(max(terms // _PART_TERMS, 1), max(most // sharing, 1)))


def _cut_gaps(layout: CpuLayout) -> tuple[Int64Array, Int64Array]:
    """Return the rows that no group covers, in ranges no longer than a piece."""
    longest = 8 * _PIECE_SLICES
    cuts = -(-(layout.gap_end - layout.gap_begin) // longest)
    gap = np.repeat(np.arange(len(cuts)), cuts)
    within = np.arange(len(gap)) - np.repeat(pointers(np, cuts)[:-1], cuts)
    begin = layout.gap_begin[gap] + longest * within
    return begin, np.minimum(begin + longest, layout.gap_end[gap])


Float64Array = NDArray[np.float64]

_NOTHING = np.zeros(0)


class RowSweep:
    """Sweeps of a matrix laid out for the CPU.

    Parameters
    ----------
    layout : CpuLayout
        A matrix without diagonal.
        It may have columns behind those of its rows, whose elements are never new.
    n_rows : int
        Its rows.
    schedule : SweepSchedule, optional
        By default that of `schedule_sweep`.

    Notes
    -----
    Not to be called from several threads at once.
    """

    def __init__(self, layout: CpuLayout, n_rows: int, schedule: SweepSchedule | None = None) -> None:
        found = schedule_sweep(layout, n_rows) if schedule is None else schedule
        self.schedule, self._parts = found, len(found)
        pieces = found.piece_row, found.piece_group, found.piece_begin, found.piece_end
        self._pieces, self._matrix = (
            SharedArguments((found.part_ptr, *pieces)),
            SharedArguments(layout.arguments),
        )
        self._counter = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the schedule, beside those of the layout."""
        return self.schedule.nbytes

    def sweep(
        self,
        x: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        out: Float64Array,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """Write ``(1 - omega) x + omega (b - less + M z) / diagonal``, with the newest values z, to ``out``.

        Parameters
        ----------
        x : ndarray, shape (columns,), float64
        diagonal : ndarray, shape (n,), float64
        b : ndarray, shape (n,), float64, or None
            None is zero.
        out : ndarray, shape (n,), float64
            No part of x.
        less : float
            Taken from every element of b.
        omega : float
            Relaxation weight.
        descending : bool
            Whether the last rows come first.

        Notes
        -----
        Time: O(terms), on as many threads as there are parts, at most.  The result does not depend on their
        number.  Zero coefficients meet elements that are no numbers.
        """
        self._counter[0] = 0
        threads = min(thread_count(), self._parts)
        operands = x, _NOTHING if b is None else b, b is not None, less, diagonal, omega, out
        if threads == 1:
            pieces, matrix = self._pieces.arguments, self._matrix.arguments
            sweep_parts(self._counter, *pieces, descending, *matrix, *operands)
        else:
            run_kernel(sweep_parts, threads, self._counter, self._pieces, descending, self._matrix, *operands)


# Gauss-Seidel on compressed sparse rows: row after row, from the newest values, in either direction.


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def sweep_rows(  # type: ignore[no-untyped-def]
    begin, end, indptr, indices, data, descending, x, b, has_b, less, diagonal, omega, out
):
    """Sweep over a part of the rows: others are seen as the sweep began with them.

    Parameters
    ----------
    begin, end : int64
        Rows of the part.
    indptr, indices, data : ndarray
        M in CSR, shape (n, n), without diagonal.
    descending, x, b, has_b, less, diagonal, omega, out
        As for `sweep_parts`; of `out` the rows of the part are written.
    """
    for k in range(end - begin):
        i = end - 1 - k if descending else begin + k
        new_begin, new_end = (i + 1, end) if descending else (begin, i)
        total = b[i] - less if has_b else -less
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            total += data[e] * (out[j] if new_begin <= j < new_end else x[j])
        out[i] = (1.0 - omega) * x[i] + omega * (total / diagonal[i])


class CsrSweep:
    """Sweeps of a matrix in compressed sparse rows.

    Parameters
    ----------
    csr : scipy.sparse.csr_matrix
        Square, of float64, without diagonal.
    parts : int, optional
        Parts of the rows; by default as many as the work is worth.
    """

    def __init__(self, csr: Any, parts: int | None = None) -> None:
        count = parts_for(csr.nnz) if parts is None else parts
        cost = csr.indptr.astype(np.int64) + np.arange(len(csr.indptr))
        inner = cuts_of_equal_cost(cost, count)
        self.cuts = np.concatenate(([0], inner, [len(cost) - 1])).astype(np.int64)
        self._rows = PerPart(self.cuts[:-1]), PerPart(self.cuts[1:])
        self._matrix = SharedArguments((csr.indptr, csr.indices, csr.data))
        # Of no row, so that no compilation hides in the iterations' time.
        nothing = _NOTHING, _NOTHING, False, 0.0, _NOTHING, 1.0, _NOTHING
        sweep_rows(0, 0, *self._matrix.arguments, False, *nothing)

    def sweep(
        self,
        x: Float64Array,
        b: Float64Array | None,
        diagonal: Float64Array,
        out: Float64Array,
        less: float = 0.0,
        omega: float = 1.0,
        descending: bool = False,
    ) -> None:
        """See `RowSweep.sweep`; here every row sees the newest values of its part."""
        right = _NOTHING if b is None else b
        parts = len(self.cuts) - 1
        run_kernel(
            sweep_rows, min(thread_count(), parts), *self._rows, self._matrix, descending, x, right,
            b is not None, less, diagonal, omega, out, parts=parts,
        )  # fmt: skip
