"""Long-run ratios of two rewards: what one earns in the long run for each unit of the other.

In a bottom component of a chain it is the quotient of the two averages.  Of an end component let ``f(x)`` be
the best average of ``a - x b``, a and b being the rewards.  It falls as x grows, and is zero at the best
ratio (W. Dinkelbach, On nonlinear fractional programming, 1967).  So bounds on ``f(x)`` are bounds on the
ratio, wherever x comes from: here from secants, and from bisection where these do not help.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.long_run import Gains, average_reward, over_components
from hybrid.analysis.long_run_choices import (
    BestAverages,
    EndComponentAverages,
    Vector,
    optimal_values,
    policy_at,
    rewards_of_choices,
)
from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.rewards import no_ratio, refuse_free_components, reward_units
from hybrid.base.directed_rounding import GREATEST, added, divided
from hybrid.base.errors import NotConvergedError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import RewardOf
from hybrid.matrix.operators.rounding import TINIEST, scaled_bounds
from hybrid.matrix.space.base import Criterion, Status
from hybrid.matrix.space.bounded_solution import UNIT, WIDEST, middle_of
from hybrid.matrix.space.choice_operator import Policy
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import StateIndex

_WHAT = "long-run ratios"
_SHARE = 0.25  # of epsilon for averages: the distances of bounds add up
_COARSE = 0.1  # epsilon of averages of which the order of magnitude is enough
_ROUNDS = 100  # numbers x that are tried
_STALE = 6  # of them in a row that do not halve the distance of bounds: rounding is all that is left


def ratio_averages(a: OperatorQuery) -> StateValues:
    """Return, for every state, the expected long-run ratio of two rewards, of an MDP the optimal one.

    Refused where the average of the second reward may be zero. Time: of a chain two averages a component; of
    an MDP one of all components for every x, some ten in most models.
    """
    model, options, work = a.model, replace(a.options, epsilon=_SHARE * a.options.epsilon), a.work
    places = a.formula.place, a.formula.target.divisor.place
    if model.is_mdp:
        if model.communicator.size > 1:
            raise UnsupportedError(
                "long-run ratios of an MDP are not found in parts by this version: choose one process "
                "without parts"
            )
        refuse_free_components(model, places[1])
        above, below = (rewards_of_choices(model, place) for place in places)
        ratios = _EndComponentRatios(model, a.options, a.work).ratios(
            above, below, a.maximise, a.maker is not None
        )
        values = optimal_values(ratios, a.maximise, a.options, a.work, a.maker)
        return a.scope.of_values(_off_by(values, *(reward_units(model, place) for place in places)))
    earned, spent = (partial(average_reward, model, place, options, work) for place in places)

    def gains(component: Node) -> Gains:
        below = spent(component)
        if not below[0] > 0.0 or below[1] <= 0.0:  # estimates have no bounds
            raise no_ratio("a bottom component")
        return _quotient(earned(component), below)

    return a.scope.of_values(over_components(model, gains, options, work))


def _quotient(above: Gains, below: Gains) -> Gains:
    """Return one average over another one, which is positive."""
    top, bottom = np.array(above), np.array(below)
    # lemma: ratios
    lower = divided(top[1:2], bottom[2:] if top[1] >= 0.0 else bottom[1:2])[0]
    # lemma: ratios
    upper = divided(top[2:], bottom[1:2] if top[2] >= 0.0 else bottom[2:])[1]
    value = float(top[0] / bottom[0])
    if np.isnan(lower[0] + upper[0]):
        return value, np.nan, np.nan
    return min(max(value, float(lower[0])), float(upper[0])), float(lower[0]), float(upper[0])


def _off_by(found: StateValues, above: float, below: float) -> StateValues:
    """Return ratios with bounds for rewards that are off by relative errors, in units of rounding.

    With errors x and y a ratio is off by at most ``(1 + x) / (1 - y)``, up to ``1 + 2 (x + y)`` for y <= 1/2.
    """
    if np.isnan(found.lower).any():
        return found
    # lemma: ratios, entry-units
    return scaled_bounds(found, 2.0 * (above + below) if below * UNIT <= 0.5 else np.inf)


class _EndComponentRatios(EndComponentAverages):
    """Finds the best ratios of end components by averages of what is left of the first reward."""

    def ratios(self, above: RewardOf, below: RewardOf, maximise: bool, choosing: bool) -> BestAverages:
        """Return the best ratios of what choices earn over what they spend, beginning with those of zero."""
        self._above, self._below, self._maximise, self._choosing = above, below, maximise, choosing
        self._policy: tuple[StateIndex, Policy] | None = None
        _, most = self.ends.extremes(above)
        is_zero = (most == 0.0) if maximise else np.ones(len(most), np.bool_)
        # What is earned is not negative: -1 stands for what no choice earns.
        tight, decided = self._attained(above, np.where(is_zero, 0.0, -1.0))
        lower, upper = np.zeros(len(most)), np.zeros(len(most))
        if not decided.all():
            low, high = (found[~decided] for found in self.ends.extremes(below))
            lower[~decided], upper[~decided] = self._search(~decided, most[~decided], low, high)
        return BestAverages(self.ends, lower, upper, ~decided, tight, self._policy)

    def _search(
        self, is_open: NDArray[np.bool_], most: Vector, low: Vector, high: Vector
    ) -> tuple[Vector, Vector]:
        """Return bounds on the best ratios of the open components.

        `most` is what a choice earns at most, `low` and `high` what it spends at least, and at most.

        Lemma: ratios (docs/averages.md).
        """
        criterion = self._options.criterion
        self._index, self._component, self._matrices = self._open(is_open)
        if (low <= 0.0).any():
            spent = self._matrices.system(self._below, False, None)
            coarse = replace(criterion, epsilon=_COARSE, absolute=False)
            found = self._iterated(spent, self._component, low, high, coarse)
            low = np.maximum(low, found.lower)  # lemma: ratios
            if (low <= 0.0).any():
                ended = found.status is Status.INTERRUPTED
                raise NotConvergedError(_WHAT, found.status if ended else Status.NO_BOUND, 1, np.inf)
        # lemma: ratios
        lower, upper = np.zeros(len(most)), np.minimum(divided(most, low)[1], GREATEST)
        x, before, stale, narrowest, widest = lower, None, 0, np.inf, np.inf
        for _ in range(_ROUNDS):
            least, greatest, is_ended = self._best_at(x, most, low, high)
            # lemma: ratios
            below = added(x, divided(least, np.where(least >= 0.0, high, low))[0])[0]
            # lemma: ratios
            above = added(x, divided(greatest, np.where(greatest >= 0.0, low, high))[1])[1]
            self._keep_policy((below > lower) if self._maximise else (above < upper))
            lower, upper = np.maximum(lower, below), np.minimum(upper, above)
            middle, width = middle_of(lower, upper), upper - lower
            widest = float(np.max(width / (1.0 if criterion.absolute else middle)))
            with np.errstate(divide="ignore"):
                distance = float(np.max(width / lower))
            stale = 0 if distance < 0.5 * narrowest else stale + 1
            narrowest = min(narrowest, distance)
            if widest <= criterion.epsilon or is_ended or stale > _STALE:
                break
            now = x, middle_of(least, greatest)
            # Bounds of different orders of magnitude approach by their geometric mean.
            x = np.where(upper <= 4.0 * lower, middle, np.sqrt(lower) * np.sqrt(upper))
            x = np.where(x > 0.0, x, middle)
            if before is not None and stale < 2:
                x = _secant(before, now, lower, upper, x)
            before = now
        if not is_ended and not widest <= max(WIDEST, criterion.epsilon):
            raise NotConvergedError(_WHAT, Status.NO_BOUND, _ROUNDS, widest)
        return lower, upper

    def _best_at(self, x: Vector, most: Vector, low: Vector, high: Vector) -> tuple[Vector, Vector, bool]:
        """Return bounds on the best average of ``a - x b``, and whether the iteration was ended before.

        A multiple of x is added, so that no choice earns less than zero. A power of two is the unit, so that
        the distance of bounds is the same for ratios of all sizes.
        """
        criterion, index, component = self._options.criterion, self._index, self._component
        # lemma: ratios
        shift = np.where(x > 0.0, np.nextafter(x * high, np.inf), 0.0)
        size = np.where(x > 0.0, (1.0 if criterion.absolute else x) * low, most)
        # Of sizes below normal doubles the power would be infinite.
        scale = np.exp2(-np.floor(np.log2(np.maximum(size, np.finfo(np.float64).tiny))))

        def gain(layer: int, rows: StateIndex) -> Vector:
            own = component[self._model.indicator(rows.states, index)]
            spent = x[own] * self._below(layer, rows)
            return (self._above(layer, rows) + (shift[own] - spent)) * scale[own]

        self._operator = self._matrices.system(gain, self._maximise, None)
        # lemma: ratios
        top = np.nextafter((most + shift) * (1.0 + 4.0 * UNIT), np.inf) * scale
        own = Criterion(_SHARE * criterion.epsilon, True, criterion.max_iterations)
        found = self._iterated(self._operator, component, np.zeros(len(most)), top, own)
        self._bias = found.bias
        # Three roundings, each of at most the sum, and what underflow adds to them.
        # lemma: ratios, rounding, underflow
        off = 8.0 * UNIT * (most + shift) + TINIEST * np.maximum(1.0, 1.0 / scale)
        least = added(added(found.lower / scale, -shift)[0], -off)[0]  # lemma: ratios
        greatest = added(added(found.upper / scale, -shift)[1], off)[1]  # lemma: ratios
        return least, greatest, found.status is Status.INTERRUPTED

    def _keep_policy(self, better: NDArray[np.bool_]) -> None:
        """Keep the choices of the last step where it has the better bound on the safe side."""
        if not self._choosing:
            return
        policy = policy_at(self._operator, self._bias)
        if self._policy is not None:
            policy = np.where(better[self._component], policy, self._policy[1])
        self._policy = self._index, policy


def _secant(
    before: tuple[Vector, Vector], now: tuple[Vector, Vector], lower: Vector, upper: Vector, otherwise: Vector
) -> Vector:
    """Return where the line through two points is zero, `otherwise` where that is beyond the bounds."""
    (x, y), (other, value) = now, before
    with np.errstate(all="ignore"):
        found = x - y * (x - other) / (y - value)
    return np.where((found > lower) & (found < upper), found, otherwise)
