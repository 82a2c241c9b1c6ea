"""The proof of a quotient: blocks that are none are found out, whoever made them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError
from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.compressing import compressed
from hybrid.models.interchange.write_out import listed_reward
from hybrid.models.lumping import quotient
from hybrid.models.lumping.partition import Blocks, WrittenChoices
from mtbdd.language.syntax import ModelType

CHAIN = """dtmc
module m
  x : [0..5];
  [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);
  [] x=1 -> {}:(x'=3) + {}:(x'=4);
  [] x=2 -> 0.3:(x'=3) + 0.7:(x'={});
  [] x>2 -> true;
endmodule
init true endinit
rewards x=1 : {}; [] x=2 : {}; endrewards
"""
CHOICES = """mdp
module m
  x : [0..3];
  [a] x=0 -> 0.5:(x'=2) + 0.5:(x'=3);
  [b] x=0 -> {};
  [a] x=1 -> 0.5:(x'=2) + 0.5:(x'=3);
  [b] x=1 -> {};
  [] x>1 -> true;
endmodule
init true endinit
rewards [b] x=0 : {}; endrewards
"""


def forged(monkeypatch: pytest.MonkeyPatch, change: Callable[[Blocks], Blocks]) -> None:
    """Let refinement end with other blocks than it found."""
    found = WrittenChoices.stable

    def stable(*arguments: object) -> Blocks:
        return change(found(*arguments))  # type: ignore[arg-type]

    monkeypatch.setattr(WrittenChoices, "stable", stable)


def merged(blocks: Blocks, one: int, other: int, one_choice: bool = False) -> Blocks:
    """Return blocks of which those of two states are one; with `one_choice` all their choices are."""
    own = blocks.of_state.copy()
    own[own == own[other]] = own[one]
    _, own = np.unique(own, return_inverse=True)
    of_choice = np.zeros_like(blocks.of_choice) if one_choice else blocks.of_choice
    return replace(blocks, of_state=own.astype(np.int64), count=int(own.max()) + 1, of_choice=of_choice)


# lemma: blocks
@pytest.mark.parametrize(
    ("fields", "count"),
    [
        (("0.3", "0.7", 4, 0, 0), 3),
        (("0.4", "0.6", 4, 0, 0), None),
        (("0.3", "0.7", 5, 0, 0), None),
        (("0.3", "0.7", 4, 1, 0), None),
        (("0.3", "0.7", 4, 0, 1), None),
        (("0.3", "0.7", 4, 0, "1e-20"), None),
    ],
)
def test_proof_of_chains_finds_what_states_do_not_share(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[object, ...], count: int | None
) -> None:
    model = hybrid.parse(CHAIN.format(*fields) + 'label "three" = x=3; label "four" = x=4;')
    where = [label.expression for label in model.source.labels]
    sets = [super(hybrid.Model, model).states(e) for e in where]
    forged(monkeypatch, lambda blocks: merged(blocks, 1, 2))
    if count is None:
        with pytest.raises(HybridError, match="could not be proved"):
            quotient(model, sets, [0])
        return
    assert quotient(model, sets, [0]).model.n_states == 5


@pytest.mark.parametrize(
    ("fields", "is_one"),
    [
        (("(x'=2)", "(x'=2)", 0), True),
        (("(x'=2)", "(x'=3)", 0), False),
        (("(x'=2)", "0.5:(x'=2)+0.5:(x'=3)", 0), False),
        (("(x'=2)", "(x'=2)", 1), False),
    ],
)
def test_proof_of_decision_processes_finds_choices_that_states_do_not_share(
    monkeypatch: pytest.MonkeyPatch, fields: tuple[object, ...], is_one: bool
) -> None:
    model = hybrid.parse(CHOICES.format(*fields) + 'label "two" = x=2;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 1))
    if is_one:
        assert quotient(model, sets, [0]).model.n_states == 3
        return
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets, [0])


def test_proof_of_decision_processes_finds_choices_that_are_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHOICES.format("(x'=2)", "(x'=2)", 0) + 'label "two" = x=2;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 0, one_choice=True))
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets, [0])


def test_proof_finds_rates_that_a_state_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(
        "ctmc module m x:[0..3]; [] x=0 -> 1:(x'=2) + 2:(x'=3); [] x=1 -> 1:(x'=2); [] x>1 -> true; "
        'endmodule init true endinit label "two" = x=2;'
    )
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    forged(monkeypatch, lambda blocks: merged(blocks, 0, 1))
    with pytest.raises(HybridError, match="could not be proved"):
        quotient(model, sets)


def test_an_accident_is_mended_with_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hybrid.parse(CHAIN.format("0.4", "0.6", 4, 0, 0) + 'label "three" = x=3;')
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    asked = []

    def once(blocks: Blocks) -> Blocks:
        asked.append(blocks)
        return merged(blocks, 1, 2) if len(asked) == 1 else blocks

    forged(monkeypatch, once)
    assert quotient(model, sets).model.n_states == asked[-1].count
    assert len(asked) == 2


def test_what_sums_are_apart_is_an_error_of_the_quotient() -> None:
    model = hybrid.parse(
        "ctmc module m x:[0..3]; [] x=0 -> 0.1:(x'=2) + 0.2:(x'=3); [] x=1 -> 0.3:(x'=2); "
        '[] x>1 -> 1:(x\'=0); endmodule init true endinit label "two" = x>1;'
    )
    found = quotient(model, [super(hybrid.Model, model).states(model.source.labels[0].expression)])
    assert found.model.n_states == 2
    apart = (0.1 + 0.2 - 0.3) / 0.3 * 2**53
    assert apart > 1
    # Every number of a sum may be off, the sum is rounded once, and another state's is so far from it.
    assert found.model.matrix.units >= model.entry_units + 1 + apart


# ------------------------------------------------------------------ errors of what members of a block earn

UNIT = Fraction(1, 2**53)


def listed_quotient(
    monkeypatch: pytest.MonkeyPatch, model: ExplicitModel, told_apart: str, keep_loops: bool = True
) -> ExplicitModel:
    """The quotient of a model by one label, with its first reward structure, before it is compressed."""
    listed: list[ExplicitModel] = []

    def keep(found: ExplicitModel) -> object:
        listed.append(found)
        return compressed(found)

    monkeypatch.setattr(sys.modules["hybrid.models.lumping.quotient"], "compressed", keep)
    made = compressed(model)
    label = next(label for label in made.source.labels if label.name == told_apart)
    quotient(made, [made.states(label.expression)], [0], keep_loops=keep_loops)
    return listed[0]


def fork(kind: ModelType, reward: ExplicitReward, units: float = 0.0, loop: float = 0.0) -> ExplicitModel:
    """Two states alike between a first and a last one; each of the two may stay where it is."""
    rows = [[(1, 0.5), (2, 0.5)], [(1, loop), (3, 1.0)], [(2, loop), (3, 1.0)], [(3, 1.0)]]
    kept = [[(j, v) for j, v in row if v] for row in rows]
    return ExplicitModel(
        kind,
        4,
        np.cumsum([0, *map(len, kept)]),
        np.array([j for row in kept for j, _ in row]),
        np.array([v for row in kept for _, v in row]),
        np.array([True, False, False, False]),
        np.arange(5) if kind is ModelType.MDP else None,
        labels={"end": np.array([False, False, False, True])},
        rewards=(reward,),
        value_units=units,
    )


# lemma: state-by-state
@pytest.mark.parametrize("kind", ["DTMC", "MDP"])
@pytest.mark.parametrize("earners", ["states", "choices"])
def test_what_rewards_of_a_block_are_apart_is_an_error_of_its_reward(
    monkeypatch: pytest.MonkeyPatch, kind: str, earners: str
) -> None:
    """Both doubles may stand for 0.3, each off by some units; what the other may mean is told, too."""
    earned, units = np.array([0.0, 0.3, 0.1 + 0.2, 0.0]), 6.0
    reward = ExplicitReward("r", **{earners: earned}, units=units)
    found = listed_quotient(monkeypatch, fork(ModelType[kind], reward), "end")
    assert found.n_states == 3
    (own,) = found.rewards
    mine = np.unique(own.states if earners == "states" else own.choices)
    assert mine.tolist() == [0.0, 0.3]
    told = Fraction(own.units) * UNIT
    for value in (Fraction(0.3), Fraction(0.1 + 0.2)):
        for sign in (-1, 1):
            assert abs(value * (1 + sign * Fraction(units) * UNIT) - Fraction(0.3)) <= told * Fraction(0.3)


def test_rewards_of_rates_are_as_uncertain_as_the_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move earns more in the quotient without loops, by all rates over those that remain."""
    units, loop = 400.0, 1023.0
    reward = ExplicitReward("r", choices=np.array([0.0, 1.0, 1.0, 0.0]))
    model = fork(ModelType.CTMC, reward, units, loop)
    found = listed_quotient(monkeypatch, model, "end", keep_loops=False)
    (own,) = found.rewards
    value = Fraction(float(own.choices.max()))
    assert value == 1024
    more, less = 1 + Fraction(units) * UNIT, 1 - Fraction(units) * UNIT
    assert abs((Fraction(loop) * more + less) / less - value) <= value * Fraction(own.units) * UNIT


def test_every_error_behind_rewards_of_rates_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rewards, of rates into a sum and out of it, of additions, and of what members are apart."""
    reward = ExplicitReward("r", choices=np.array([0.0, 0.3, 0.1 + 0.2, 0.0]), units=6.0)
    model = fork(ModelType.CTMC, reward, 40.0, 3.0)
    made = compressed(model)
    written = WrittenChoices(made)
    listed = listed_reward(made, 0, written.listed)
    found = listed_quotient(monkeypatch, model, "end")
    (own,) = found.rewards
    apart = float((Fraction(0.1 + 0.2) / Fraction(0.3) - 1) / UNIT)
    sums = written.units + 2 + 1, found.value_units + 2 + 1  # two entries, and a product or a quotient
    assert listed.units >= 6.0 + made.exit_units + 1.0
    assert own.units >= listed.units + apart + sum(sums)
