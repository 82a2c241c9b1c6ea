"""Division by parts of the states: against the projected graph's definition, and what it saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.components import (
    common_cycles,
    cut_by_parts,
    decompose,
    model_components,
    model_parts,
    split_by_parts,
    trim,
)
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import build, members, node_set
from tests.oracles import graphs as oracles
from tests.oracles.graphs import Mdp

SETTINGS = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
MDPS = st.one_of(oracles.random_mdps(), oracles.cyclic_mdps())

# Processes that go round between two values, step on once, and go round again.
TWO_RINGS = """mdp
    module a x1 : [0..3];
      [] x1<2 -> (x1'=1-x1); [] x1=1 -> 0.5:(x1'=2)+0.5:(x1'=0); [] x1>1 -> (x1'=5-x1); endmodule
    module b = a [x1=x2] endmodule module c = a [x1=x3] endmodule module d = a [x1=x4] endmodule"""


def moving(manager: Manager, relations: Sequence[Node]) -> Node:
    """Return the transitions between different states."""
    return manager.disjunction(relations) & ~manager.equal_bits(range(manager.n_bits))


def value(code: int, part: Sequence[int], n_bits: int) -> int:
    """Return the number that a part of a state's bits spells, bit 0 being the most significant."""
    return int("0" + "".join(str(code >> (n_bits - 1 - bit) & 1) for bit in part), 2)


def projected_classes(mdp: Mdp, part: Sequence[int], n_bits: int) -> set[frozenset[int]]:
    """Return the components of the graph on the values of a part."""
    seen: Mdp = [[] for _ in range(1 << len(part))]
    for state, own in enumerate(mdp):
        for t in frozenset().union(*own) - {state}:
            seen[value(state, part, n_bits)].append(frozenset({value(t, part, n_bits)}))
    return oracles.strong_components_by_networkx(seen)


@st.composite
def parts_of(draw: st.DrawFn, n_bits: int) -> tuple[tuple[int, ...], ...]:
    """Draw some parts, which may overlap."""
    bits = st.sets(st.sampled_from(range(n_bits)), min_size=1).map(lambda b: tuple(sorted(b)))
    return tuple(draw(st.lists(bits, max_size=3)))


@SETTINGS
@given(mdp=MDPS, data=st.data(), package=st.sampled_from(DIAGRAM_PACKAGES))
def test_components_do_not_depend_on_parts(mdp: Mdp, data: st.DataObject, package: str) -> None:
    manager, relations, states = oracles.relations_of(mdp, package)
    parts = data.draw(parts_of(manager.n_bits)) if manager.n_bits else ()
    expected = {c for c in oracles.strong_components_by_networkx(mdp) if len(c) > 1}
    found = decompose(manager, relations, states, parts)
    every = [node_set(manager, manager.rows, sorted(c)) for c in expected]
    assert len(found.components) == len(every)
    assert all(c in every for c in found.components)
    event(f"parts: {len(parts)}, components of several states: {len(every)}")


@SETTINGS
@given(mdp=MDPS, data=st.data())
def test_values_come_from_each_other_as_in_the_projected_graph(mdp: Mdp, data: st.DataObject) -> None:
    manager, relations, _ = oracles.relations_of(mdp)
    if not manager.n_bits:
        return
    part = tuple(sorted(data.draw(st.sets(st.sampled_from(range(manager.n_bits)), min_size=1))))
    same = common_cycles(manager, moving(manager, relations), part)
    assert same is not None
    for group in projected_classes(mdp, part, manager.n_bits):
        for one in group:
            cube = manager.cube(same.rows, one)
            assert same.image(cube) == manager.disjunction(manager.cube(same.rows, t) for t in group)


@SETTINGS
@given(mdp=MDPS, data=st.data())
def test_pieces_are_the_classes_and_a_cut_keeps_what_stays_in_them(mdp: Mdp, data: st.DataObject) -> None:
    manager, relations, states = oracles.relations_of(mdp)
    parts = data.draw(parts_of(manager.n_bits)) if manager.n_bits else ()
    n = manager.n_bits
    relation, classes = cut_by_parts(manager, moving(manager, relations), parts)
    names = []
    groups = [projected_classes(mdp, part, n) for part in parts]
    for state in range(len(mdp)):
        seen = [value(state, part, n) for part in parts]
        names.append(tuple(next(g for g in own if v in g) for own, v in zip(groups, seen, strict=True)))
    expected = [
        node_set(manager, manager.rows, [s for s, named in enumerate(names) if named == name])
        for name in set(names)
    ]
    found = split_by_parts(manager, states, classes)
    assert len(found) == len(expected)
    assert all(piece in expected for piece in found)
    kept = Relation.whole(manager, relation)
    for s, own in enumerate(mdp):
        staying = {t for to in own for t in to if t != s and names[t] == names[s]}
        assert kept.image(node_set(manager, manager.rows, [s])) == node_set(manager, manager.rows, staying)
    assert split_by_parts(manager, manager.false, classes) == []


