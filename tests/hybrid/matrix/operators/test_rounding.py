"""How far steps, sums and what comes from them can be off: every term of a slack by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis import transient as chain_steps
from hybrid.analysis.step_analysis import StepErrors
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import choice_slack, choice_totals
from hybrid.matrix.operators.rounding import (
    TINIEST,
    Discount,
    far_from_underflow,
    ratio_units,
    scaled_bounds,
    step_slack,
    sum_slack,
    widened,
)
from hybrid.matrix.space.bounded_solution import UNIT, guard_underflow, underflow_of
from mtbdd.build.model import SymbolicModel
from mtbdd.language.evaluate import evaluate
from mtbdd.language.expression_parser import parse_expression
from mtbdd.offset.offset import SCALED_UNITS, row_entries
from tests.builders.matrices import from_dense
from tests.builders.models import build

HALF = Fraction(1, 2**53)
LEAST = 5e-324


def test_the_slack_of_a_step_counts_additions_entries_and_operands() -> None:
    """One and many halves of its unit: each is lost as it is added."""
    size = 64
    dense = np.zeros((size, size))
    dense[0] = [1.0] + [UNIT] * (size - 1)
    matrix = from_dense(dense)
    held = inject(matrix, backend="cpu")
    total = 0.0
    for value in dense[0].tolist():
        total += value
    exact = sum(map(Fraction, dense[0].tolist()))
    assert total == 1.0
    base = step_slack(held, 0)
    assert Fraction(base) * exact >= exact - 1
    assert row_entries(matrix) == size
    # Entries over their sum are off twice; adding b, dividing and the operands round as well.
    rough = inject(replace(matrix, entry_units=1000.0), backend="cpu")
    assert ratio_units(rough.symbolic) == 2 * (1000.0 - SCALED_UNITS) + SCALED_UNITS
    assert step_slack(rough, 0) >= (size + ratio_units(rough.symbolic) + 3) * UNIT
    assert step_slack(held, 100) >= base + 100 * UNIT


def numbers(rng: np.random.Generator) -> np.ndarray:
    """Of all sizes, zero and numbers next to underflow among them."""
    spread = 10.0 ** rng.uniform(-320, 300, 400) * rng.random(400)
    return np.concatenate([[0.0, LEAST, 2 * LEAST, 1e-310, 2.0**-1022, 1.0, 1e300], spread])


@pytest.mark.parametrize("slack", [0.0, 3 * UNIT, 2.0**-20, 0.25])
def test_widened_numbers_hold_what_is_off_by_their_slack(slack: float, rng: np.random.Generator) -> None:
    values = numbers(rng)
    lower, upper = widened(values, slack)
    for value, low, high in zip(values.tolist(), lower.tolist(), upper.tolist(), strict=True):
        least = Fraction(value) * (1 - Fraction(slack)) - Fraction(TINIEST) / 2
        most = Fraction(value) * (1 + Fraction(slack)) + Fraction(TINIEST) / 2
        assert 0 <= low and Fraction(low) <= max(least, 0) and most <= Fraction(high)


@pytest.mark.parametrize("units", [0.0, 0.5, 3.0, 2.0**33, 2.0**51])
def test_scaled_bounds_hold_what_comes_from_numbers_that_are_off(
    units: float, rng: np.random.Generator
) -> None:
    values = numbers(rng)
    found = scaled_bounds(StateValues(values, values.copy(), values.copy()), units)
    share = Fraction(units) * HALF
    for value, low, high in zip(values.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True):
        assert 0 <= Fraction(low) <= Fraction(value) / (1 + share)
        if units and share < 1:
            # What is off may have underflowed, too; a zero is one.
            lost = Fraction(LEAST) if value and units else 0
            assert Fraction(value) * (1 + share) + lost <= Fraction(high)
            assert (high == 0.0) == (value == 0.0)
    assert scaled_bounds(StateValues(values, values, values), 0.0).upper is values


@pytest.mark.parametrize("terms", [2, 64, 128, 129, 1000])
def test_sums_of_numpy_are_within_their_slack(terms: int) -> None:
    values = np.array([1.0] + [UNIT] * (terms - 1))
    exact = sum(map(Fraction, values.tolist()))
    assert abs(Fraction(float(values.sum())) - exact) <= exact * Fraction(sum_slack(terms))
    # Blocks of at most 128 one after another, then pairs.
    assert sum_slack(terms) >= (min(terms, 128) + max(0, (terms - 1) // 128).bit_length()) * UNIT
    assert sum_slack(terms) <= 300 * UNIT and sum_slack(1) == 0.0


@pytest.mark.parametrize(
    ("seeds", "entry", "steps", "is_far"),
    [
        ([1.0], 0.5, 800, True),
        ([1.0], 0.5, 1000, False),
        ([0.0, 2.0**-800], 0.5, 50, True),
        ([1.0, 2.0**-800], 0.5, 150, False),
        ([0.0], 0.5, 10**6, True),
        ([1.0], 0.0, 1, False),
        ([1.0], 4.0, 10**6, True),
        ([2.0**-950], 4.0, 10, False),
    ],
)
def test_zeros_are_exact_as_long_as_products_are_far_from_underflow(
    seeds: list[float], entry: float, steps: int, is_far: bool
) -> None:
    assert far_from_underflow(np.array(seeds), entry, steps) is is_far


@pytest.mark.parametrize("diagonal", [[1.0], [0.25, 2.0], [8.0, 4.0], [1e-3, 1e3]])
def test_underflow_of_a_step_counts_products_divisors_and_scales(diagonal: list[float]) -> None:
    """A product loses half the least double, as many as a slack counts, over the least divisor."""
    products = 20
    d = np.array(diagonal)
    found = Fraction(underflow_of(d, products * UNIT))
    lost = products * Fraction(LEAST) / 2
    assert found >= lost / min(1, Fraction(min(diagonal))) * max(1, Fraction(max(diagonal)))
    assert underflow_of(np.zeros(0), UNIT) == 0.0


def test_positive_numbers_next_to_underflow_are_told_by_a_bound_alone() -> None:
    lower, upper = np.array([0.0, 1e-300, 0.5, 1e-290]), np.array([0.0, 2e-300, 0.5, 1e-290])
    assert guard_underflow(lower, upper)
    assert lower.tolist() == [0.0, 0.0, 0.5, 1e-290] and upper.tolist() == [0.0, 1e-290, 0.5, 1e-290]
    assert not guard_underflow(np.array([0.5]), np.array([0.75]))
    assert not guard_underflow(np.array([0.0, 0.0]), np.array([0.75, 1e-290]))
    assert not guard_underflow(np.zeros(2), np.zeros(2))


@dataclass
class Layers:
    """A process of which the matrices of its layers count alone."""

    matrices: list[object]

    def layer_transitions(self, layer: int) -> object:
        return self.matrices[layer]

    @property
    def layers(self) -> list[object]:
        return self.matrices


def test_the_slack_of_choices_is_that_of_their_worst_layer() -> None:
    """Products and sums of a row, entries over their sum, factors, gains."""
    few = from_dense(np.eye(8))
    many = from_dense(np.full((8, 8), 0.125))
    rough = replace(few, entry_units=1000.0)

    def slack(*matrices: object) -> float:
        model: SymbolicModel = Layers(list(matrices))  # type: ignore[assignment]
        return choice_slack(model)

    assert slack(few, many) == slack(many, few) >= slack(few) + 2 * 7 * UNIT
    assert slack(few, rough) == slack(rough, few) >= (2 + ratio_units(rough)) * UNIT
    assert slack(few) >= (2 + 8) * UNIT


@pytest.mark.parametrize("text", ["0.9", "1/3", "0.999999", "0.25"])
def test_a_discount_is_off_by_its_units_and_bounds_all_that_is_earned(text: str) -> None:
    value = evaluate(parse_expression(text), {})
    found, exact = Discount.of(value), Fraction(text)
    for number, wanted in ((found.factor, exact), (found.rest, 1 - exact)):
        assert abs(Fraction(number) - wanted) <= wanted * Fraction(found.units) * HALF
    for greatest, units in ((0.7, 0.0), (3.3, 2.0**40)):
        most = Fraction(greatest) * (1 + Fraction(units) * HALF)
        assert Fraction(found.bound(greatest, units)) >= most / (1 - exact)


def test_bounds_on_discounted_rewards_hold_however_they_are_rounded(rng: np.random.Generator) -> None:
    # The first three are too small where three roundings count for two.
    pairs = [(0.4947, 2146 / 7), (0.4943, 4966 / 7), (0.4965, 2270 / 7), *rng.random((2000, 2)).tolist()]
    for d, greatest in pairs:
        assert Fraction(Discount.of(d).bound(greatest)) >= Fraction(greatest) / (1 - Fraction(d))


def test_probabilities_that_add_up_to_one_only_roughly_are_divided_by_their_sum() -> None:
    text = "mdp module m x : [0..1]; [] true -> 0.5:(x'=1-x) + {}:true; endmodule"
    rough, near = build(text.format("0.500001")), build(text.format("0.5"))
    (total,) = set(choice_totals(rough, 0, rough.index).tolist())  # type: ignore[union-attr]
    assert total == pytest.approx(1.000001, abs=1e-15)
    assert choice_totals(near, 0, near.index) is None


def recorded(monkeypatch: pytest.MonkeyPatch, text: str, question: str) -> tuple[StepErrors, SymbolicModel]:
    """What a window's steps are told to be off by."""
    found: list[StepErrors] = []

    def keep(*arguments: Any) -> StepErrors:
        found.append(StepErrors(*arguments))
        return found[-1]

    monkeypatch.setattr(chain_steps, "StepErrors", keep)
    monkeypatch.setattr(chain_steps, "step_slack", lambda matrix, operands: 0.0)
    model = build(text)
    hybrid.check(model, question, backend="cpu")
    return found[0], model


