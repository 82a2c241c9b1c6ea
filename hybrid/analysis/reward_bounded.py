"""Until within a bound on a reward: the budgets up to it, one after the other."""

from __future__ import annotations

import math
from fractions import Fraction

from hybrid.analysis.operator_values import Asked
from hybrid.analysis.reward_budgets import BudgetSweep
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.until import until_probabilities
from hybrid.base.errors import UnsupportedError
from hybrid.base.methods import ENCLOSING, advised
from hybrid.base.state_values import StateValues
from hybrid.matrix.space.base import Clock
from hybrid.properties.tree import RewardBound
from mtbdd.base.wording import option
from mtbdd.build.reward_split import split_by_reward
from mtbdd.diagrams.manager import Node
from mtbdd.language.rounded import real_of
from mtbdd.language.syntax import Literal


def reward_bounded_probabilities(a: Asked) -> StateValues:
    """Return the probability of a path operator with little enough earned before the end.

    Exact 0 and 1 where the graph decides.

    Raises
    ------
    UnsupportedError
        A method without bounds, or a bound of more units than iterations are allowed.
    RewardSplitError
        Rewards that no bound can be put on, see `mtbdd.build.reward_split.split_by_reward`.
    NotConvergedError

    Notes
    -----
    Time: that of as many steps as the bound has units of reward, see `BudgetSweep`; less if values settle.
    """
    return a.as_until(lambda safe, target, maximise: a.scope.of_values(_in_budget(a, safe, target, maximise)))


def _in_budget(a: Asked, safe: Node, target: Node, maximise: bool) -> StateValues:
    """Return the probability of ``safe U target`` with little enough earned before the target."""
    model, bound, options, work = a.model, a.path.bound, a.options, a.work
    check_bounded_method(options)
    assert bound.index is not None and isinstance(bound.most, Literal)
    split = split_by_reward(model, bound.index)
    if max(split.parts, default=0) == 0:
        return until_probabilities(model, safe, target, maximise, options, work)
    budget = units_of(bound, split.unit)
    most = options.criterion.max_iterations
    if budget >= most:
        raise UnsupportedError(
            f"a bound of {bound.most.value} on a reward that comes in units of {split.unit} takes "
            f"{budget + 1} sweeps over the matrix, one for every unit, and {most} are allowed: raise "
            f"{option('max-iters')}, or count the reward in greater units"
        )
    epsilon = options.criterion.epsilon / (2.0 * (budget + 1))
    sweep = BudgetSweep(model, split, safe, target, maximise, options, work, epsilon, budget)
    clock = Clock(work.progress, steps=budget + 1)
    with clock.gently():
        while sweep.made <= budget:
            sweep.advance()
            if sweep.settled:
                return sweep.values()
            if sweep.ended or (sweep.made <= budget and clock.tick(sweep.made, math.inf)):
                return sweep.later()
    return sweep.values()


def check_bounded_method(options: CheckOptions) -> None:
    """Refuse methods without bounds, by name.

    Raises
    ------
    UnsupportedError
    """
    if options.bounding_method() is None:
        raise UnsupportedError(
            f"the method {options.method} gives no bounds, and bounds on rewards go from one budget to the "
            f"next by them: choose {advised(ENCLOSING)}"
        )


def units_of(bound: RewardBound, unit: Fraction) -> int:
    """Return the greatest number of units that a bound allows."""
    assert isinstance(bound.most, Literal)
    exact = real_of(bound.most.value)
    if not isinstance(exact, (int, Fraction)):
        raise UnsupportedError("a bound on a reward must be a rational number; write it as a decimal")
    units = Fraction(exact) / unit
    return math.ceil(units) - 1 if bound.is_strict else math.floor(units)
