"""Products and steps over tasks on the CPU, against the reference backend and dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.matrix.cpu import threads
from hybrid.matrix.cpu.task_product import CpuTaskProduct
from hybrid.matrix.cpu.threads import set_thread_count
from hybrid.matrix.injection.injected import TaskList, cut_tasks, inject_level
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.reference import ReferenceProduct, relax_in_place
from hybrid.solvers.iteration import relax_by_tasks
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense, random_codes, random_sparse

SIZES = (1, 255, 256, 257, 513)


def sparse(rng: np.random.Generator, n_rows: int, n_columns: int) -> tuple[np.ndarray, OffsetMTBDD]:
    """A matrix with empty rows, over codes with gaps."""
    dense = random_sparse(rng, n_rows, n_columns, 0.05)
    dense[rng.integers(0, n_rows, n_rows // 3)] = 0.0
    codes = random_codes(rng, 10, n_rows), random_codes(rng, 10, n_columns)
    return dense, from_dense(dense, *codes, 10)


def tasks_of(matrix: OffsetMTBDD, level: int, task_rows: int = 256) -> TaskList:
    return cut_tasks(inject_level(matrix, level), task_rows)


def absolute(dense: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What errors of a product are small against, whatever the order of its sums."""
    return 1e-300 + 8 * np.finfo(float).eps * (np.abs(dense) @ np.abs(x)) * (1 + np.log2(1 + dense.shape[1]))


@pytest.mark.parametrize("size", SIZES)
def test_products_are_those_of_the_reference_at_every_level(rng: np.random.Generator, size: int) -> None:
    dense, matrix = sparse(rng, size, max(1, size - 3))
    x = rng.normal(size=dense.shape[1])
    for level in range(size % 3, matrix.n_levels + 1, 3):
        tasks = tasks_of(matrix, level)
        out, plain = np.full(size, np.nan), np.full(size, np.nan)
        CpuTaskProduct(tasks).multiply(x, out)
        ReferenceProduct(tasks).multiply(x, plain)
        # Both add the entries of a row in the order of the instances.
        np.testing.assert_array_equal(out, plain)
        assert np.all(np.abs(out - dense @ x) <= absolute(dense, x))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60), st.integers(1, 40), st.integers(0, 20))
def test_random_matrices_levels_and_tasks(
    seed: int, n_rows: int, n_columns: int, task_rows: int, level: int
) -> None:
    rng = np.random.default_rng(seed)
    dense, matrix = sparse(rng, n_rows, n_columns)
    tasks = tasks_of(matrix, level, task_rows)
    x, out = rng.normal(size=n_columns), np.full(n_rows, np.nan)
    CpuTaskProduct(tasks).multiply(x, out)
    plain = np.empty(n_rows)
    ReferenceProduct(tasks).multiply(x, plain)
    np.testing.assert_array_equal(out, plain)


def test_tasks_without_instances_are_rows_of_zeros(rng: np.random.Generator) -> None:
    dense = np.zeros((1100, 1100))
    dense[300, 5] = dense[1099, 1099] = 2.5
    matrix = from_dense(dense)
    for level in (0, 4, matrix.n_levels):
        tasks = tasks_of(matrix, level)
        assert (np.diff(tasks.task_ptr) == 0).any()
        out = np.full(1100, np.nan)
        x = rng.random(1100)
        CpuTaskProduct(tasks).multiply(x, out)
        np.testing.assert_array_equal(out, dense @ x)
    zero = from_dense(np.zeros((5, 5)), np.arange(5), np.arange(5), 3)
    out = np.full(5, np.nan)
    CpuTaskProduct(tasks_of(zero, 2)).multiply(np.ones(5), out)
    np.testing.assert_array_equal(out, np.zeros(5))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_result_does_not_depend_on_the_threads(
    rng: np.random.Generator, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_SERIAL", 0)
    dense, matrix = sparse(rng, 900, 900)
    tasks, x = tasks_of(matrix, 7), rng.random(900)
    expected, out = np.empty(900), np.empty(900)
    ReferenceProduct(tasks).multiply(x, expected)
    try:
        set_thread_count(count)
        CpuTaskProduct(tasks).multiply(x, out)
    finally:
        set_thread_count(None)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("omega", [1.0, 0.8])
@pytest.mark.parametrize("with_b", [False, True])
def test_steps_are_those_of_the_reference(rng: np.random.Generator, omega: float, with_b: bool) -> None:
    for size in (5, 256, 603):
        _, matrix = sparse(rng, size, size)
        tasks = tasks_of(matrix, 9)
        x, diagonal = rng.random(size), rng.uniform(1, 3, size)
        b = rng.random(size) if with_b else None
        out, plain = np.empty(size), np.empty(size)
        changes = CpuTaskProduct(tasks).relax(x, b, diagonal, omega, out)
        expected = ReferenceProduct(tasks).relax(x, b, diagonal, omega, plain)
        np.testing.assert_allclose(out, plain, rtol=1e-15)
        assert changes == pytest.approx(expected, rel=1e-12)


def test_infinite_elements_reach_only_their_own_rows(rng: np.random.Generator) -> None:
    dense, matrix = sparse(rng, 300, 300)
    x, diagonal = rng.random(300), np.ones(300)
    x[20] = math.inf
    tasks = tasks_of(matrix, 8)
    out, expected = np.empty(300), np.empty(300)
    CpuTaskProduct(tasks).multiply(x, out)
    np.testing.assert_array_equal(np.isinf(out), dense[:, 20] != 0.0)
    assert not np.isnan(out).any()
    ReferenceProduct(tasks).multiply(x, expected)
    differences = relax_in_place(x, None, diagonal, 1.0, expected)
    found = CpuTaskProduct(tasks).relax(x, None, diagonal, 1.0, out)
    np.testing.assert_array_equal(out, expected)
    assert np.isnan(found[0]) == np.isnan(differences[0])


@pytest.mark.parametrize("task_rows", [256, 100])
def test_sweeps_are_those_of_the_reference(rng: np.random.Generator, task_rows: int) -> None:
    size = 700
    _, matrix = sparse(rng, size, size)
    tasks = tasks_of(matrix, 6, task_rows)
    diagonal, b, x = rng.uniform(1, 3, size), rng.random(size), rng.random(size)
    product = CpuTaskProduct(tasks).sweep()
    for right in (None, b):
        mine, plain = x.copy(), x.copy()
        found = product.gauss_seidel_step(mine, right, diagonal, 0.7)
        expected = relax_by_tasks(tasks, plain, right, diagonal, 0.7)
        np.testing.assert_allclose(mine, plain, rtol=1e-14)
        assert found == pytest.approx(expected, rel=1e-12)
    dense = np.eye(3)[::-1]
    broken = CpuTaskProduct(tasks_of(from_dense(dense), 1)).sweep()
    assert broken.gauss_seidel_step(np.full(3, math.nan), None, np.ones(3), 1.0) == (math.inf, math.inf)


def test_memory_told_is_that_of_the_arrays(rng: np.random.Generator) -> None:
    _, matrix = sparse(rng, 700, 700)
    curve = level_curve(matrix)
    for level in range(0, matrix.n_levels + 1, 3):
        tasks = tasks_of(matrix, level)
        product = CpuTaskProduct(tasks)
        arrays: dict[int, int] = {}
        for array in product._matrix[1:]:
            owner = array if array.base is None else array.base
            arrays[id(owner)] = owner.nbytes
        assert product.nbytes == tasks.nbytes == sum(arrays.values())
        assert product.nbytes <= curve[level].bytes_worst_case
