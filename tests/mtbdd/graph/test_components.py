"""Strongly connected and maximal end components on sets, against their definitions and networkx."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.components import (
    EndComponents,
    MaximalEndComponent,
    decompose,
    draw_state,
    mec_decomposition,
    model_components,
    model_end_components,
    strong_components,
    trim,
)
from mtbdd.graph.prob01 import ChoicePeeling, bottom_components
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import build, members, node_set
from tests.oracles import graphs as oracles
from tests.oracles.graphs import Mdp

# Half of them in `make test`: fewer miss a search that leaves its region.
SETTINGS = settings(max_examples=160, suppress_health_check=[HealthCheck.too_slow])
PACKAGES = st.sampled_from((FASTEST, *DIAGRAM_PACKAGES))
MDPS = st.one_of(oracles.random_mdps(), oracles.cyclic_mdps())

# A path, rings in a row, a ring that a coin leaves, rings held together by choices that leave, borders.
PLANTED: dict[str, Mdp] = {
    "path": [[frozenset({min(i + 1, 7)})] for i in range(8)],
    "rings": [[frozenset({i ^ 1})] + [frozenset({i + 1})] * (i < 7) for i in range(8)],
    "leaking ring": [[frozenset({1})], [frozenset({2})], [frozenset({0, 3})], [frozenset({3})]],
    "nested": [
        [frozenset({1, 4})],
        [frozenset({2}), frozenset({0})],
        [frozenset({1}), frozenset({3})],
        [frozenset({3, 0})],
        [frozenset({4})],
    ],
    "one state": [[frozenset({0})]],
    "no choice": [[], []],
}


def numbers(manager: Manager, states: Node) -> frozenset[int]:
    """Return the codes of the members of a set over row bits."""
    index = index_states(manager, states)
    bits = index.bits_at(np.arange(index.size))
    return frozenset(int("0" + "".join("1" if b else "0" for b in row), 2) for row in bits)


def as_ends(manager: Manager, found: Iterable[MaximalEndComponent]) -> set[oracles.End]:
    return {
        (
            numbers(manager, c.states),
            frozenset((s, i) for i, own in enumerate(c.choices) for s in numbers(manager, own)),
        )
        for c in found
    }


def restricted(mdp: Mdp, within: frozenset[int]) -> Mdp:
    """Return the MDP without states outside a set and the choices that may leave it."""
    return [[to for to in own if s in within and to <= within] for s, own in enumerate(mdp)]


@pytest.mark.parametrize("name", PLANTED)
def test_definition_and_networkx_agree(name: str) -> None:
    mdp = PLANTED[name]
    assert oracles.end_components_by_definition(mdp) == oracles.end_components_by_networkx(mdp)
    assert oracles.strong_components_by_definition(mdp) == oracles.strong_components_by_networkx(mdp)


@SETTINGS
@given(mdp=MDPS, package=PACKAGES)
@example(mdp=PLANTED["path"], package=FASTEST)
@example(mdp=PLANTED["rings"], package=FASTEST)
@example(mdp=PLANTED["one state"], package=FASTEST)
def test_strong_components_equal_their_definition(mdp: Mdp, package: str) -> None:
    manager, relations, states = oracles.relations_of(mdp, package)
    expected = oracles.strong_components_by_definition(mdp)
    assert expected == oracles.strong_components_by_networkx(mdp)
    found = decompose(manager, relations, states)
    assert {numbers(manager, c) for c in found.components} == {c for c in expected if len(c) > 1}
    assert numbers(manager, found.trivial) == {s for c in expected if len(c) == 1 for s in c}
    assert found.count == len(expected)
    assert sorted(found.sizes) == sorted(len(c) for c in expected if len(c) > 1)
    event(f"components of several states: {len(found.components)}")


@SETTINGS
@given(mdp=oracles.cyclic_mdps(), data=st.data())
def test_strong_components_of_a_part_leave_the_rest_out(mdp: Mdp, data: st.DataObject) -> None:
    """Paths through states outside must not connect."""
    n = len(mdp)
    within = data.draw(st.frozensets(st.integers(0, n - 1)))
    manager, relations, _ = oracles.relations_of(mdp)
    states = node_set(manager, manager.rows, sorted(within))
    part = [[to & within for to in own] if s in within else [] for s, own in enumerate(mdp)]
    expected = {c for c in oracles.strong_components_by_definition(part) if len(c) > 1}
    assert {numbers(manager, c) for c in strong_components(manager, relations, states)} == expected


@SETTINGS
@given(mdp=MDPS, package=PACKAGES, data=st.data())
@example(mdp=PLANTED["leaking ring"], package=FASTEST, data=None)
@example(mdp=PLANTED["nested"], package=FASTEST, data=None)
@example(mdp=PLANTED["no choice"], package=FASTEST, data=None)
def test_end_components_equal_their_definition(mdp: Mdp, package: str, data: st.DataObject | None) -> None:
    manager, relations, states = oracles.relations_of(mdp, package)
    if data is not None and data.draw(st.booleans()):
        within = data.draw(st.frozensets(st.integers(0, len(mdp) - 1)))
        states = node_set(manager, manager.rows, sorted(within))
        expected = {
            (part, frozenset((s, c) for s in part for c, to in enumerate(mdp[s]) if to <= part))
            for part, _ in oracles.end_components_by_networkx(restricted(mdp, within))
        }
    else:
        expected = oracles.end_components_by_networkx(mdp)
        if len(mdp) <= 8:
            assert expected == oracles.end_components_by_definition(mdp)
    found = mec_decomposition(manager, relations, states)
    assert as_ends(manager, found.components) == {e for e in expected if len(e[0]) > 1}
    assert numbers(manager, found.single.states) == {s for e in expected if len(e[0]) == 1 for s in e[0]}
    own = {(s, c) for c, at in enumerate(found.single.choices) for s in numbers(manager, at)}
    assert own == {pair for part, pairs in expected if len(part) == 1 for pair in pairs}
    assert found.count == len(expected)
    assert numbers(manager, found.states) == frozenset().union(*(part for part, _ in expected))
    event(f"end components of several states: {len(found.components)}")


@SETTINGS
@given(mdp=MDPS, patience=st.sampled_from((0, 1, 100)), data=st.data())
def test_peeling_leaves_the_greatest_set_with_a_way_on(mdp: Mdp, patience: int, data: st.DataObject) -> None:
    """Whether the steps take turns from the start, after a round or never; and again when more is taken."""
    manager, relations, states = oracles.relations_of(mdp)
    diagonal = manager.equal_bits(range(manager.n_bits))
    steps = [Relation.whole(manager, r & ~diagonal) for r in relations]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtbdd.graph.prob01._PATIENCE", patience)
        graph = ChoicePeeling(manager, steps, states)
        left = set(range(len(mdp)))
        for taken in (set(), data.draw(st.sets(st.sampled_from(range(len(mdp)))))):
            graph.remove(node_set(manager, manager.rows, sorted(taken)))
            left -= taken
            while True:
                ways = {s: [to != {s} and to - {s} <= left for to in mdp[s]] for s in left}
                if all(any(own) for own in ways.values()):
                    break
                left = {s for s, own in ways.items() if any(own)}
            assert numbers(manager, graph.left) == left
            for number, offer in enumerate(graph.offers):
                assert numbers(manager, offer) == {
                    s for s, own in ways.items() if any(own[number : number + 1])
                }


def test_searches_in_many_regions_keep_to_their_own(rng: np.random.Generator) -> None:
    """Rings of two with few ways between them: several searches run at once beside and behind one another."""
    for _ in range(12):
        n = 32
        place = rng.permutation(n).tolist()
        mdp: Mdp = [[] for _ in range(n)]
        for s in range(n):
            mdp[place[s]].append(frozenset({place[s ^ 1]}))
        for one, two in np.sort(rng.integers(n, size=(18, 2)), axis=1).tolist():
            mdp[place[one]].append(frozenset({place[two]}))
        manager, relations, states = oracles.relations_of(mdp)
        expected = {c for c in oracles.strong_components_by_networkx(mdp) if len(c) > 1}
        assert {numbers(manager, c) for c in strong_components(manager, relations, states)} == expected


@SETTINGS
@given(mdp=MDPS, data=st.data(), front=st.sampled_from((0, 5, 10**9)))
def test_trimming_leaves_the_greatest_set_with_ways_in_and_on(
    mdp: Mdp, data: st.DataObject, front: int
) -> None:
    """Whether it looks next to what went last always (0), as usual (5) or never."""
    manager, relations, _ = oracles.relations_of(mdp)
    left = set(data.draw(st.sets(st.sampled_from(range(len(mdp))))))
    moving = manager.disjunction(relations) & ~manager.equal_bits(range(manager.n_bits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtbdd.graph.components._FRONT", front)
        found = trim(Relation.whole(manager, moving), node_set(manager, manager.rows, left))
    edges = {(s, t) for s, own in enumerate(mdp) for to in own for t in to if s != t}
    while True:
        inner = {(s, t) for s, t in edges if s in left and t in left}
        staying = {s for s, _ in inner} & {t for _, t in inner}
        if staying == left:
            break
        left = staying
    assert numbers(manager, found) == left


@pytest.mark.parametrize("front", [0, 10**9])
def test_trimming_takes_a_path_away_from_its_end_and_leaves_the_ring(
    front: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring of 0 .. 3, with a path that leads away from it and one that leads to it."""
    mdp: Mdp = [[frozenset({(s + 1) % 4})] for s in range(4)]
    mdp[0].append(frozenset({4}))
    mdp += [[frozenset({s + 1})] for s in range(4, 9)]
    mdp += [[], *([frozenset({s - 1})] for s in range(11, 15)), [frozenset({14, 0})]]
    mdp[10].append(frozenset({0}))
    manager, relations, states = oracles.relations_of(mdp)
    moving = manager.disjunction(relations) & ~manager.equal_bits(range(manager.n_bits))
    monkeypatch.setattr("mtbdd.graph.components._FRONT", front)
    assert numbers(manager, trim(Relation.whole(manager, moving), states)) == {0, 1, 2, 3}


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_drawn_states_are_members_and_reach_all(package: str, rng: np.random.Generator) -> None:
    manager = Manager(4, package)
    chosen = {0, 3, 5, 6, 12, 15}
    states = node_set(manager, manager.rows, chosen)
    drawn = [numbers(manager, draw_state(manager, states, rng)) for _ in range(200)]
    assert all(len(one) == 1 for one in drawn)
    assert frozenset().union(*drawn) == chosen
    assert numbers(manager, draw_state(manager, manager.true, rng)) <= frozenset(range(16))
    assert numbers(manager, draw_state(manager, states, None)) == {0}


