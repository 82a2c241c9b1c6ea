"""The diagonal of a matrix on its diagram; matrices without one are not cut again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtbdd.offset.convert import diagonal_of, has_diagonal
from mtbdd.offset.states import index_states
from tests.builders.matrices import from_dense, random_sparse, to_dense
from tests.builders.models import build

STILL = "ctmc module m x : [0..5]; [] x<5 -> 2:(x'=x+1); [] x>0 -> 3:(x'=x-1); endmodule"
LOOP = "ctmc module m x : [0..5]; [] x<5 -> 2:(x'=x+1); [] x>0 -> 3:(x'=x-1); [] x=3 -> 7:(x'=3); endmodule"


@given(seed=st.integers(0, 2**32), loops=st.integers(0, 3))
def test_matrices_with_entries_on_the_diagonal_are_told_apart(seed: int, loops: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 40))
    dense = random_sparse(rng, size, size, float(rng.uniform(0.0, 0.3)))
    np.fill_diagonal(dense, 0.0)
    for state in rng.integers(0, size, loops):
        dense[state, state] = 1.5
    matrix = from_dense(dense)
    assert has_diagonal(matrix) == bool(np.diag(dense).any())
    np.testing.assert_array_equal(diagonal_of(matrix), np.diag(dense))


@pytest.mark.parametrize("text", [STILL, LOOP], ids=["none", "some"])
def test_the_whole_matrix_is_cut_where_it_has_a_diagonal(text: str) -> None:
    model = build(text)
    whole = model.submatrix(model.index, model.index)
    moving = model.submatrix(model.index, model.index, diagonal=False)
    turned = model.submatrix(model.index, model.index, diagonal=False, transposed=True)
    dense = to_dense(whole)
    np.testing.assert_array_equal(to_dense(moving), dense - np.diag(np.diag(dense)))
    np.testing.assert_array_equal(to_dense(turned), to_dense(moving).T)
    assert (moving is whole) == (text == STILL)


def test_some_rows_are_cut() -> None:
    model = build(STILL)
    first = index_states(model.manager, model.initial)
    np.testing.assert_array_equal(
        to_dense(model.submatrix(first, model.index, diagonal=False)), [[0, 2, 0, 0, 0, 0]]
    )
    assert model.submatrix(model.index, first).shape == (6, 1)
