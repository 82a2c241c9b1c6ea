"""Distributions of what a chain earns until a set is reached: between bounds, with quantiles and tails."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.reward_bounded import BudgetSweep, check_bounded_method
from hybrid.analysis.run.options import CheckOptions, SolutionKeywords, chosen_options
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import until_probabilities
from hybrid.base.directed_rounding import added, rounded_down, rounded_up
from hybrid.base.errors import OptionError, PropertyError, UnsupportedError
from hybrid.base.figures import check_ending, new_figure, save_figure, shown_text, styled
from hybrid.base.state_values import StateValues
from hybrid.checking.checker import Checker
from hybrid.matrix.space.base import Clock
from hybrid.properties import parse_properties, resolve_properties
from hybrid.properties.registry import REACHED, asked_quantity
from hybrid.properties.tree import Reward
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import split_by_reward
from mtbdd.offset.states import index_states

Vector = NDArray[np.float64]
Bounds = tuple[float, float]

_FINER = 1000.0  # of epsilon: what budgets leave adds up, and how many there will be is not known
TAIL = 1e-6
"""Probability that a distribution may leave out, by default."""


@dataclass(frozen=True, eq=False, repr=False)
class Distribution:
    """The distribution of the reward that a chain earns until it reaches a set.

    Attributes
    ----------
    text : str
        The question.
    unit : Fraction
        The greatest number that all rewards are multiples of.
    lower, upper : ndarray of float64, shape (n,)
        Bounds on the probability to reach the set for at most k units, k from 0.
    reached : tuple of float
        Bounds on the probability to reach the set at all.
    mean : tuple of float
        Bounds on the expected reward; infinite where the set may be missed.
    statistics : SolveStatistics
    """

    text: str
    unit: Fraction
    lower: Vector
    upper: Vector
    reached: Bounds
    mean: Bounds
    statistics: SolveStatistics

    @cached_property
    def rewards(self) -> Vector:
        """The multiples of the unit that `lower` and `upper` are about, shape (n,), as doubles."""
        return np.array([float(k * self.unit) for k in range(len(self.lower))])

    @cached_property
    def masses(self) -> tuple[Vector, Vector]:
        """Bounds on the probability to earn each of the rewards, shape (n,)."""
        before = np.concatenate(([0.0], self.lower[:-1])), np.concatenate(([0.0], self.upper[:-1]))
        low, high = added(self.lower, -before[1])[0], added(self.upper, -before[0])[1]  # lemma: arithmetic
        return np.maximum(low, 0.0), np.minimum(high, 1.0)

    def quantile(self, probability: float) -> Bounds:
        """Return bounds on the least reward that is enough with a probability from 0 to 1, 0 excluded.

        The upper one is infinite where the table ends before; so is the lower one where none will do.
        """
        if not 0.0 < probability <= 1.0:
            raise OptionError(f"quantile: expected a probability above 0, up to 1, got {probability!r}")
        early, late = (np.flatnonzero(part >= probability) for part in (self.upper, self.lower))
        lower = int(early[0]) if early.size else len(self.lower)
        found = np.inf if self.reached[1] < probability else rounded_down(lower * self.unit)
        return found, rounded_up(int(late[0]) * self.unit) if late.size else np.inf

    def tail_mean(self, level: float) -> Bounds:
        """Return bounds on the conditional value at risk, the mean of what the worst share `1 - level` earns.

        For every t, ``t + E max(X - t, 0) / (1 - level)`` is no less, and for the quantile of the level it is
        equal (R. T. Rockafellar and S. Uryasev, Optimization of conditional value-at-risk, 2000).
        """
        if not 0.0 <= level < 1.0:
            raise OptionError(f"tail mean: expected a level from 0 on, below 1, got {level!r}")
        if not np.isfinite(self.mean[1]):
            return (np.inf if self.reached[1] < 1.0 else self.mean[0]), np.inf
        share, (least, most) = 1 - Fraction(level), map(Fraction, self.mean)
        lowest, highest = self.quantile(level) if level > 0.0 else (0.0, 0.0)
        lower, upper = Fraction(0), most / share
        below = above = Fraction(0)  # bounds on the mean of min(X, t)
        best: Fraction | None = None
        for k in range(len(self.lower) + 1):
            t = k * self.unit
            upper = min(upper, t + (most - below) / share)  # lemma: arithmetic
            own = t + (least - above) / share
            best = own if best is None else min(best, own)  # lemma: arithmetic
            if k < len(self.lower):
                below += self.unit * (1 - Fraction(float(self.upper[k])))  # lemma: arithmetic
                above += self.unit * (1 - Fraction(float(self.lower[k])))  # lemma: arithmetic
        # The quantile is among the numbers tried, unless the table ends before.
        if np.isfinite(highest) and best is not None:
            lower = best
        lower = max(lower, least, Fraction(lowest) if np.isfinite(lowest) else Fraction(0))
        return rounded_down(min(lower, upper)), rounded_up(upper)

    def record(self, quantiles: Sequence[float] = (), levels: Sequence[float] = ()) -> dict[str, Any]:
        """Return the distribution as plain JSON values, with quantiles and means of tails."""
        return {
            "property": self.text, "unit": str(self.unit), "reached": list(self.reached),
            "mean": _plain(self.mean),
            "quantiles": [{"probability": p, "bounds": _plain(self.quantile(p))} for p in quantiles],
            "tail_means": [{"level": p, "bounds": _plain(self.tail_mean(p))} for p in levels],
            "rewards": self.rewards.tolist(), "lower": self.lower.tolist(), "upper": self.upper.tolist(),
        }  # fmt: skip

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a table: rewards, bounds on the probability of each, and of each or less."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file)
            rows.writerow(["reward", "lower", "upper", "at_most_lower", "at_most_upper"])
            rows.writerows(zip(self.rewards, *self.masses, self.lower, self.upper, strict=True))

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the probability of each reward or less, as .png, .svg or .pdf."""
        check_ending(os.fspath(path))
        figure, (axes,) = new_figure(6.4, 4.2)
        with styled():
            axes.fill_between(self.rewards, self.lower, self.upper, step="post", alpha=0.4)
            axes.step(self.rewards, 0.5 * (self.lower + self.upper), where="post")
            axes.set_ylim(0.0, 1.0)
            axes.set_xlabel("reward")
            axes.set_ylabel("probability of as much, or less")
            axes.set_title(shown_text(self.text))
        save_figure(figure, os.fspath(path))

    def __repr__(self) -> str:
        last = float(self.rewards[-1])
        return f"<Distribution {self.text}: rewards 0 to {last:g} in units of {self.unit}>"


