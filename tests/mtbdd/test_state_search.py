"""The search state by state, and the choice between it and the search on sets of states."""

from __future__ import annotations

import numpy as np
import pytest

from mtbdd.build import reachable
from mtbdd.build import reachable as state_search
from mtbdd.build.reach import fixpoint
from mtbdd.build.reachable import StateSearch, can_list, reachable_states
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import Position, ResolvedVariable
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES, FASTEST
from tests.builders.models import build_both, node_set
from tests.exploring import each

pytest.importorskip("numba")


def encode(ranges: list[tuple[int, int]], package: str = FASTEST) -> Encoding:
    """Return the encoding of variables v0, v1, ... with the given ranges."""
    place = Position("test", 1, 1)
    variables = [ResolvedVariable(f"v{i}", a, b, a, False, None, place) for i, (a, b) in enumerate(ranges)]
    return Encoding(variables, package)


def random_transition(rng: np.random.Generator, encoding: Encoding, share: float) -> Relation:
    """Return an event on random variables, from random states to one to three successors each."""
    manager = encoding.manager
    touched = [v.name for v in encoding.variables if rng.random() < 0.6]
    bits = encoding.bits_of(touched)
    columns = [manager.columns[i] for i in bits]
    relation = manager.false
    for state in np.flatnonzero(rng.random(1 << encoding.n_bits) < share).tolist():
        targets = manager.disjunction(
            manager.cube(columns, int(rng.integers(1 << len(bits)))) for _ in range(rng.integers(1, 4))
        )
        relation = relation | manager.cube(manager.rows, state) & targets
    # Successors keep to the ranges of all variables, as those of models do.
    others = [i for i in range(encoding.n_bits) if i not in bits]
    inside = encoding.valid & manager.to_columns(encoding.valid) & manager.equal_bits(others)
    relation = manager.exists([manager.columns[i] for i in others], relation & inside)
    return Relation.of(encoding, touched, relation)


def all_states(encoding: Encoding, transitions: list[Relation], start: Node) -> Node:
    """Return what is reachable by plain rounds: the union of all images until nothing is new."""
    found = start
    while True:
        more = encoding.manager.disjunction([found, *(t.image(found) for t in transitions)])
        if more == found:
            return found
        found = more


@pytest.mark.parametrize(
    ("package", "ranges"),
    each(DIAGRAM_PACKAGES, [[(1, 5), (0, 2), (0, 0), (-1, 1)], [(0, 3), (0, 1), (0, 3)]]),
)
def test_states_are_those_that_plain_rounds_find(
    package: str, ranges: list[tuple[int, int]], rng: np.random.Generator
) -> None:
    for n_events, share in ((0, 0.5), (1, 0.9), (3, 0.1), (5, 0.05), (4, 0.4)):
        encoding = encode(ranges, package)
        transitions = [random_transition(rng, encoding, share) for _ in range(n_events)]
        valid = index_states(encoding.manager, encoding.valid)
        bits = valid.bits_at(rng.choice(valid.size, size=2, replace=False))
        codes = bits @ (1 << np.arange(encoding.n_bits)[::-1])
        start = node_set(encoding.manager, encoding.manager.rows, codes.tolist())
        search = StateSearch(encoding, start, transitions)
        assert search.advance(1 << 12)
        assert search.done
        found = search.states()
        assert found == all_states(encoding, transitions, start)
        assert search.met == index_states(encoding.manager, found).size


def test_a_limit_stops_the_search_and_a_higher_one_continues_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_search, "_FIRST_ROOM", 4)
    encoding = encode([(0, 999)])
    manager, variable = encoding.manager, encoding.by_name["v0"]
    steps = [
        manager.cube(encoding.row_names(variable), k) & encoding.column_value(variable, k + 1)
        for k in range(999)
    ]
    transition = Relation.of(encoding, ["v0"], manager.disjunction(steps))
    start = encoding.state({"v0": 0})
    search = StateSearch(encoding, start, [transition])
    for limit in (0, 1, 2, 10, 10, 999):
        assert not search.advance(limit)
        assert search.met == max(limit, 1)
        assert not search.done
    assert search.advance(1000)
    assert search.states() == encoding.valid


def test_bits_that_no_path_mentions_take_both_values() -> None:
    encoding = encode([(0, 7), (0, 1)])
    transition = Relation.of(encoding, ["v0"], encoding.manager.true)  # any value of v0 may follow
    search = StateSearch(encoding, encoding.state({"v0": 5, "v1": 1}), [transition])
    assert search.advance(100)
    assert search.met == 8
    assert search.states() == encoding.manager.bdd.var(encoding.manager.rows[3])


