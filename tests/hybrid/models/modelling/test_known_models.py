"""The case studies have the same diagrams and answers from Python as from their texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from tests.builders.built_in_python import coin, kanban

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"


@pytest.mark.parametrize("t", [1, 2])
def test_kanban_has_the_nodes_of_its_text(t: int) -> None:
    wanted = hybrid.load(EXAMPLES / "kanban.prism", constants={"t": t})
    got = kanban(t).build()
    assert got.statistics.mtbdd_nodes == wanted.statistics.mtbdd_nodes
    assert got.statistics.terminals == wanted.statistics.terminals
    assert (got.n_states, got.n_transitions) == (wanted.n_states, wanted.n_transitions)
    assert np.array_equal(got.exit_rates(got.index), wanted.exit_rates(wanted.index))
    answers = [hybrid.check(model, 'R{"throughput"}=? [ S ]') for model in (got, wanted)]
    assert answers[0].lower <= answers[1].upper
    assert answers[1].lower <= answers[0].upper


def test_coin_has_the_nodes_of_its_text() -> None:
    wanted = hybrid.load(EXAMPLES / "coin.prism", constants={"K": 1})
    got = coin(1).build()
    assert got.statistics.mtbdd_nodes == wanted.statistics.mtbdd_nodes
    assert (got.n_states, got.n_choices) == (wanted.n_states, wanted.n_choices)
    assert [sorted(str(p.action) for p in x.parts) for x in got.layers] == [
        sorted(str(p.action) for p in x.parts) for x in wanted.layers
    ]
    for question in (
        'Pmin=? [ F "all_heads" ]',
        'Pmax=? [ F<=30 "decided" ]',
        'R{"steps"}max=? [ F "decided" ]',
        'R{"steps"}min=? [ C<=12 ]',
    ):
        one, two = (hybrid.check(model, question) for model in (got, wanted))
        assert max(one.lower, two.lower) <= min(one.upper, two.upper), question


def test_the_graph_of_choices_speaks_of_what_events_touch() -> None:
    model = coin(2).build()
    assert all(len(relation.bits) < model.encoding.n_bits for relation in model.choice_relations)


def test_building_again_after_additions() -> None:
    m = hybrid.ModelBuilder("dtmc")
    x = m.variable("x", 0, 3)
    m.command(x < 3, {x: x + 1})
    assert m.build().n_states == 4
    m.command(x == 3, {x: 0})
    again = m.build()
    assert not again.warnings
    assert hybrid.check(again, "S=? [ x=2 ]").value == pytest.approx(0.25)


def test_variables_of_one_value_and_models_without_commands() -> None:
    m = hybrid.ModelBuilder("mdp")
    m.variable("only", 4, 4)
    m.boolean("up", initial=True)
    model = m.build()
    assert model.describe(np.array([0])) == [{"only": 4, "up": True}]
    assert "self-loop" in model.warnings[0]