def _plain(bounds: Bounds) -> list[float | str]:
    """Return bounds as JSON has them."""
    return [b if np.isfinite(b) else "Infinity" for b in bounds]


def distribution(
    model: SymbolicModel,
    prop: str,
    constants: Mapping[str, bool | int | float] | None = None,
    *,
    tail: float = TAIL,
    options: CheckOptions | None = None,
    **overrides: Unpack[SolutionKeywords],
) -> Distribution:
    """Return the distribution of the reward that a chain earns until it reaches a set.

    Parameters
    ----------
    model : SymbolicModel
        A DTMC, or a CTMC whose transitions alone earn.
    prop : str
        Its mean, ``R{"name"}=? [ F states ]``.
    constants : mapping, optional
        Values of constants that the property's text declares.
    tail : float
        Probability that may be left out: the table ends where no more than that is beyond.
    options : CheckOptions, optional
        How probabilities are found; the table has `max_iterations` rows at most.
    **overrides
        The attributes of `hybrid.CheckOptions`, which go before `options`.

    Returns
    -------
    Distribution

    Raises
    ------
    hybrid.HybridError
        As from `hybrid.check`; of an MDP, of several initial states, and of rewards that no bound can be put
        on.

    Notes
    -----
    Time: that of `hybrid.check` for one bound on the reward as great as the last row.

    Examples
    --------
    >>> import hybrid
    >>> model = hybrid.load("brp.prism", constants={"N": 4, "MAX": 2})              # doctest: +SKIP
    >>> hybrid.distribution(model, 'R{"sent"}=? [ F s=5 ]').quantile(0.9)           # doctest: +SKIP
    """
    chosen = chosen_options("distribution", options, overrides)
    if not 0.0 < tail < 1.0:
        raise OptionError(f"tail: expected a probability between 0 and 1, got {tail!r}")
    check_bounded_method(chosen)
    properties = resolve_properties(parse_properties(prop), model.source, constants).properties
    formula = properties[0].formula if len(properties) == 1 else None
    if not isinstance(formula, Reward) or asked_quantity(formula) is not REACHED or formula.comparison:
        raise PropertyError('distribution: expected one property R{"name"}=? [ F states ], without a bound')
    if model.is_mdp or model.communicator.size > 1:
        raise UnsupportedError(
            "distribution: expected a chain, in one process; an MDP has one for every scheduler: ask for "
            "that of model.with_scheduler(...)"
        )
    starts = index_states(model.manager, model.initial).total
    if starts != 1:
        raise UnsupportedError(f"distribution: expected one initial state, got {starts}")
    split = split_by_reward(model, formula.place)
    checker, work = Checker(model, chosen), SolveStatistics()
    answer = checker.answer(properties[0])
    if answer.fault is not None:
        raise answer.fault
    target = checker.states(formula.target.right)  # type: ignore[attr-defined]
    first = int(np.flatnonzero(model.indicator(model.initial))[0])

    def bounds(found: StateValues) -> Bounds:
        return float(found.lower[first]), float(found.upper[first])

    always = bounds(until_probabilities(model, model.reachable, target, True, chosen, work))
    table = [always]
    if max(split.parts, default=0) > 0:
        epsilon = chosen.criterion.epsilon / _FINER
        sweep = BudgetSweep(model, split, model.reachable, target, True, chosen, work, epsilon)
        clock, table = Clock(None), []
        with clock.cancellable():
            while not table or not (
                table[-1][0] >= always[1] - tail
                or sweep.settled
                or sweep.ended
                or sweep.made >= chosen.criterion.max_iterations
            ):
                sweep.advance()
                table.append(bounds(sweep.values()))
    lower, upper = (np.array(part) for part in zip(*table, strict=True))
    # No probability is less than that of a lesser reward, nor more than that of a greater one.
    lower = np.maximum.accumulate(lower)
    upper = np.minimum(np.minimum.accumulate(upper[::-1])[::-1], always[1])
    assert isinstance(answer.lower, float) and isinstance(answer.upper, float)
    return Distribution(
        properties[0].text, split.unit, lower, upper, always, (answer.lower, answer.upper), work
    )
