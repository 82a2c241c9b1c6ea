"""What every matrix promises that methods run on: products, relaxation steps, refusals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.space.bounded_solution import UNIT
from tests.builders.matrices import banded, random_sparse
from tests.contracts.matrices import Make
from tests.gpu_kernels.devices import to_numpy


def holes(size: int) -> np.ndarray:
    """Some rows and some columns of nothing, one full row, entries of both signs."""
    dense = random_sparse(np.random.default_rng(size), size, size, 0.1) * np.where(np.arange(size) % 3, 1, -1)
    dense[size // 2] = 0.5
    dense[:, size // 3] = 0.0
    return dense


SQUARE = {
    "one entry": np.array([[4.0]]),
    "one zero": np.array([[0.0]]),
    "two states": np.array([[0.5, 0.0], [1.0, 0.5]]),
    "nothing": np.zeros((20, 20)),
    **{f"holes, {size}": holes(size) for size in (7, 8, 9, 17, 33, 130)},
    "bands": banded(100),
}
WIDE, TALL = (random_sparse(np.random.default_rng(7), *shape, 0.15) for shape in ((33, 90), (90, 33)))


def vectors_of(matrix: Any) -> Any:
    """The array module of the vectors that a matrix takes."""
    return getattr(matrix, "xp", np)


def units_off(found: np.ndarray, dense: np.ndarray, x: np.ndarray) -> float:
    """How many roundings a product is off, those of a row's additions not counted."""
    worst = Fraction(0)
    for value, row in zip(found.tolist(), dense.tolist(), strict=True):
        terms = [Fraction(a) * Fraction(b) for a, b in zip(row, x.tolist(), strict=True) if a]
        scale = sum(map(abs, terms))
        error = abs(Fraction(value) - sum(terms))
        assert scale or not error
        worst = max(worst, error / (scale * Fraction(UNIT)) - len(terms) if scale else Fraction(0))
    return float(worst)


class TestProduct:
    @pytest.mark.parametrize("name", [*SQUARE, "wide", "tall"])
    def test_it_is_the_dense_one_to_a_few_roundings(self, make: Make, name: str) -> None:
        dense = {**SQUARE, "wide": WIDE, "tall": TALL}[name]
        matrix = make(dense)
        assert matrix.shape == dense.shape
        x = np.random.default_rng(5).normal(size=dense.shape[1])
        found = to_numpy(matrix.multiply(vectors_of(matrix).asarray(x)))
        # A block shared up to a scale rounds its entries besides.
        assert units_off(found, dense, x) <= 8

    def test_out_is_filled_and_returned_and_x_left_alone(self, make: Make) -> None:
        dense = SQUARE["holes, 33"]
        matrix = make(dense)
        xp, x = vectors_of(matrix), np.random.default_rng(6).random(33)
        operand, out = xp.asarray(x.copy()), xp.full(33, np.nan)
        assert matrix.multiply(operand, out) is out
        np.testing.assert_array_equal(to_numpy(operand), x)
        np.testing.assert_allclose(to_numpy(out), dense @ x, rtol=1e-13, atol=1e-14)

    def test_repeated_products_have_the_same_bits(self, make: Make) -> None:
        matrix = make(banded(100))
        xp = vectors_of(matrix)
        x, other = (xp.asarray(np.random.default_rng(seed).random(100)) for seed in (7, 8))
        first = to_numpy(matrix.multiply(x)).copy()
        matrix.multiply(other)
        np.testing.assert_array_equal(to_numpy(matrix.multiply(x)), first)

    @pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
    def test_what_is_not_finite_reaches_only_its_own_rows(self, make: Make, bad: float) -> None:
        dense = banded(64)
        dense[:32, 40] = np.where(np.arange(32) % 2, 1.0, 0.0)
        matrix = make(dense)
        xp, x = vectors_of(matrix), np.ones(64)
        x[[20, 40]] = bad
        expected = np.array([sum(v * x[j] for j, v in enumerate(row) if v != 0.0) for row in dense])
        np.testing.assert_allclose(to_numpy(matrix.multiply(xp.asarray(x))), expected, rtol=1e-13)
        out = xp.empty(64)
        absolute, _ = matrix.jacobi_step(xp.asarray(x), out, None, xp.full(64, 2.0), 1.0)
        np.testing.assert_allclose(to_numpy(out), expected / 2, rtol=1e-13)
        assert not np.isfinite(absolute)

    def test_rows_add_up(self, make: Make) -> None:
        np.testing.assert_allclose(make(TALL).row_sums(), TALL.sum(axis=1), rtol=1e-13)

    def test_vectors_of_other_lengths_are_refused(self, make: Make) -> None:
        matrix = make(SQUARE["holes, 33"])
        xp = vectors_of(matrix)
        x, short, long = (xp.ones(n) for n in (33, 32, 34))
        outs = [short, long]
        for operands in ((short,), (long,), *((x, out) for out in outs)):
            with pytest.raises(ValueError, match=r"shape|dimension|size|broadcast"):
                matrix.multiply(*operands)


class TestRelaxation:
    @pytest.mark.parametrize("omega", [1.0, 0.9])
    @pytest.mark.parametrize("with_b", [False, True])
    def test_it_is_that_of_dense_arrays(self, make: Make, omega: float, with_b: bool) -> None:
        size, rng = 203, np.random.default_rng(19)
        dense = banded(size)
        dense[50:70] = 0.0
        matrix = make(dense)
        xp = vectors_of(matrix)
        x, diagonal, b = rng.random(size), rng.choice((1.5, 1.75, 2.0), size), rng.random(size)
        operands = [x.copy(), b.copy() if with_b else None, diagonal.copy()]
        held = [None if a is None else xp.asarray(a) for a in operands]
        out = xp.full(size, np.nan)
        absolute, relative = matrix.jacobi_step(held[0], out, held[1], held[2], omega)
        expected = (1 - omega) * x + omega * (dense @ x + (b if with_b else 0.0)) / diagonal
        np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-13)
        change = np.abs(expected - x)
        assert absolute == pytest.approx(change.max(), rel=1e-12)
        with np.errstate(divide="ignore"):
            assert relative == pytest.approx((change / np.abs(expected)).max(), rel=1e-12)
        for own, before in zip(held, (x, b if with_b else None, diagonal), strict=True):
            if own is not None:
                np.testing.assert_array_equal(to_numpy(own), before)

    @pytest.mark.parametrize("row", [3, 18], ids=["among eight", "behind the last eight"])
    def test_zeros_that_stay_are_no_change(self, make: Make, row: int) -> None:
        matrix = make(np.zeros((20, 20)))
        xp = vectors_of(matrix)
        x, out, ones = xp.zeros(20), xp.empty(20), xp.ones(20)
        assert matrix.jacobi_step(x, out, None, ones, 1.0) == (0.0, 0.0)
        x[row] = 2.0
        assert matrix.jacobi_step(x, out, None, ones, 1.0) == (2.0, np.inf)
