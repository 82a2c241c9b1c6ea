"""The second half of a relaxation step: eight rows at a time and one by one, with the bits of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from hybrid.matrix.cpu.vector_code import relax_rows, sum_up

TINY = 5e-324
ODD = np.array([0.0, -0.0, TINY, 1e-310, 2.3e-308, 1e-300, 1e-200, 1.0, 1.0 + 2.0**-52, 1e200, 1.7e308])


def relaxed(
    x: np.ndarray,
    product: np.ndarray,
    b: np.ndarray | None,
    diagonal: np.ndarray,
    omega: float,
    cuts: list[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Relax ranges of rows one after the other; return the result and the changes."""
    kernel: Any = relax_rows
    total: Any = sum_up
    out, largest, changes = product.copy(), np.zeros(24), np.empty(3)
    right = np.zeros(0) if b is None else b
    for begin, end in zip(cuts, cuts[1:], strict=False):
        kernel(begin, end, x, right, b is not None, diagonal, omega, largest, out)
    total(largest, changes)
    return out, changes


@np.errstate(all="ignore")
def expected(
    x: np.ndarray, product: np.ndarray, b: np.ndarray | None, diagonal: np.ndarray, omega: float
) -> tuple[np.ndarray, float, float]:
    solved = (product if b is None else product + b) / diagonal
    new = (1.0 - omega) * x + omega * solved
    change = np.abs(new - x)
    relative = change / np.abs(new)
    return new, float(np.nanmax(change, initial=0.0)), float(np.nanmax(relative, initial=0.0))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40, 1003])
@pytest.mark.parametrize("omega", [1.0, 0.9])
@pytest.mark.parametrize("with_b", [False, True])
def test_values_and_changes_are_those_of_numpy(
    rng: np.random.Generator, size: int, omega: float, with_b: bool
) -> None:
    for spread in (0, 3, 290):
        x, product, b = (
            rng.standard_normal(size) * 10.0 ** rng.uniform(-spread, spread, size) for _ in range(3)
        )
        diagonal = rng.uniform(0.5, 2.0, size)
        # Some rows stand still, and changes grow from row to row.
        still = rng.random(size) < 0.3
        product[still] = x[still] * diagonal[still]
        x[: size // 3] = np.sort(x[: size // 3])
        own = b if with_b else None
        cuts = sorted({0, size, *rng.integers(0, size + 1, 3).tolist()})
        found, changes = relaxed(x, product, own, diagonal, omega, cuts)
        values, absolute, relative = expected(x, product, own, diagonal, omega)
        np.testing.assert_array_equal(found, values)
        assert (changes[0], changes[1]) == (absolute, relative)
        assert np.isfinite(changes[2])


def test_changes_of_odd_numbers(rng: np.random.Generator) -> None:
    # Every pair of an old and a new value, in any order: quotients under- and overflow, and come close.
    old, new = (grid.ravel() for grid in np.meshgrid(ODD, ODD))
    for _ in range(20):
        order = rng.permutation(len(old))
        x, product = old[order], new[order]
        found, changes = relaxed(x, product, None, np.ones(len(x)), 1.0, [0, len(x)])
        values, absolute, relative = expected(x, product, None, np.ones(len(x)), 1.0)
        np.testing.assert_array_equal(found, values)
        assert (changes[0], changes[1]) == (absolute, relative)


def test_a_change_that_is_greater_by_a_bit_is_found(rng: np.random.Generator) -> None:
    kernel: Any = relax_rows
    nothing, ones = np.zeros(0), np.ones(8)
    for exponent in rng.integers(-1070, 1000, 400):
        new = np.ldexp(rng.uniform(1.0, 2.0, 8), exponent)
        x = new - np.ldexp(rng.uniform(0.0, 1.0, 8), exponent - rng.integers(0, 60))
        quotient = np.abs(new - x) / new
        largest = np.concatenate((np.zeros(8), np.nextafter(quotient, 0.0), np.zeros(8)))
        kernel(0, 8, x, nothing, False, ones, 1.0, largest, new.copy())
        np.testing.assert_array_equal(largest[8:16], quotient)


def test_values_that_are_not_finite_show() -> None:
    for value in (np.inf, np.nan):
        product = np.ones(16)
        product[5] = value
        _, changes = relaxed(np.ones(16), product, None, np.ones(16), 1.0, [0, 16])
        assert np.isnan(changes[2])
