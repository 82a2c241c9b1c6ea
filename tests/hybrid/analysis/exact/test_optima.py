"""Exact optima of small decision processes against every scheduler tried, and comparisons decided by them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
from hybrid.analysis.exact import optima as policies
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.exact.optima import Exact, Option, solve_optima
from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.exact.systems import OperationBudget
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import NotExactError
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.model import SymbolicModel
from tests.builders.mdp_texts import COINS, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.builders.models import build_mdp
from tests.builders.random_mdps import mdps
from tests.oracles import optima

RANDOM = settings(max_examples=8)


def exact_values(model: SymbolicModel, text: str) -> list[Exact]:
    checker = Checker(model, CheckOptions.of())
    (prop,) = resolve_properties(parse_properties(text), model.source, {}).properties
    return ExactFormulas(model, checker.states).values(prop.formula)


def read(text: str) -> SymbolicModel:
    return build_mdp(text)[0]


def word(maximise: bool) -> str:
    return "max" if maximise else "min"


# ------------------------------------------------------------------ every scheduler


@RANDOM
@given(text=mdps(), maximise=st.booleans())
def test_probabilities_without_bounds(text: str, maximise: bool) -> None:
    model, mdp = build_mdp(text)
    safe = optima.states_of(mdp, lambda v: v["x"] != 2)
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    found = optima.until(mdp, safe, reached, maximise)
    assert exact_values(model, f"P{word(maximise)}=? [ x!=2 U x=1 ]") == found
    assert exact_values(model, f"P{word(not maximise)}=? [ !(x!=2 U x=1) ]") == [1 - p for p in found]
    outside = set(range(mdp.graph.n_states)) - reached
    always = optima.until(mdp, set(range(mdp.graph.n_states)), outside, not maximise)
    assert exact_values(model, f"P{word(maximise)}=? [ G x=1 ]") == [1 - p for p in always]
    places = optima.states_of(mdp, lambda v: v["x"] <= 1)
    assert exact_values(model, f"P{word(maximise)}=? [ G F x<=1 ]") == optima.repeated(mdp, places, maximise)
    found = optima.persistent(mdp, places, maximise)
    assert exact_values(model, f"P{word(maximise)}=? [ F G x<=1 ]") == found


@RANDOM
@given(text=mdps(), maximise=st.booleans())
def test_long_run_averages(text: str, maximise: bool) -> None:
    model, mdp = build_mdp(text)
    inside = optima.states_of(mdp, lambda v: v["x"] <= 1)
    assert exact_values(model, f"S{word(maximise)}=? [ x<=1 ]") == optima.shares(mdp, inside, maximise)
    assert exact_values(model, f"R{word(maximise)}=? [ S ]") == optima.averages(mdp, 0, maximise)


@RANDOM
@given(text=mdps(), maximise=st.booleans())
def test_rewards_until_a_set_and_in_total(text: str, maximise: bool) -> None:
    model, mdp = build_mdp(text)
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    found = optima.reachability_rewards(mdp, 0, reached, maximise)
    assert exact_values(model, f"R{word(maximise)}=? [ F x=1 ]") == found
    assert exact_values(model, f"R{word(maximise)}=? [ C ]") == optima.total_rewards(mdp, 0, maximise)


@RANDOM
@given(text=mdps(), maximise=st.booleans(), lower=st.integers(0, 3), length=st.integers(0, 4))
def test_steps(text: str, maximise: bool, lower: int, length: int) -> None:
    model, mdp = build_mdp(text)
    n, opt = mdp.graph.n_states, word(maximise)
    everything = set(range(n))
    reached, unsafe = (optima.states_of(mdp, lambda v, k=k: v["x"] == k) for k in (1, 2))
    zero, ones = [Fraction(0)] * n, [Fraction(int(s in reached)) for s in range(n)]
    step = optima.steps_back(mdp, ones, 1, maximise)
    assert exact_values(model, f"P{opt}=? [ X x=1 ]") == step
    # Targets and unsafe states keep their values in the last steps, unsafe ones are worth nothing before.
    values = optima.steps_back(mdp, ones, length, maximise, frozen=reached | unsafe)
    for _ in range(lower):
        values = optima.steps_back(mdp, values, 1, maximise)
        values = [Fraction(0) if s in unsafe else values[s] for s in range(n)]
    assert exact_values(model, f"P{opt}=? [ x!=2 U[{lower},{lower + length}] x=1 ]") == values
    later = optima.until(mdp, everything - unsafe, reached, maximise)
    for _ in range(lower):
        later = optima.steps_back(mdp, later, 1, maximise)
        later = [Fraction(0) if s in unsafe else later[s] for s in range(n)]
    assert exact_values(model, f"P{opt}=? [ x!=2 U>={lower} x=1 ]") == later
    earned = optima.steps_back(mdp, zero, length, maximise, structure=0)
    assert exact_values(model, f"R{opt}=? [ C<={length} ]") == earned
    start = mdp.state_rewards(0)
    assert exact_values(model, f"R{opt}=? [ I={length} ]") == optima.steps_back(mdp, start, length, maximise)


def test_policies_do_not_depend_on_the_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = build_mdp(SLOW_WAY)
    monkeypatch.setattr(policies, "_approximate", lambda options, policy, maximise: policy)
    assert exact_values(model, "Pmax=? [ F x=2 ]")[0] == Fraction(3, 5)
    assert exact_values(model, "Pmin=? [ F x=2 ]")[0] == Fraction(1, 4)
    assert exact_values(model, 'R{"tries"}max=? [ F x>=2 ]')[0] == 2


# ------------------------------------------------------------------ comparisons

TIES = [
    # The fast way once is the worst, the slow one for ever (0.3 a try, half of them repeated) the best.
    (SLOW_WAY, "P>=0.25 [ F x=2 ]", "P>0.25 [ F x=2 ]"),
    (SLOW_WAY, "P<=0.6 [ F x=2 ]", "P<0.6 [ F x=2 ]"),
    (SLOW_WAY, "P>=0.4 [ G x!=2 ]", "P>0.4 [ G x!=2 ]"),
    # 0.3, and after one more try, two steps later, half of it again.
    (SLOW_WAY, "P<=0.45 [ F<=3 x=2 ]", "P<0.45 [ F<=3 x=2 ]"),
    (SLOW_WAY, "P<=0.3 [ X x=2 ]", "P<0.3 [ X x=2 ]"),
    (SLOW_WAY, 'R{"tries"}<=2 [ F x>=2 ]', 'R{"tries"}<2 [ F x>=2 ]'),
    (SLOW_WAY, 'R{"tries"}>=1 [ C ]', 'R{"tries"}>1 [ C ]'),
    (SLOW_WAY, 'R{"tries"}<=1.5 [ C<=3 ]', 'R{"tries"}<1.5 [ C<=3 ]'),
    (SLOW_WAY, 'R{"places"}<=2.75 [ I=1 ]', 'R{"places"}<2.75 [ I=1 ]'),
    # Both doors out of the waiting room may be put off for ever at no cost, but not the way to place 3.
    (WAITING_ROOM, "R>=5 [ F x=3 ]", "R>5 [ F x=3 ]"),
    # Half of the time one starts on the right side of the door, and else half pass it.
    (ROOMS, "P<=0.75 [ F x=3 ]", "P<0.75 [ F x=3 ]"),
    (ROOMS, "P<=0.75 [ G F x=3 ]", "P<0.75 [ G F x=3 ]"),
    (ROOMS, 'R{"door"}<=1.5 [ C ]', 'R{"door"}<1.5 [ C ]'),
]


@pytest.mark.parametrize(("text", "holds", "fails"), TIES, ids=[t[1] for t in TIES])
def test_ties_are_decided(text: str, holds: str, fails: str) -> None:
    model = read(text)
    found = [hybrid.check(model, p, throw=False) for p in (holds, fails)]
    assert [a.error for a in found] == [None, None]
    assert [a.value for a in found] == [True, False]


def test_nested_ties_are_decided() -> None:
    model = read(SLOW_WAY)
    assert hybrid.check(model, "P>=1 [ X (P>=0.25 [ F x=2 ] | x=3) ]").value is True
    assert hybrid.check(model, "P>=1 [ X (P>0.25 [ F x=2 ] | x=3) ]").value is False
    assert hybrid.check(model, "filter(count, Pmin=? [ F x=2 ] = 0.25)").value == 2
    assert hybrid.check(model, "filter(forall, Pmax=? [ F x=2 ] >= Pmin=? [ F x=2 ])").value is True


def test_probabilities_are_divided_by_their_sum() -> None:
    """The third that is written as 0.3333333333 leaves its row short of 1."""
    model = read(COINS)
    assert all(sum(row.values()) == 1 for choices in ExactModel(model).choices for row in choices)
    assert hybrid.check(model, "P<=0.5 [ F x=1 ]").value is True


def test_values_where_iterations_do_not_end() -> None:
    # A random walk of 21 places takes some 400 steps, and the host is granted 5.
    walk = """mdp module m x : [0..20] init 10;
    [] x>0 & x<20 -> 1/2 : (x'=x-1) + 1/2 : (x'=x+1);
    [] x=10 -> 1/4 : (x'=9) + 3/4 : (x'=11);
    endmodule"""
    found = hybrid.check(read(walk), "Pmax=? [ F x=20 ]", max_iterations=5)
    assert found.value == 0.75
    assert found.lower == found.upper == 0.75
    assert found.statistics.method == "exact"


# ------------------------------------------------------------------ limits


def test_too_many_unknown_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.analysis.exact.optima.MAX_UNKNOWN", 1)
    model = read(SLOW_WAY)
    with pytest.raises(NotExactError, match="2 unknown states"):
        exact_values(model, "Pmax=? [ F x=2 ]")
    assert "unknown" in str(hybrid.check(model, "P<=0.6 [ F x=2 ]", throw=False).error)


def test_a_budget_is_kept_and_traps_are_refused() -> None:
    half = Fraction(1, 2)
    game = [[Option(half, {0: half}), Option(Fraction(2), {0: Fraction(1, 4)})]]
    assert solve_optima(game, True, OperationBudget(100)) == [Fraction(8, 3)]
    assert solve_optima(game, False, OperationBudget(100)) == [Fraction(1)]
    assert solve_optima([], True, OperationBudget(0)) == []
    with pytest.raises(NotExactError, match="granted"):
        solve_optima(game, True, OperationBudget(1))
    with pytest.raises(NotExactError, match="cannot leave"):
        solve_optima([[Option(half, {0: Fraction(1)})]], True, OperationBudget(100))


def test_infinite_values() -> None:
    model = read(ROOMS)
    assert exact_values(model, 'R{"door"}min=? [ F x=5 ]')[0] == math.inf
    assert hybrid.check(model, 'R{"door"}>=1000 [ F x=5 ]').value is True
