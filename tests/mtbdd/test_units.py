"""Units of what is made of numbers that are off already: the worst case of every operation is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mtbdd.build.diagram_parts import DiagramReward
from mtbdd.build.expressions import RealPartitions, constant_partition
from mtbdd.build.rewards import relative_units
from mtbdd.diagrams import arithmetic
from mtbdd.diagrams import arithmetic as products
from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import UNITED_UNITS, SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language.expression_parser import parse_expression
from mtbdd.offset.convert import entry_units, offset_label
from mtbdd.offset.distributed import stack_layers
from mtbdd.offset.offset import SCALED_UNITS
from mtbdd.offset.states import index_states
from tests.builders.dense import dense_vector, symbolic_matrix, symbolic_vector
from tests.builders.diagram_packages import FASTEST
from tests.builders.models import build

UNIT = Fraction(1, 2**53)
BITS = 3
SIZE = 1 << BITS
MANAGER = Manager(BITS, FASTEST)
UNITS = [(0.0, 0.0), (3.0, 0.0), (0.0, 5.0), (2.0, 7.0), (2.0**30, 2.0**29)]
"""The last two are so great that errors of errors count."""

each_units = pytest.mark.parametrize("units", UNITS, ids=str)


def off(values: Sequence[float], units: float, sign: int) -> list[Fraction]:
    """What numbers may stand for that are off by some units of it."""
    return [Fraction(float(v)) / (1 + sign * Fraction(units) * UNIT) for v in values]


def holds(found: Sequence[float], exact: Sequence[Fraction], units: float) -> None:
    for value, wanted in zip(found, exact, strict=True):
        assert abs(Fraction(float(value)) - wanted) <= abs(wanted) * Fraction(units) * UNIT


def vector(rng: np.random.Generator, units: float) -> SymbolicMatrix:
    """Numbers whose sums and products are rounded."""
    return replace(symbolic_vector(MANAGER, rng.integers(1, 100, SIZE) / 7.0), units=units)


POINTWISE: dict[str, tuple[Callable[..., SymbolicMatrix], Callable[[Fraction, Fraction], Fraction]]] = {
    "add": (arithmetic.add, lambda a, b: a + b),
    "multiply": (arithmetic.multiply, lambda a, b: a * b),
    "divide": (arithmetic.divide, lambda a, b: a / b),
    "maximum": (arithmetic.maximum, max),
    "minimum": (arithmetic.minimum, min),
}


@each_units
@pytest.mark.parametrize("name", POINTWISE)
def test_units_of_operations_on_two_functions(
    name: str, units: tuple[float, float], rng: np.random.Generator
) -> None:
    operation, exact = POINTWISE[name]
    a, b = vector(rng, units[0]), vector(rng, units[1])
    found = operation(a, b)
    own = [dense_vector(x).tolist() for x in (a, b)]
    for signs in product((-1, 1), repeat=2):
        pairs = zip(*(off(x, u, s) for x, u, s in zip(own, units, signs, strict=True)), strict=True)
        holds(dense_vector(found), [exact(x, y) for x, y in pairs], found.units)


def test_a_scaled_function_is_rounded_once_more(rng: np.random.Generator) -> None:
    a = vector(rng, 2.0**30)
    found = arithmetic.scaled(a, 0.3)
    for sign in (-1, 1):
        exact = [x * Fraction(0.3) for x in off(dense_vector(a), a.units, sign)]
        holds(dense_vector(found), exact, found.units)
    assert arithmetic.scaled(replace(a, units=0.0), 0.3).units == 1.0


@pytest.mark.parametrize("units", [0.0, 5.0, 2.0**30])
def test_units_of_sums_over_bits_grow_by_one_a_bit(units: float, rng: np.random.Generator) -> None:
    a = vector(rng, units)
    found = arithmetic.sum_over(a, MANAGER.rows)
    for sign in (-1, 1):
        holds(found.terminals, [sum(off(dense_vector(a), units, sign), Fraction(0))], found.units)
    grown = (1 + Fraction(units) * UNIT) * (1 + UNIT) ** BITS - 1
    assert Fraction(found.units) * UNIT >= grown


@each_units
@pytest.mark.parametrize("name", ["matrix times vector", "vector times matrix", "matrix times matrix"])
def test_units_of_products_are_those_of_both_and_of_the_sum(
    name: str, units: tuple[float, float], rng: np.random.Generator
) -> None:
    """Every product may be rounded up, and every addition of halves."""
    matrix = replace(symbolic_matrix(MANAGER, rng.integers(1, 9, (SIZE, SIZE)) / 7.0), units=units[0])
    if name == "matrix times matrix":
        found = products.matrix_matrix(matrix, replace(matrix, units=units[1]))
    elif name == "matrix times vector":
        found = products.matrix_vector(matrix, vector(rng, units[1]))
    else:
        found = products.vector_matrix(vector(rng, units[1]), matrix)
    one, other = (1 + Fraction(u) * UNIT for u in units)
    assert Fraction(found.units) * UNIT >= one * other * (1 + UNIT) ** (1 + BITS) - 1


def test_what_uniting_values_moves_counts() -> None:
    """Three units in the last place beside numbers that are off already."""
    values = [0.1, 0.1 + 3 * np.spacing(0.1), 0.7]
    for units in (0.0, 40.0, 2.0**40):
        cubes = MANAGER.cubes(MANAGER.rows[:2], 3)
        part = Partition(MANAGER, dict(zip(values, cubes, strict=True)), units)
        made = SymbolicMatrix.from_partition(part)
        apart = replace(SymbolicMatrix.from_partition(part, unite=False), units=units)
        for found in (made, arithmetic.united(apart)):
            assert found.terminals.tolist() == [0.1, 0.7]
            for sign in (-1, 1):
                exact = off(values[:2], units, sign)
                holds([0.1, 0.1], exact, found.units)
    exact_parts = [
        (Partition(MANAGER, {0.5: cubes[0]}, 3.0), cubes[0]),
        (Partition(MANAGER, {0.25: cubes[1]}, 9.0), cubes[1]),
    ]
    assert SymbolicMatrix.from_disjoint(MANAGER, exact_parts).units == 9.0


@each_units
def test_units_of_partitions(units: tuple[float, float]) -> None:
    numbers = [[1 / 3, 0.7, 5.3], [0.3, 1 / 7, 2.9]]
    a, b = (
        Partition(MANAGER, dict(zip(own, MANAGER.cubes([name, MANAGER.rows[2]], 3), strict=True)), u)
        for own, name, u in zip(numbers, MANAGER.rows, units, strict=False)
    )
    for found, exact in (
        (a.times(b), lambda x, y: x * y),
        (a.divided(b), lambda x, y: x / y),
        (a.plus(b), lambda x, y: x + y),
    ):
        for signs in product((-1, 1), repeat=2):
            own = [
                dict(zip(n, off(n, u, s), strict=True)) for n, u, s in zip(numbers, units, signs, strict=True)
            ]
            for (x, one), (y, other) in product(a, b):
                if one & other != MANAGER.false:
                    (value,) = {v for v, where in found if where & one & other != MANAGER.false}
                    holds([value], [exact(own[0][x], own[1][y])], found.units)


def test_products_and_quotients_by_one_and_by_powers_of_two_round_nothing() -> None:
    third = Partition(MANAGER, {1 / 3: MANAGER.true}, 5.0)
    one, four = (Partition(MANAGER, {x: MANAGER.true}) for x in (1, 4.0))
    assert third.times(one).units == third.divided(one).units == third.divided(four).units == 5.0
    mixed = third.plus(Partition(MANAGER, {-1 / 7: MANAGER.true}))
    assert mixed.units == np.inf


def test_sums_that_round_nothing_are_exact_where_their_terms_are() -> None:
    half, quarter, tenth, fifth, least = (
        Partition(MANAGER, {x: MANAGER.true}) for x in (0.5, -0.25, 0.1, 0.2, 2.0**-60)
    )
    assert half.plus(half).units == half.plus(quarter).units == 0.0
    assert half.plus(least).units == tenth.plus(fifth).units == 1.0
    off = Partition(MANAGER, {0.5: MANAGER.true}, 2.0)
    assert off.plus(half).units >= 2.0 and off.plus(quarter).units == np.inf


def test_entries_of_a_matrix_are_as_uncertain_as_its_values_and_shared_blocks() -> None:
    """Four units in the last place are eight of 2^-53."""
    matrix = replace(symbolic_matrix(MANAGER, np.eye(SIZE) / 3.0), units=5.0)
    states = index_states(MANAGER, MANAGER.true)
    assert entry_units(matrix) == offset_label(matrix, states, states).entry_units == 5.0 + SCALED_UNITS
    assert SCALED_UNITS >= 8
    other = offset_label(replace(matrix, units=40.0), states, states)
    first = offset_label(matrix, states, states)
    for order in ({0: first, 1: other}, {0: other, 1: first}):
        assert stack_layers(order, 2).matrix.entry_units == 40.0 + SCALED_UNITS


def test_given_rewards_are_off_by_their_units_and_by_their_sum(rng: np.random.Generator) -> None:
    own, moved = vector(rng, 3.0), vector(rng, 200.0)
    states = index_states(MANAGER, MANAGER.true)
    reward = DiagramReward("r", own, (moved,))
    for with_states, layer in ((True, None), (False, 0), (True, 0)):
        values, error = reward.values(states, with_states, layer)
        assert error is not None
        for sign in (-1, 1):
            parts = [
                off(dense_vector(part), part.units, sign) if taken else [Fraction(0)] * SIZE
                for part, taken in ((own, with_states), (moved, layer is not None))
            ]
            for value, bound, *exact in zip(values.tolist(), error.tolist(), *parts, strict=True):
                assert abs(Fraction(value) - sum(exact)) <= Fraction(bound) <= Fraction(value) / 10**12
    exact_own, exact_moved = (replace(part, units=0.0) for part in (own, moved))
    values, error = DiagramReward("r", exact_own, (exact_moved,)).values(states, True, 0)
    assert error is not None
    pairs = zip(dense_vector(own).tolist(), dense_vector(moved).tolist(), strict=True)
    exact = [Fraction(x) + Fraction(y) for x, y in pairs]
    gaps = [abs(Fraction(v) - e) for v, e in zip(values.tolist(), exact, strict=True)]
    assert max(gaps) > 0
    assert all(gap <= Fraction(bound) for gap, bound in zip(gaps, error.tolist(), strict=True))


ROUGH = """ctmc module m x : [0..2];
    [] x=0 -> 1/3:(x'=1); [] x=0 -> 1/7:(x'=2); [] x>0 -> 0.3:(x'=0); endmodule
    module n y : [0..1]; [] true -> 0.7*(y+1):(y'=1-y); endmodule"""


def test_row_sums_are_off_by_their_terms_and_additions() -> None:
    model = build(ROUGH)
    parts = [model.event_rates(event) for event in model.events]
    terms = max(part.units for part in parts)
    assert terms > 0.0
    assert model.exit_units >= terms + len(parts) + UNITED_UNITS
    index = model.index
    rates = {(0, 0): Fraction(1, 3) + Fraction(1, 7) + Fraction(7, 10)}
    place = next(k for k, s in enumerate(model.describe(np.arange(index.size))) if (s["x"], s["y"]) == (0, 0))
    holds([float(model.exit_rates(index)[place])], [rates[0, 0]], model.exit_units)


def test_rows_that_do_not_add_up_to_one_are_divided_by_an_uncertain_sum() -> None:
    """Two thirds and a decimal near to one: the row is divided by what the text adds up to, as a double."""
    text = "dtmc module m x : [0..2]; [] x=0 -> 2/3:(x'=1) + 0.333332:(x'=2); [] x>0 -> true; endmodule"
    model = build(text)
    total = Fraction(2, 3) + Fraction(333332, 10**6)
    assert model.divisors is not None and model.divisors.units > 0.0
    entries = sorted({float(v) for v in model.layers[0].matrix.terminals} - {1.0})
    holds(entries, [Fraction(333332, 10**6) / total, Fraction(2, 3) / total], model.layers[0].matrix.units)
    (row,) = {v for v, _ in model.divisors if v != 1}
    holds([row], [total], model.divisors.units)


def test_sums_near_to_one_that_are_taken_for_one_are_off_by_what_that_is() -> None:
    """A tenth ten times is 1 on paper, and a unit less in doubles."""
    updates = " + ".join(f"0.1:(x'={k})" for k in range(10))
    model = build(f"dtmc module m x : [0..9]; [] x=0 -> {updates}; [] x>0 -> true; endmodule")
    assert model.divisors is not None
    assert {v for v, _ in model.divisors} == {1}
    assert model.divisors.units == 0.0 or model.divisors.units >= 9.0


def test_units_of_an_expression_are_those_of_its_worst_value() -> None:
    """Some of its values are doubles, others are not."""
    model = build("dtmc module m x : [0..7]; [] true -> (x'=mod(x+1, 8)); endmodule")
    expression = parse_expression("x/3 + 0.1*x*x + 0.5")
    found = RealPartitions(model.translator).rounded(expression)
    exact = [Fraction(x, 3) + Fraction(x * x, 10) + Fraction(1, 2) for x in range(8)]
    assert len(found) == 8
    holds(sorted(value for value, _ in found), exact, found.units)
    literal = constant_partition(MANAGER, parse_expression("0.3"))
    holds([value for value, _ in literal], [Fraction(3, 10)], literal.units)
    exact_literal = constant_partition(MANAGER, parse_expression("0.25"))
    assert (list(exact_literal.pieces), exact_literal.units) == ([0.25], 0.0)


def test_a_process_is_as_uncertain_as_its_worst_layer() -> None:
    text = """mdp module m x : [0..1]; [a] true -> 0.5:(x'=1-x) + 0.5:true;
        [b] true -> {}:(x'=1-x) + {}:true; endmodule"""
    sure, rough = build(text.format("0.25", "0.75")), build(text.format("1/3", "2/3"))
    assert rough.entry_units > sure.entry_units == SCALED_UNITS
    turned = build(text.format("1/3", "2/3").replace("[a]", "[c]"))
    assert turned.entry_units == rough.entry_units


def test_relative_units_of_rewards_are_rounded_up(rng: np.random.Generator) -> None:
    for _ in range(50):
        rewards, error = rng.random(3) + 0.01, rng.random(3) * 1e-12
        rewards[2] = error[2] = 0.0
        units = Fraction(relative_units(rewards, error)) * UNIT
        for reward, bound in zip(rewards.tolist(), error.tolist(), strict=True):
            assert Fraction(bound) <= Fraction(reward) * units
        assert (
            units <= max(Fraction(e) / Fraction(r) for r, e in zip(rewards[:2], error[:2], strict=True)) * 2
        )
    assert relative_units(rewards, None) == relative_units(np.zeros(2), np.zeros(2)) == 0.0
