"""The proof of a quotient: blocks that are none are found out, whoever made them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import hybrid
from hybrid.base.errors import HybridError
from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.compressing import compressed
from hybrid.models.interchange.write_out import listed_reward
from hybrid.models.lumping import quotient_by_sets as any_quotient
from hybrid.models.lumping.partition import Blocks, WrittenChoices
from mtbdd.build.rewards import symbolic_reward
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


LISTED = 1 << 62
"""States up to which quotients are made from lists; 0: those of chains are made from diagrams."""

quotient = partial(any_quotient, listed=LISTED)


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
    monkeypatch: pytest.MonkeyPatch,
    model: ExplicitModel,
    told_apart: str,
    keep_loops: bool = True,
    listed_states: int = LISTED,
) -> ExplicitModel:
    """The quotient of a model by one label, with its first reward structure, before it is compressed."""
    listed: list[ExplicitModel] = []

    def keep(found: ExplicitModel) -> object:
        listed.append(found)
        return compressed(found)

    monkeypatch.setattr(sys.modules["hybrid.models.lumping.quotient"], "compressed", keep)
    made = compressed(model)
    label = next(label for label in made.source.labels if label.name == told_apart)
    found = any_quotient(
        made, [made.states(label.expression)], [0], keep_loops=keep_loops, listed=listed_states
    )
    assert found.reduction.made_from == ("diagrams" if listed_states == 0 else "list")
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


# lemma: state-by-state, formal-sums
@pytest.mark.parametrize("listed", [LISTED, 0])
@pytest.mark.parametrize("kind", ["DTMC", "MDP"])
@pytest.mark.parametrize("earners", ["states", "choices"])
def test_what_rewards_of_a_block_are_apart_is_an_error_of_its_reward(
    monkeypatch: pytest.MonkeyPatch, kind: str, earners: str, listed: int
) -> None:
    """Both doubles may stand for 0.3, each off by some units; what the other may mean is told, too."""
    earned, units = np.array([0.0, 0.3, 0.1 + 0.2, 0.0]), 6.0
    reward = ExplicitReward("r", **{earners: earned}, units=units)
    found = listed_quotient(monkeypatch, fork(ModelType[kind], reward), "end", listed_states=listed)
    assert found.n_states == 3
    (own,) = found.rewards
    mine = np.unique(own.states if earners == "states" else own.choices)
    assert mine.tolist() == [0.0, 0.3]
    told = Fraction(own.units) * UNIT
    for value in (Fraction(0.3), Fraction(0.1 + 0.2)):
        for sign in (-1, 1):
            assert abs(value * (1 + sign * Fraction(units) * UNIT) - Fraction(0.3)) <= told * Fraction(0.3)


@pytest.mark.parametrize("listed", [LISTED, 0])
def test_rewards_of_rates_are_as_uncertain_as_the_rates(monkeypatch: pytest.MonkeyPatch, listed: int) -> None:
    """A move earns more in the quotient without loops, by all rates over those that remain."""
    units, loop = 400.0, 1023.0
    reward = ExplicitReward("r", choices=np.array([0.0, 1.0, 1.0, 0.0]))
    model = fork(ModelType.CTMC, reward, units, loop)
    found = listed_quotient(monkeypatch, model, "end", keep_loops=False, listed_states=listed)
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


# ------------------------------------------------------------------ errors of sums on diagrams


# lemma: formal-sums
@pytest.mark.parametrize("units", [0.3, 6.0, 2.0**26])
def test_a_sum_on_diagrams_is_as_uncertain_as_all_states_of_its_block(
    monkeypatch: pytest.MonkeyPatch, units: float
) -> None:
    """Entries may be off to one side in one state, and their fraction to the other side in another."""
    far = Fraction(units) * UNIT
    largest = float(Fraction(1, 3) * (1 + far / 2))
    rows = [[(1, 0.5), (2, 0.5)], [(3, 1 / 3), (1, 1.0)], [(3, largest), (1, 1.0)], [(3, 1.0)]]
    model = ExplicitModel(
        ModelType.CTMC,
        4,
        np.cumsum([0, *map(len, rows)]),
        np.array([j for row in rows for j, _ in row]),
        np.array([v for row in rows for _, v in row]),
        np.array([True, False, False, False]),
        labels={"end": np.array([False, False, False, True])},
        rewards=(ExplicitReward("r", states=np.ones(4)),),
        value_units=units,
    )
    found = listed_quotient(monkeypatch, model, "end", listed_states=0)
    if units > 1:
        assert found.n_states == 3
    told = Fraction(found.value_units) * UNIT
    value = next(Fraction(v) for v in found.values.tolist() if 0.3 < v < 0.4)
    for double in (Fraction(1 / 3), Fraction(largest)) if units > 1 else (Fraction(1 / 3),):
        for sign in (-1, 1):
            assert abs(double * (1 + sign * far) - value) <= told * value
    # What the double of one state may stand for, the fraction next to that, and that rounded to a double.
    meant = 2 * far / (1 - far)
    assert told >= meant * (1 + UNIT) + UNIT


def test_exact_sums_on_diagrams_are_told_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    reward = ExplicitReward("r", states=np.array([0.0, 0.1, 0.1, 0.0]))
    found = listed_quotient(monkeypatch, fork(ModelType.DTMC, reward), "end", listed_states=0)
    assert (found.n_states, found.value_units, found.rewards[0].units) == (3, 0.0, 0.0)
    assert 0.1 in found.rewards[0].states.tolist()


# lemma: formal-sums
def test_sums_on_diagrams_that_no_double_is_are_told_inexact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of exact entries: one and the least double beside it, in two states that differ from each other."""
    rows = [[(2, 1.0), (3, 2.0**-60)], [(2, 1.0), (3, 2.0**-60)], [(0, 1.0)], [(0, 1.0)]]
    model = ExplicitModel(
        ModelType.CTMC,
        4,
        np.cumsum([0, *map(len, rows)]),
        np.array([j for row in rows for j, _ in row]),
        np.array([v for row in rows for _, v in row]),
        np.array([True, False, False, False]),
        labels={"end": np.array([False, False, True, True])},
        rewards=(ExplicitReward("r"),),
    )
    found = listed_quotient(monkeypatch, model, "end", listed_states=0)
    assert found.n_states == 2 and found.value_units >= 1


