"""Fixed points over random events, forward and backward, against a search one state at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mtbdd.build.reach import fixpoint
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import Position, ResolvedVariable
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import node_set
from tests.oracles.chains import backward_states, forward_states

BITS = (2, 1, 2)  # widths of the three variables
SIZE = 1 << sum(BITS)


def variable(name: str, high: int) -> ResolvedVariable:
    return ResolvedVariable(name, 0, high, 0, False, None, Position("test", 1, 1))


@dataclass
class Events:
    """Random events: each changes some variables in some states, to one or two values."""

    encoding: Encoding
    transitions: list[Relation]
    chain: list[dict[int, int]]

    @classmethod
    def random(cls, rng: np.random.Generator, package: str, n_events: int, share: float) -> Events:
        encoding = Encoding([variable(f"v{i}", (1 << w) - 1) for i, w in enumerate(BITS)], package)
        manager = encoding.manager
        transitions, chain = [], [dict[int, int]() for _ in range(SIZE)]
        for _ in range(n_events):
            chosen = [v for v in encoding.variables if rng.random() < 0.5] or [encoding.variables[0]]
            touched = [bit for v in chosen for bit in v.bits]
            relation = manager.false
            for state in np.flatnonzero(rng.random(SIZE) < share).tolist():
                target = state
                for bit in touched:
                    shift = sum(BITS) - 1 - bit
                    target = target & ~(1 << shift) | int(rng.integers(2)) << shift
                columns = tuple(manager.columns[bit] for bit in touched)
                number = sum(
                    (target >> (sum(BITS) - 1 - bit) & 1) << (len(touched) - 1 - i)
                    for i, bit in enumerate(touched)
                )
                relation = relation | (manager.cube(manager.rows, state) & manager.cube(columns, number))
                chain[state][target] = 1
            transitions.append(Relation.of(encoding, [v.name for v in chosen], relation))
        return cls(encoding, transitions, chain)

    def set(self, states: set[int]) -> Node:
        return node_set(self.encoding.manager, self.encoding.manager.rows, sorted(states))


@pytest.fixture(params=["plain", "grouped", "closed", "unclosed", "grouped unclosed"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every way through the fixed point: groups from the first round on, closures refused or not."""
    if "grouped" in request.param:
        monkeypatch.setattr("mtbdd.build.reach._PATIENCE", 1)
    if "unclosed" in request.param:
        monkeypatch.setattr("mtbdd.build.reach._CLOSURE_FLOOR", 0)
        monkeypatch.setattr("mtbdd.build.reach._CLOSURE_GROWTH", 0)
        monkeypatch.setattr("mtbdd.build.reach._GROUP_NODES", 40)
    if request.param == "closed":
        monkeypatch.setattr("mtbdd.build.reach._CLOSURE_FLOOR", 10**6)
    return str(request.param)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_fixpoint_equals_search(package: str, mode: str, rng: np.random.Generator) -> None:
    for n_events, share in ((1, 0.9), (3, 0.1), (5, 0.05), (4, 0.3)):
        events = Events.random(rng, package, n_events, share)
        start = {int(s) for s in rng.choice(SIZE, size=2)}
        arguments = events.encoding.manager, events.set(start), events.transitions
        assert fixpoint(*arguments, Relation.image) == events.set(forward_states(events.chain, start))
        assert fixpoint(*arguments, Relation.preimage) == events.set(backward_states(events.chain, start))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_fixpoint_stays_inside(package: str, mode: str, rng: np.random.Generator) -> None:
    for n_events, share in ((2, 0.5), (4, 0.2), (5, 0.1)):
        events = Events.random(rng, package, n_events, share)
        start = {int(s) for s in rng.choice(SIZE, size=2)}
        inside = {int(s) for s in np.flatnonzero(rng.random(SIZE) < 0.6)}
        found = fixpoint(
            events.encoding.manager,
            events.set(start),
            events.transitions,
            Relation.preimage,
            events.set(inside),
            True,
        )
        assert found == events.set(backward_states(events.chain, start, inside))
        nowhere = fixpoint(
            events.encoding.manager,
            events.set(start),
            events.transitions,
            Relation.preimage,
            events.set(set()),
            True,
        )
        assert nowhere == events.set(start)


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_fixpoint_inside_a_closed_set_drops_the_rest(package: str, rng: np.random.Generator) -> None:
    events = Events.random(rng, package, 4, 0.1)
    closed = forward_states(events.chain, [3, 17])
    target = {3}
    found = fixpoint(
        events.encoding.manager, events.set(target), events.transitions, Relation.preimage, events.set(closed)
    )
    assert found == events.set(backward_states(events.chain, target, closed))


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_close_is_the_transitive_closure(package: str, rng: np.random.Generator) -> None:
    for share in (0.2, 0.5):
        events = Events.random(rng, package, 1, share)
        transition = events.transitions[0]
        closure = transition.closure(10**6)
        assert closure is not None and closure.bits == transition.bits
        for state in range(SIZE):
            after = {t for s in events.chain[state] for t in forward_states(events.chain, [s])}
            assert closure.image(events.set({state})) == events.set(after)
        again = closure.closure(0)
        assert again is not None and again.node == closure.node


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_united_events_keep_what_the_other_changes(package: str) -> None:
    encoding = Encoding([variable("x", 1), variable("y", 1)], package)
    manager = encoding.manager
    rise = {
        name: Relation.of(encoding, [name], manager.cube([row], 1) & manager.cube([column], 1))
        for name, row, column in zip(("x", "y"), manager.rows, manager.columns, strict=True)
    }
    both = rise["x"].united(rise["y"])
    assert both.bits == (0, 1)
    for state in range(4):
        after = {state} if state else set()  # each event keeps its variable at 1, and the other one as it is
        assert both.image(node_set(manager, manager.rows, [state])) == node_set(manager, manager.rows, after)


