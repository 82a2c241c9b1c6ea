"""Amounts of reward: what they may mean stays within their error, however they are added and read out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mtbdd.build.rewards import Amount, added_up, scaled
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.partition import Partition
from mtbdd.language.reals import Enclosure
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import FASTEST

MANAGER = Manager(2, FASTEST)
INDEX = index_states(MANAGER, MANAGER.true)
CUBES = MANAGER.cubes(MANAGER.rows, 4)
UNIT = Fraction(1, 2**53)
UP = 1e-12
"""Errors here are far below this share of what they are errors of."""


def function(*numbers: object) -> Partition:
    """A function of four states."""
    pieces: dict[object, object] = {}
    for number, cube in zip(numbers, CUBES, strict=True):
        pieces[number] = pieces[number] | cube if number in pieces else cube
    return Partition(MANAGER, pieces)  # type: ignore[arg-type]


def ends(amount: Amount) -> tuple[Fraction, Fraction]:
    return amount.value - amount.error, amount.value + amount.error


def test_an_enclosure_is_its_middle_and_half_of_its_width() -> None:
    found = Amount.of(Enclosure(Fraction(1, 3), Fraction(1, 2)))
    assert ends(found) == (Fraction(1, 3), Fraction(1, 2))
    assert ends(Amount.of(7)) == (7, 7)


@pytest.mark.parametrize("units", [0.0, 5.0, 2.0**40])
@pytest.mark.parametrize("often", [0.3, 40.0])
@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-2, 7)])
def test_a_carrier_and_an_amount_are_both_off(units: float, often: float, value: Fraction) -> None:
    amount = Amount(value, Fraction(1, 1000))
    low, high = ends(Amount.of_carrier(units)(often, amount))
    for sign in (-1, 1):
        for end in ends(amount):
            assert low <= Fraction(often) * (1 + sign * Fraction(units) * UNIT) * end <= high


def test_errors_of_sums_add_up() -> None:
    total = Amount(Fraction(1), Fraction(1, 8)) + Amount(Fraction(-3), Fraction(1, 4))
    assert ends(total) == (Fraction(-19, 8), Fraction(-13, 8))


@pytest.mark.parametrize(
    "value", [Fraction(1, 3), Fraction(-1, 10**330), Fraction(2, 10**308), Fraction(1, 4)]
)
@pytest.mark.parametrize("error", [Fraction(0), Fraction(1, 10**330), Fraction(1, 3)])
def test_the_distance_of_the_double_holds_rounding_and_error(value: Fraction, error: Fraction) -> None:
    found = Amount(value, error)
    assert abs(value - Fraction(found.double)) + error <= Fraction(found.distance)
    assert Amount(Fraction(10) ** 400, error).distance == math.inf


def held(values: np.ndarray, error: np.ndarray | None, exact: list[tuple[Fraction, Fraction]]) -> None:
    """Check that numbers lie within their errors of both ends of what they may mean."""
    bounds = np.zeros(values.size) if error is None else error
    for value, bound, own in zip(values.tolist(), bounds.tolist(), exact, strict=True):
        for end in own:
            assert abs(Fraction(value) - end) <= Fraction(bound)


@pytest.mark.parametrize(
    "numbers",
    [
        [Fraction(1, 3), Fraction(2, 7), Fraction(1, 4), Fraction(0)],
        [Fraction(1, 3), Fraction(1, 10**330), Fraction(1), Fraction(0)],
        [Fraction(1, 10**280), Fraction(1, 3 * 10**300), Fraction(1), Fraction(-1, 7)],
    ],
)
@pytest.mark.parametrize("error", [Fraction(0), Fraction(1, 10**12), Fraction(1, 10**324)])
def test_what_is_read_out_lies_within_its_error(numbers: list[Fraction], error: Fraction) -> None:
    amounts = [Amount(n, error * (k == 1)) for k, n in enumerate(numbers)]
    values, bound = added_up([function(*amounts)], [], INDEX)
    held(values, bound, [ends(a) for a in amounts])
    if bound is not None and error < Fraction(1, 10**300):
        assert (bound <= 2 * UP * np.abs(values) + 1e-320).all()


@pytest.mark.parametrize("own", [0.0, 1e-9])
def test_sums_of_vectors_lie_within_their_errors(own: float) -> None:
    """Parts cancel, and what is rounded off on the way has parts that are rounded off, too."""
    rng = np.random.default_rng(4711)
    for _ in range(20):
        scale = 10.0 ** rng.integers(-20, 20, (5, 4))
        vectors = [(x, None if own == 0.0 else np.full(4, own)) for x in rng.normal(size=(5, 4)) * scale]
        vectors.append((-vectors[0][0], None))
        values, bound = added_up([], vectors, INDEX)
        exact = [sum(Fraction(float(x[k])) for x, _ in vectors) for k in range(4)]
        off = Fraction(own) * (len(vectors) - 1)
        held(values, bound, [(e - off, e + off) for e in exact])


@pytest.mark.parametrize("units", [0.0, 7.0, 2.0**40])
@pytest.mark.parametrize("error", [None, 1e-3])
def test_numbers_times_a_carrier_lie_within_their_errors(units: float, error: float | None) -> None:
    """Products are rounded, and below the normal numbers they lose more than a unit."""
    values = np.array([1 / 3, 0.7, 3.7e-300, 0.0])
    often = function(0.1, 1.0, 1.3e-22, 0.9)
    often.units = units
    found, bound = scaled(values, None if error is None else np.full(4, error), often, INDEX)
    factors = np.array([0.1, 1.0, 1.3e-22, 0.9])
    for k, (value, factor) in enumerate(zip(values.tolist(), factors.tolist(), strict=True)):
        for sign, side in product((-1, 1), repeat=2):
            meant = Fraction(factor) * (1 + sign * Fraction(units) * UNIT)
            exact = meant * (Fraction(value) + side * Fraction(error or 0.0))
            told = Fraction(0) if bound is None else Fraction(float(bound[k]))
            assert abs(Fraction(float(found[k])) - exact) <= told
            most = abs(exact) * Fraction(units + 2) * UNIT + 2 * Fraction(error or 0.0) + Fraction(1, 10**320)
            assert told <= 2 * most * (1 + Fraction(units) * UNIT)


def test_a_product_by_one_or_zero_is_exact() -> None:
    found, bound = scaled(np.array([1 / 3, 0.7, 0.0, 0.3]), None, function(1.0, 0.0, 0.1, 1.0), INDEX)
    assert bound is None and found.tolist() == [1 / 3, 0.0, 0.0, 0.3]
