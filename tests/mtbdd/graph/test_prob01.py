"""Prob0, Prob1 and bottom components on sets, against their definitions."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from mtbdd.build.model import SymbolicModel
from mtbdd.build.reach import fixpoint
from mtbdd.graph.prob01 import absorbing_states, backward, bottom_components, forward, prob0, prob1
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import build, build_both, members, state_set
from tests.oracles import chains as oracles
from tests.oracles.models import ExplicitModel

MODELS = {
    # A tree of choices with absorbing ends, some of them cycles.
    "tree": """
        dtmc module m x : [0..11];
        [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); [] x=1 -> 0.25:(x'=3) + 0.75:(x'=4);
        [] x=2 -> 0.5:(x'=5) + 0.5:(x'=0); [] x=3 -> (x'=6); [] x=6 -> (x'=3);
        [] x=4 -> 0.5:(x'=4) + 0.5:(x'=7); [] x=5 -> (x'=8); [] x=8 -> (x'=9);
        [] x=9 -> 0.1:(x'=8) + 0.9:(x'=5); endmodule""",
    "walk": """
        dtmc module m x : [0..9]; [] x>0 & x<9 -> 0.3:(x'=x-1) + 0.7:(x'=x+1); endmodule""",
    "irreducible": """
        ctmc module m x : [0..3]; y : [0..3]; [] x<3 -> 1:(x'=x+1); [a] x>0 -> 1:(x'=x-1); endmodule
        module n z : [0..3]; [a] z<3 -> 2:(z'=z+1); [] z>0 -> 1:(z'=z-1); endmodule""",
    "many components": """
        ctmc module m x : [0..3]; y : [0..3]; done : bool;
        [] !done & x<3 -> 1:(x'=x+1); [] !done & y<3 -> 1:(y'=y+1); [] !done -> 1:(done'=true);
        [] done & x<2 -> 1:(x'=1-x); endmodule""",
    "several initial states": """
        ctmc module m x : [0..7]; [] x<6 -> 1:(x'=x+2); [] x=7 -> 1:(x'=5); endmodule init x<3 endinit""",
}


@pytest.fixture(params=[(name, package) for name in MODELS for package in DIAGRAM_PACKAGES], ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[SymbolicModel, ExplicitModel]:
    name, package = request.param
    return build_both(MODELS[name], package)


def subsets(rng: np.random.Generator, n: int) -> list[set[int]]:
    random = [set(np.flatnonzero(rng.random(n) < share).tolist()) for share in (0.1, 0.3, 0.6, 0.9)]
    return [*random, set(range(n)), set()]


def test_prob0_and_prob1_equal_their_definitions(
    pair: tuple[SymbolicModel, ExplicitModel], rng: np.random.Generator
) -> None:
    model, explicit = pair
    n = explicit.n_states
    for safe in subsets(rng, n):
        for target in subsets(rng, n):
            safe_set, target_set = (state_set(model, explicit, s) for s in (safe, target))
            zero = prob0(model, safe_set, target_set)
            assert members(model, zero) == oracles.prob0(explicit.rates, safe, target)
            one = prob1(model, safe_set, target_set, zero)
            assert members(model, one) == oracles.prob1(explicit.rates, safe, target)
            assert (zero | one) & ~model.reachable == model.manager.false


@pytest.mark.parametrize("name", ["tree", "walk", "several initial states"])
def test_prob0_and_prob1_of_exact_probabilities(name: str, rng: np.random.Generator) -> None:
    """The sets hold exactly the states whose probability, solved with fractions, is 0 or 1."""
    model, explicit = build_both(MODELS[name])
    for target in subsets(rng, explicit.n_states):
        safe = set(range(explicit.n_states)) - set(list(target)[::2])
        exact = oracles.until_probabilities(explicit.rates, safe, target)
        safe_set, target_set = (state_set(model, explicit, s) for s in (safe, target))
        zero = prob0(model, safe_set, target_set)
        assert members(model, zero) == {s for s, p in enumerate(exact) if p == 0}
        assert members(model, prob1(model, safe_set, target_set, zero)) == {
            s for s, p in enumerate(exact) if p == 1
        }


def test_forward_and_backward_equal_search(
    pair: tuple[SymbolicModel, ExplicitModel], rng: np.random.Generator
) -> None:
    model, explicit = pair
    n = explicit.n_states
    for states in subsets(rng, n):
        node = state_set(model, explicit, states)
        assert members(model, forward(model, node)) == oracles.forward_states(explicit.rates, states)
        assert members(model, backward(model, node)) == oracles.backward_states(explicit.rates, states)
        for through in subsets(rng, n):
            found = backward(model, node, state_set(model, explicit, through))
            assert members(model, found) == oracles.backward_states(explicit.rates, states, through)


def test_bottom_components_equal_their_definition(pair: tuple[SymbolicModel, ExplicitModel]) -> None:
    model, explicit = pair
    found = sorted((members(model, c) for c in bottom_components(model)), key=min)
    assert found == oracles.bottom_components(explicit.rates)


def test_oracle_components_equal_networkx(pair: tuple[SymbolicModel, ExplicitModel]) -> None:
    _, explicit = pair
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(explicit.n_states))
    graph.add_edges_from((s, t) for s, row in enumerate(explicit.rates) for t in row)
    expected = sorted((set(c) for c in networkx.attracting_components(graph)), key=min)
    assert oracles.bottom_components(explicit.rates) == expected


def test_absorbing_states_equal_their_definition(pair: tuple[SymbolicModel, ExplicitModel]) -> None:
    model, explicit = pair
    expected = {s for s, row in enumerate(explicit.rates) if set(row) <= {s}}
    assert members(model, absorbing_states(model)) == expected


def test_bottom_components_of_a_long_chain_take_few_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of states in a row before a cycle of two: a pivot at a time would search once a state."""
    model = build("""dtmc module m x : [0..40]; y : [0..99]; [] y<99 -> (y'=y+1);
        [] y=99 & x<40 -> (y'=0)&(x'=x+1); [] y=99 & x=40 -> (y'=98); endmodule""")
    searches = []

    def counted(*arguments: Any, **options: Any) -> Any:
        searches.append(1)
        return fixpoint(*arguments, **options)

    monkeypatch.setattr("mtbdd.graph.prob01.fixpoint", counted)
    (component,) = bottom_components(model)
    assert members(model, component) == {4098, 4099}
    assert len(searches) < 120  # about 2 log2(4100) expected


def test_bottom_components_of_many_absorbing_states_take_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    updates = " + ".join(f"1/100:(x'={i})" for i in range(1, 101))
    model = build(f"dtmc module m x : [0..100]; [] x=0 -> {updates}; [] x=7 -> true; endmodule")
    searches = []

    def counted(*arguments: Any, **options: Any) -> Any:
        searches.append(1)
        return fixpoint(*arguments, **options)

    monkeypatch.setattr("mtbdd.graph.prob01.fixpoint", counted)
    components = bottom_components(model)
    assert [members(model, c) for c in components] == [{i} for i in range(1, 101)]
    assert len(searches) == 1
