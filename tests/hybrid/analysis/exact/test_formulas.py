"""Exact values of every operator against definitions on random chains, and comparisons decided by them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.exact.objectives import attained, settle
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotExactError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from tests.builders.chain_texts import DIE, GAMBLER, QUEUE, SPLIT, load_text
from tests.builders.models import build, build_both
from tests.builders.random_chains import chains, condition
from tests.exploring import each
from tests.oracles.chains import (
    exact_steps,
    mean,
    reachability_rewards,
    stationary_distribution,
    until_probabilities,
)

QUICK = settings(max_examples=20)


def exact_values(model, text):
    checker = Checker(model, CheckOptions.of())
    (prop,) = resolve_properties(parse_properties(text), model.source).properties
    return ExactFormulas(model, checker.states).values(prop.formula)


@QUICK
@given(chains())
def test_unbounded_operators(chain):
    kind, text, safe, target = chain
    model, explicit = build_both(text)
    a, b, everything = condition(safe), condition(target), set(range(explicit.n_states))
    until = until_probabilities(explicit.rates, safe, target)
    assert exact_values(model, f"P=? [ ({a}) U ({b}) ]") == until
    assert exact_values(model, f"P=? [ !(({a}) U ({b})) ]") == [1 - p for p in until]
    always = [1 - p for p in until_probabilities(explicit.rates, everything, everything - safe)]
    assert exact_values(model, f"P=? [ G ({a}) ]") == always
    total = [sum(row.values()) for row in explicit.rates]
    steps = [mean(row, [Fraction(j in target) for j in everything]) for row in explicit.rates]
    assert exact_values(model, f"P=? [ X ({b}) ]") == [s / t for s, t in zip(steps, total, strict=True)]
    reward = reachability_rewards(explicit.rates, explicit.rewards(0), target, kind == "ctmc")
    assert exact_values(model, f"R=? [ F ({b}) ]") == reward


@QUICK
@given(chains())
def test_long_run_operators(chain):
    kind, text, safe, _ = chain
    model, explicit = build_both(text)
    shares = [
        stationary_distribution(explicit.rates, {i: Fraction(1)}, kind == "ctmc")
        for i in range(explicit.n_states)
    ]
    assert exact_values(model, f"S=? [ {condition(safe)} ]") == [sum(r[i] for i in safe) for r in shares]
    rewards = explicit.rewards(0)
    expected = [sum(p * r for p, r in zip(row, rewards, strict=True)) for row in shares]
    assert exact_values(model, "R=? [ S ]") == expected


@QUICK
@given(chains("dtmc"), st.integers(0, 5), st.integers(0, 5))
def test_bounded_operators(chain, lower, length):
    _, text, safe, target = chain
    model, explicit = build_both(text)
    a, b, upper = condition(safe), condition(target), lower + length
    expected = exact_steps(explicit.rates, safe, target, lower, upper)
    assert exact_values(model, f"P=? [ ({a}) U[{lower},{upper}] ({b}) ]") == expected
    rewards = explicit.rewards(0)
    gathered, now = [Fraction(0)] * explicit.n_states, list(rewards)
    for _ in range(length):
        gathered = [r + mean(row, gathered) for r, row in zip(rewards, explicit.rates, strict=True)]
        now = [mean(row, now) for row in explicit.rates]
    assert exact_values(model, f"R=? [ C<={length} ]") == gathered
    assert exact_values(model, f"R=? [ I={length} ]") == now
    later = until_probabilities(explicit.rates, safe, target)
    for _ in range(lower):
        later = [mean(row, later) if i in safe else Fraction(0) for i, row in enumerate(explicit.rates)]
    assert exact_values(model, f"P=? [ ({a}) U>={lower} ({b}) ]") == later


TIES = [
    (DIE, "P>=1/6 [ F d=1 ]", True),
    (DIE, "P>1/6 [ F d=1 ]", False),
    (DIE, "P<=1/6 [ F d=1 ]", True),
    (DIE, "P<1/6 [ F d=1 ]", False),
    (DIE, "P>=5/6 [ G d!=1 ]", True),
    (DIE, 'R{"flips"}<=11/3 [ F s=7 ]', True),
    (DIE, 'R{"flips"}<11/3 [ C ]', False),
    (DIE, "S<=1/6 [ d=3 ]", True),
    (DIE, "P=? [ F d=1 ] = P=? [ F d=2 ]", True),
    (DIE, "P=? [ F d=1 ] != 1 - P=? [ F d>1 ]", False),
    (DIE, "2 * P=? [ F d=1 ] + P=? [ F d=2 ] / 2 >= 5/12", True),
    (DIE, "filter(count, P>=1/3 [ F d=1 ])", 3),
    (DIE, "filter(forall, P<=2/3 [ F d=1 ], s<7)", True),
    (DIE, "P>=1/6 [ X P>=1/3 [ F d=1 ] ]", True),
    (DIE, "P>=1/2 [ F P>=1/3 [ F d=1 ] ]", True),
    (DIE, "!(P>1/6 [ F d=1 ]) & P>=1/6 [ F d=6 ]", True),
    (GAMBLER, "P>=76/211 [ F x=goal ]", True),
    (GAMBLER, "P>76/211 [ F x=goal ]", False),
    (QUEUE, "S>=81/211 [ n=0 ]", True),
    (QUEUE, "S>81/211 [ n=0 ]", False),
    (QUEUE, 'R{"length"}<=1/2 [ F n=2 ]', True),
    (SPLIT, "P>1/4 [ F s=2 ]", False),
    (SPLIT, "S>=5/24 [ s=2 ]", True),
    (SPLIT, 'R{"marked"}>2 [ S ]', False),
]


@pytest.mark.parametrize(
    ("text", "prop", "expected", "engine"),
    each(TIES, ["hybrid", "explicit"]),
)
def test_ties_are_decided(text, prop, expected, engine, tmp_path):
    answer = hybrid.check(load_text(tmp_path, text), prop, engine=engine, throw=False)
    assert answer.error is None
    assert (answer.value, answer.lower, answer.upper) == (expected,) * 3
    assert type(answer.value) is type(expected)


def test_answers_name_the_method(tmp_path):
    model = load_text(tmp_path, DIE)
    assert hybrid.check(model, "P>=1/6 [ F d=1 ]").statistics.method == "exact"
    assert hybrid.check(model, "P>=1/7 [ F d=1 ]").statistics.method == "optimistic"
    assert hybrid.check(model, "P>=1/6 [ F d=1 ]", epsilon=1e-13).value is True


def test_estimates_are_not_settled(tmp_path):
    answer = hybrid.check(load_text(tmp_path, DIE), "P>=1/6 [ F d=1 ]", method="jacobi", throw=False)
    assert "an estimate, without bounds" in answer.error


@pytest.mark.parametrize("prop", ["P>=1/6 [ F d=1 ]", "P=? [ F P>=1/3 [ F d=1 ] ]"])
def test_large_systems_stay_unknown(prop, tmp_path, monkeypatch):
    monkeypatch.setattr("hybrid.analysis.exact.formulas.MAX_UNKNOWN", 2)
    answer = hybrid.check(load_text(tmp_path, DIE), prop, throw=False)
    assert answer.value is None
    assert "unknown at this precision" in answer.error


def test_irrational_numbers_leave_ties_unknown():
    odd = "dtmc const double p = pow(2, 0.5) / 3; module m s : [0..2]; [] s=0 -> p : (s'=1) + 1-p : (s'=2);"
    model = build(odd + " [] s>0 -> true; endmodule")
    with pytest.raises(NotExactError, match="may be irrational"):
        exact_values(model, "P=? [ F s=1 ]")


def test_rows_are_divided_by_their_sum():
    text = "dtmc module m s : [0..2]; [] s=0 -> 0.3333333333 : (s'=1) + 0.6666666666 : (s'=2);"
    model = build(text + " [] s>0 -> true; endmodule")
    assert exact_values(model, "P=? [ F s=1 ]")[0] == Fraction(1, 3)


@pytest.mark.parametrize(
    ("text", "prop"),
    [
        (QUEUE, "P=? [ F<=1 n=2 ]"),
        (QUEUE, 'R{"length"}=? [ I=1 ]'),
        (QUEUE, 'R{"length"}=? [ C<=1 ]'),
        (DIE, "max(P=? [ F d=1 ], 0.1)"),
        (DIE, "1 / P=? [ F d=1 & s=0 ]"),
        (DIE, 'R{"flips"}=? [ F d=1 ] + 1'),
    ],
)
def test_what_has_no_rational_value_is_refused(text, prop, tmp_path):
    with pytest.raises(NotExactError):
        exact_values(load_text(tmp_path, text), prop)


def test_infinite_rewards_compare(tmp_path):
    model = load_text(tmp_path, DIE)
    assert exact_values(model, 'R{"flips"}=? [ F d=1 ]')[0] == math.inf
    assert hybrid.check(model, 'R{"flips"}>=100 [ F d=1 ]').value is True


def test_an_exact_value_outside_of_its_bounds_settles_nothing(tmp_path):
    model = load_text(tmp_path, DIE)
    checker = Checker(model, CheckOptions.of())
    (prop,) = resolve_properties(parse_properties("P=? [ F d=1 ] >= 1/6"), model.source).properties
    unknown = StateTruth(np.zeros(13, bool), np.ones(13, bool), None, "too close")
    sides = [(side, checker.evaluate(side)) for side in (prop.formula.left, prop.formula.right)]
    exact = ExactFormulas(model, checker.states)
    settled = settle(exact, unknown, ">=", *sides)
    assert settled.unknown is None
    assert settled.values.tolist() == [p >= Fraction(1, 6) for p in exact.values(prop.formula.left)]
    (left, found), right = sides
    for lower, upper in ((found.lower + 1e-3, found.upper + 1e-3), (found.lower - 1e-3, found.upper - 1e-3)):
        moved = StateValues(found.values, lower, upper)
        assert settle(exact, unknown, ">=", (left, moved), right) is unknown
    assert settle(exact, StateTruth(unknown.values), ">=", *sides).unknown is None


# From states 1 and 3 the target is missed with probability 1/2; something is lost in state 1.
LOSSES = """
dtmc
module m
  s : [0..5];
  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [] s=1 -> 1/2:(s'=4) + 1/2:(s'=5);
  [] s=2 -> (s'=4);
  [] s=3 -> 1/2:(s'=4) + 1/2:(s'=5);
  [] s>=4 -> true;
endmodule
init true endinit
rewards
  s=1 : -1;
  s=2 : 3;
endrewards
"""


def test_losses_where_the_target_may_be_missed_have_no_value():
    model = build(LOSSES)
    found = exact_values(model, "R=? [ F s=4 ]")
    assert math.isnan(found[0]) and math.isnan(found[1])
    assert found[2:] == [3, math.inf, 0, math.inf]
    around = ExactFormulas(model, Checker(model, CheckOptions.of()).states).enclosures
    (prop,) = resolve_properties(parse_properties("R=? [ F s=4 ]"), model.source).properties
    assert np.isnan(around(prop.formula).values).tolist() == [True, True, False, False, False, False]
    chosen = StateTruth(np.zeros(6, dtype=bool), np.ones(6, dtype=bool), None, "left")
    (prop,) = resolve_properties(parse_properties("filter(argmin, R=? [ F s=4 ])"), model.source).properties
    exact = ExactFormulas(model, Checker(model, CheckOptions.of()).states)
    assert attained(exact, prop.formula, chosen, None) is chosen
