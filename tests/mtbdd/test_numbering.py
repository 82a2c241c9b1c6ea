"""Numbers of states are those of the text's order, whatever order the diagram has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import (
    for_diagram,
    for_users,
    in_order,
    states_in_parts,
    table_of_range,
    table_of_states,
    table_type,
)
from mtbdd.language import parse_model, resolve
from mtbdd.offset import states as numbers

TEXT = """
dtmc
global g : bool init true;
module one
  a : [-2..3] init 0;
  fixed : [7..7] init 7;
  [] a < 3 -> 0.5 : (a' = a + 1) + 0.5 : (g' = !g);
  [both] a > -2 -> (a' = a - 1);
endmodule
module two
  b : [0..4] init 0;
  [both] b < 4 & (a != 1 | g) -> (b' = b + 1);
  [] b > 1 & !g -> (b' = 0);
endmodule
module three
  wide : [0..5000000000] init 0;
  c : bool init false;
  [both] true -> 0.5 : (c' = !c) + 0.5 : (wide' = 4999999999 * (b > 2 ? 1 : 0));
endmodule
"""


def build(order: str, text: str = TEXT) -> SymbolicModel:
    return build_model(resolve(parse_model(text)), order=order)


def rows(model: SymbolicModel) -> list[tuple[object, ...]]:
    places = np.arange(model.n_states) if model.numbering is None else model.numbering
    return [tuple(state.values()) for state in model.describe(places)]


def test_the_order_of_the_text_needs_no_permutation() -> None:
    model = build("model")
    assert model.numbering is None
    assert rows(model) == sorted(rows(model))
    assert list(model.describe(np.array([0]))[0]) == ["g", "a", "fixed", "b", "wide", "c"]


@pytest.mark.parametrize("word", [62, 5, 1])
def test_another_order_is_led_back_to_that_of_the_text(word: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "_WORD", word)
    monkeypatch.setattr(numbers, "_HELD", 7)
    model, reversed_order = build("model"), build("reversed")
    places = reversed_order.numbering
    assert places is not None
    assert places.tolist() != list(range(model.n_states))
    assert sorted(places.tolist()) == list(range(model.n_states))
    assert rows(reversed_order) == rows(model)


def test_vectors_go_there_and_back(rng: np.random.Generator) -> None:
    model = build("reversed")
    vector = rng.random(model.n_states)
    np.testing.assert_array_equal(for_diagram(model, for_users(model, vector)), vector)
    assert model.numbering is not None
    np.testing.assert_array_equal(for_users(model, vector), vector[model.numbering])


def test_members_of_a_set_come_in_the_order_of_their_numbers(rng: np.random.Generator) -> None:
    from mtbdd.offset.states import index_states, states_from

    model = build("reversed")
    mask = rng.random(model.n_states) < 0.5
    inside = index_states(model.manager, states_from(model.manager, model.index, mask))
    found = in_order(model, np.arange(inside.size), inside)
    states = [tuple(s.values()) for s in model.describe(found, inside)]
    assert states == sorted(states)
    assert len(states) == mask.sum()
    assert "numbering" not in vars(model)
    places = model.numbering
    assert places is not None
    model.numbering = places[::-1].copy()  # given from outside: the other way round
    found = in_order(model, np.arange(inside.size), inside)
    assert [tuple(s.values()) for s in model.describe(found, inside)] == states[::-1]
    model.numbering = None
    np.testing.assert_array_equal(in_order(model, found, inside), found)


@pytest.mark.parametrize("order", ["model", "reversed", "force"])
def test_a_state_is_picked_in_the_order_of_the_text(order: str) -> None:
    model = build(order)
    assert tuple(model.first(model.reachable).values()) == rows(model)[0]
    later = model.reachable & ~model.encoding.state(
        {k: int(v) for k, v in model.first(model.reachable).items()}
    )
    assert tuple(model.first(later).values()) == rows(model)[1]


@pytest.mark.parametrize("order", ["model", "reversed"])
def test_tables_hold_what_describe_tells(order: str, rng: np.random.Generator) -> None:
    model = build(order)
    shown, size = model.encoding.shown, model.n_states
    told = [tuple(state.values()) for state in model.describe(np.arange(size))]
    for _ in range(20):
        begin, end = sorted(rng.integers(0, size + 1, 2).tolist())
        assert table_of_range(model.index, shown, begin, end).tolist() == told[begin:end]
    chosen = rng.integers(0, size, 30)
    assert table_of_states(model.index, shown, chosen).tolist() == [told[i] for i in chosen.tolist()]
    parts = list(states_in_parts(model.index, shown, model.numbering, 9))
    assert [row for _, part in parts for row in part.tolist()] == rows(model)
    assert [n for numbers, _ in parts for n in range(numbers.start, numbers.stop)] == list(range(size))


def test_types_hold_the_values() -> None:
    kind = table_type(build("model").encoding.shown)
    assert [kind[name].str for name in kind.names or ()] == ["|b1", "<i4", "<i4", "<i4", "<i8", "|b1"]


def test_a_model_without_variables_has_a_table(tmp_path: Path) -> None:
    model = build("model", "dtmc module m x : [3..3]; [] true -> true; endmodule")
    assert table_of_range(model.index, model.encoding.shown, 0, 1).tolist() == [(3,)]
    assert model.numbering is None
