"""Answers about the numbers that a text means: thresholds, ties, sums, sets of extremes, undefined values."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid
from hybrid.base.state_values import StateValues
from hybrid.checking.filters import selected
from tests.builders.models import build

HALVES = """dtmc module m s:[0..55]; b:bool; [] s<54 & !b -> 0.5:(s'=s+1) + 0.5:(b'=true);
[] b -> true; [] s=54 & !b -> (s'=55); [] s=55 -> true; endmodule"""
"""P=? [ F b ] is 1 - 2^-54."""

THIRDS = """dtmc module m s:[0..2]; [] s=0 -> 1/3:(s'=1) + 2/3:(s'=2); [] s>0 -> true; endmodule
rewards s=0 : 349807651257/310100; endrewards"""

STEP = """dtmc module m s:[0..1]; [] s=0 -> (s'=1); [] s=1 -> true; endmodule
rewards "cancel" s=0:1e17; s=0:1; s=0:-1e17; endrewards
rewards "large" s=0:1e16; s=0:1; endrewards"""

CLOSE = """dtmc module m s:[0..4]; [] s=0 -> 0.5:(s'=1) + 0.5:(s'=2); [] s=1 -> 0.5:(s'=3) + 0.5:(s'=4);
[] s=2 -> 0.5000001:(s'=3) + 0.4999999:(s'=4); [] s>2 -> true; endmodule"""


@pytest.mark.parametrize(
    ("text", "prop", "expected"),
    [
        (HALVES, "P>=0.9999999999999999 [ F b ]", True),
        (HALVES, "P>0.99999999999999994 [ F b ]", True),
        (HALVES, "P>0.99999999999999995 [ F b ]", False),
        (HALVES, "P>=1 [ F b ]", False),
        (THIRDS, "P>0.6666666666666666 [ F s=2 ]", True),
        (THIRDS, "P>=2/3 [ F s=2 ]", True),
        (THIRDS, "P>2/3 [ F s=2 ]", False),
        (THIRDS, "P<=0.3333333333333333333333 [ F s=1 ]", False),
        (THIRDS, "R>349807651257/310100 [ F s>0 ]", False),
        (THIRDS, "R>=349807651257/310100 [ F s>0 ]", True),
        (THIRDS, "P=? [ F s=2 ] > P=? [ F s=1 ] * 2", False),
        (THIRDS, "P=? [ X s=1 ] + 0.1 + 0.2 - 0.3 = 1/3", True),
        (STEP, 'R{"cancel"}>=1 [ F s=1 ]', True),
        (STEP, 'R{"cancel"}<1 [ F s=1 ]', False),
        (STEP, 'R{"large"}>10000000000000000 [ F s=1 ]', True),
        (STEP, 'R{"large"}<=10000000000000001 [ F s=1 ]', True),
        (STEP, "P=? [ F s=1 ] * 0.1 + 0.2 <= 0.3", True),
        (CLOSE, "P>=1 [ X filter(argmin, P=? [ F s=3 ], s=1|s=2) ]", False),
        (CLOSE, "P<=0.5 [ X filter(argmin, P=? [ F s=3 ], s=1|s=2) ]", True),
        (CLOSE, "P>=0.5 [ X filter(argmax, P=? [ F s=3 ], s=1|s=2) ]", True),
        (CLOSE, "filter(min, P=? [ F s=3 ], s>0 & s<3) >= 0.5", True),
        (CLOSE, "filter(avg, P=? [ F s=3 ], s=1|s=2) > 0.50000005", False),
    ],
)
def test_truths_are_those_of_the_text(text: str, prop: str, expected: bool) -> None:
    answer = hybrid.check(build(text), prop, epsilon=1e-3, throw=False)
    assert answer.error is None
    assert answer.value is expected


@pytest.mark.parametrize(
    ("prop", "exact"),
    [
        ("0.1 + 0.2", Fraction(3, 10)),
        ("(P=? [ F true ])/3", Fraction(1, 3)),
        ("(P=? [ F true ])*0.1 + 0.2", Fraction(3, 10)),
        ("filter(sum, (P=? [ F true ])*0.1)", Fraction(1, 5)),
        ("filter(avg, (P=? [ F true ])*0.1*s)", Fraction(1, 20)),
        ("P=? [ F s=1 ] * 1e308 * 10", Fraction(10**309)),
        ("filter(sum, (P=? [ F s=1 ]) * 1e308)", Fraction(2 * 10**308)),
    ],
)
def test_rounded_results_are_not_told_exact(prop: str, exact: Fraction) -> None:
    answer = hybrid.check(build(STEP), prop, throw=False)
    assert answer.error is None
    lower, upper = float(answer.lower or 0), float(answer.upper or 0)
    assert lower < upper
    assert Fraction(lower) <= exact
    assert upper == math.inf or exact <= Fraction(upper)
    assert lower <= float(answer.value or 0) <= upper
    assert math.isfinite(float(answer.value or 0))


@pytest.mark.parametrize(
    "prop", ['R{"cancel"}=? [ I=0 ]', "filter(sum, P=? [ F s=1 ])", "(P=? [ F s=1 ])/4 + 0.5"]
)
def test_exact_results_are_told_exact(prop: str) -> None:
    answer = hybrid.check(build(STEP), prop)
    assert answer.lower == answer.value == answer.upper


@pytest.mark.parametrize(
    "prop",
    [
        "0/(P=? [ F false ])",
        'floor(R{"large"}=? [ F false ])',
        '(R{"large"}=? [ F false ]) - (R{"large"}=? [ F false ])',
        "filter(sum, 0/(P=? [ F false ]))",
        "(P=? [ F false ]) / (P=? [ F false ]) < 1",
        "filter(argmin, 0/(P=? [ F false ]))",
        "log(P=? [ F false ], 2)",
    ],
)
def test_r9_what_has_no_value_is_an_error(prop: str) -> None:
    answer = hybrid.check(build(STEP), prop, throw=False)
    assert answer.value is None
    assert answer.error is not None
    assert "value in every state asked for" in answer.error
    json.loads(json.dumps(answer.record(), allow_nan=False))


def test_values_are_needed_only_where_they_are_asked_for() -> None:
    answer = hybrid.check(build(STEP), "filter(max, s/(P=? [ X s=1 ] - 1 + s), s=1)")
    assert answer.value == 1


bounds = st.tuples(st.integers(0, 4), st.integers(0, 2))


@given(st.lists(bounds, min_size=1, max_size=4), st.sampled_from(["argmin", "argmax"]))
def test_extremes_are_attained_where_all_values_within_the_bounds_say_so(
    ends: list[tuple[int, int]], operator: str
) -> None:
    lower = np.array([float(low) for low, _ in ends])
    upper = lower + np.array([float(width) for _, width in ends])
    found = selected(operator, StateValues((lower + upper) / 2, lower, upper))
    halves = [np.arange(low, high + 0.25, 0.5).tolist() for low, high in zip(lower, upper, strict=True)]
    best = min if operator == "argmin" else max
    seen = np.array([[v == best(values) for v in values] for values in product(*halves)])
    assert found.certain.tolist() == seen.all(axis=0).tolist()
    assert found.possible.tolist() == seen.any(axis=0).tolist()


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20), st.booleans())
def test_sums_of_filters_are_rounded_outward(numbers: list[float], mean: bool) -> None:
    from hybrid.checking.filters import _total

    summary = _total("avg" if mean else "sum", StateValues.exact(np.array(numbers)))
    exact = sum(map(Fraction, numbers), Fraction(0)) / (len(numbers) if mean else 1)
    assert isinstance(summary.lower, float)
    assert isinstance(summary.upper, float)
    assert Fraction(summary.lower) <= exact <= Fraction(summary.upper)
    assert summary.upper - summary.lower <= 4 * math.ulp(summary.upper)
    if summary.lower == summary.upper:
        assert Fraction(summary.lower) == exact


def test_constants_given_from_python_are_decimals() -> None:
    text = (
        "dtmc const double p; module m s:[0..2]; [] s=0 -> p:(s'=1) + 1-p:(s'=2); [] s>0 -> true; endmodule"
    )
    for given_value, expected in ((0.1, True), (Fraction(1, 10), True), (Fraction(0.1), False)):
        model = build(text, p=given_value)
        assert hybrid.check(model, "P<=0.1 [ F s=1 ]").value is expected
