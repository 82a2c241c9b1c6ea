"""Prob0, Prob1 and staying sets from lists of predecessors, against all schedulers and searches on sets."""

from __future__ import annotations

import subprocess
import sys
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from hybrid.analysis import precomputation
from hybrid.analysis import precomputation as predecessors
from hybrid.analysis.precomputation import (
    PredecessorLists,
    decided_states,
    end_components,
    list_predecessors,
    never_reached,
    predecessor_lists,
    prob0a,
    prob0e,
    prob1a,
    prob1e,
    reaching,
    staying_states,
)
from hybrid.analysis.until import until_system
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph import prob01 as graph
from mtbdd.graph.components import mec_decomposition, model_end_components
from mtbdd.language import parse_model, resolve
from mtbdd.offset.states import states_from
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.matrices import to_dense
from tests.builders.models import build, members, state_set
from tests.builders.random_mdps import flat
from tests.oracles import mdps as mdp_oracles
from tests.source_tree import ROOT

SETTINGS = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])

CLOCKS = """mdp module m x : [0..5]; t : [0..9];
    [tick] t<9 & x!=3 -> (t'=t+1); [] t>2 & x<5 -> 0.5:(x'=x+1)&(t'=0) + 0.5:(x'=x);
    [] x=3 & t>4 -> (x'=0)&(t'=0); [] x=3 -> (x'=4); [wait] x=5 | t=9 -> true; endmodule
    module n y : [0..3]; [tick] true -> 0.9:(y'=y) + 0.1:(y'=max(y-1,0)); [wait] y<3 -> (y'=y+1);
    [wait] y=3 & x!=5 -> (y'=0); endmodule
    label "goal" = x=4;"""

# Ten choices in a state, so that a word of eight bits does not hold the layers.
MANY = "mdp module m x : [0..19]; " + " ".join(
    f"[] x!={k} & x<12 -> 0.5:(x'=mod(x+{k},20)) + 0.5:(x'={k});" for k in range(10)
)  + " [] x>=12 -> (x'=mod(x*x,20)); endmodule"  # fmt: skip

WALK = "dtmc module m x : [0..40]; [] x>0 & x<40 -> 0.5:(x'=x-1) + 0.5:(x'=x+1); endmodule"


def dense(lists: PredecessorLists, layer: int) -> np.ndarray:
    """Expand a layer by asking for the predecessors of every state."""
    found = np.zeros((lists.n_states, lists.n_states), np.bool_)
    for state in range(lists.n_states):
        group = int(np.searchsorted(lists.starts, state, side="right")) - 1
        assert lists.near[state >> lists.shift] <= group
        for i in range(lists.instance_ptr[group], lists.instance_ptr[group + 1]):
            if lists.choice[i] == 1 << layer:
                place = lists.slot[i] + state - lists.starts[group]
                own = lists.entry_row[lists.column_ptr[place] : lists.column_ptr[place + 1]]
                assert not found[lists.row[i] + own, state].any()
                found[lists.row[i] + own, state] = True
    return found


@pytest.mark.parametrize("text", [CLOCKS, MANY, WALK], ids=["clocks", "many", "walk"])
def test_lists_hold_every_layer_at_every_level(text: str) -> None:
    model = build(text)
    for level in range(0, 2 * model.index.n_bits + 1, 2):
        lists = list_predecessors(model, level)
        assert lists.nbytes > 0
        assert lists.enabled.dtype == (np.uint8 if len(model.layers) <= 8 else np.uint64)
        for number, layer in enumerate(model.layers):
            matrix = to_dense(model.layer_transitions(number))
            assert np.array_equal(dense(lists, number), matrix != 0)
            has = (lists.enabled >> lists.enabled.dtype.type(number)) & lists.enabled.dtype.type(1)
            assert np.array_equal(has.astype(np.bool_), model.indicator(layer.enabled))


def test_levels_that_do_not_exist_are_refused() -> None:
    model = build(CLOCKS)
    for level in (-2, 3, 2 * model.index.n_bits + 2):
        with pytest.raises(ValueError, match="level: expected an even number from 0 to"):
            list_predecessors(model, level)


