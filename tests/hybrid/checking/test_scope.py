"""Values where they are asked for are those of the same states among all; nothing is solved in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.analysis.operator_values import Scope
from hybrid.base.state_values import StateValues
from hybrid.checking import formulas as operators
from mtbdd.build.build import build_model
from mtbdd.language import parse_model, resolve
from mtbdd.offset.states import index_states
from tests.source_tree import ROOT

CHAIN = """
dtmc
module m
  x : [0..9] init 1;
  [] x > 0 & x < 6 -> 0.5 : (x' = x + 1) + 0.3 : (x' = x - 1) + 0.2 : (x' = x);
  [] x = 6 -> 0.5 : (x' = 7) + 0.5 : (x' = 8);
  [] x = 7 | x = 9 -> 0.5 : (x' = 7) + 0.5 : (x' = 9);
  [] x = 0 | x = 8 -> true;
endmodule
rewards "steps" x > 0 & x < 7 : 1; endrewards
rewards "both" x = 1 : 2; x = 2 : -1; endrewards
"""
CHOICES = """
mdp
module m
  x : [0..5] init 1;
  [a] x > 0 & x < 5 -> 0.5 : (x' = x + 1) + 0.5 : (x' = x - 1);
  [b] x > 0 & x < 5 -> 0.9 : (x' = x - 1) + 0.1 : (x' = x + 1);
  [c] x = 2 -> (x' = 2);
  [] x = 0 | x = 5 -> true;
endmodule
rewards "steps" [a] true : 1; [b] true : 3; endrewards
"""
OF_CHAINS = [
    "P=? [ F x=8 ]",
    "P=? [ G x<8 ]",
    "P=? [ x<5 U x=6 ]",
    "P=? [ x<5 W x=6 ]",
    "P=? [ X x=2 ]",
    "P=? [ F<=4 x=6 ]",
    "P=? [ G F x=9 ]",
    "P=? [ (F x=2) & (G x<7) ]",
    "P=? [ F x=8 || F x=6 ]",
    "P>0.2 [ F x=8 ]",
    "1 - P=? [ F x=8 ]",
    "S=? [ x=9 ]",
    'R{"steps"}=? [ F x=0 | x>6 ]',
    'R{"both"}=? [ F x=0 | x>6 ]',
    'R{"steps"}=? [ F x=8 ]',
    'R{"steps"}=? [ C ]',
    'R{"steps"}=? [ C<=7 ]',
    'R{"steps"}=? [ I=3 ]',
    'R{"steps"}=? [ S ]',
]
OF_CHOICES = [
    "Pmax=? [ F x=5 ]",
    "Pmin=? [ F x=5 ]",
    "Pmax=? [ G x<5 ]",
    "Pmin=? [ G F x=0 ]",
    "Pmax=? [ F<=3 x=5 ]",
    'Rmin{"steps"}=? [ F x=0 | x=5 ]',
    'Rmax{"steps"}=? [ F x=0 | x=5 ]',
    'Rmin{"steps"}=? [ C ]',
    'Rmax{"steps"}=? [ C<=3 ]',
]
FILTERS = ["{}", "filter(max, {}, x=3)", "filter(min, {}, x>1 & x<5)", "filter(state, {}, x=2)"]


METHODS = ["auto", "interval", "jacobi"]


@pytest.mark.parametrize(
    ("source", "text", "method"),
    [
        (source, text, method)
        for source, texts in ((CHAIN, OF_CHAINS), (CHOICES, OF_CHOICES))
        for k, text in enumerate(texts)
        for method in [METHODS[k % len(METHODS)]]
    ],
)
def test_values_asked_for_are_those_among_all(
    source: str, text: str, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.parse(source)
    turn = (OF_CHAINS + OF_CHOICES).index(text) + METHODS.index(method)
    for form in FILTERS[:1] if ">0.2" in text else [FILTERS[turn % len(FILTERS)]]:
        asked = form.format(text)
        answers = []
        for kept in (1 << 18, 0):
            monkeypatch.setattr(operators, "KEPT", kept)
            answers.append(hybrid.check(model, asked, method=method))
        expected, found = answers
        assert found.error == expected.error
        assert (found.value, found.lower, found.upper) == (expected.value, expected.lower, expected.upper)
        assert found.kind == expected.kind


@pytest.mark.parametrize("source", [CHAIN, CHOICES])
def test_nothing_is_solved_where_the_graph_decides_what_is_asked_for(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.parse(source)
    optimum = "" if source is CHAIN else "max"
    for kept in (1 << 18, 0):
        monkeypatch.setattr(operators, "KEPT", kept)
        answer = hybrid.check(model, f"filter(state, P{optimum}=? [ F x=0 ], x=0)")
        assert (answer.value, answer.kind) == (1.0, "exact")
        assert (answer.statistics.iterations == 0) == (kept == 0)


@pytest.mark.parametrize("few", [1, 64])
def test_values_of_a_set_are_found_in_the_scope(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.analysis.operator_values._FEW", few)
    text = (ROOT / "examples/kanban.prism").read_text(encoding="utf-8")
    model = build_model(resolve(parse_model(text), {"t": 1}))
    inside = index_states(model.manager, model.reachable & ~model.initial)
    values = StateValues.exact(np.arange(inside.size, dtype=np.float64))
    everywhere = Scope.every(model)
    np.testing.assert_array_equal(everywhere.among(values, inside).values, values.values)
    bit = model.manager.bdd.var(model.manager.rows[3])
    for states in (model.reachable & bit, model.initial, model.reachable & ~model.initial):
        scope = Scope.of(model, states)
        full = values.spread(everywhere.indicator(inside.states), np.full(model.index.size, np.nan))
        expected = scope.of_values(full).values
        found = scope.among(values, inside).spread(
            scope.indicator(inside.states), np.full(scope.index.size, np.nan)
        )
        np.testing.assert_array_equal(found.values, expected)
        assert scope.meets(inside.states) == (states != model.initial)
