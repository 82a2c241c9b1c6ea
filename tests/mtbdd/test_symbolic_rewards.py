"""Reward structures as functions, state by state and value by value, against the vectors of rewards."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mtbdd.build import rewards as symbolic_rewards
from mtbdd.build.rewards import action_rewards, from_vector, state_rewards, symbolic_reward
from mtbdd.diagrams.value_diagrams import ValueDiagrams
from mtbdd.offset.expansion import expand
from mtbdd.offset.states import index_states
from tests.builders.models import build, node_set

TEXT = """
KIND
module m
  x : [0..9] init 0;
  y : [0..3] init 0;
  [a] x<9 -> RATE : (x'=x+1);
  [b] y<3 -> RATE : (y'=y+1);
  [a] y=3 -> RATE : (y'=0);
endmodule
rewards "one" x>2 : x/3; true : 0.1*y; [a] true : x*0.7; [b] y>0 : 1.5; endrewards
rewards "signs" true : x; y>1 : -2.5*y; [a] x>1 : 3; [a] y=3 : -0.125; endrewards
rewards "none" false : 1; [b] false : 1; endrewards
rewards "far" [b] true : x+y; endrewards
rewards "third" true : x/3; endrewards
"""


@pytest.mark.parametrize("listed", [True, False], ids=["state by state", "value by value"])
@pytest.mark.parametrize(("kind", "rate"), [("ctmc", "0.3"), ("mdp", "1")])
def test_functions_have_the_values_of_vectors(
    listed: bool, kind: str, rate: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listed:
        monkeypatch.setattr(symbolic_rewards, "_LISTED", 0)
    model = build(TEXT.replace("KIND", kind).replace("RATE", rate))
    for structure in range(4):
        found = symbolic_reward(model, structure)
        assert found.name == model.source.rewards[structure].name
        states = state_rewards(model, structure, model.index)
        assert (found.states is None) == (structure == 3)
        if found.states is not None:
            assert expand(found.states, model.index) == pytest.approx(states, rel=1e-15, abs=0)
            assert found.states.units < 4
        for layer in range(len(model.layers)):
            choices, own = action_rewards(model, structure, model.index, layer), found.choices[layer]
            assert own is not None
            assert expand(own, model.index) == pytest.approx(choices, rel=1e-15, abs=0)
            assert own.units < 8


@pytest.mark.parametrize("listed", [True, False], ids=["state by state", "value by value"])
def test_units_bound_the_error(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not listed:
        monkeypatch.setattr(symbolic_rewards, "_LISTED", 0)
    model = build(TEXT.replace("KIND", "mdp").replace("RATE", "1"))
    function = symbolic_reward(model, 0).states
    assert function is not None
    for state, value in zip(
        model.describe(np.arange(model.n_states)), expand(function, model.index).tolist(), strict=True
    ):
        exact = Fraction(state["y"], 10) + (Fraction(state["x"], 3) if state["x"] > 2 else 0)
        assert abs(Fraction(value) - exact) <= exact * Fraction(function.units) / 2**53
    third = symbolic_reward(model, 4).states
    assert third is not None
    for value, number in zip(third.terminals.tolist(), range(1, 10), strict=True):
        assert abs(Fraction(value) * 3 - number) <= number * Fraction(third.units) / 2**53


def test_vectors_of_a_scattered_set(rng: np.random.Generator) -> None:
    model = build(TEXT.replace("KIND", "mdp").replace("RATE", "1"))
    manager = model.manager
    for share in (0.0, 0.1, 0.6, 1.0):
        numbers = np.flatnonzero(rng.random(1 << manager.n_bits) < share).tolist()
        index = index_states(manager, node_set(manager, manager.rows, numbers))
        values = rng.choice([0.0, 1.0, -2.0, 0.3], index.size)
        work = ValueDiagrams(manager.index_level)
        function = work.store(manager, from_vector(work, index, values), 0.0)
        assert np.array_equal(expand(function, index), values)
        assert function.support() & ~index.states == manager.false