@pytest.mark.parametrize(
    "text",
    [
        "dtmc module m x : [0..9]; [] x>0 & x<9 -> 0.3:(x'=x-1) + 0.7:(x'=x+1); endmodule",
        """ctmc module m x : [0..3]; y : [0..3]; done : bool;
           [] !done & x<3 -> 1:(x'=x+1); [] !done & y<3 -> 1:(y'=y+1); [] !done -> 1:(done'=true);
           [] done & x<2 -> 1:(x'=1-x); endmodule""",
    ],
)
def test_end_components_of_a_chain_are_its_bottom_components(text: str) -> None:
    model = build(text)
    found = model_end_components(model)
    every = [members(model, c.states) for c in found.components]
    every += [{s} for s in members(model, found.single.states)]
    assert sorted(every, key=min) == sorted((members(model, c) for c in bottom_components(model)), key=min)


def test_model_components_have_a_set_for_every_layer() -> None:
    """Two rings joined by a coin: the choice that throws it stays in neither, the others do."""
    model = build("""mdp module m x : [0..4];
        [] x<=1 -> (x'=1-x); [throw] x=0 -> 0.5:(x'=2) + 0.5:(x'=0);
        [] x>=2 & x<=3 -> (x'=5-x); [end] x=3 -> (x'=4); [] x=4 -> true; endmodule""")
    found = model_end_components(model)
    assert isinstance(found, EndComponents)
    assert len(model.layers) == 2
    parts = {min(members(model, c.states)): c for c in found.components}
    assert {k: members(model, c.states) for k, c in parts.items()} == {0: {0, 1}, 2: {2, 3}}
    for c in parts.values():
        # Only the silent moves stay, one in every state, whichever layer holds them.
        assert sum(len(members(model, own)) for own in c.choices) == 2
    assert members(model, found.single.states) == {4}
    components = model_components(model)
    assert sorted(components.sizes) == [2, 2]
    assert components.n_trivial == 1
    assert model_components(model, model.initial).count == 1


def test_a_long_path_is_peeled_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of trivial components between two rings cost a few searches, not one each."""
    model = build("""mdp module m x : [0..40]; y : [0..99]; [] y<99 -> (y'=y+1); [] x=0 & y=1 -> (y'=0);
        [] y=99 & x<40 -> (y'=0)&(x'=x+1); [] y=99 & x=40 -> (y'=98); endmodule""")
    searches: list[int] = []
    draw = draw_state

    def counted(manager: Manager, states: Node, rng: np.random.Generator | None) -> Node:
        searches.append(1)
        return draw(manager, states, rng)

    monkeypatch.setattr("mtbdd.graph.components.draw_state", counted)
    found = model_components(model)
    assert sorted(found.sizes) == [2, 2]
    assert found.count == model.n_states - 2
    assert len(searches) <= 6