# lemma: formal-sums
def test_every_error_behind_rewards_on_diagrams_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rewards of one state and of another, of rates out of a sum, of additions and of rounding."""
    reward = ExplicitReward("r", choices=np.array([0.0, 0.3, 0.1 + 0.2, 0.0]), units=6.0)
    model = fork(ModelType.CTMC, reward, 40.0, 3.0)
    earned = symbolic_reward(compressed(model), 0).choices[0]
    assert earned is not None and earned.units >= 6.0
    found = listed_quotient(monkeypatch, model, "end", listed_states=0)
    (own,) = found.rewards
    assert found.value_units >= 2 * 40.0 + 1
    assert own.units > 2 * earned.units + 1 + found.value_units + 2 + 1


LAYERS = """mdp
module m
  x : [0..3];
  [a] x<2 -> 0.5:(x'=2) + 0.5:(x'=3);
  [b] x<2 -> 0.1+0.2:(x'=2) + 0.7:(x'=3);
  [] x>1 -> true;
endmodule
init true endinit
rewards [a] x<2 : 1; [b] x<2 : 0.1*0.3*0.7*0.9; endrewards
"""


# lemma: formal-sums
def test_choices_of_all_layers_are_as_uncertain_as_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """One layer has numbers that are doubles, the other one has rounded ones."""
    model = hybrid.parse(LAYERS + 'label "two" = x=2;')
    listed: list[ExplicitModel] = []

    def keep(found: ExplicitModel) -> object:
        listed.append(found)
        return compressed(found)

    monkeypatch.setattr(sys.modules["hybrid.models.lumping.quotient"], "compressed", keep)
    sets = [super(hybrid.Model, model).states(model.source.labels[0].expression)]
    any_quotient(model, sets, [0], listed=0)
    (found,) = listed
    units = [layer.matrix.units for layer in model.layers]
    earned = [0.0 if own is None else own.units for own in symbolic_reward(model, 0).choices]
    assert min(units) == min(earned) == 0 and max(units) > 0 and max(earned) > 0
    assert (found.n_states, found.n_choices) == (3, 4)
    assert found.value_units >= 2 * max(units) and found.rewards[0].units >= 2 * max(earned) + 1
    assert np.unique(found.rewards[0].choices).tolist() == [0.0, 0.0189, 1.0]


def test_sums_below_normal_doubles_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rounding is more than the proof on diagrams knows."""
    model = fork(ModelType.CTMC, ExplicitReward("r", states=np.array([0.0, 1.0, 1.0, 0.0])))
    values = model.values.copy()
    values[:2] = 2.0**-1010
    made = compressed(replace(model, values=values))
    label = next(label for label in made.source.labels if label.name == "end")
    found = any_quotient(made, [made.states(label.expression)], [0], listed=0)
    assert found.reduction.made_from == "list"
