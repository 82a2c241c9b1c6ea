"""The compiled search and codes of states: the same as what the text says, wherever it is stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.checking.simulation.functions import Variables
from hybrid.checking.simulation.rules import Rules
from hybrid.models.exploration import search as search_module
from hybrid.models.exploration.explore import Explored, StateCodes, Successors
from hybrid.models.exploration.search import CompiledSearch
from mtbdd.base.budget import Budget, BudgetError, spending
from mtbdd.language import LanguageError, parse_model, resolve
from mtbdd.language.syntax import ModelType, ResolvedModel
from tests.attack.cases import draw_case
from tests.builders.chain_texts import DIE, GAMBLER, QUEUE, SPLIT
from tests.builders.flat_texts import epidemic, gate, opinions, oscillators
from tests.builders.mdp_texts import COINS, ROOMS, SLOW_WAY, WAITING_ROOM
from tests.exploring import rounds
from tests.source_tree import ROOT

TEXTS = {
    "oscillators": (oscillators(3, 4), {"mu": 0.1, "level": 1.0}),
    "gate": (gate(2, 4), {}),
    "opinions": (opinions(9), {}),
    "epidemic": (epidemic(4), {}),
    **{f"small {k}": (text, {}) for k, text in enumerate((DIE, GAMBLER, QUEUE, SPLIT))},
    **{f"small mdp {k}": (text, {}) for k, text in enumerate((COINS, ROOMS, SLOW_WAY, WAITING_ROOM))},
}


def resolved(text: str, constants: dict[str, Any] | None = None) -> ResolvedModel:
    return resolve(parse_model(text), constants or None)


def choices_of(found: Explored, is_mdp: bool) -> list[list[Any]]:
    """Every state's choices, in an order of their own: action, targets, weights; a chain has one."""
    held: list[dict[Any, dict[int, float]]] = [{} for _ in range(found.states.shape[1])]
    rows = zip(found.sources, found.targets, found.weights, found.events, found.choices, strict=True)
    for source, target, weight, event, choice in rows:
        key = (int(event), int(choice)) if is_mdp else (found.actions[event], 0)
        own = held[source].setdefault(key, {})
        own[int(target)] = own.get(int(target), 0.0) + float(weight)
    return [
        sorted((found.actions[key[0]] if is_mdp else key[0]) or "" for key in own)
        + sorted(sorted((t, round(w, 11)) for t, w in row.items()) for row in own.values())
        for own in held
    ]


def assert_same(model: ResolvedModel) -> Explored:
    compiled = CompiledSearch(model)
    assert compiled.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hybrid.models.exploration.explore.MOST_INSTRUCTIONS", 0)
        asked = CompiledSearch(model, takes_all=True)
    assert asked.run()
    found, wanted = compiled.result(), asked.result()
    assert (found.states == wanted.states).all()
    assert (found.initial == wanted.initial).all()
    is_mdp = model.type is ModelType.MDP
    assert choices_of(found, is_mdp) == choices_of(wanted, is_mdp)
    assert compiled.entries == found.sources.size == wanted.sources.size
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_states_and_transitions_are_the_same(name: str) -> None:
    assert_same(resolved(*TEXTS[name]))


@pytest.mark.parametrize("name", ["small 0", "small mdp 1", "gate", "opinions"])
def test_a_search_goes_on_where_there_was_no_room(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "_STATES", 1)
    monkeypatch.setattr(search_module, "_ENTRIES", 1)
    monkeypatch.setattr(search_module, "_FEWEST", 1)
    assert_same(resolved(*TEXTS[name]))


def coins(count: int) -> str:
    """Coins that are tossed together, each with a probability of its own."""
    modules = (
        f"module m{i} a{i}:bool; [t] true -> {100 + i}/1000:(a{i}'=true)"
        f"+{900 - i}/1000:(a{i}'=false); endmodule"
        for i in range(count)
    )
    return "dtmc\n" + "\n".join(modules)


def test_f22_a_state_of_more_transitions_than_are_wanted_ends_the_search() -> None:
    search = CompiledSearch(resolved(coins(14)))
    assert not search.run(1000) and search.entries == 0
    search = CompiledSearch(resolved(coins(9)))
    assert search.run() and search.entries == 1 << 18
    assert not CompiledSearch(resolved(coins(130))).run(1 << 22)


def test_f22_a_state_of_too_many_transitions_is_told() -> None:
    with pytest.raises(LanguageError, match=r"16,777,216 transitions of a state .* got 1.36e\+39"):
        CompiledSearch(resolved(coins(130))).run()
    # What the machine is not certain of is asked of the text, where all ways are written out.
    with pytest.raises(LanguageError, match=r"<model>:2:20: expected at most 100000 ways to take .* 't'"):
        Successors(Rules(resolved(coins(130))))


