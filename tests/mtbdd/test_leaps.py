"""Searches that leap or sweep along a counter, against a search one state at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from mtbdd.build.reach import Layers, Leaps, Sweep, fixpoint, search_rounds
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import Position, ResolvedVariable
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import node_set
from tests.oracles.chains import backward_states, forward_states

LAYERS = 32
INNER = 4  # states of a layer


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaps from the first round of groups on, which stay single events."""
    monkeypatch.setattr("mtbdd.build.reach._PATIENCE", 1)
    monkeypatch.setattr("mtbdd.build.reach._FIRST_LEAP", 2)
    for name in ("_CLOSURE_FLOOR", "_CLOSURE_GROWTH", "_CLOSURE_MOST", "_GROUP_NODES"):
        monkeypatch.setattr(f"mtbdd.build.reach.{name}", 0)
    monkeypatch.setattr("mtbdd.build.reach._FEWEST_BITS", 5)


@pytest.fixture
def leaps(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """What leaps have proved."""
    proved: list[Node] = []
    prove = Leaps._proved

    def watch(*arguments: object) -> Node | None:
        found = prove(*arguments)  # type: ignore[arg-type]
        if found is not None:
            proved.append(found)
        return found

    monkeypatch.setattr(Leaps, "_proved", watch)
    return proved


@pytest.fixture
def sweeps(monkeypatch: pytest.MonkeyPatch) -> list[Sweep]:
    """Sweeps from the first round of groups on, where many layers have states to start from."""
    made: list[Sweep] = []
    monkeypatch.setattr("mtbdd.build.reach._LEAST_WORK", 0)
    monkeypatch.setattr("mtbdd.build.reach._FEWEST_LAYERS", 2)
    monkeypatch.setattr("mtbdd.build.reach._SLICED", 100)
    choose = Leaps.sweep

    def watch(leaps: Leaps, found: Node, pending: Node) -> Sweep | None:
        sweep = choose(leaps, found, pending)
        if sweep is not None:
            made.append(sweep)
        return sweep

    monkeypatch.setattr(Leaps, "sweep", watch)
    return made


def variable(name: str, high: int) -> ResolvedVariable:
    return ResolvedVariable(name, 0, high, 0, False, None, Position("test", 1, 1))


@dataclass
class Layered:
    """States (layer, inner state), the counter above or below the inner one, and edges between them."""

    encoding: Encoding
    is_above: bool

    @classmethod
    def of(cls, package: str, is_above: bool = True) -> Layered:
        counter, inner = variable("v", LAYERS - 1), variable("s", INNER - 1)
        return cls(Encoding([counter, inner] if is_above else [inner, counter], package), is_above)

    @property
    def counters(self) -> tuple[tuple[int, ...], ...]:
        return (self.encoding.by_name["v"].bits,)

    def number(self, layer: int, inner: int) -> int:
        return INNER * layer + inner if self.is_above else LAYERS * inner + layer

    def set(self, states: set[int]) -> Node:
        return node_set(self.encoding.manager, self.encoding.manager.rows, sorted(states))

    def layer(self, layer: int, inner: Sequence[int] = range(INNER)) -> set[int]:
        return {self.number(layer, s) for s in inner}

    def relation(self, edges: dict[int, set[int]]) -> Relation:
        manager = self.encoding.manager
        node = manager.disjunction(
            manager.cube(manager.rows, s) & node_set(manager, manager.columns, sorted(targets))
            for s, targets in edges.items()
        )
        return Relation.whole(manager, node)

    def found(self, edges: dict[int, set[int]]) -> Node:
        """Return what a search with leaps finds from state 0."""
        manager, start = self.encoding.manager, self.set({0})
        return fixpoint(manager, start, [self.relation(edges)], Relation.image, counters=self.counters)


Edges = dict[int, set[int]]


def chain_of(edges: Sequence[Edges]) -> list[dict[int, int]]:
    """Return the edges of all events as the oracle takes them."""
    chain: list[dict[int, int]] = [{} for _ in range(LAYERS * INNER)]
    for event in edges:
        for source, targets in event.items():
            chain[source].update(dict.fromkeys(targets, 1))
    return chain


def random_edges(rng: np.random.Generator, model: Layered, step: int, period: int, faults: int) -> Edges:
    """Return edges to the next layer and within one, alike every `period` layers, but for some faults."""
    pattern = [
        [
            (s, t, step * int(rng.integers(2)))
            for s in range(INNER)
            for t in range(INNER)
            if rng.random() < 0.3
        ]
        for _ in range(period)
    ]
    edges: Edges = {}
    for layer in range(LAYERS):
        for s, t, change in pattern[layer % period]:
            if 0 <= layer + change < LAYERS:
                edges.setdefault(model.number(layer, s), set()).add(model.number(layer + change, t))
    for _ in range(faults):
        source = int(rng.integers(LAYERS * INNER))
        if rng.random() < 0.5:
            edges.pop(source, None)
        else:
            edges.setdefault(source, set()).add(int(rng.integers(LAYERS * INNER)))
    return edges


def find_both_ways(package: str, turns: Sequence[int], faults: int, rng: np.random.Generator) -> None:
    """Compare what searches with counters find."""
    for turn in turns:
        model = Layered.of(package, is_above=turn % 2 == 0)
        step = 1 if turn % 4 < 2 else -1
        events = [random_edges(rng, model, step, period, faults) for period in (1, 1 << turn // 2 % 3)]
        chain, relations = chain_of(events), [model.relation(edges) for edges in events if edges]
        start = model.layer(0 if step > 0 else LAYERS - 1, rng.choice(INNER, 2).tolist())
        end = model.layer(LAYERS - 1 if step > 0 else 0, rng.choice(INNER, 2).tolist())
        inside = set(np.flatnonzero(rng.random(LAYERS * INNER) < 0.95).tolist())
        manager, counters = model.encoding.manager, model.counters
        after = fixpoint(manager, model.set(start), relations, Relation.image, counters=counters)
        assert after == model.set(forward_states(chain, start))
        before = fixpoint(manager, model.set(end), relations, Relation.preimage, counters=counters)
        assert before == model.set(backward_states(chain, end))
        within = fixpoint(
            manager, model.set(end), relations, Relation.preimage, model.set(inside), True, counters
        )
        assert within == model.set(backward_states(chain, end, inside))
        closed, target = forward_states(chain, start), start | end
        kept = fixpoint(
            manager,
            model.set(target & closed),
            relations,
            Relation.preimage,
            model.set(closed),
            counters=counters,
        )
        assert kept == model.set(backward_states(chain, target & closed, closed))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("faults", [0, 3])
def test_leaps_find_what_a_search_finds(
    package: str, faults: int, rng: np.random.Generator, leaps: list[Node]
) -> None:
    turns = range(16) if package == FASTEST else range(0, 16, 3)
    find_both_ways(package, turns, faults, rng)
    assert len(leaps) > len(turns) // 2


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("faults", [0, 3])
def test_sweeps_find_what_a_search_finds(
    package: str, faults: int, rng: np.random.Generator, sweeps: list[Sweep]
) -> None:
    turns = range(16) if package == FASTEST else range(0, 16, 3)
    find_both_ways(package, turns, faults, rng)
    assert len(sweeps) > len(turns)


@pytest.mark.parametrize("is_down", [False, True])
@pytest.mark.parametrize("direction", ["image", "preimage"])
def test_a_sweep_takes_each_layer_once(
    is_down: bool, direction: str, sweeps: list[Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A counter that runs from some values to one end, where the inner state changes and it begins again."""
    model = Layered.of(FASTEST)
    end, begun = 0 if is_down else LAYERS - 1, range(4, LAYERS, 8)
    edges: Edges = {}
    for inner in range(INNER):
        for layer in range(LAYERS):
            if layer != end:
                edges[model.number(layer, inner)] = {model.number(layer + (-1 if is_down else 1), inner)}
        if inner + 1 < INNER:
            edges[model.number(end, inner)] = {model.number(layer, inner + 1) for layer in begun}
    relation = model.relation(edges)
    start = {model.number(layer, 0) for layer in begun}
    if direction == "preimage":
        start = {model.number(end, INNER - 1)}
    arguments = model.encoding.manager, model.set(start), [relation], getattr(Relation, direction)
    slow = list(search_rounds(*arguments))
    quick = list(search_rounds(*arguments, counters=model.counters))
    assert quick[-1].found == slow[-1].found
    assert len(sweeps) == 1 and sweeps[0].layers.is_down == (is_down == (direction == "image"))
    assert 2 * len(quick) < len(slow)
    monkeypatch.setattr("mtbdd.build.reach._REVISITED", -1)
    back = list(search_rounds(*arguments, counters=model.counters))
    assert back[-1].found == slow[-1].found
    assert sweeps[1].pending and len(back) > len(quick)  # rounds go on where the first sweep has ended


@pytest.mark.parametrize("is_down", [False, True])
def test_layers_are_split(is_down: bool) -> None:
    model = Layered.of(FASTEST)
    layers = Layers(model.encoding.manager, model.counters[0], is_down)
    states = {layer: model.layer(layer, [layer % INNER]) for layer in (0, 5, LAYERS - 1)}
    found = layers.split(model.set(set().union(*states.values())))
    assert found == {layers.number(layer): model.set(own) for layer, own in states.items()}
    assert layers.split(layers.manager.false) == {}
    assert layers.split(model.set(states[0] | states[5]), most=1) == {}


@pytest.mark.parametrize("start_layer, step", [(0, 1), (LAYERS - 1, -1)])
@pytest.mark.parametrize("direction", ["image", "preimage"])
def test_a_leap_saves_rounds(start_layer: int, step: int, direction: str, leaps: list[Node]) -> None:
    model = Layered.of(FASTEST)
    edges: Edges = {}
    for layer in range(LAYERS):
        edges[model.number(layer, 0)] = {model.number(layer, 1)}
        if 0 <= layer + step < LAYERS:
            edges[model.number(layer, 1)] = {model.number(layer + step, 0)}
    if direction == "preimage":
        turned: Edges = {}
        for source, targets in edges.items():
            for target in targets:
                turned.setdefault(target, set()).add(source)
        edges = turned
    arguments = (
        model.encoding.manager,
        model.set({model.number(start_layer, 0)}),
        [model.relation(edges)],
        getattr(Relation, direction),
    )
    slow = list(search_rounds(*arguments))
    assert len(slow) >= 2 * LAYERS - 2 and not leaps
    quick = list(search_rounds(*arguments, counters=model.counters))
    assert len(quick) < 20 and len(leaps) == 1
    assert quick[-1].found == slow[-1].found


def test_layers_beyond_a_missing_step_are_not_taken(leaps: list[Node]) -> None:
    model = Layered.of(FASTEST)
    barred = 20
    edges: Edges = {}
    for layer in range(LAYERS - 1):
        edges[model.number(layer, 0)] = {model.number(layer, 1)}
        if layer != barred:
            edges[model.number(layer, 1)] = {model.number(layer + 1, 0)}
    found = model.found(edges)
    assert leaps
    assert found == model.set({model.number(layer, s) for layer in range(barred + 1) for s in (0, 1)})


def test_steps_back_prove_nothing(leaps: list[Node]) -> None:
    """Beyond a missing step each layer is entered from the one before it and from the one after it."""
    model = Layered.of(FASTEST)
    barred = 20
    edges: Edges = {}
    for layer in range(LAYERS - 1):
        edges[model.number(layer, 0)] = {model.number(layer + 1, 0)}
        if layer != barred:
            edges[model.number(layer, 1)] = {model.number(layer + 1, 1)}
    for layer in range(1, LAYERS):
        edges.setdefault(model.number(layer, 1), set()).add(model.number(layer - 1, 1))
    edges[model.number(0, 0)].add(model.number(0, 1))
    found = model.found(edges)
    assert leaps
    assert found == model.set(forward_states(chain_of([edges]), {0}))


def test_steps_that_skip_layers_prove_nothing(leaps: list[Node]) -> None:
    """From layer 3 on the odd layers are entered from the one above, and the highest of them from nowhere."""
    model = Layered.of(FASTEST)
    edges: Edges = {}
    for layer in range(0, LAYERS - 1, 2):
        edges[model.number(layer, 0)] = {model.number(layer + 2, 0)} if layer + 2 < LAYERS else set()
    for layer in range(5, LAYERS, 2):
        edges[model.number(layer, 0)] = {model.number(layer - 2, 0)}
    edges[model.number(0, 0)] = {model.number(2, 0), model.number(1, 0)}
    edges[model.number(1, 0)] = {model.number(3, 0)}
    edges = {source: targets for source, targets in edges.items() if targets}
    found = model.found(edges)
    assert not leaps
    assert found == model.set(forward_states(chain_of([edges]), {0}))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
@pytest.mark.parametrize("is_down", [False, True])
def test_layers_are_numbered_both_ways(package: str, is_down: bool) -> None:
    model = Layered.of(package, is_above=False)
    layers = Layers(model.encoding.manager, model.counters[0], is_down)

    def value(layer: int) -> int:
        return LAYERS - 1 - layer if is_down else layer

    states = model.set(model.layer(value(5), [1]) | model.layer(value(9), [2]))
    assert layers.first(states) == 5 and layers.last(states) == 9
    for layer in (0, 7, LAYERS - 1):
        assert layers.at(layer) == model.set(model.layer(value(layer)))
        further = [model.layer(value(other)) for other in range(layer + 1, LAYERS)]
        assert layers.beyond(layer) == model.set(set().union(*further))
        for is_forward in (True, False):
            relation = Relation(layers.manager, layers.next_ones(is_forward), layers.bits)
            step = relation.image if is_forward else relation.preimage
            after = layers.at(layer + 1) if layer + 1 < LAYERS else layers.manager.false
            assert step(layers.at(layer)) == after


def test_a_counter_that_stands_still_holds_up_no_other(leaps: list[Node]) -> None:
    """The first counter stops half-way, and looks alike up to there; the second one goes on."""
    encoding = Encoding([variable("v", 2 * LAYERS - 1), variable("w", LAYERS - 1)], FASTEST)
    manager = encoding.manager
    node = manager.false
    for v in range(20):
        node = node | (
            manager.cube(manager.rows, LAYERS * v) & manager.cube(manager.columns, LAYERS * (v + 1))
        )
    for w in range(LAYERS - 1):
        states = manager.disjunction(manager.cube(manager.rows, LAYERS * v + w) for v in range(21))
        after = manager.cube(encoding.column_names(encoding.by_name["w"]), w + 1)
        step = manager.equal_bits(encoding.by_name["v"].bits) & after
        node = node | (states & step)
    relation = Relation.whole(manager, node)
    start = manager.disjunction(manager.cube(manager.rows, LAYERS * v) for v in range(21))
    arguments = manager, start, [relation], Relation.image
    slow = list(search_rounds(*arguments))
    quick = list(search_rounds(*arguments, counters=encoding.counters))
    assert quick[-1].found == slow[-1].found
    assert leaps and len(quick) < 0.8 * len(slow)
