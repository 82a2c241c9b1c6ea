"""Sweeps of the hybrid matrix and row sweeps of compressed rows, against dense ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hybrid.cpu import sweep
from hybrid.cpu.csr import CsrMatrix
from hybrid.cpu.layout import build_cpu_layout
from hybrid.cpu.sweep_schedule import schedule_sweep
from hybrid.cpu.threads import set_thread_count
from hybrid.injection.block_classes import find_block_classes
from hybrid.injection.row_types import RowTypes
from hybrid.operators.inject import inject
from hybrid.solvers.gauss_seidel import relax_by_tasks
from hybrid.solvers.gauss_seidel import _sweep_of as solver_sweep
from tests.builders.matrices import from_dense, random_codes, random_sparse

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
    """Return a sweep by slices, each from the newest values but those of the chunks at work at once."""
    out, n = x.copy(), len(x)
    right = (np.zeros(n) if b is None else b) - less
    starts, window, chunks = schedule.chunk_row, schedule.window, len(schedule)
    for c in range(chunks)[:: -1 if descending else 1]:
        new = [(starts[c], starts[c + 1])]
        new += [(starts[min(c + window, chunks)], n) if descending else (0, starts[max(c - window + 1, 0)])]
        if window == 1:
            new = [(min(new)[0], max(new)[1])]
        for rows in slices_of(layout, schedule, c, descending):
            total = right[rows].copy()
            for lane, row in enumerate(range(rows.start, rows.stop)):
                for column in np.flatnonzero(dense[row]):
                    # A term reads eight elements at once, and all of them from one vector.
                    begin = column - lane
                    is_new = any(lower <= begin and begin + 8 <= upper for lower, upper in new)
                    total[lane] += dense[row, column] * (out if is_new else x)[column]
            out[rows] = (1 - omega) * out[rows] + omega * total / diagonal[rows]
    return out


def slices_of(layout, schedule, c, descending):
    """Return the ranges of rows that chunk c relaxes, in its order."""
    found = []
    for p in range(schedule.chunk_ptr[c], schedule.chunk_ptr[c + 1]):
        group, begin, end = schedule.piece_group[p], schedule.piece_begin[p], schedule.piece_end[p]
        if group < 0:
            found += [slice(row, row + 1) for row in range(begin, end)]
            continue
        group %= len(layout.row)
        first, size = layout.row[group], layout.table.rows[layout.row_type[group]]
        found += [slice(first + 8 * q, first + min(8 * q + 8, size)) for q in range(begin, end)]
    return found[::-1] if descending else found


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("level", [0, 3, 6, 9, 12, 18])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("omega", "with_b", "less"), [(1.0, True, 0.0), (0.8, True, 0.25), (1.0, False, 0.5)])
def test_sweep_takes_slices_from_the_newest_values(level, descending, omega, with_b, less, rng):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), level, "cpu").product.layout
    schedule = schedule_sweep(layout, N)
    assert (len(schedule), schedule.window) == (1, 1)
    out = np.full(N, np.nan)
    right = b if with_b else None
    sweep.RowSweep(layout, N).sweep(x, right, diagonal, out, less, omega, descending)
    expected = swept(dense, layout, schedule, x, right, diagonal, less, omega, descending)
    np.testing.assert_allclose(out, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("level", [6, 9, 18])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_see_those_that_are_done_for_sure(level, descending, window, threads, rng, monkeypatch):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), level, "cpu").product.layout
    schedule = replace(schedule_sweep(layout, N, 20), window=window)
    assert len(schedule) > 5
    assert (schedule.chunk_row[0], schedule.chunk_row[-1]) == (0, N)
    assert (np.diff(schedule.chunk_row) > 0).all()
    monkeypatch.setattr(sweep, "threads_for", lambda _: threads)
    found = sweep.RowSweep(layout, N, schedule)
    expected = swept(dense, layout, schedule, x, b, diagonal, 0.0, 1.0, descending)
    for _ in range(20):
        out = np.full(N, np.nan)
        found.sweep(x, b, diagonal, out, descending=descending)
        np.testing.assert_allclose(out, expected, rtol=1e-13)


def test_a_sweep_is_cut_the_same_whatever_the_threads(rng):
    dense, *_ = system(rng)
    layout = inject(from_dense(dense, n_bits=9), 6, "cpu").product.layout
    set_thread_count(7)
    try:
        many = schedule_sweep(layout, N, 20)
    finally:
        set_thread_count(None)
    np.testing.assert_array_equal(many.chunk_ptr, schedule_sweep(layout, N, 20).chunk_ptr)
    assert many.window == schedule_sweep(layout, N, 20).window


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
    schedule, diagonal = replace(schedule_sweep(layout, n, 500), window=2), 1.0 + dense.sum(axis=1)
    assert len(schedule) == 4
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
    layout = build_cpu_layout(RowTypes(find_block_classes(from_dense(dense, codes, codes, 7), scaled=True)), 6)
    assert layout is not None and layout.scaled
    schedule, diagonal = schedule_sweep(layout, n, 10), 1.0 + dense.sum(axis=1)
    assert (schedule.piece_group >= len(layout.row)).any()
    x, b = rng.random(n), rng.random(n)
    for descending in (False, True):
        out = np.full(n, np.nan)
        sweep.RowSweep(layout, n, schedule).sweep(x, b, diagonal, out, descending=descending)
        expected = swept(dense, layout, schedule, x, b, diagonal, 0.0, 1.0, descending)
        np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_rows_of_csr_use_the_newest_values(rng):
    dense, diagonal, b, x = system(rng)
    matrix = CsrMatrix(csr_matrix(dense))
    for omega, right in ((1.0, b), (1.3, b), (0.9, None)):
        y = x.copy()
        changes = matrix.gauss_seidel_step(y, right, diagonal, omega)
        expected, wanted = relaxed(dense, x, right, diagonal, omega, np.arange(N + 1))
        np.testing.assert_allclose(y, expected, rtol=1e-13)
        np.testing.assert_allclose(changes, wanted, rtol=1e-9)


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
    assert CsrMatrix(csr_matrix(dense)).gauss_seidel_step(x.copy(), b, diagonal, 1.0)[0] == math.inf
    assert relax_by_tasks(inject(symbolic, 6, "reference").tasks, x, b, diagonal, 1.0)[0] == math.inf
