"""The offset-labelled MTBDD: its rules and its transpose."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbdd.offset.offset import OffsetMTBDD, zero_matrix
from tests.builders.matrices import from_dense, random_codes, random_sparse, to_dense


def random_matrix(seed: int, n_bits: int, n_rows: int, n_columns: int) -> tuple[np.ndarray, OffsetMTBDD]:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, n_rows, n_columns, 0.2)
    codes = random_codes(rng, n_bits, n_rows), random_codes(rng, n_bits, n_columns)
    return dense, from_dense(dense, *codes, n_bits)


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(1, 30))
def test_transpose_is_the_transpose(seed: int, n_rows: int, n_columns: int) -> None:
    dense, matrix = random_matrix(seed, 5, n_rows, n_columns)
    matrix.validate()
    np.testing.assert_array_equal(to_dense(matrix), dense)
    transposed = matrix.transpose()
    transposed.validate()
    np.testing.assert_array_equal(to_dense(transposed), dense.T)
    np.testing.assert_array_equal(to_dense(transposed.transpose()), dense)


def test_transpose_of_all_2x2_matrices() -> None:
    for values in itertools.product((0.0, 0.5, 1.0), repeat=4):
        dense = np.array(values).reshape(2, 2)
        transposed = from_dense(dense, n_bits=1).transpose()
        transposed.validate()
        np.testing.assert_array_equal(to_dense(transposed), dense.T)


def test_transpose_keeps_sharing() -> None:
    dense = np.kron(np.eye(16), np.arange(1.0, 17.0).reshape(4, 4))
    matrix = from_dense(dense)
    assert matrix.transpose().nodes[::2] == matrix.nodes[::2]
    assert max(matrix.transpose().nodes) == 16


def test_offsets_count_the_rows_below_the_else_edge() -> None:
    # States 0, 1 and 3 of two bits: below x1 = 0 lie two of them.
    codes = np.array([0, 1, 3])
    matrix = from_dense(np.arange(1.0, 10.0).reshape(3, 3), codes, codes, 2)
    assert matrix.levels[0].offset.tolist() == [2]
    assert set(matrix.levels[1].offset.tolist()) == {2}
    assert matrix.rows[0].tolist() == [3]
    assert matrix.nodes[-1] == 9


def test_zero_and_single_state() -> None:
    zero = zero_matrix(3, 5, 4)
    zero.validate()
    assert zero.shape == (5, 4)
    assert zero.transpose().shape == (4, 5)
    single = from_dense(np.array([[2.5]]), n_bits=0)
    single.validate()
    assert single.n_levels == 0
    assert single.transpose().same_as(single)


def test_same_as_sees_every_difference() -> None:
    dense, matrix = random_matrix(4242, 4, 9, 9)
    assert matrix.same_as(random_matrix(4242, 4, 9, 9)[1])
    assert not matrix.same_as(matrix.transpose())
    assert not matrix.same_as(from_dense(dense * 2, n_bits=4))


def broken(matrix: OffsetMTBDD, level: int, **changes: object) -> OffsetMTBDD:
    levels = list(matrix.levels)
    levels[level] = dataclasses.replace(levels[level], **changes)
    return dataclasses.replace(matrix, levels=tuple(levels))


def test_validation_finds_planted_faults() -> None:
    matrix = from_dense(np.array([[1.0, 2.0], [0.0, 3.0]]), n_bits=1)
    matrix.validate()
    none = np.array([-1], np.int32)
    faults = [
        (broken(matrix, 0, low=np.array([7], np.int32)), "must lie in"),
        (broken(matrix, 0, low=none, high=none), "without a child"),
        (broken(matrix, 0, high=none), "no edge reaches"),
        (broken(matrix, 0, offset=np.array([0])), "disagrees with the offset"),
        (dataclasses.replace(matrix, terminals=np.array([1.0, 1.0, 3.0])), "distinct"),
        (dataclasses.replace(matrix, terminals=np.array([1.0, 0.0, 3.0])), "not zero"),
        (dataclasses.replace(matrix, n_rows=3), "root covers"),
        (dataclasses.replace(matrix, rows=matrix.rows[:-1]), "rows and columns need"),
        (dataclasses.replace(matrix, levels=matrix.levels[:1]), "2n levels"),
    ]
    for fault, message in faults:
        with pytest.raises(ValueError, match=message):
            fault.validate()


def test_a_matrix_shows_its_shape_and_not_its_nodes() -> None:
    assert repr(from_dense(np.eye(2), n_bits=1)) == "<OffsetMTBDD 2 x 2, 2 levels, 4 nodes, 1 terminals>"