def random_sets(model: SymbolicModel, rng: np.random.Generator) -> list[Node]:
    masks = [rng.random(model.n_states) < share for share in (0.05, 0.3, 0.8)]
    return [states_from(model.manager, model.index, m) for m in masks]


@pytest.mark.parametrize("wide", [None, 1, 3, 48], ids=["compiled", "rounds", "both", "interpreted"])
@pytest.mark.parametrize("text", [CLOCKS, MANY, WALK], ids=["clocks", "many", "walk"])
def test_lists_and_searches_on_sets_agree(
    text: str, wide: int | None, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precomputation, "_is_little", lambda lists: wide is not None)
    monkeypatch.setattr(precomputation, "_WIDE", wide)
    monkeypatch.setattr(precomputation, "_is_short", lambda model: True)
    model = build(text)
    assert predecessor_lists(model) is not None
    for target in random_sets(model, rng):
        for safe in (model.reachable, *random_sets(model, rng)):
            zero = prob0e(model, safe, target)
            assert zero == graph.prob0e(model, safe, target)
            assert prob0a(model, safe, target) == graph.prob0a(model, safe, target)
            assert prob1e(model, safe, target) == graph.prob1e(model, safe, target)
            assert prob1a(model, safe, target) == graph.prob1a(model, safe, target)
            assert prob1a(model, safe, target, zero) == graph.prob1a(model, safe, target, zero)


@SETTINGS
@given(text=flat(), data=st.data())
def test_random_mdps_equal_all_schedulers(text: str, data: st.DataObject) -> None:
    source = resolve(parse_model(text))
    package = data.draw(st.sampled_from(DIAGRAM_PACKAGES))
    model, mdp = build_model(source, package=package), mdp_oracles.explore_mdp(source)
    drawn = st.frozensets(st.sampled_from(range(model.n_states)))
    for interpreted, wide in ((False, 48), (True, 48), (True, 1), (True, 2), (False, 48)):
        target = set(data.draw(drawn))
        safe = set(data.draw(st.one_of(st.just(frozenset(range(model.n_states))), drawn)))
        nodes = [state_set(model, mdp.graph, chosen) for chosen in (safe, target)]
        for maximise, names in ((True, ("prob0a", "prob1e")), (False, ("prob0e", "prob1a"))):
            with (
                mock.patch.object(precomputation, "_is_little", lambda _, own=interpreted: own),
                mock.patch.object(precomputation, "_WIDE", wide),
            ):
                decided = decided_states(model, nodes[0], nodes[1], maximise)
            for found, name in zip(decided, names, strict=True):
                assert members(model, found) == getattr(mdp_oracles, name)(mdp, safe, target)
                assert found == getattr(graph, name)(model, *nodes)
                event(
                    f"{name} is neither empty nor all: {found not in (model.manager.false, model.reachable)}"
                )


@pytest.mark.parametrize("with_lists", ["compiled", "interpreted", ""])
@pytest.mark.parametrize("text", [CLOCKS, MANY, WALK], ids=["clocks", "many", "walk"])
def test_staying_states_hold_all_end_components(
    text: str, with_lists: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precomputation, "_is_little", lambda lists: with_lists == "interpreted")
    monkeypatch.setattr(precomputation, "_is_short", lambda model: True)
    if not with_lists:
        monkeypatch.setattr(predecessors, "_MOST_TRANSITIONS", 0)
    model = build(text)
    assert (predecessor_lists(model) is not None) == bool(with_lists)
    for within in (model.reachable, *random_sets(model, rng)):
        staying = staying_states(model, within)
        assert staying & ~within == model.manager.false
        if model.is_mdp:
            assert staying == graph.prob0e(model, model.reachable, model.reachable & ~within)
        found, expected = end_components(model, within), model_end_components(model, within)
        assert (found.count, found.states) == (expected.count, expected.states)
        allowed = [own.enabled & chosen for own, chosen in zip(
            model.layers, [model.reachable, *random_sets(model, rng)] * len(model.layers), strict=False
        )]  # fmt: skip
        relations = [model.layer_relation(i) & states for i, states in enumerate(allowed)]
        found, expected = (
            end_components(model, within, allowed),
            mec_decomposition(model.manager, relations, within),
        )
        assert {c.states for c in found.components} == {c.states for c in expected.components}
        assert {c.choices for c in found.components} == {c.choices for c in expected.components}
        assert found.single == expected.single