def test_large_closures_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(TWO_RINGS)
    relation, part = model.layer_relation(0), model_parts(model)[0]
    assert common_cycles(model.manager, relation, part) is not None
    monkeypatch.setattr("mtbdd.graph.components._CLOSURE_NODES", 2)
    assert common_cycles(model.manager, relation, part) is None
    assert cut_by_parts(model.manager, relation, [part]) == (relation, [])
    assert sorted(model_components(model).sizes) == [16] * 16


def test_variables_stand_in_for_a_module_that_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build(
        "dtmc module m x : [0..3]; y : [0..3]; [] true -> 0.5:(x'=y) + 0.5:(y'=x); endmodule"
        " module k z : bool; [] true -> (z'=true); endmodule"
    )
    module, other, x, y = model_parts(model)

    def used() -> list[tuple[int, ...]]:
        return [c.bits for c in cut_by_parts(model.manager, model.layer_relation(0), model_parts(model))[1]]

    def narrow(manager: Manager, relation: Node, part: tuple[int, ...]) -> Relation | None:
        return common_cycles(manager, relation, part) if part != module else None

    assert used() == [module, other]
    monkeypatch.setattr("mtbdd.graph.components.common_cycles", narrow)
    assert used() == [other, x, y]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TWO_RINGS, [["x1"], ["x2"], ["x3"], ["x4"]]),
        (
            "dtmc global g : bool; module m x : [0..3]; y : bool; [] true -> (x'=0); endmodule",
            [["x", "y"], ["g"], ["x"], ["y"]],
        ),
        ("dtmc module m x : [0..3]; y : bool; [] true -> (x'=0); endmodule", [["x"], ["y"]]),
        ("dtmc module m x : [0..3]; [] true -> (x'=0); endmodule", []),
        (
            "dtmc module m x : [0..2047]; y : [0..2047]; [] true -> (x'=0); endmodule"
            " module k z : bool; [] true -> (z'=true); endmodule",
            [["z"], ["x"], ["y"]],
        ),
    ],
)
def test_parts_of_a_model_are_its_modules_and_variables(text: str, expected: list[list[str]]) -> None:
    model = build(text)
    assert [list(p) for p in model_parts(model)] == [model.encoding.bits_of(names) for names in expected]


# ------------------------------------------------------------------ what it costs


def count_products(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """Return how many relational products some work takes."""
    made: list[int] = []
    for name in ("image", "preimage"):
        own = getattr(Relation, name)

        def counted(step: Relation, states: Node, own: Callable[[Relation, Node], Node] = own) -> Node:
            if len(step.bits) == step.manager.n_bits:
                made.append(1)
            return own(step, states)

        monkeypatch.setattr(Relation, name, counted)
    work()
    monkeypatch.undo()
    return len(made)


def relations(model: SymbolicModel) -> list[Node]:
    return [model.layer_relation(number) for number in range(len(model.layers))]


def test_processes_that_step_on_once_are_divided_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen components in one round, in which all searches are as long as one component."""
    model = build(TWO_RINGS)

    def work() -> None:
        found = model_components(model)
        assert sorted(found.sizes) == [16] * 16
        assert found.n_trivial == 0

    # One product each way shows that nothing is to be trimmed; four cross 2^4 states, and one sees the end.
    most = 2 + 2 * 5
    assert count_products(monkeypatch, work) <= most
    given = model.manager, relations(model), model.reachable
    assert count_products(monkeypatch, lambda: decompose(*given)) > 5 * most


@pytest.mark.parametrize(("guard", "left"), [("x=63", {62, 63}), ("x=1", {0, 1})])
def test_a_path_is_trimmed_with_one_product_a_state(
    monkeypatch: pytest.MonkeyPatch, guard: str, left: set[int]
) -> None:
    """A path of 62 states to a ring of two, and from one."""
    model = build(f"mdp module m x : [0..63]; [] x<63 -> (x'=x+1); [] {guard} -> (x'=x-1); endmodule")
    step = Relation.whole(model.manager, moving(model.manager, relations(model)))
    found: list[Node] = []
    made = count_products(monkeypatch, lambda: found.append(trim(step, model.reachable)))
    assert members(model, found[0]) == left
    assert made <= 62 + 3
