"""Block sweeps of the hybrid matrix and row sweeps of compressed rows, against dense ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hybrid.cpu import sweep
from hybrid.cpu.blocks import block_rows_for, schedule_blocks
from hybrid.cpu.csr import CsrMatrix
from hybrid.cpu.layout import WINDOW_ROWS
from hybrid.cpu.threads import set_thread_count
from hybrid.operators.inject import inject
from hybrid.solvers.gauss_seidel import relax_by_tasks
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


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("level", [0, 3, 6, 9, 12, 18])
@pytest.mark.parametrize(("omega", "with_b"), [(1.0, True), (0.8, True), (1.0, False)])
def test_sweep_relaxes_block_by_block(level, omega, with_b, rng):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    matrix = inject(from_dense(dense, codes, codes, 9), level, "cpu")
    right = b if with_b else None
    for block_rows in (8, 32, 256, WINDOW_ROWS):
        swept = sweep.BlockSweep(matrix.product.layout, N, block_rows)
        starts = swept.schedule.start
        assert (starts[0], starts[-1]) == (0, N)
        assert (np.diff(starts) > 0).all()
        y = x.copy()
        changes = swept.gauss_seidel_step(y, right, diagonal, omega)
        expected, wanted = relaxed(dense, x, right, diagonal, omega, starts)
        np.testing.assert_allclose(y, expected, rtol=1e-13)
        np.testing.assert_allclose(changes, wanted, rtol=1e-9)


def test_small_blocks_are_many_blocks(rng):
    dense, *_ = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), 0, "cpu").product.layout
    assert len(schedule_blocks(layout, N, 8)) == math.ceil(N / 8)
    assert len(schedule_blocks(layout, N, 64)) == math.ceil(N / 64)


def test_threads_work_on_one_block_together(rng, monkeypatch):
    dense, diagonal, b, x = system(rng)
    codes = random_codes(rng, 9, N)
    layout = inject(from_dense(dense, codes, codes, 9), 10, "cpu").product.layout
    monkeypatch.setattr(sweep, "_THREADED_TERMS", 0)
    set_thread_count(3)
    try:
        swept = sweep.BlockSweep(layout, N, 32)
        assert swept._chunks is not None
        y = x.copy()
        changes = swept.gauss_seidel_step(y, b, diagonal, 1.0)
    finally:
        set_thread_count(None)
    expected, wanted = relaxed(dense, x, b, diagonal, 1.0, swept.schedule.start)
    np.testing.assert_allclose(y, expected, rtol=1e-13)
    np.testing.assert_allclose(changes, wanted, rtol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9])
def test_tiny_and_zero_matrices(n, rng):
    dense = np.zeros((n, n))
    codes = np.arange(n)
    matrix = inject(from_dense(dense, codes, codes, 4), 2, "cpu")
    swept = sweep.BlockSweep(matrix.product.layout, n)
    x, b = np.ones(n), np.full(n, 3.0)
    changes = swept.gauss_seidel_step(x, b, np.full(n, 2.0), 1.0)
    np.testing.assert_array_equal(x, np.full(n, 1.5))
    assert changes == ((0.5, 0.5 / 1.5) if n else (0.0, 0.0))


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
    swept = sweep.BlockSweep(inject(symbolic, 6, "cpu").product.layout, N)
    assert swept.gauss_seidel_step(x.copy(), b, diagonal, 1.0) == (math.inf, math.inf)
    assert CsrMatrix(csr_matrix(dense)).gauss_seidel_step(x.copy(), b, diagonal, 1.0)[0] == math.inf
    assert relax_by_tasks(inject(symbolic, 6, "reference").tasks, x, b, diagonal, 1.0)[0] == math.inf


def test_block_sizes():
    assert [block_rows_for(n) for n in (1, 5000, 100_000, 10**9)] == [64, 64, 1024, WINDOW_ROWS]
    layout = inject(from_dense(np.eye(4)[::-1], n_bits=2), 0, "cpu").product.layout
    for wrong in (0, 4, 24, 2 * WINDOW_ROWS):
        with pytest.raises(ValueError, match="power of two"):
            schedule_blocks(layout, 4, wrong)
