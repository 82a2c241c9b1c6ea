"""Rewards that doubles cannot hold a step or a unit of time: refused where states are listed, never lost.

One that becomes 0 on the way would turn what is earned for ever from infinity into nothing.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import hybrid
import hybrid.models.lumping.checker as lumping
from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.compressing import compressed
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward
from mtbdd.language.errors import BuildError
from mtbdd.language.syntax import ModelType

TEXT = """ctmc
module m
  s : [0..1];
  [a] s=0 -> {rate}:(s'=1);
  [] s=0 -> {other}:(s'=1);
  [] s=1 -> {back}:(s'=0);
endmodule
rewards "r"
  [a] true : {reward};
endrewards
"""

QUESTION = 'R{"r"}=? [ C ]'


def text(rate: str, other: str, reward: str, back: str = "1") -> str:
    return TEXT.format(rate=rate, other=other, reward=reward, back=back)


SUBNORMAL, ZERO = text("1", "1e200", "1e-120"), text("1", "1e200", "1e-150")
"""A jump earns 1e-320, of which doubles hold a few bits, and 1e-350; a unit of time enough in both."""


# lemma: underflow
@pytest.mark.parametrize("model", [SUBNORMAL, ZERO])
@pytest.mark.parametrize("listed", [0, 1 << 62])
def test_a_quotient_refuses_a_reward_that_underflows(
    model: str, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lumping, "_SHARE", 1.01)
    monkeypatch.setattr(lumping, "LISTED", listed)
    symbolic = hybrid.parse(model, build="symbolic")
    assert hybrid.check(symbolic, QUESTION).value == math.inf
    found = hybrid.check(symbolic, QUESTION, bisimulation=True, throw=False)
    assert found.value is None and 'reward "r": expected rewards of a step' in found.error
    assert "leave bisimulation out" in found.error


@pytest.mark.parametrize("model", [SUBNORMAL, ZERO])
def test_no_file_is_written_that_lacks_a_reward(model: str, tmp_path: Path) -> None:
    symbolic = hybrid.parse(model, build="symbolic")
    with pytest.raises(InterchangeError, match='reward "r": expected rewards of a step.*at least 2.23e-308'):
        hybrid.export(symbolic, tmp_path / "model.umb")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SUBNORMAL, "0 or to a normal double of known sign"),
        (ZERO, "0 or to a normal double of known sign"),
        # The share of the jumps that earn has lost digits, what they earn would not show it.
        (text("1e-120", "1e200", "1e300"), "0 or to a normal double of known sign"),
        (text("1e-100", "1e-100", "1e-250"), "of 0 or at least 2.23e-308 in a unit of time, got less"),
    ],
)
def test_states_are_not_listed_with_a_reward_that_underflows(model: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        hybrid.parse(model, build="explicit")


def test_rewards_that_a_list_holds_are_listed() -> None:
    """Also if a jump earns next to nothing, or nothing where no transition has the action."""
    model = hybrid.parse(text("1", "1e200", "1e-100"), build="explicit")
    assert hybrid.check(model, QUESTION).value == math.inf
    nothing = hybrid.parse(text("1", "1e200", "0"), build="explicit")
    assert hybrid.check(nothing, QUESTION).value == 0.0


def test_a_quotient_refuses_what_underflows_in_a_unit_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of time earns 1e-315, a jump 1e-200, which a file may hold."""
    monkeypatch.setattr(lumping, "_SHARE", 1.01)
    monkeypatch.setattr(lumping, "LISTED", 1 << 62)
    symbolic = hybrid.parse(text("1e-115", "1e-115", "1e-200"), build="symbolic")
    found = hybrid.check(symbolic, QUESTION, bisimulation=True, throw=False)
    assert found.value is None and "at least 2.23e-308" in found.error


def test_an_imported_reward_does_not_underflow_in_a_unit_of_time() -> None:
    model = ExplicitModel(
        ModelType.CTMC,
        2,
        np.array([0, 1, 2]),
        np.array([1, 0]),
        np.array([1e-100, 1e-100]),
        np.array([True, False]),
        rewards=(ExplicitReward("r", choices=np.array([0.0, 1e-250])),),
        source="rates",
    )
    with pytest.raises(InterchangeError, match=r"expected rewards of a step.*got 0\.0"):
        compressed(model)
