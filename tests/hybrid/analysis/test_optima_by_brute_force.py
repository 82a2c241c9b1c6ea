"""Random small MDPs: bounds hold the optimum over all memoryless schedulers, on both engines."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.base.state_values import StateValues
from mtbdd.build.model import SymbolicModel
from tests.builders.models import build_mdp
from tests.builders.random_mdps import mdps
from tests.oracles import optima
from tests.oracles.mdps import ExplicitMdp

ENGINES = [
    {"engine": "hybrid", "backend": "cpu"},
    {"engine": "explicit"},
    {"engine": "hybrid", "backend": "reference", "method": "interval"},
]


def _pair(text: str) -> tuple[SymbolicModel, ExplicitMdp]:
    return build_mdp(text)


def _values(model: SymbolicModel, text: str, options: dict[str, str]) -> StateValues:
    found = optima.checked(model, text, **options)
    assert isinstance(found, StateValues)
    return found


def _optimum(maximise: bool) -> str:
    return "max" if maximise else "min"


@pytest.mark.parametrize("options", ENGINES, ids=str)
@settings(max_examples=12)
@given(text=mdps(), maximise=st.booleans())
def test_until(options: dict[str, str], text: str, maximise: bool) -> None:
    model, mdp = _pair(text)
    everything = set(range(mdp.graph.n_states))
    word = _optimum(maximise)
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    found = _values(model, f"P{word}=? [ F x=1 ]", options)
    optima.assert_encloses(found, optima.until(mdp, everything, reached, maximise))
    safe = optima.states_of(mdp, lambda v: v["x"] != 2)
    found = _values(model, f"P{word}=? [ x!=2 U x=1 ]", options)
    exact = optima.until(mdp, safe, reached, maximise)
    optima.assert_encloses(found, exact)
    # The complement turns the optimum round.
    found = _values(model, f"P{_optimum(not maximise)}=? [ !(x!=2 U x=1) ]", options)
    for value, one in zip(exact, found.values, strict=True):
        assert abs(1.0 - float(value) - one) < 1e-7


@pytest.mark.parametrize("options", ENGINES, ids=str)
@settings(max_examples=10)
@given(text=mdps(), maximise=st.booleans())
def test_rewards_until_a_set_and_in_total(options: dict[str, str], text: str, maximise: bool) -> None:
    model, mdp = _pair(text)
    word = _optimum(maximise)
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    found = _values(model, f"R{word}=? [ F x=1 ]", options)
    optima.assert_encloses(found, optima.reachability_rewards(mdp, 0, reached, maximise))
    found = _values(model, f"R{word}=? [ C ]", options)
    optima.assert_encloses(found, optima.total_rewards(mdp, 0, maximise))


@pytest.mark.parametrize("options", ENGINES, ids=str)
@settings(max_examples=10)
@given(text=mdps(), maximise=st.booleans(), steps=st.integers(0, 5))
def test_steps(options: dict[str, str], text: str, maximise: bool, steps: int) -> None:
    model, mdp = _pair(text)
    n, word = mdp.graph.n_states, _optimum(maximise)
    zero = [Fraction(0)] * n
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    start = [Fraction(int(s in reached)) for s in range(n)]
    found = _values(model, f"P{word}=? [ F<={steps} x=1 ]", options)
    optima.assert_encloses(found, optima.steps_back(mdp, start, steps, maximise, frozen=reached), 1e-12)
    later = optima.steps_back(mdp, start, 2, maximise, frozen=reached)
    found = _values(model, f"P{word}=? [ F[{steps},{steps + 2}] x=1 ]", options)
    exact = optima.steps_back(mdp, [Fraction(v) for v in later], steps, maximise)
    optima.assert_encloses(found, exact, 1e-12)
    found = _values(model, f"P{word}=? [ X x=1 ]", options)
    optima.assert_encloses(found, optima.steps_back(mdp, start, 1, maximise), 1e-12)
    found = _values(model, f"R{word}=? [ C<={steps} ]", options)
    optima.assert_encloses(found, optima.steps_back(mdp, zero, steps, maximise, structure=0), 1e-12)
    found = _values(model, f"R{word}=? [ I={steps} ]", options)
    optima.assert_encloses(found, optima.steps_back(mdp, mdp.state_rewards(0), steps, maximise), 1e-12)


@pytest.mark.parametrize("options", ENGINES[:2], ids=str)
@settings(max_examples=12)
@given(text=mdps(), maximise=st.booleans())
def test_again_and_again(options: dict[str, str], text: str, maximise: bool) -> None:
    model, mdp = _pair(text)
    word = _optimum(maximise)
    wanted = optima.states_of(mdp, lambda v: v["x"] <= 1)
    for path, exact in (("G F x<=1", optima.repeated), ("F G x<=1", optima.persistent)):
        found = _values(model, f"P{word}=? [ {path} ]", options)
        for value, low, high in zip(exact(mdp, wanted, maximise), found.lower, found.upper, strict=True):
            assert Fraction(float(low)) <= value <= Fraction(float(high))
            assert high - low < 1e-7


@settings(max_examples=12)
@given(text=mdps(), maximise=st.booleans())
def test_value_iteration_without_bounds_is_close(text: str, maximise: bool) -> None:
    model, mdp = _pair(text)
    everything = set(range(mdp.graph.n_states))
    reached = optima.states_of(mdp, lambda v: v["x"] == 1)
    found = _values(model, f"P{_optimum(maximise)}=? [ F x=1 ]", {"method": "jacobi", "backend": "cpu"})
    exact = optima.until(mdp, everything, reached, maximise)
    np.testing.assert_allclose(found.values, [float(v) for v in exact], rtol=1e-5, atol=1e-12)
