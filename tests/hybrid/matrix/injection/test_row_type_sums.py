"""Sums of rows from row types against those of the written matrix."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.matrix.injection import row_types
from hybrid.matrix.injection.row_types import row_type_sums
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 40))
def test_sums_are_those_of_the_entries(seed: int, n_rows: int, n_columns: int) -> None:
    rng = np.random.default_rng(seed)
    dense = random_sparse(rng, n_rows, n_columns, 0.15)
    dense[rng.integers(n_rows), rng.integers(n_columns)] = 0.7  # some entry
    matrix = from_dense(dense, random_codes(rng, 6, n_rows), random_codes(rng, 6, n_columns), 6)
    for few in (0, row_types.FEW_ENTRIES):
        with mock.patch.object(row_types, "FEW_ENTRIES", few):
            np.testing.assert_allclose(row_type_sums(matrix), dense.sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("few", [0, row_types.FEW_ENTRIES])
def test_rows_without_entries_are_zero(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_types, "FEW_ENTRIES", few)
    dense = np.zeros((8, 8))
    dense[5, 2] = 0.25
    sums = row_type_sums(from_dense(dense, np.arange(8), np.arange(8), 3))
    np.testing.assert_array_equal(sums, [0, 0, 0, 0, 0, 0.25, 0, 0])


def test_too_many_row_types_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_types, "FEW_ENTRIES", 0)
    dense = banded(64)
    assert row_type_sums(from_dense(dense, np.arange(64), np.arange(64), 6), slot_limit=4) is None
