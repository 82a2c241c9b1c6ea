"""Numbers are the doubles that were given: entries lie within their units of the exact rows."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hybrid
from tests.builders.built_in_python import kanban
from tests.builders.matrices import to_dense

_WEIGHTS = [(0.3, 0.7), (1 / 3, 1 / 3, 1 / 3), (0.333333, 0.333333, 0.333333), (0.5, 0.25, 0.25), (0.1,) * 10]


def _spread(kind: str, weights: tuple[float, ...], modules: int) -> hybrid.Model:
    """Every module moves from 0 to one of the others, all at once."""
    m = hybrid.ModelBuilder(kind)
    for i in range(modules):
        x = m.variable(f"x{i}", 0, len(weights))
        m.module(f"m{i}").command(
            x == 0, updates=[(p, {x: k + 1}) for k, p in enumerate(weights)], action="go"
        )
    return m.build()


@pytest.mark.parametrize("weights", _WEIGHTS)
@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
@pytest.mark.parametrize("modules", [1, 2])
def test_entries_lie_within_their_units(kind: str, weights: tuple[float, ...], modules: int) -> None:
    model = _spread(kind, weights, modules)
    row = to_dense(model.layer_transitions(0))[0]
    own = [Fraction(p) / sum(map(Fraction, weights)) for p in weights]
    exact = [a * b for a in own for b in own] if modules == 2 else own
    units = Fraction(model.entry_units) / 2**53
    found = row[1:] if modules == 1 else row[row > 0]
    assert len(found) == len(exact)
    for entry, wanted in zip(found, exact, strict=True):
        assert abs(Fraction(float(entry)) - wanted) <= units * wanted
    assert model.entry_units < 100


def test_sums_that_round_nothing_are_exact() -> None:
    for kind in ("dtmc", "mdp"):
        assert _spread(kind, (0.5, 0.25, 0.25), 1).layers[0].matrix.units == 0.0
        assert _spread(kind, (0.3, 0.7), 1).layers[0].matrix.units > 0.0


def test_a_symbolic_file_holds_a_model_of_a_builder(tmp_path: Path) -> None:
    model = kanban(1).build()
    hybrid.export(model, tmp_path / "kanban.dd")
    again = hybrid.load(tmp_path / "kanban.dd")
    assert again.n_transitions == model.n_transitions
    assert np.allclose(again.exit_rates(again.index), model.exit_rates(model.index), rtol=1e-14, atol=0.0)
    assert np.array_equal(again.state_table(), model.state_table())


def test_exit_rates_carry_their_units() -> None:
    model = kanban(1).build()
    sums = to_dense(model.transitions).sum(axis=1)
    error = np.abs(model.exit_rates(model.index) - sums)
    assert (error <= (model.exit_units + 10) * 2.0**-53 * sums).all()
    assert 0 < model.exit_units < 100


def test_comparisons_are_decided_in_rationals() -> None:
    model = _spread("dtmc", (0.5, 0.25, 0.25), 1)
    assert hybrid.check(model, "P>=0.5 [ F x0=1 ]").value is True
    assert hybrid.check(model, "P>0.5 [ F x0=1 ]").value is False


def test_a_choice_earns_its_reward_once_whatever_its_probabilities_add_up_to() -> None:
    m = hybrid.ModelBuilder("mdp")
    x = m.variable("x", 0, 3)
    m.command(x == 0, updates=[(0.333333, {x: k}) for k in (1, 2, 3)], action="go")
    m.reward("gain", value=3.0, action="go")
    model = m.build()
    assert model.given is not None
    earned = model.given.rewards[0].choices[0]
    assert earned is not None
    assert earned.terminals.tolist() == [3.0]