# lemma: uniformisation
def test_steps_of_a_chain_in_continuous_time_count_the_rates_of_leaving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a state that is left nearly as often as steps are made little is kept, with its error."""
    text = "ctmc module m x : [0..2]; [] x<2 -> 1/3:(x'=x+1); [] x>0 -> 0.7:(x'=x-1); endmodule"
    errors, model = recorded(monkeypatch, text, "P=? [ F<=1 x=2 ]")
    own = model.entry_units - SCALED_UNITS
    assert own > 0.0
    # Entries, their number, the divisions and products with them; of what leaves the least share stays.
    exits, kept = (row_entries(model.transitions) + own + 6) * UNIT, chain_steps._ABOVE - 1.0
    assert (
        exits * (1 + 1 / kept) + 3 * UNIT
        <= errors.slack * (1 + 1e-12)
        <= 2 * exits * (1 + 1 / kept) + 3 * UNIT
    )
    assert exits + UNIT <= errors.absolute <= 2 * exits + UNIT
    assert errors.underflow > 0.0


def test_steps_of_a_chain_count_the_sums_that_rows_are_divided_by(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "dtmc module m x : [0..2]; [] x<2 -> 1/3:(x'=x+1) + 2/3:true; [] x=2 -> true; endmodule"
    errors, model = recorded(monkeypatch, text, "P=? [ F<=3 x=2 ]")
    entries = row_entries(model.transitions)
    assert entries * UNIT <= errors.slack == errors.absolute <= (entries + 20) * UNIT
