"""Sweeps of the hybrid matrix and row sweeps of compressed rows, against dense ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hybrid.matrix.cpu import sweep
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.cpu.layout import build_cpu_layout
from hybrid.matrix.cpu.sweep import CsrSweep, parts_for, schedule_sweep
from hybrid.matrix.cpu.threads import set_thread_count
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.submatrices import find_block_classes
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.host import HostSpace
from hybrid.solvers.iteration import _sweep_of as solver_sweep
from hybrid.solvers.iteration import relax_by_tasks
from tests.builders.matrices import from_dense, random_codes, random_sparse
from tests.exploring import pairs

N = 300


def system(rng, n=N, density=0.03, planted=True):
    """Return a dense matrix without diagonal with equal blocks and empty rows, and the rest of a system."""
    dense = random_sparse(rng, n, n, density)
    if planted and n >= 160:
        dense[64:96] = 0.0
        dense[32:64, 32:64] = dense[96:128, 96:128] = dense[128:160, 128:160] = dense[:32, :32]
    np.fill_diagonal(dense, 0.0)
    diagonal = 1.0 + dense.sum(axis=1)
    return dense, diagonal, rng.random(n), rng.random(n)


def relaxed(dense, x, b, diagonal, omega, starts):
    """Return a sweep by blocks of rows, each from the newest values of the others, and the changes."""
    x = x.copy()
    changes = [0.0, 0.0]
    for begin, end in zip(starts[:-1], starts[1:], strict=True):
        rows = slice(begin, end)
        total = dense[rows] @ x + (0 if b is None else b[rows])
        new = (1 - omega) * x[rows] + omega * total / diagonal[rows]
        change = np.abs(new - x[rows])
        changes[0] = max(changes[0], change.max(initial=0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            changes[1] = max(changes[1], np.nan_to_num(change / np.abs(new), posinf=np.inf).max(initial=0.0))
        x[rows] = new
    return x, changes


def swept(dense, layout, schedule, x, b, diagonal, less, omega, descending):
    """Return a sweep by slices, each from the newest values of its part."""
    out = x.copy()
    right = (0.0 if b is None else b) - less + np.zeros(len(x))
    row, ptr = schedule.piece_row, schedule.part_ptr
    for first, last in zip(ptr[:-1], ptr[1:], strict=True):
        for p in range(first, last)[:: -1 if descending else 1]:
            new = (row[p], row[last]) if descending else (row[first], row[p + 1])
            for rows in slices_of(layout, schedule, p)[:: -1 if descending else 1]:
                total = right[rows].copy()
                for lane, r in enumerate(range(rows.start, rows.stop)):
                    for column in np.flatnonzero(dense[r]):
                        # A term reads eight elements at once, and all of them from one vector.
                        is_new = new[0] <= column - lane and column - lane + 8 <= new[1]
                        total[lane] += dense[r, column] * (out if is_new else x)[column]
                out[rows] = (1 - omega) * x[rows] + omega * total / diagonal[rows]
    return out


def slices_of(layout, schedule, p):
    """Return the ranges of rows of a piece that are relaxed at once."""
    group, begin, end = schedule.piece_group[p], schedule.piece_begin[p], schedule.piece_end[p]
    if group < 0:
        return [slice(row, row + 1) for row in range(schedule.piece_row[p], schedule.piece_row[p + 1])]
    group %= len(layout.row)
    first, size = layout.row[group], layout.table.rows[layout.row_type[group]]
    return [slice(first + 8 * q, first + min(8 * q + 8, size)) for q in range(begin, end)]


@pytest.mark.parametrize(
    ("omega", "with_b", "less", "descending", "level"),
    pairs([(1.0, True, 0.0), (0.8, True, 0.25), (1.0, False, 0.5)], [False, True], [0, 3, 6, 9, 12, 18]),
)
def test_sweep_takes_slices_from_the_newest_values(level, descending, omega, with_b, less, rng):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), level, "cpu").product.layout
    schedule = schedule_sweep(layout, N)
    assert len(schedule) == 1
    out = np.full(N, np.nan)
    right = b if with_b else None
    sweep.RowSweep(layout, N).sweep(x, right, diagonal, out, less, omega, descending)
    expected = swept(dense, layout, schedule, x, right, diagonal, less, omega, descending)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("level", "descending", "parts"), pairs([3, 9, 18], [False, True], [1, 2, 5]))
def test_parts_see_the_old_values_of_others(level, descending, parts, rng):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), level, "cpu").product.layout
    schedule = schedule_sweep(layout, N, parts)
    assert len(schedule) == parts
    assert (schedule.piece_row[0], schedule.piece_row[-1]) == (0, N)
    assert (np.diff(schedule.piece_row) > 0).all()
    found = sweep.RowSweep(layout, N, schedule)
    expected = swept(dense, layout, schedule, x, b, diagonal, 0.0, 1.0, descending)
    for _ in range(5):
        out = np.full(N, np.nan)
        found.sweep(x, b, diagonal, out, descending=descending)
        np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_little_work_is_one_part(rng):
    dense, *_ = system(rng)
    layout = inject(from_dense(dense, n_bits=9), 6, "cpu").product.layout
    assert len(schedule_sweep(layout, N)) == 1
    assert [parts_for(terms) for terms in (0, 39_000, 61_000, 1e6, 1e9)] == [1, 1, 3, 4, 8]
    # Processes together have as many: two that have half of the terms each, and nine.
    assert [parts_for(terms, 2) for terms in (0, 39_000, 61_000, 1e6, 2e6, 1e9)] == [1, 1, 2, 2, 4, 4]
    assert parts_for(1e9, 9) == 1


def test_threads_change_nothing(rng):
    dense, diagonal, b, x = system(rng)
    layout = inject(from_dense(dense, n_bits=9), 6, "cpu").product.layout
    swept = sweep.RowSweep(layout, N, schedule_sweep(layout, N, 4)), CsrSweep(csr_matrix(dense), 4)
    for found in swept:
        results = []
        for threads in (1, 2, 3, 9):
            set_thread_count(threads)
            try:
                results.append(np.full(N, np.nan))
                found.sweep(x, b, diagonal, results[-1])
            finally:
                set_thread_count(None)
        assert all((one == results[0]).all() for one in results)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 600])
def test_tiny_and_zero_matrices(n):
    dense = np.zeros((n, n))
    codes = np.arange(n)
    matrix = inject(from_dense(dense, codes, codes, 10), 2, "cpu")
    x, b, out = np.ones(n), np.full(n, 3.0), np.full(n, np.nan)
    sweep.RowSweep(matrix.product.layout, n).sweep(x, b, np.full(n, 2.0), out)
    np.testing.assert_array_equal(out, np.full(n, 1.5))
    changes = solver_sweep(matrix)(x, b, np.full(n, 2.0), 1.0)
    assert changes == ((0.5, 0.5 / 1.5) if n else (0.0, 0.0))
    np.testing.assert_array_equal(x, np.full(n, 1.5))


def test_large_groups_are_cut(rng):
    n = 1000
    dense = random_sparse(rng, n, n, 0.01)
    np.fill_diagonal(dense, 0.0)
    layout = inject(from_dense(dense, n_bits=10), 0, "cpu").product.layout
    assert len(layout.row) == 1
    schedule, diagonal = schedule_sweep(layout, n, 3), 1.0 + dense.sum(axis=1)
    assert len(schedule) == 3
    assert len(schedule.piece_group) == 4
    x, b, out = rng.random(n), rng.random(n), np.full(n, np.nan)
    sweep.RowSweep(layout, n, schedule).sweep(x, b, diagonal, out, descending=True)
    expected = swept(dense, layout, schedule, x, b, diagonal, 0.0, 1.0, True)
    np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_scaled_slots_and_terms_beyond_the_border(rng):
    # Blocks that are multiples of each other, of a size that is no multiple of eight.
    n, size = 60, 12
    block = random_sparse(rng, size, size, 0.4)
    dense = np.kron(rng.random((n // size, n // size)), block)
    np.fill_diagonal(dense, 0.0)
    codes = np.concatenate([16 * k + np.arange(size) for k in range(n // size)])
    layout = build_cpu_layout(
        RowTypes(find_block_classes(from_dense(dense, codes, codes, 7), scaled=True)), 6
    )
    assert layout is not None and layout.scaled
    schedule, diagonal = schedule_sweep(layout, n, 2), 1.0 + dense.sum(axis=1)
    assert (schedule.piece_group >= len(layout.row)).any()
    x, b = rng.random(n), rng.random(n)
    for descending in (False, True):
        out = np.full(n, np.nan)
        sweep.RowSweep(layout, n, schedule).sweep(x, b, diagonal, out, descending=descending)
        expected = swept(dense, layout, schedule, x, b, diagonal, 0.0, 1.0, descending)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("omega", "with_b", "less", "descending", "parts"),
    pairs([(1.0, True, 0.0), (1.3, True, 0.25), (0.9, False, 0.5)], [False, True], [1, 3]),
)
def test_rows_of_csr_use_the_newest_values(parts, descending, omega, with_b, less, rng):
    dense, diagonal, b, x = system(rng)
    right = b if with_b else None
    expected = x.copy()
    found = CsrSweep(csr_matrix(dense), parts)
    for begin, end in zip(found.cuts[:-1], found.cuts[1:], strict=True):
        seen = x.copy()
        for row in range(begin, end)[:: -1 if descending else 1]:
            total = dense[row] @ seen + (right[row] if with_b else 0.0) - less
            seen[row] = expected[row] = (1 - omega) * x[row] + omega * total / diagonal[row]
    assert (found.cuts[0], found.cuts[-1], len(found.cuts)) == (0, N, parts + 1)
    out = np.full(N, np.nan)
    found.sweep(x, right, diagonal, out, less, omega, descending)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-15)


def test_steps_of_the_method_are_sweeps(rng):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    matrix = inject(from_dense(dense, codes, codes, 9), 9, "cpu")
    layout = matrix.product.layout
    for held, sweeps in (
        (matrix, sweep.RowSweep(layout, N)),
        (CsrMatrix(csr_matrix(dense)), CsrSweep(csr_matrix(dense))),
    ):
        y, out = x.copy(), np.empty(N)
        changes = solver_sweep(held)(y, b, diagonal, 0.8)
        sweeps.sweep(x, b, diagonal, out, omega=0.8)
        np.testing.assert_array_equal(y, out)
        wanted = np.abs(out - x).max(), (np.abs(out - x) / np.abs(out)).max()
        np.testing.assert_allclose(changes, wanted, rtol=1e-12)


def test_reference_relaxes_task_by_task(rng):
    dense, diagonal, b, x = system(rng, 600, 0.01)
    codes = random_codes(rng, 10, 600)
    matrix = inject(from_dense(dense, codes, codes, 10), 8, "reference")
    y = x.copy()
    changes = relax_by_tasks(matrix.tasks, y, b, diagonal, 0.7)
    expected, wanted = relaxed(dense, x, b, diagonal, 0.7, [0, 256, 512, 600])
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    np.testing.assert_allclose(changes, wanted, rtol=1e-9)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_values_that_are_no_numbers_are_reported(rng, bad):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    symbolic = from_dense(dense, codes, codes, 9)
    b[17] = bad
    assert solver_sweep(inject(symbolic, 6, "cpu"))(x.copy(), b, diagonal, 1.0) == (math.inf, math.inf)
    assert solver_sweep(CsrMatrix(csr_matrix(dense)))(x.copy(), b, diagonal, 1.0)[0] == math.inf
    assert relax_by_tasks(inject(symbolic, 6, "reference").tasks, x, b, diagonal, 1.0)[0] == math.inf


def test_rows_in_another_order_are_refused(rng):
    dense, *_ = system(rng, 20, 0.3)
    matrix = inject(from_dense(dense, n_bits=5), 3, "cpu")
    # As of a model whose states are numbered by a file: products alone are its own.
    matrix.vector_space = lambda: HostSpace(matrix)
    with pytest.raises(ValueError, match="another order than its diagram"):
        solver_sweep(matrix)
