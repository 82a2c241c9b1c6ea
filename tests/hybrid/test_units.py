"""Bytes, durations and counts as people read them."""

from __future__ import annotations

import pytest

from hybrid.base.units import bytes_text, counted, seconds_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (3020, "3.02 kB"),
        (123_456, "123 kB"),
        (999_400, "999 kB"),
        (999_600, "1 MB"),
        (1_254_596, "1.25 MB"),
        (5e12, "5 TB"),
        (2e22, "20000 EB"),
        (-3020, "-3.02 kB"),
    ],
)
def test_bytes_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0 ns"),
        (5.89e-7, "589 ns"),
        (9.996e-7, "1 µs"),
        (1.24e-6, "1.24 µs"),
        (0.0245, "24.5 ms"),
        (0.99949, "999 ms"),
        (0.9996, "1 s"),
        (12.34, "12.3 s"),
        (12345.6, "12346 s"),
    ],
)
def test_durations_have_three_digits_and_a_unit(value: float | None, text: str) -> None:
    assert seconds_text(value) == text


def test_counts_have_groups_of_digits_and_one_is_singular() -> None:
    assert counted(1, "group") == "1 group"
    assert counted(1750, "group") == "1,750 groups"
    assert counted(0, "submatrix", "submatrices") == "0 submatrices"
