"""Quotients as models: their blocks, their answers state by state, and what they refuse."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hybrid
from hybrid.models.interchange import ExplicitModel
from hybrid.models.interchange.compressing import compressed
from mtbdd.base.budget import add_seconds_compiling
from tests.builders.explicit_models import random_explicit_model

WALK = """dtmc
module m
  s : [0..6];
  d : bool;
  [] s=0 -> 1/2:(s'=1) + 1/2:(s'=2);
  [] s=1 | s=2 -> 1/3:(s'=3) + 1/3:(s'=6) + 1/3:(s'=0);
  [] s=3 -> (s'=4) & (d'=true);
endmodule
label "goal" = d;
rewards "steps" true : 1; endrewards
"""
PROPERTIES = [
    'P=? [ F "goal" ]',
    "P=? [ F<=4 s=4 ]",
    'P=? [ F "deadlock" & !d ]',
    'P=? [ F (P>=0.25 [ X s=3 ] & !"init") ]',
    'R{"steps"}=? [ C<=3 ]',
    'const int k; P=? [ F<=k "goal" ]',
]


@pytest.mark.parametrize("listed", [1 << 62, 0], ids=["list", "diagrams"])
@pytest.mark.parametrize("text", [*PROPERTIES, PROPERTIES[:3]], ids=str)
def test_a_quotient_answers_its_properties_state_by_state(
    text: str | list[str], listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.models.lumping.checker.LISTED", listed)
    model = hybrid.parse(WALK)
    constants = {"k": 4} if "const" in text else None
    small = hybrid.quotient(model, text, constants)
    assert small.n_states < model.n_states and small.block_of.shape == (model.n_states,)
    assert set(small.block_of) == set(range(small.n_states))
    for prop in [text] if isinstance(text, str) else text:
        expected = hybrid.check(model, prop, constants, values=True).values
        found = hybrid.check(small, prop, constants, values=True).values
        np.testing.assert_allclose(small.lift(found), expected, rtol=0, atol=1e-9)


def test_blocks_go_by_the_numbers_of_states(rng: np.random.Generator) -> None:
    """Both models may have numbers of states that their diagrams do not have."""
    model = hybrid.Model.of(compressed(random_explicit_model(rng, "ctmc")))
    small = hybrid.quotient(model, 'P=? [ F<=1 "goal" ]')
    assert (small.labels["goal"][small.block_of] == model.labels["goal"]).all()
    own = model.states("true")
    assert small.lift(np.ones(small.n_states, dtype=bool)).tolist() == own.tolist()


def test_a_model_without_states_that_are_alike_is_its_own_quotient() -> None:
    text = "dtmc module m s:[0..2]; [] s<2 -> (s'=s+1); [] s=2 -> true; endmodule"
    small = hybrid.quotient(hybrid.parse(text), "P=? [ F s=2 ]; P=? [ F<=1 s=2 ]")
    assert small.block_of.tolist() == [0, 1, 2]


@pytest.mark.parametrize("listed", [1 << 62, 0], ids=["list", "diagrams"])
def test_the_time_of_a_quotient_is_not_that_of_compiling(
    listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiling(model: ExplicitModel) -> object:
        add_seconds_compiling(1000.0)
        return compressed(model)

    monkeypatch.setattr(sys.modules["hybrid.models.lumping.quotient"], "compressed", compiling)
    monkeypatch.setattr("hybrid.models.lumping.checker.LISTED", listed)
    monkeypatch.setattr("hybrid.models.lumping.checker._SHARE", 1.0)
    found = hybrid.check(hybrid.parse(WALK), PROPERTIES[0], bisimulation=True).reduction
    assert found is not None and found.block_transitions is not None and found.seconds < 0


def test_refusals_name_what_is_wrong() -> None:
    model = hybrid.parse(WALK)
    with pytest.raises(hybrid.HybridError, match="how many states there are"):
        hybrid.quotient(model, "filter(count, d)")
    with pytest.raises(hybrid.HybridError, match="expected a property that the quotient is made for"):
        hybrid.quotient(model, [])
    with pytest.raises(hybrid.LanguageError, match='unknown label "nowhere"'):
        hybrid.quotient(model, 'P=? [ F "nowhere" ]')
    small = hybrid.quotient(model, "P=? [ F d ]")
    with pytest.raises(ValueError, match=rf"expected shape \({small.n_states},\), got \(1,\)"):
        small.lift([1.0])
