"""The objectives of `multi(...)`: what is asked for, which way is better, which bound is to be met."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import UnsupportedError
from hybrid.properties.tree import (
    ConditionalPath,
    Cumulative,
    MultiObjective,
    Probability,
    Reward,
)
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import Expression, Literal

MOST_OBJECTIVES = 12
"""Objectives of one property."""


@dataclass(frozen=True)
class Objective:
    """One objective.

    Attributes
    ----------
    text : str
    path : Expression or None
        The path formula of a probability, or the automaton of a file; None for a reward.
    structure : int or None
        The reward structure, from 0.
    steps : int or None
        For how many steps the reward counts; None for ever.
    maximise : bool
        Whether more is better.
    bound : Fraction or None
        What is to be reached, or not to be exceeded; None where a value is asked for.
    """

    text: str
    path: Expression | None
    structure: int | None
    steps: int | None
    maximise: bool
    bound: Fraction | None

    @property
    def demand(self) -> Fraction | None:
        """The bound where all objectives are maximised: of 1 - P for a least P, of -R for a least R."""
        if self.bound is None or self.maximise:
            return self.bound
        return (1 - self.bound) if self.path is not None else -self.bound  # lemma: turned

    def shown(self, lower: float, upper: float) -> tuple[float, float]:
        """Return bounds on the objective itself from bounds on what is maximised in its place."""
        if self.path is None:
            found = (lower, upper) if self.maximise else (0.0 - upper, 0.0 - lower)
            return max(found[0], 0.0), found[1]
        if not self.maximise:
            lower, upper = rounded_down(1 - Fraction(upper)), rounded_up(1 - Fraction(lower))  # lemma: turned
        return max(lower, 0.0), min(upper, 1.0)


def _rational(value: float, text: str) -> Fraction:
    """Return the number that a bound stands for."""
    number = real_of(value)
    if not isinstance(number, (int, Fraction)):
        raise UnsupportedError(f"multi: expected a rational number as a bound, got {text}; write a decimal")
    return Fraction(number)


def objectives_of(formula: MultiObjective) -> list[Objective]:
    """Return the objectives of a resolved property.

    Raises
    ------
    UnsupportedError
        A reward that is neither gathered for ever nor for some steps; too many objectives.
    """
    if len(formula.objectives) > MOST_OBJECTIVES:
        raise UnsupportedError(
            f"multi: expected at most {MOST_OBJECTIVES} objectives, got {len(formula.objectives)}"
        )
    return [_objective(e, text) for e, text in zip(formula.objectives, formula.texts, strict=True)]


def _objective(e: Expression, text: str) -> Objective:
    assert isinstance(e, (Probability, Reward))
    if e.comparison is None:
        maximise, bound = e.optimum == "max", None
    else:
        assert isinstance(e.threshold, Literal)
        maximise, bound = e.comparison == ">=", _rational(e.threshold.value, text)
    if isinstance(e, Probability):
        if isinstance(e.path, ConditionalPath):
            raise UnsupportedError(f"multi: conditional probabilities are no objectives, got {text}")
        return Objective(text, e.path, None, None, maximise, bound)
    if e.discount is not None:
        raise UnsupportedError(
            f"multi: discounted rewards are no objectives, got {text}; take the discount out"
        )
    if not isinstance(e.target, Cumulative):
        raise UnsupportedError(
            f"multi: expected a reward that is gathered for ever (C) or for some steps (C<=k), got {text}; "
            "rewards until a set is reached, at a step and in the long run are no objectives: let the model "
            "earn nothing from there on"
        )
    steps = None
    if e.target.time is not None:
        assert isinstance(e.target.time, Literal)
        steps = int(e.target.time.value)
    return Objective(text, None, e.index, steps, maximise, bound)