def test_close_gives_up_beyond_its_limit() -> None:
    encoding = Encoding([variable("x", 31)], FASTEST)
    manager = encoding.manager
    relation = manager.false
    for value in range(31):
        relation = relation | (manager.cube(manager.rows, value) & manager.cube(manager.columns, value + 1))
    transition = Relation.of(encoding, ["x"], relation)
    assert transition.closure(3) is None
    whole = transition.closure(200)
    assert whole is not None
    assert whole.image(manager.cube(manager.rows, 0)) == node_set(manager, manager.rows, range(1, 32))


def test_fixpoint_counts_rounds_and_closures_save_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter takes one round a value without closures, two rounds (the last finds nothing) with them."""
    encoding = Encoding([variable("x", 31)], FASTEST)
    manager = encoding.manager
    relation = manager.false
    for value in range(31):
        relation = relation | (manager.cube(manager.rows, value) & manager.cube(manager.columns, value + 1))
    transition = Relation.of(encoding, ["x"], relation)
    start = manager.cube(manager.rows, 0)
    rounds: list[int] = []
    assert (
        fixpoint(encoding.manager, start, [transition], Relation.image, progress=rounds.append)
        == manager.true
    )
    assert rounds == [1, 2]
    monkeypatch.setattr("mtbdd.build.reach._CLOSURE_FLOOR", 0)
    monkeypatch.setattr("mtbdd.build.reach._CLOSURE_GROWTH", 0)
    rounds.clear()
    assert (
        fixpoint(encoding.manager, start, [transition], Relation.image, progress=rounds.append)
        == manager.true
    )
    assert rounds == list(range(1, 33))


def test_fixpoint_without_transitions_is_its_start() -> None:
    encoding = Encoding([variable("x", 3)], FASTEST)
    start = encoding.manager.cube(encoding.manager.rows, 2)
    assert fixpoint(encoding.manager, start, [], Relation.image) == start
