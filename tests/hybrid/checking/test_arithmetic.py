"""Arithmetic on values with bounds against rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid
from hybrid.base.directed_rounding import GREATEST, added, divided, multiplied, outward
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking import filters
from hybrid.checking.arithmetic import apply_arithmetic, apply_call, choose, compare, constant_values, negate
from mtbdd.language.reals import from_text

doubles = st.floats(allow_nan=False, allow_infinity=False)
small = st.one_of(
    st.floats(-1e6, 1e6),
    st.integers(-50, 50).map(float),
    st.sampled_from([0.1, 0.2, 0.3, 1e-300, 1e300, -1e300]),
)

OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


@st.composite
def enclosed(draw: st.DrawFn) -> tuple[StateValues, Fraction]:
    """One value with bounds, and a number between them."""
    ends = sorted([draw(small), draw(small)])
    if draw(st.booleans()):
        ends[1] = ends[0]
    low, high = map(Fraction, ends)
    exact = low + (high - low) * draw(st.fractions(0, 1, max_denominator=8))
    if low == high and draw(st.booleans()):
        return StateValues.exact(np.array(ends[:1])), exact
    value = min(max(float(exact), ends[0]), ends[1])
    return StateValues(np.array([value]), np.array(ends[:1]), np.array(ends[1:])), exact


def assert_holds(found: StateValues, exact: Fraction) -> None:
    low, value, high = (float(part[0]) for part in (found.lower, found.values, found.upper))
    assert (low == -math.inf or Fraction(low) <= exact) and (high == math.inf or exact <= Fraction(high))
    assert low <= value <= high
    assert math.isfinite(value)
    if found.is_exact or low == high:
        assert Fraction(value) == exact


@given(enclosed(), enclosed(), st.sampled_from("+-*/"))
def test_bounds_hold_the_exact_result(
    a: tuple[StateValues, Fraction], b: tuple[StateValues, Fraction], operator: str
) -> None:
    (one, x), (other, y) = a, b
    if operator == "/" and y == 0:
        return
    assert_holds(apply_arithmetic(operator, one, other), OPERATIONS[operator](x, y))
    assert_holds(negate(one), -x)


@given(enclosed(), enclosed(), st.sampled_from(["min", "max", "floor", "ceil", "round"]))
def test_functions_hold_the_exact_result(
    a: tuple[StateValues, Fraction], b: tuple[StateValues, Fraction], function: str
) -> None:
    (one, x), (other, y) = a, b
    if function in ("min", "max"):
        assert_holds(apply_call(function, [one, other]), min(x, y) if function == "min" else max(x, y))
        return
    exact = {"floor": math.floor(x), "ceil": math.ceil(x), "round": math.floor(x + Fraction(1, 2))}[function]
    assert_holds(apply_call(function, [one]), Fraction(exact))


@given(enclosed(), st.integers(-4, 6))
def test_integer_powers_hold_the_exact_result(a: tuple[StateValues, Fraction], exponent: int) -> None:
    one, x = a
    if x == 0 and exponent < 0:
        return
    found = apply_call("pow", [one, StateValues.exact(np.array([float(exponent)]))])
    assert_holds(found, x**exponent)


@given(st.integers(-60, 60), st.integers(0, 9), st.integers(1, 20), st.integers(0, 3))
def test_remainders_hold_the_exact_result(low: int, width: int, modulus: int, more: int) -> None:
    a = StateValues(*(np.array([float(v)]) for v in (low, low, low + width)))
    b = StateValues(*(np.array([float(v)]) for v in (modulus, modulus, modulus + more)))
    found = apply_call("mod", [a, b])
    for x in range(low, low + width + 1):
        for y in range(modulus, modulus + more + 1):
            assert found.lower[0] <= x % y <= found.upper[0]
    if not width and not more:
        assert found.lower[0] == found.upper[0] == low % modulus


@given(st.floats(1e-9, 1e9), st.floats(1.001, 50))
def test_logarithms_hold_the_result(x: float, base: float) -> None:
    a, b = (StateValues.exact(np.array([v])) for v in (x, base))
    found = apply_call("log", [a, b])
    assert found.lower[0] < math.log(x) / math.log(base) < found.upper[0]
    wide = StateValues(np.array([x]), np.array([x / 2]), np.array([2 * x]))
    wider = apply_call("log", [wide, b])
    assert wider.lower[0] <= math.log(x / 2) / math.log(base)
    assert wider.upper[0] >= math.log(2 * x) / math.log(base)


@given(doubles, doubles)
def test_directed_rounding_is_tight(x: float, y: float) -> None:
    """The bounds are equal where nothing is rounded, else neighbours (two apart where that is not known)."""
    a, b = np.array([x]), np.array([y])
    for operation, exact in ((added, Fraction(x) + Fraction(y)), (multiplied, Fraction(x) * Fraction(y))):
        low, high = (float(part[0]) for part in operation(a, b))
        assert low == -math.inf or Fraction(low) <= exact
        assert high == math.inf or exact <= Fraction(high)
        assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)
    if y:
        low, high = (float(part[0]) for part in divided(a, b))
        assert low == -math.inf or Fraction(low) <= Fraction(x) / Fraction(y)
        assert high == math.inf or Fraction(x) / Fraction(y) <= Fraction(high)
    low, high = (float(part[0]) for part in added(a, b))
    if math.isfinite(low) and math.isfinite(high):
        assert (low == high) == (Fraction(low) == Fraction(x) + Fraction(y))


def exactly(*values: float) -> StateValues:
    return StateValues.exact(np.array(values))


def test_finite_numbers_are_never_told_infinite() -> None:
    for found in (
        apply_arithmetic("*", exactly(1e308), exactly(10.0)),
        apply_arithmetic("+", exactly(1e308), exactly(1e308)),
        apply_arithmetic("/", exactly(1e308), exactly(0.1)),
        apply_call("pow", [exactly(1e200), exactly(2.0)]),
    ):
        assert (found.lower[0], found.upper[0]) == (GREATEST, math.inf)
        assert math.isfinite(found.values[0])
    found = apply_arithmetic("-", exactly(-1e308), exactly(1e308))
    assert (found.lower[0], found.upper[0]) == (-math.inf, -GREATEST)


def test_infinite_rewards_stay_infinite() -> None:
    infinite = exactly(math.inf)
    for found in (
        apply_arithmetic("+", infinite, exactly(1.0)),
        apply_arithmetic("*", exactly(2.0), infinite),
        apply_arithmetic("/", exactly(1.0), exactly(0.0)),
    ):
        assert found.is_exact
        assert found.values[0] == math.inf


def test_what_has_no_value_is_not_a_number() -> None:
    infinite = exactly(math.inf)
    for found in (
        apply_arithmetic("/", exactly(0.0), exactly(0.0)),
        apply_arithmetic("-", infinite, infinite),
        apply_call("floor", [infinite]),
        apply_call("log", [exactly(-1.0), exactly(2.0)]),
        apply_call("log", [exactly(0.0), exactly(2.0)]),
        apply_call("mod", [exactly(5.0), exactly(0.0)]),
    ):
        assert math.isnan(found.values[0])


def test_values_without_bounds_stay_without() -> None:
    loose = StateValues(np.array([0.5]), np.array([np.nan]), np.array([np.nan]))
    for found in (
        apply_arithmetic("+", loose, exactly(1.0)),
        apply_arithmetic("*", exactly(2.0), loose),
        apply_call("max", [loose, exactly(2.0)]),
        apply_call("pow", [loose, exactly(2.0)]),
    ):
        assert math.isfinite(found.values[0])
        assert math.isnan(found.lower[0])
        assert math.isnan(found.upper[0])


@pytest.mark.parametrize(
    "text", ["0.1", "0.9999999999999999", "0.99999999999999999999", "1e-400", "0.30000000000000004"]
)
def test_constants_lie_between_doubles(text: str) -> None:
    found = constant_values(from_text(text), 3)
    exact = Fraction(text)
    assert Fraction(found.lower[0].item()) < exact < Fraction(found.upper[0].item())
    assert found.upper[0] == math.nextafter(found.lower[0], math.inf)
    # Neither bound is the number, so that comparisons with both are decided.
    for bound, less in ((found.lower, True), (found.upper, False)):
        truth = compare("<=", StateValues.exact(bound), found, "")
        assert truth.unknown is None
        assert truth.values.tolist() == [less] * 3
    assert constant_values(from_text("0.5"), 2).is_exact


def test_a_choice_covers_both_branches_where_it_is_unknown() -> None:
    condition = StateTruth(np.array([True, False, False]), np.array([False, False, True]))
    found = choose(condition, exactly(1.0, 1.0, 1.0), exactly(3.0, 3.0, 3.0))
    assert found.lower.tolist() == [1, 3, 1]
    assert found.upper.tolist() == [1, 3, 3]


# ------------------------------------------------------------------ line by line

TURNS = [(0.1, 0.2), (0.1, 0.7), (1e16, 0.1), (1e16, -0.1), (1 / 3, 2 / 3), (-0.1, -0.2), (-0.1, -0.7)]


# lemma: arithmetic
@pytest.mark.parametrize(("x", "y"), TURNS)
def test_sums_products_and_quotients_lie_strictly_between_their_bounds(x: float, y: float) -> None:
    a, b, p, q = np.array([x]), np.array([y]), Fraction(x), Fraction(y)
    for found, exact in ((added(a, b), p + q), (multiplied(a, b), p * q), (divided(a, b), p / q)):
        low, high = (float(part[0]) for part in found)
        assert low < exact < high or low == exact == high
        assert high <= math.nextafter(math.nextafter(low, math.inf), math.inf)


def test_products_of_huge_and_tiny_factors_are_not_split() -> None:
    """The rounding error of the first is below all doubles, and halves of the second are beyond them."""
    more = 1.0 + 2.0**-52
    for x, y in ((2.0**-500 * more, 2.0**-490 * more), (2.0**1010 * more, 2.0**-10 * more)):
        low, high = (float(part[0]) for part in multiplied(np.array([x]), np.array([y])))
        assert low < Fraction(x) * Fraction(y) < high


def test_factors_that_round_nothing_leave_numbers_as_they_are() -> None:
    for x in (1e300, 5e-324, 0.1):
        for y in (1.0, -1.0, 0.0):
            low, high = (float(part[0]) for part in multiplied(np.array([x]), np.array([y])))
            assert low == high == x * y


def test_numbers_with_an_error_lie_within_their_bounds() -> None:
    values, error = np.array([0.3, 0.3, -0.7, 0.5]), np.array([0.1, 1e-17, 1e-18, 0.0])
    low, high = outward(values, error)
    for v, e, below, above in zip(*(x.tolist() for x in (values, error, low, high)), strict=True):
        assert below <= Fraction(v) - Fraction(e) and Fraction(v) + Fraction(e) <= above
    assert low[3] == high[3] == 0.5


def test_functions_of_the_library_are_off_by_some_units_and_by_underflow() -> None:
    found = apply_call("pow", [exactly(1e-200), exactly(2.0)])
    assert found.lower[0] <= 0.0 < found.upper[0]
    found = apply_call("log", [exactly(3.0), exactly(7.0)])
    value = math.log(3) / math.log(7)
    assert found.lower[0] < value * (1 - 2**-50) and value * (1 + 2**-50) < found.upper[0]


# ------------------------------------------------------------------ sums over states

COUNT = "dtmc module m s:[0..3] init 0; [] s<3 -> (s'=s+1); [] s=3 -> true; endmodule"
HUGE = f"{2**1023}.0"
SUMS = [
    ("s=0 ? 0.1 : s=1 ? 0.2 : s=2 ? 0.7 : 0", ["0.1", "0.2", "0.7"]),
    ("s=0 ? 1 : s=1 ? 1e-30 : 0", ["1", "1e-30"]),
    ("s=0 ? 1 : s=1 ? -1e-30 : 0", ["1", "-1e-30"]),
    ("s=0 ? 1.7e308 : s=1 ? 1.7e308 : s=2 ? -1.7e308 : 1", ["1.7e308", "1"]),
    (f"s=0 ? {HUGE} : s=1 ? {HUGE} : s=2 ? -{HUGE} : 1e-320", [HUGE, "1e-320"]),
]


@pytest.mark.parametrize("few", [1 << 20, 2])
@pytest.mark.parametrize(("values", "terms"), SUMS)
def test_sums_over_states_lie_between_their_bounds(
    values: str, terms: list[str], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exactly for few states, by a bound on the rounding for many."""
    monkeypatch.setattr(filters, "_FEW", few)
    model = hybrid.parse(COUNT)
    exact = sum(map(Fraction, terms), Fraction(0))
    found = hybrid.check(model, f"filter(sum, {values}, true)")
    assert found.lower <= exact <= found.upper
    mean = hybrid.check(model, f"filter(avg, {values}, true)")
    assert mean.lower <= exact / 4 <= mean.upper


def test_sums_beyond_the_doubles_are_between_the_greatest_and_infinity() -> None:
    found = hybrid.check(hybrid.parse(COUNT), "filter(sum, s<2 ? 1.7e308 : 0, true)")
    assert (found.lower, found.upper) == (GREATEST, math.inf)
    found = hybrid.check(hybrid.parse(COUNT), "filter(sum, s<2 ? -1.7e308 : 0, true)")
    assert (found.lower, found.upper) == (-math.inf, -GREATEST)


def test_numbers_of_the_text_lie_between_the_doubles_next_to_them() -> None:
    model = hybrid.parse(COUNT)
    for text, exact in (("1/3", Fraction(1, 3)), ("0.1+0.2", Fraction(3, 10)), ("s+0.7", Fraction(7, 10))):
        found = hybrid.check(model, f"filter(state, {text} + 0*s, s=0)")
        assert found.lower <= exact <= found.upper
