"""Until within a budget of reward, budget after budget: each is one system over the steps that earn nothing.

Let ``v_k`` be the probability to reach the target for at most k units of reward.  A step that earns r leads
from ``v_k`` to ``v_{k-r}``, so that ``v_k = opt over i of (A_i0 v_k + sum over r > 0 of A_ir v_{k-r})``, A_ir
the entries of layer i that earn r ([AHK03], [HJKQ20]).  Only the last values are kept, as many as the
greatest reward.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from hybrid.analysis.budget_system import BudgetSystem
from hybrid.analysis.choice_systems import note_steps
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.until import until_probabilities
from hybrid.base.check_options import ENCLOSING, advised
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.gained_choices import GainedChoices
from hybrid.matrix.operators.rounding import TINIEST
from hybrid.matrix.space.base import Clock, Watch
from hybrid.matrix.space.choice_operator import BOUND_VECTORS
from hybrid.matrix.space.workspace import Array, Workspace
from hybrid.properties.tree import RewardBound
from hybrid.solvers import Interval, Optimistic
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_reward
from mtbdd.diagrams.manager import Node
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import Literal

_MOST_SWEEPS = 64  # that steps without reward may take where they form no cycle
_ROUNDINGS = (
    80  # units behind factors, gains and sums; see `hybrid.matrix.operators.layer_choices.choice_slack`
)
_LEAST_EPSILON = 1e-14
_VECTORS = 12  # of bounds, gains and products beside those of the budgets


@dataclass(frozen=True, eq=False)
class BudgetValues:
    """What is known of one budget in the unknown states; arrays of the workspace, shape (n,), float64.

    `lower` and `upper` are bounds on the probability, `some` and `missed` have ones where it is positive and
    where it is less than 1, zeros elsewhere.
    """

    lower: Array
    upper: Array
    some: Array
    missed: Array


class BudgetSweep:
    """Goes from budget to budget, from 0 to `most` where that is known.

    The bounds of one budget may be `epsilon` apart beyond what budgets before it leave; the options have a
    method that gives bounds. `made` budgets are done: the present one is one less. All budgets from the
    present one have its values once it is `settled`; where an iteration `ended` before its time the present
    bounds hold, and there are no more.

    Time of a budget: a product with every part of the matrix for each bound, and the sweeps of the part that
    earns nothing. Memory: four vectors for every unit of the greatest reward.
    """

    def __init__(
        self,
        model: SymbolicModel,
        split: RewardSplit,
        safe: Node,
        target: Node,
        maximise: bool,
        options: CheckOptions,
        work: Work,
        epsilon: float,
        most: int | None = None,
    ) -> None:
        self._model, self._work = model, work
        self._all = BudgetSystem(model, split, safe, target, maximise, options)
        size, self._greatest = self._all.unknown.size, self._all.greatest
        kept = self._greatest if most is None else min(self._greatest, most)
        require_memory(
            8 * (4 * kept + BOUND_VECTORS + _VECTORS) * size,
            f"the last {kept} budgets of {size} states",
            "count the reward in greater units, or choose smaller constants",
        )
        self.made, self.settled, self.ended = 0, self._all.unknown.total == 0, False
        self._window: deque[BudgetValues] = deque(maxlen=self._greatest)
        self._same = self._same_missed = 0
        criterion = replace(options.criterion, epsilon=min(max(epsilon, _LEAST_EPSILON), 0.5))
        self._method = Interval(criterion) if options.method == "interval" else Optimistic(criterion)

    # ------------------------------------------------------------------ budgets

    @property
    def budget(self) -> int:
        """The present budget in units."""
        return self.made - 1

    def values(self) -> StateValues:
        """Return the probabilities of the present budget in every state."""
        if self._all.unknown.total == 0:
            return StateValues.exact(self._all.known)
        now, host = self._window[0], self._space.to_host
        lower, upper = np.array(host(now.lower)), np.array(host(now.upper))
        some, missed = host(now.some) > 0.0, host(now.missed) > 0.0
        inside = self._all.inside
        if not bool((some & missed).any()):
            return StateValues.exact(StateValues.exact(lower).spread(inside, self._all.known).values)
        below, above = some & (lower <= 0.0), missed & (upper >= 1.0)
        found = StateValues(
            0.5 * (lower + upper), lower, upper,
            below if bool(below.any()) else None, above if bool(above.any()) else None,
        )  # fmt: skip
        return found.spread(inside, self._all.known)

    def later(self) -> StateValues:
        """Return what the present budget tells of all greater ones: probabilities only rise."""
        found = self.values()
        upper = np.where(self._all.inside & (found.lower < 1.0), 1.0, found.upper)
        return StateValues(0.5 * (found.lower + upper), found.lower, upper, found.open_lower)

    def advance(self) -> None:
        """Go to the next budget."""
        if self.settled or self.ended:
            self.made += 1
            return
        k = self.made
        xp: Any = self._space.xp
        leading = [g > 0.0 for g in self._gains(k, "some")]
        some, missed = self._positive(leading), self._missed(k)
        lower, upper = self._solved(k, some, leading)
        # Where the graph decides, the numbers are exact.
        lower = xp.where(missed > 0.0, xp.where(some > 0.0, lower, 0.0), 1.0)
        upper = xp.where(missed > 0.0, xp.where(some > 0.0, xp.minimum(upper, 1.0), 0.0), 1.0)
        now = BudgetValues(xp.minimum(lower, upper), upper, some, missed)
        if self._window:
            before = self._window[0]
            pairs = ((now.lower, before.lower), (now.upper, before.upper), (some, before.some))
            same = all(self._equal(a, b) for a, b in (*pairs, (missed, before.missed)))
            self._same = self._same + 1 if same else 0
        self._window.appendleft(now)
        self.made += 1
        # The same numbers in as many budgets as the greatest reward, and one more, come again for ever.
        self.settled = not self.ended and self._same >= self._greatest and k >= self._greatest

    @property
    def _system(self) -> GainedChoices:
        return self._all.operator

    @property
    def _space(self) -> Workspace:
        return self._all.space

    def _equal(self, a: Array, b: Array) -> bool:
        return a is b or bool(self._space.read(self._space.all(a == b))[0])

    # ------------------------------------------------------------------ what the graph tells

    def _positive(self, leading: Sequence[Array]) -> Array:
        """Return where a budget's probability is positive, as zeros and ones, from which gains are."""
        before = self._window[0].some if self._window else None
        xp: Any = self._space.xp
        if before is not None and self._space.read(self._space.least(before))[0] > 0.0:
            return before
        self._system.regain([xp.where(some_gain, 1.0, 0.0) for some_gain in leading])
        found = self._system.positive()
        return before if before is not None and self._equal(found, before) else found

    def _missed(self, k: int) -> Array:
        """Return where a budget has a probability of less than 1, as zeros and ones."""
        before = self._window[0].missed if self._window else None
        if before is not None and self._same_missed >= self._greatest and k > self._greatest:
            return before
        self._all.missing.regain(self._all.losses(k, lambda less: self._window[less - 1].missed))
        found = self._all.missing.positive()
        if before is not None and self._equal(found, before):
            self._same_missed += 1
            return before
        self._same_missed = 0
        return found

    # ------------------------------------------------------------------ numbers

    def _gains(self, k: int, of: str) -> list[Array]:
        """Return what choices are worth at once, by some vector of lesser budgets."""
        self._work.products += 1
        return self._all.gains(k, lambda less: getattr(self._window[less - 1], of))

    def _solved(self, k: int, some: Array, leading: Sequence[Array]) -> tuple[Array, Array]:
        """Return bounds on a budget's probabilities."""
        xp: Any = self._space.xp
        slack = self._all.slack
        share, tiny = 2.0 * slack, (self._all.n_rewards + 2) * TINIEST  # lemma: rounding, underflow
        low = [xp.maximum(g * (1.0 - share) - tiny, 0.0) for g in self._gains(k, "lower")]
        high = [
            xp.where(some_gain, g * (1.0 + share) + tiny, 0.0)
            for g, some_gain in zip(self._gains(k, "upper"), leading, strict=True)
        ]
        if self._all.sweeps is not None:
            # lemma: directed-steps
            return self._swept(low, 1.0 - slack, -1.0, some), self._swept(
                high, 1.0 / (1.0 - slack), 1.0, some
            )
        lower, _ = self._iterated(low)
        if self.ended:
            return lower, xp.ones(self._all.unknown.size)
        _, upper = self._iterated(high)
        return lower, upper

    def _swept(self, gains: Sequence[Array], factor: float, sign: float, some: Array) -> Array:
        """Return what as many sweeps as steps without reward may follow one another lead to."""
        system, sweeps, clock = self._system, self._all.sweeps, Clock(None)
        assert sweeps is not None
        system.regain(gains)
        pair = system.zeros(), system.zeros()
        for made in range(sweeps):
            system.improve(pair[made % 2], pair[1 - made % 2], factor)
        self._work.products += sweeps
        note_steps(self._work, "steps", _VECTORS, system, sweeps, clock.seconds)
        found = pair[sweeps % 2] + sign * (sweeps + 1) * system.underflow * some  # lemma: underflow
        return self._space.xp.maximum(found, 0.0)

    def _iterated(self, gains: Sequence[Array]) -> tuple[Array, Array]:
        """Return bounds on the solution of the system with some gains."""
        self._system.regain(gains)
        self._system.products = 0
        found = self._method.bounds(self._system, 1.0, self._work.progress)
        note_steps(
            self._work, self._method.name, BOUND_VECTORS, self._system, found.iterations, found.seconds
        )
        self._work.accept("until within a budget of reward", found)
        progress = self._work.progress
        self.ended = isinstance(progress, Watch) and progress.stopped is not None
        upper = np.where(np.isfinite(found.upper), found.upper, 1.0)
        return self._space.vector(found.lower), self._space.vector(upper)


# Until within a bound on a reward: the budgets up to it, one after the other.


def reward_bounded_probabilities(a: Asked) -> StateValues:
    """Return the probability of a path operator with little enough earned before the end.

    Exact 0 and 1 where the graph decides. A method without bounds is refused, and a bound of more units than
    iterations are allowed. Time: that of as many steps as the bound has units of reward, see `BudgetSweep`;
    less if values settle.
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
    """Refuse methods without bounds, by name."""
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
