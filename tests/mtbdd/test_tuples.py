"""Tuples of integers, numbered in their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbdd.offset import tuples
from mtbdd.offset.tuples import distinct, distinct_rows, packed, stable_order


def test_few_tuples_are_numbered_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(54)
    for size in range(1, 40):
        columns = [rng.integers(-3, 3, size).astype(kind) for kind in (np.int8, np.int64, np.int32)]
        few = distinct_rows(columns)
        with monkeypatch.context() as patched:
            patched.setattr(tuples, "_FEW_TUPLES", 0)
            many = distinct_rows(columns)
        for found, expected in zip(few, many, strict=True):
            assert found.dtype == expected.dtype == np.int64
            np.testing.assert_array_equal(found, expected)


def test_distinct_rows_numbers_tuples() -> None:
    rng = np.random.default_rng(55)
    columns = [rng.integers(-3, 3, 500), rng.integers(0, 2, 500), rng.integers(-1, 4, 500)]
    first, inverse = distinct_rows(columns)
    stacked = np.stack(columns, axis=1)
    np.testing.assert_array_equal(stacked[first][inverse], stacked)
    assert len(first) == len(np.unique(stacked, axis=0))


def test_distinct_rows_of_wide_values() -> None:
    rng = np.random.default_rng(56)
    pool = rng.integers(-(2**60), 2**60, 20)
    columns = [rng.choice(pool, 300) for _ in range(4)]
    columns = [np.where(rng.random(300) < 0.5, c[0], c) for c in columns]
    first, inverse = distinct_rows(columns)
    stacked = np.stack(columns, axis=1)
    np.testing.assert_array_equal(stacked[first][inverse], stacked)
    assert len(first) == len(np.unique(stacked, axis=0))
    assert len(distinct_rows([np.zeros(0, np.int64)])[0]) == 0


def test_packed_keys_are_distinct_below_2_to_the_63(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that wrapped around would make different tuples one."""
    monkeypatch.setattr(tuples, "_FEW_TUPLES", 0)
    cases = [
        # 2^38 times the width 2^26 is 2^64, and so is 2^24 times 2^40.
        ([0, 2**38, 2**40 - 1], [0, 0, 2**26 - 1]),
        ([0, 2**24, 2**40 - 1], [0, 0, 2**40 - 1]),
        # The first column is renumbered to 0 .. 4, and 4 times the width 2^62 is 2^64.
        ([0, 1, 2, 3, 2**40, 0], [0, 0, 0, 0, 0, 2**62 - 1]),
        # Five times the second number is 2^64 - 1: with 1 added, it is the first key.
        ([0, 0x3333333333333333, 0, 0, 0], [0, 1, 2, 3, 4]),
        # Widths whose product is 2^62 or next to it.
        ([0, 1, 2**31 - 1], [0, 2**31 - 1, 0]),
        ([0, 1, 2**31], [0, 2**31 - 1, 0]),
    ]
    for columns in cases:
        first, inverse = distinct_rows([np.array(c, np.int64) for c in columns])
        assert len(first) == len(columns[0])
        for column in columns:
            np.testing.assert_array_equal(np.array(column)[first][inverse], column)


@given(st.data(), st.integers(1, 200), st.sampled_from([1, 3, 50, 2**33]))
def test_tuples_are_numbered_as_numpy_numbers_them(data: st.DataObject, size: int, high: int) -> None:
    """Of few possible tuples none are put in order, of many all are."""
    columns = [data.draw(arrays(np.int64, size, elements=st.integers(-high, high))) for _ in range(2)]
    rows = np.stack(columns, axis=1)
    _, expected_first, expected = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    first, inverse = distinct(np, columns)
    assert first.dtype == inverse.dtype == np.int64
    np.testing.assert_array_equal(first, expected_first)
    np.testing.assert_array_equal(inverse, expected.reshape(-1))
    np.testing.assert_array_equal(stable_order(np, columns), np.lexsort(columns[::-1]))


def test_keys_are_less_than_told() -> None:
    columns = [np.array([5, -1, 3]), np.array([0, 7, 7])]
    keys, span = packed(np, columns)
    assert (keys.tolist(), span) == ([6 * 8, 7, 4 * 8 + 7], 7 * 8)