def test_what_does_not_suit_lists_is_searched_on_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on states, transitions, layers and bytes each lead to the searches on sets."""
    expected = None
    for limit in (None, "_MOST_STATES", "_MOST_TRANSITIONS", "_MOST_LAYERS", "_DETOURS", "_FLOOR"):
        with monkeypatch.context() as patch:
            if limit is not None:
                patch.setattr(predecessors, limit, 0)
            if limit == "_FLOOR":
                patch.setattr(predecessors, "_VECTORS", 0)
            if limit in ("_DETOURS", "_FLOOR"):
                patch.setattr("mtbdd.build.model._FEW_STATES", 0)
            model = build(CLOCKS)
            assert (predecessor_lists(model) is None) == (limit is not None)
            goal = model.states(model.source.labels[0].expression)
            system = [until_system(model, model.reachable, goal, m) for m in (True, False)]
            found = [members(model, s) for part in system for s in (part.zero, part.one, part.unknown.states)]
            expected = expected or found
            assert found == expected


def test_lists_are_made_once_and_let_go() -> None:
    model = build(CLOCKS)
    assert predecessor_lists(model) is predecessor_lists(model)
    assert predecessors._smallest_lists in model._results


def test_the_interpreter_searches_no_more_than_some_states(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = predecessor_lists(build(CLOCKS))
    assert lists is not None
    work = lists.n_transitions + lists.n_states
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(precomputation, "_interpreted", 0)
    monkeypatch.setattr(precomputation, "_MOST_INTERPRETED", 3 * work)
    assert [precomputation._is_little(lists) for _ in range(5)] == [True, True, True, False, False]
    monkeypatch.setattr(precomputation, "_interpreted", 0)
    monkeypatch.setattr(precomputation, "_FEW_TRANSITIONS", work - 1)
    assert not precomputation._is_little(lists)
    monkeypatch.setattr(precomputation, "_FEW_TRANSITIONS", work)
    assert precomputation._is_little(lists)
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert not precomputation._is_little(lists)


def test_little_is_searched_without_numba() -> None:
    code = (
        "import sys; from mtbdd.build.build import build_model; "
        "from mtbdd.language import parse_model, resolve; "
        "from hybrid.analysis.precomputation import prob0e; "
        f"model = build_model(resolve(parse_model({CLOCKS!r}))); "
        "prob0e(model, model.reachable, model.states(model.source.labels[0].expression)); "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_few_states_of_a_chain_are_listed(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    model = build(WALK)
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert predecessor_lists(model) is None
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setattr(precomputation, "_interpreted", 0)
    assert predecessor_lists(model) is not None
    for target in random_sets(model, rng):
        safe = model.reachable & ~random_sets(model, rng)[0] | target
        zero = graph.prob0(model, safe, target)
        assert decided_states(model, safe, target, True) == (zero, graph.prob1(model, safe, target, zero))
        assert never_reached(model, safe, target, False) == zero
        assert reaching(model, target, safe) == graph.backward(model, target, safe)
        assert reaching(model, target) == graph.backward(model, target)
    monkeypatch.setattr(precomputation, "_FEWEST", model.n_states)
    assert predecessor_lists(model) is None


@pytest.mark.parametrize("listed", [True, False], ids=["lists", "sets"])
def test_a_state_without_an_allowed_choice_stays_nowhere(
    listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing leads out of its set: there is nothing that may be taken at all."""
    model = build("""mdp module m x : [0..2]; [] x<2 -> (x'=x+1); [] x<2 -> (x'=x); [] x=2 -> true; endmodule
        label "one" = x=1;""")
    one = model.states(model.source.labels[0].expression)
    if not listed:
        monkeypatch.setattr(precomputation, "predecessor_lists", lambda model: None)
    found = staying_states(model, model.reachable, [layer.enabled & ~one for layer in model.layers])
    assert model.indicator(found).tolist() == [True, False, True]