def test_wide_and_empty_states_are_refused() -> None:
    cases: list[list[tuple[int, int]]] = [[], [(0, 2**40), (0, 2**22)]]
    for ranges in cases:
        encoding = encode(ranges)
        assert not can_list(encoding)
        with pytest.raises(ValueError, match="expected 1 to 62 bits"):
            StateSearch(encoding, encoding.manager.true, [])
    assert can_list(encode([(0, 2**61)]))


def thin_model() -> tuple[Encoding, Node, list[Relation]]:
    """A long scattered run: one state follows another, with no order that a diagram could use."""
    encoding = encode([(0, 1023)])
    manager = encoding.manager
    variable = encoding.by_name["v0"]
    run = np.random.default_rng(77).permutation(1024)[:900].tolist()
    transitions = []
    for part in range(3):
        steps = [
            manager.cube(encoding.row_names(variable), a) & encoding.column_value(variable, b)
            for k, (a, b) in enumerate(zip(run[:-1], run[1:], strict=True))
            if k % 3 == part
        ]
        transitions.append(Relation.of(encoding, ["v0"], manager.disjunction(steps)))
    return encoding, encoding.state({"v0": run[0]}), transitions


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge the search on sets early, and let it neither close nor merge events."""
    monkeypatch.setattr("mtbdd.build.reach._CLOSURE_FLOOR", 0)
    monkeypatch.setattr("mtbdd.build.reach._CLOSURE_GROWTH", 0)
    monkeypatch.setattr("mtbdd.build.reach._GROUP_NODES", 0)
    monkeypatch.setattr("mtbdd.build.reach._PATIENCE", 2)
    monkeypatch.setattr(reachable, "_TRIAL", 100)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("share", [0.1, 8])
def test_thinly_spread_states_are_listed_and_are_the_same(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachable, "_SHARE", share)  # the smaller one makes the searches take turns
    monkeypatch.setattr(reachable, "_MOST_STATES", 2000)
    limits = []
    advance = StateSearch.advance

    def watched(search: StateSearch, limit: int) -> bool:
        limits.append(limit)
        return advance(search, limit)

    monkeypatch.setattr(StateSearch, "advance", watched)
    encoding, start, transitions = thin_model()
    lines: list[str] = []
    found = reachable_states(encoding, start, transitions, lines.append)
    assert found == all_states(encoding, transitions, start)
    assert index_states(encoding.manager, found).size == 900
    assert limits == sorted(limits)
    assert len(limits) > 1 if share < 1 else len(limits) == 1
    assert lines.count("reachable states, one by one") == len(limits)


@pytest.mark.usefixtures("hasty")
def test_sets_are_kept_where_they_find_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("states were listed")

    monkeypatch.setattr(reachable, "StateSearch", refuse)
    encoding = encode([(0, 7)] * 6)
    manager = encoding.manager
    transitions = []
    for variable in encoding.variables:
        rows = encoding.row_names(variable)
        steps = [manager.cube(rows, k) & encoding.column_value(variable, k + 1) for k in range(7)]
        transitions.append(Relation.of(encoding, [variable.name], manager.disjunction(steps)))
    start = encoding.state({v.name: 0 for v in encoding.variables})
    assert reachable_states(encoding, start, transitions) == manager.true


@pytest.mark.usefixtures("hasty")
def test_sets_are_kept_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "can_list", lambda encoding: False)
    encoding, start, transitions = thin_model()
    lines: list[str] = []
    found = reachable_states(encoding, start, transitions, lines.append)
    assert found == fixpoint(encoding.manager, start, transitions, Relation.image)
    assert "reachable states, one by one" not in lines


@pytest.mark.usefixtures("hasty")
def test_sets_are_kept_where_there_are_too_many_states_to_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reachable, "_MOST_STATES", 3)
    encoding, start, transitions = thin_model()
    lines: list[str] = []
    found = reachable_states(encoding, start, transitions, lines.append)
    assert index_states(encoding.manager, found).size == 900
    assert "reachable states, one by one" not in lines


MODEL = """
mdp
module walk
  x : [0..30] init 3;
  y : [0..12];
  [] x<30 & y<12 -> 0.5:(x'=mod(7*x+y+1, 31)) + 0.5:(x'=mod(x+5, 31)) & (y'=y+1);
  [go] y>4 -> (y'=mod(x*y, 13));
endmodule
module other
  z : [-2..2];
  [go] z<2 -> 0.25:(z'=z+1) + 0.75:true;
  [] z=2 -> (z'=-2);
endmodule
"""


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_states_of_a_model_are_those_explored_from_its_text(package: str) -> None:
    model, explicit = build_both(MODEL, package)
    found = StateSearch(model.encoding, model.initial, model.relations)
    assert found.advance(10**6)
    assert found.states() == model.reachable
    assert found.met == explicit.n_states
