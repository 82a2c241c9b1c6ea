"""Submatrices, instances and tasks expand back to the matrix at every level."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.matrix.injection.injected import InjectedMatrix, cut_tasks, inject_level
from hybrid.matrix.reference import multiply_by_paths, multiply_by_tasks
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense, random_codes, random_sparse


def random_matrix(seed: int, n_bits: int, n_rows: int, n_columns: int) -> tuple[np.ndarray, OffsetMTBDD]:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, n_rows, n_columns, 0.15)
    codes = random_codes(rng, n_bits, n_rows), random_codes(rng, n_bits, n_columns)
    return dense, from_dense(dense, *codes, n_bits)


def expand(injected: InjectedMatrix) -> np.ndarray:
    dense = np.zeros(injected.shape)
    for instance in injected:
        part = injected.submatrix(instance.submatrix)
        rows = slice(instance.row, instance.row + part.n_rows)
        dense[rows, instance.column : instance.column + part.n_columns] += part.toarray()
    return dense


@given(st.integers(0, 2**32), st.integers(1, 24), st.integers(1, 24))
def test_instances_expand_to_the_matrix(seed: int, n_rows: int, n_columns: int) -> None:
    dense, matrix = random_matrix(seed, 5, n_rows, n_columns)
    for level in range(matrix.n_levels + 1):
        injected = inject_level(matrix, level)
        np.testing.assert_array_equal(expand(injected), dense)
        keys = injected.instances["row"].astype(np.int64) * n_columns + injected.instances["column"]
        assert np.all(np.diff(keys) > 0)


def test_submatrices_are_sorted_by_row_then_column() -> None:
    _, matrix = random_matrix(91, 7, 90, 90)
    injected = inject_level(matrix, 5)
    for number in range(injected.n_submatrices):
        part = injected.submatrix(number)
        keys = part.row.astype(np.int64) * part.n_columns + part.column
        assert np.all(np.diff(keys) > 0)
        assert part.nnz == np.count_nonzero(part.toarray())


@pytest.mark.parametrize("task_rows", [256, 7, 1])
def test_tasks_write_their_own_rows_and_cover_the_matrix(task_rows: int) -> None:
    dense, matrix = random_matrix(92, 9, 300, 90)
    for level in (0, 3, 8, 18):
        tasks = cut_tasks(inject_level(matrix, level), task_rows)
        assert len(tasks) == -(-300 // task_rows)
        found = np.zeros_like(dense)
        for task in tasks:
            for row, column, number, begin, end in task.instances.tolist():
                part = tasks.blocks[number]
                rows = row + part.row[begin:end]
                assert begin < end
                assert rows.min() >= task.first_row
                assert rows.max() < task.first_row + task.n_rows
                np.add.at(found, (rows, column + part.column[begin:end]), part.value[begin:end])
        np.testing.assert_array_equal(found, dense)


def test_reference_products_agree_with_dense() -> None:
    dense, matrix = random_matrix(93, 9, 300, 210)
    x = np.random.default_rng(94).normal(size=210)
    for level in range(0, 19, 4):
        injected = inject_level(matrix, level)
        np.testing.assert_allclose(multiply_by_paths(injected, x), dense @ x, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            multiply_by_tasks(cut_tasks(injected), x), dense @ x, rtol=1e-12, atol=1e-13
        )


def test_views_and_their_borders() -> None:
    injected = inject_level(from_dense(np.array([[0.0, 2.0], [0.0, 0.0]]), n_bits=1), 2)
    assert len(injected) == 1
    instance = injected.instance(0)
    assert (instance.row, instance.column, instance.submatrix) == (0, 1, 0)
    assert injected.submatrix(0).toarray().tolist() == [[2.0]]
    with pytest.raises(IndexError, match="submatrix 0..0"):
        injected.submatrix(1)
    tasks = cut_tasks(injected)
    with pytest.raises(IndexError, match="task 0..0"):
        tasks[1]
    with pytest.raises(ValueError, match="task_rows"):
        cut_tasks(injected, 0)
    with pytest.raises(ValueError, match=r"expected 0\.\.2"):
        inject_level(from_dense(np.eye(2)), 3)
