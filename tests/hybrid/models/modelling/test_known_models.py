"""Case studies and random models are the same from Python as from their texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from mtbdd.build.rewards import action_rewards, reward_rates
from tests.builders.built_in_python import coin, kanban
from tests.builders.matrices import to_dense
from tests.builders.written_twice import TwiceWritten
from tests.exploring import rounds

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


@pytest.mark.parametrize("kind", ["dtmc", "ctmc", "mdp"])
def test_a_model_of_a_builder_is_that_of_its_text(kind: str, rng: np.random.Generator) -> None:
    deadlocks, several = 0, 0
    for _ in range(rounds(15)):
        twice = TwiceWritten(rng, kind)
        wanted = hybrid.parse(twice.text)
        got = twice.builder.build()
        deadlocks += wanted.deadlocks != wanted.manager.false
        several += wanted.labels["init"].sum() > 1
        assert got.n_states == wanted.n_states, twice.text
        assert (got.state_table() == wanted.state_table()).all()
        assert len(got.layers) == len(wanted.layers)
        for number in range(len(wanted.layers)):
            # The text's numbers and those of Python are the same doubles, added up in the same order.
            found = [to_dense(m.layer_transitions(number)) for m in (got, wanted)]
            assert np.allclose(*found, rtol=1e-15, atol=0.0), twice.text
            gained = [reward_rates(m, 0, m.index, number) for m in (got, wanted)]
            assert np.allclose(*gained, rtol=1e-14, atol=0.0), twice.text
            moved = [action_rewards(m, 0, m.index, number) for m in (got, wanted)]
            assert np.allclose(*moved, rtol=1e-14, atol=0.0), twice.text
        assert got.statistics.mtbdd_nodes == wanted.statistics.mtbdd_nodes
        for name in ("seen", "init", "deadlock"):
            assert (got.labels[name] == wanted.labels[name]).all()
        if kind != "mdp":
            assert np.allclose(
                got.exit_rates(got.index), wanted.exit_rates(wanted.index), rtol=1e-15, atol=0.0
            )
    assert deadlocks or several
