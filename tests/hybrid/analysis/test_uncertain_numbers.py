"""Bounds allow for what numbers of a model are off by: they hold for all models that may be meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import hybrid
from hybrid.models.interchange import ExplicitModel, ExplicitReward
from hybrid.models.interchange.compressing import compressed
from mtbdd.language.syntax import ModelType

UNITS = 2.0**24
SHARE = UNITS * 2.0**-53
"""Two in a billion: far beyond rounding, far below what rows may add up to beside 1."""
CLOSE = 1e-13

ROWS = [
    [(0, 0.5), (1, 0.125), (2, 0.25), (3, 0.125)],
    [(0, 0.25), (3, 0.75)],
    [(1, 0.5), (2, 0.25), (4, 0.25)],
    [(3, 1.0)],
    [(4, 1.0)],
]
OTHER = {0: [(2, 0.75), (4, 0.25)], 2: [(0, 0.5), (3, 0.5)]}
"""What else a process may choose."""
TURNING = [*ROWS[:3], [(0, 0.5), (4, 0.5)], [(0, 1.0)]]
"""No state is left for good."""


def made(
    kind: str, rows: list[list[tuple[int, float]]], reward: ExplicitReward, units: float = 0.0
) -> ExplicitModel:
    """A model of five states; a process has two choices in two of them."""
    choices = [[row, *([OTHER[s]] if kind == "MDP" and s in OTHER else [])] for s, row in enumerate(rows)]
    listed = [row for own in choices for row in own]
    n = len(rows)
    return ExplicitModel(
        ModelType[kind],
        n,
        np.cumsum([0, *map(len, listed)]),
        np.array([j for row in listed for j, _ in row]),
        np.array([v for row in listed for _, v in row]),
        np.arange(n) == 0,
        np.cumsum([0, *map(len, choices)]) if kind == "MDP" else None,
        labels={"a": np.arange(n) == 3, "b": np.arange(n) == 4, "end": np.arange(n) > 2},
        rewards=(reward,),
        value_units=units,
    )


def meant(model: ExplicitModel, count: int = 3) -> Iterator[ExplicitModel]:
    """Yield models with numbers at the ends of what those of a model may mean."""

    def moved(numbers: np.ndarray | None, units: float, k: int) -> np.ndarray | None:
        if numbers is None:
            return None
        # All a little more; then each in some direction, and all in the other one.
        sign = np.ones(numbers.size)
        if k:
            drawn = np.random.default_rng(numbers.size).choice([-1.0, 1.0], numbers.size)
            sign = np.where(numbers < 0, -1.0, 1.0) if (numbers < 0).any() else drawn
            sign = sign * (-1.0) ** k
        return numbers * (1.0 + sign * 0.999 * units * 2.0**-53)

    (reward,) = model.rewards
    for k in range(count):
        own = ExplicitReward("r", moved(reward.states, reward.units, k), None)
        values = moved(model.values, model.value_units, k)
        assert values is not None
        yield replace(model, values=values, value_units=0.0, rewards=(own,))


def check(model: ExplicitModel, question: str, **options: object) -> hybrid.Answer:
    found = hybrid.check(compressed(model), question, backend="cpu", epsilon=1e-12, **options)  # type: ignore[arg-type]
    return found


def holds(model: ExplicitModel, question: str) -> None:
    """Check that bounds hold for all that may be meant, and that they are no wider than by some errors."""
    answer = check(model, question)
    assert answer.lower is not None and answer.upper is not None
    for other in meant(model):
        value = check(other, question).value
        assert answer.lower - CLOSE <= value <= answer.upper + CLOSE
    assert answer.upper - answer.lower <= 1000 * SHARE * max(answer.upper, 1.0)


NO_REWARD = ExplicitReward("r", states=np.array([1.0, 2.0, 3.0, 0.0, 0.0]))
EARNED = ExplicitReward("r", states=np.array([1.0, 2.0, 3.0, 0.0, 0.0]), units=UNITS)
SIGNED = ExplicitReward("r", states=np.array([1.0, -2.0, 3.0, 0.0, 0.0]), units=UNITS)


# lemma: rounding, steps
@pytest.mark.parametrize(
    ("kind", "question"),
    [
        ("DTMC", 'P=? [ F "a" ]'),
        ("DTMC", 'P=? [ X "a" ]'),
        ("DTMC", 'P=? [ F<=4 "a" ]'),
        ("DTMC", 'P=? [ F{"r"}<=9 "a" ]'),
        ("DTMC", 'R=? [ F "end" ]'),
        ("DTMC", "R=? [ I=3 ]"),
        ("DTMC", 'S=? [ "a" ]'),
        ("CTMC", 'P=? [ F "a" ]'),
        ("CTMC", 'P=? [ F<=2 "a" ]'),
        ("CTMC", 'R=? [ F "end" ]'),
        ("CTMC", "R=? [ C<=2 ]"),
        ("MDP", 'Pmax=? [ F "a" ]'),
        ("MDP", 'Pmin=? [ F "end" & "a" ]'),
        ("MDP", 'Pmax=? [ X "b" ]'),
        ("MDP", 'Pmax=? [ F<=4 "a" ]'),
        ("MDP", 'Pmax=? [ F{"r"}<=9 "a" ]'),
        ("MDP", 'Rmin=? [ F "end" ]'),
    ],
)
def test_bounds_hold_for_all_that_entries_may_mean(kind: str, question: str) -> None:
    holds(made(kind, ROWS, NO_REWARD, UNITS), question)


@pytest.mark.parametrize("question", ['S=? [ "b" ]', "R=? [ S ]"])
@pytest.mark.parametrize("kind", ["DTMC", "CTMC", "MDP"])
def test_averages_hold_for_all_that_entries_may_mean(kind: str, question: str) -> None:
    for word in ("min", "max") if kind == "MDP" else ("",):
        holds(made(kind, TURNING, NO_REWARD, UNITS), question.replace("=", f"{word}=", 1))


# lemma: entry-units, averages-below-zero
@pytest.mark.parametrize(
    ("kind", "question", "reward"),
    [
        ("DTMC", "R=? [ I=3 ]", EARNED),
        ("DTMC", "R=? [ I=3 ]", SIGNED),
        ("DTMC", "R=? [ I=0 ]", EARNED),
        ("DTMC", "R=? [ C<=3 ]", EARNED),
        ("DTMC", "R=? [ C<=3 ]", SIGNED),
        ("DTMC", 'R=? [ F "end" ]', EARNED),
        ("DTMC", 'R=? [ F "end" ]', SIGNED),
        ("DTMC", "R=? [ C ]", EARNED),
        ("CTMC", "R=? [ I=2 ]", EARNED),
        ("CTMC", "R=? [ I=2 ]", SIGNED),
        ("CTMC", "R=? [ C<=2 ]", EARNED),
        ("CTMC", 'R=? [ F "end" ]', EARNED),
        ("MDP", "Rmax=? [ I=3 ]", EARNED),
        ("MDP", "Rmax=? [ I=0 ]", EARNED),
        ("MDP", "Rmin=? [ C<=3 ]", EARNED),
        ("MDP", "Rmax=? [ C ]", EARNED),
        ("MDP", 'Rmax=? [ F "end" ]', EARNED),
        ("MDP", 'Rmin=? [ F "end" ]', EARNED),
        ("DTMC", "R=? [ Cdiscount=0.9 ]", EARNED),
        ("MDP", "Rmax=? [ Cdiscount=0.9 ]", EARNED),
        ("MDP", "Rmin=? [ S ]", replace(EARNED, states=np.array([1.0, 2.0, 3.0, 4.0, 5.0]))),
        ("MDP", "Rmin=? [ S ]", replace(EARNED, states=np.array([1.0, 2.0, 3.0, -4.0, -5.0]))),
    ],
)
def test_bounds_hold_for_all_that_rewards_may_mean(kind: str, question: str, reward: ExplicitReward) -> None:
    holds(made(kind, ROWS, reward), question)


@pytest.mark.parametrize("reward", [EARNED, SIGNED], ids=["gains", "both signs"])
@pytest.mark.parametrize("kind", ["DTMC", "CTMC"])
def test_averages_hold_for_all_that_rewards_may_mean(kind: str, reward: ExplicitReward) -> None:
    holds(made(kind, TURNING, reward), "R=? [ S ]")
    alike = replace(reward, states=np.full(5, 3.0))
    holds(made(kind, TURNING, alike), "R=? [ S ]")
    if kind == "DTMC":
        holds(made("MDP", TURNING, reward), "Rmax=? [ S ]")