def test_random_models_are_the_same(rng: np.random.Generator) -> None:
    seed = int(rng.integers(1 << 32))
    for number in range(rounds(60)):
        assert_same(resolved(draw_case(seed, number).spec.text()))


def test_trees_find_commands_beside_ranges_and_contradictions() -> None:
    commands = "".join(f"[] x={k} & 7=y & x+y>3 -> (x'={(3 * k + 1) % 40}) & (y'=7);" for k in range(40))
    others = "[] x=3 & x=4 -> true; [] y=9 & x<5 -> (y'=7); [] x=-3 -> true; [] b & x=900 -> (b'=false);"
    others += "[] b -> (b'=!b);"
    model = resolved(
        f"mdp module m x:[0..39]; y:[7..9] init 9; b:bool init true; {commands}{others} endmodule"
    )
    found = assert_same(model)
    assert found.states.shape[1] == 2 * (4 + 1)  # 0, 1, 4, 13, and the first one with y=9


def test_guards_that_may_have_no_value_are_asked_in_the_order_of_the_text() -> None:
    commands = "".join(f"[] mod(9, 3 - x) >= 0 & x={k} -> (x'={k + 1});" for k in range(6))
    model = resolved(f"dtmc module m x:[0..6]; {commands} endmodule")
    with pytest.raises(LanguageError, match="no value"):
        CompiledSearch(model).run()


def test_what_is_not_certain_is_asked_of_the_text() -> None:
    text = """dtmc module m x:[0..5];
      [] x*0.1 <= 0.3 -> 1 - 0.1*x - (1 - 0.1*x - 1e-12) : (x'=0) + 1 - 1e-12 : (x'=x+1);
      [] x*0.1 > 0.3 -> true; endmodule"""
    found = assert_same(resolved(text))
    assert found.states[0].tolist() == [0, 1, 2, 3, 4]
    assert found.weights.min() == pytest.approx(1e-12, rel=1e-14)


def test_states_of_several_words_and_several_initial_states() -> None:
    names = [f"v{k}" for k in range(9)]
    declared = "".join(f"{n}:[-5..65530];" for n in names)
    moves = "".join(
        f"[] {a}<1 -> 0.5:({a}'=max({a},0)+1) + 2:({b}'=65530+{a});"
        for a, b in zip(names[6:], names[7:], strict=False)
    )
    assert assert_same(resolved(f"ctmc module m {declared} {moves} endmodule")).states.max() == 65525
    several = (
        "dtmc module m x:[0..9]; y:[0..3]; [] x>0 -> (x'=x-1); [] x=0 -> (y'=0); endmodule init x>6 endinit"
    )
    assert assert_same(resolved(several)).initial.size == 12


def test_a_search_may_be_stopped_and_ends_with_its_budget() -> None:
    model = resolve(parse_model((ROOT / "examples/kanban.prism").read_text()), {"t": 2})
    search = CompiledSearch(model)
    assert not search.run(entries=5000)
    explored = search.explored
    assert 0 < explored < search.met and search.entries >= 4000
    assert search.run() and search.explored == search.met == 4600
    with spending(Budget.of(1e-9, None)), pytest.raises(BudgetError):
        CompiledSearch(model).run()
    with pytest.raises(MemoryError), pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtbdd.base.memory.free_memory_bytes", lambda: 0)
        patch.setattr("mtbdd.base.memory._SMALL", 0)
        CompiledSearch(model)


def variables_of(ranges: list[tuple[int, int]]) -> Variables:
    lines = [f"v{i}:[{low}..{high}];" for i, (low, high) in enumerate(ranges)]
    return Variables(resolve(parse_model(f"dtmc module m {' '.join(lines)} endmodule", "m"), {}))


RANGES = st.tuples(st.integers(-(2**40), 2**40), st.integers(0, 2**40)).map(lambda t: (t[0], t[0] + t[1]))


@given(ranges=st.lists(RANGES, min_size=1, max_size=6), seed=st.integers(0, 2**32 - 1))
def test_codes_come_back_and_ascend_with_the_states(ranges: list[tuple[int, int]], seed: int) -> None:
    codes = StateCodes(variables_of(ranges))
    rng = np.random.default_rng(seed)
    states = np.array([rng.integers(low, high, 30, endpoint=True) for low, high in ranges])
    states[:, 0], states[:, 1] = [low for low, _ in ranges], [high for _, high in ranges]
    words = np.zeros((codes.words, 30), dtype=np.int64)
    for row, (word, shift) in enumerate(codes.places):
        words[word] |= (states[row] - ranges[row][0]) << shift
    assert (codes.unpacked(words) == states).all()
    order = np.lexsort(states[::-1])
    assert (codes.unpacked(words[:, np.lexsort(words[::-1])]) == states[:, order]).all()
