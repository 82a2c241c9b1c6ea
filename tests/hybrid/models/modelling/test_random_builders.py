"""Random models are the same from a builder and from a text."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from mtbdd.build.rewards import action_rewards, reward_rates
from tests.builders.matrices import to_dense
from tests.builders.written_twice import TwiceWritten
from tests.exploring import rounds


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
