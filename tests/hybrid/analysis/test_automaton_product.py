"""The product of a model with an automaton, against pairs listed one by one."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.analysis.ltl import automaton_moves, model_product
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.levels.curve import layer_curve
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.choosing import automaton_of
from mtbdd.build.automaton_product import automaton_product
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.matrices import to_dense
from tests.builders.models import build
from tests.exploring import pairs

CHAIN = """
dtmc
module one
  x : [0..2] init 0;
  [] x=0 -> 0.5:(x'=1) + 0.5:true;
  [go] x=1 -> (x'=2);
endmodule
module two
  automaton : bool init false;
  [go] true -> 0.25:(automaton'=true) + 0.75:(automaton'=false);
endmodule
label "a" = x=1 | automaton;
label "b" = x=2;
"""
PROCESS = CHAIN.replace("dtmc", "mdp").replace(
    "endmodule\nmodule two", "[] x<2 -> (x'=0);\nendmodule\nmodule two", 1
)
RACE = CHAIN.replace("dtmc", "ctmc")
FORMULAS = ["F a", "G (a => (F b))", "(G F a) | (F G b)", "a U (b | (X X a))"]


def propositions(model: SymbolicModel, automaton: DeterministicAutomaton) -> list[Node]:
    labels = {label.name: label.expression for label in model.source.labels}
    return [model.states(labels[name]) for name in automaton.propositions]


@pytest.mark.parametrize(
    ("below", "formula", "text", "package"),
    pairs(
        [pytest.param(False, id="above"), pytest.param(True, id="below")],
        FORMULAS,
        [pytest.param(CHAIN, id="dtmc"), pytest.param(PROCESS, id="mdp"), pytest.param(RACE, id="ctmc")],
        DIAGRAM_PACKAGES,
    ),
)
def test_every_pair_moves_as_its_parts_do(text: str, package: str, formula: str, below: bool) -> None:
    model, automaton = build(text, package), automaton_of(formula)
    nodes = propositions(model, automaton)
    product = automaton_product(model, nodes, automaton_moves(automaton), automaton.n_marks, below=below)
    n = model.n_states
    letters = sum((model.indicator(node).astype(int) << i for i, node in enumerate(nodes)), np.zeros(n, int))
    own = [product.model.indicator(states).nonzero()[0] for states in product.automaton_states]
    dense = [to_dense(model.layer_transitions(layer)) for layer in range(len(model.layers))]
    described = [tuple(s[v.name] for v in model.encoding.shown) for s in model.describe(np.arange(n))]
    pairs = [(0, 0)] * product.model.n_states
    for q, indices in enumerate(own):
        for k, state in zip(indices.tolist(), product.model.describe(indices), strict=True):
            pairs[k] = (q, described.index(tuple(state[v.name] for v in model.encoding.shown)))
    starts = product.model.indicator(product.first).nonzero()[0].tolist()
    assert [pairs[k] for k in starts] == [(0, s) for s in range(n)]
    expected = {pair: k for k, pair in enumerate(pairs)}
    reached, waiting = set(), [(0, s) for s in range(n)]
    while waiting:
        pair = waiting.pop()
        if pair not in reached:
            reached.add(pair)
            q, s = pair
            then = int(automaton.successors[q, letters[s]])
            waiting += [(then, int(t)) for matrix in dense for t in matrix[s].nonzero()[0]]
    assert reached == set(pairs)
    for layer, matrix in enumerate(dense):
        found = to_dense(product.model.layer_transitions(layer))
        for k, (q, s) in enumerate(pairs):
            row = np.zeros(len(pairs))
            then = int(automaton.successors[q, letters[s]])
            for t in matrix[s].nonzero()[0].tolist():
                row[expected[then, t]] = matrix[s, t]
            np.testing.assert_array_equal(found[k], row)
    for mark, states in enumerate(product.marks):
        met = [int(automaton.marks[q, letters[s]]) >> mark & 1 == 1 for q, s in pairs]
        assert product.model.indicator(states).tolist() == met
    if not model.is_mdp:
        rates = product.model.exit_rates(product.model.index)
        np.testing.assert_array_equal(rates, [model.exit_rates(model.index)[s] for _, s in pairs])


@pytest.mark.parametrize("text", [CHAIN, PROCESS, RACE], ids=["dtmc", "mdp", "ctmc"])
def test_the_order_with_the_lower_minimum_is_taken(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, automaton = build(text), automaton_of("a U (b | (X X a))")
    nodes = propositions(model, automaton)
    every = "hybrid.analysis.ltl.MOST_STATES_COMPARED", range(1 << 20)
    monkeypatch.setattr(*every)
    for below, sizes in ((False, [5, 6]), (True, [6, 5])):
        left = iter(sizes)
        monkeypatch.setattr("hybrid.analysis.ltl._min_memory_bytes", lambda product, left=left: next(left))
        found = model_product(model, automaton, nodes, CheckOptions.of())
        own = found.model.encoding.by_name["automaton_" if "automaton :" in text else "automaton"]
        assert (own.bits[0] > 0) == below
    assert model_product(model, automaton, nodes, CheckOptions.of(engine="explicit")).first is not None
    monkeypatch.undo()
    few = model_product(model, automaton, nodes, CheckOptions.of())
    assert few.model.encoding.by_name["automaton_" if "automaton :" in text else "automaton"].bits[0] == 0
    monkeypatch.setattr(*every)
    chosen = model_product(model, automaton, nodes, CheckOptions.of())
    moves = automaton_moves(automaton)
    both = [automaton_product(model, nodes, moves, automaton.n_marks, below=below) for below in (False, True)]
    least = [
        min(level.bytes_worst_case for level in layer_curve(matrices).levels)
        for matrices in (
            [p.model.layer_transitions(k) for k in range(len(p.model.layers))] for p in (chosen, *both)
        )
    ]
    assert least[0] == min(least[1:])


ROUGH = """
ctmc
module one
  x : [0..2] init 0;
  [] x=0 -> 1/3:(x'=1) + 1/7:(x'=0);
  [go] x=1 -> 0.1:(x'=2) + 0.2:(x'=0);
  [] x=2 -> true;
endmodule
module two
  y : [0..1] init 0;
  [go] true -> 1/3:(y'=1) + 1/3:(y'=0);
endmodule
label "a" = x=1;
label "b" = x=2;
"""


def test_errors_of_row_sums_are_those_of_the_model() -> None:
    """Row sums are copied, and off by what those of the model are off by."""
    model, automaton = build(ROUGH), automaton_of("F (a & (X b))")
    nodes, moves = propositions(model, automaton), automaton_moves(automaton)
    assert any(model.event_exits(event).units > 0.0 for event in model.events)
    found = automaton_product(model, nodes, moves, automaton.n_marks, below=False).model
    assert found.exit_units >= model.exit_units


def test_errors_of_what_probabilities_of_choices_add_up_to_are_those_of_the_model() -> None:
    text = ROUGH.replace("ctmc", "mdp").replace("1/3:(y'=1) + 1/3:(y'=0)", "1/3:(y'=1) + 0.666667:(y'=0)")
    text = text.replace("0.1:(x'=2) + 0.2:(x'=0)", "0.1:(x'=2) + 0.9:(x'=0)")
    text = text.replace("1/3:(x'=1) + 1/7:(x'=0)", "1/3:(x'=1) + 2/3:(x'=0)")
    model, automaton = build(text), automaton_of("F (a & (X b))")
    nodes, moves = propositions(model, automaton), automaton_moves(automaton)
    own = [[p.sums.units for p in layer.parts if p.sums is not None] for layer in model.layers]
    assert max(max(units, default=0.0) for units in own) > 0.0
    found = automaton_product(model, nodes, moves, automaton.n_marks, below=False).model
    for layer, units in zip(found.layers, own, strict=True):
        assert [p.sums.units for p in layer.parts if p.sums is not None] == units
