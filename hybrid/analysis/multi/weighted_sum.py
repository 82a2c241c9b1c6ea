"""The best weighted sum of all objectives: a certified upper bound, and a scheduler that comes close.

Sums without costs are greatest rewards. Sums without gains are least ones, of what is paid and what is missed
of the probabilities. Both have numbers of one sign, and are solved as all are. Values of a sum with gains and
costs have both signs, so that iterates from 0 bound nothing. Iterates from an upper bound do, for f is
monotone and the optimum a fixed point. So f(u) bounds it where u does, with the error of rounding added in
every step. The first bound adds up those of the objectives. What is earned for ever is not there
(`hybrid.analysis.multi.memory`), and where a sum earns nothing for ever, end components are one state. How
close the bound is shows the scheduler that it leads to, once it is evaluated.

References
----------
[FKP12], for weighted sums and what they bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import ChoiceMatrices, note_steps, solve_choices
from hybrid.analysis.multi.long_run import LongRunSums, Staying
from hybrid.analysis.multi.memory import Endings
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.scheduler import SchedulerBuilder
from hybrid.base.directed_rounding import rounded_up
from hybrid.base.errors import NotConvergedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import group_states, leaving_choices
from hybrid.matrix.operators.rounding import scaled_bounds
from hybrid.matrix.space.base import Clock, Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, FixedPolicy, Policy, Quotient
from mtbdd.graph.components import EndComponents
from mtbdd.offset.states import StateIndex, states_from

# Schedulers of weighted sums: made whole and proper, evaluated for every objective between bounds.

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """A scheduler's point: bounds by objective, all objectives turned so that more is better.

    `policy`, shape (pairs,), uint16, has the layer of each pair, one more than the last for "stop"; `sets`,
    shape (pairs,), uint16, the number of the set of objectives that stopping there wins. Where there are
    long-run averages `staying` has what is chosen for them then.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    policy: Policy
    sets: NDArray[np.uint16]
    staying: Staying | None = None


class Schedulers:
    """Evaluates schedulers on the matrices of the choices kept, laid out once; `stop` stands for stopping."""

    def __init__(self, ends: Endings, options: CheckOptions, work: SolveStatistics) -> None:
        self._ends, self._options, self._work = ends, options, work
        self._model = ends.space.model
        self.stop = len(self._model.layers)
        self.matrices = ChoiceMatrices(
            self._model, ends.pairs, ends.kept, options, ends.may_stop, steps=math.inf
        )
        self._earned: dict[tuple[int, int], Vector | None] = {}
        self._held: ChoiceOperator | None = None
        self._default: Policy | None = None

    # No `cached_property` here: until Python 3.12 the parts of one process would wait for its lock.

    @property
    def _choices(self) -> ChoiceOperator:
        """All choices kept, none of which earns anything."""
        if self._held is None:
            self._held = self._built()
        return self._held

    def _built(self) -> ChoiceOperator:
        stop = np.where(self._ends.may_stop, 0.0, -np.inf)
        return self.matrices.system(lambda layer, rows: np.zeros(rows.size), True, None, stop)

    @property
    def default(self) -> Policy:
        """A policy that surely stops, from wherever it starts."""
        if self._default is None:
            ends, maker = self._ends, SchedulerBuilder(self._model)
            maker.route(ends.free, ends.pairs.states, ends.kept)
            self._default = self._numbers(maker)
        return self._default

    def earned(self, objective: int, layer: int) -> Vector | None:
        """Return what a layer's choices earn of an objective by pair; None for nothing."""
        key = objective, layer
        if key not in self._earned:
            own = self._ends.kept[layer]
            found = None
            if own != self._model.manager.false:
                inside = self._model.indicator(own, self._ends.pairs)
                rewards = np.where(inside, self._ends.space.earned(objective, layer, self._ends.pairs), 0.0)
                found = rewards if rewards.any() else None
            self._earned[key] = found
        return self._earned[key]

    # ------------------------------------------------------------------ policies

    def completed(self, policy: Policy, components: EndComponents) -> Policy:
        """Return a policy, shape (pairs,), uint16, with a choice everywhere that surely stops.

        In an end component one pair has a choice, the others `NO_CHOICE`: these go to it inside.

        Lemma: point (docs/multi.md).
        """
        policy = policy.copy()
        missing = policy == NO_CHOICE
        if self._model.communicator.any(missing.any()):
            manager, maker = self._model.manager, SchedulerBuilder(self._model)
            inside = [
                manager.disjunction(c.choices[layer] for c in components.components)
                for layer in range(self.stop)
            ]
            members = manager.disjunction(c.states for c in components.components)
            goal = states_from(manager, self._ends.pairs, ~missing)
            maker.route(goal & members, members, inside)
            policy[missing] = self._numbers(maker)[missing]
        ended = FixedPolicy(self._choices, policy, (policy == self.stop).astype(np.float64))
        lost = ~self._positive(ended)
        policy[lost] = self.default[lost]  # lemma: point
        return policy

    def _numbers(self, maker: SchedulerBuilder) -> Policy:
        """Return what was chosen by pair, "stop" elsewhere."""
        found = np.full(self._ends.pairs.size, self.stop, np.uint16)
        for layer, states in enumerate(maker.chosen):
            if states != self._model.manager.false:
                found[self._model.indicator(states, self._ends.pairs)] = layer
        return found

    # ------------------------------------------------------------------ values

    def evaluated(self, policy: Policy, sets: NDArray[np.int64], staying: Staying | None = None) -> Point:
        """Return bounds on every objective under a policy that surely stops.

        `sets`, shape (pairs,), int64, has by pair the number of the set of objectives that stopping there
        wins, `staying` what is chosen there for long-run averages.
        """
        stopped = policy == self.stop
        bounds = []
        for i, objective in enumerate(self._ends.space.objectives):
            if objective.path is None:
                averages = None if objective.formula is None else staying
                if averages is None:
                    lower, upper = self._reward(i, policy)
                else:
                    lower, upper = self._average(policy, stopped, *averages.bounds(i, stopped, sets))
                bounds.append((lower, upper) if objective.maximise else (-upper, -lower))  # lemma: turned
            else:
                bounds.append(self._probability(policy, stopped, stopped & self._ends.wins(i, sets)))
        lowest, highest = tuple(b[0] for b in bounds), tuple(b[1] for b in bounds)
        return Point(lowest, highest, policy, sets.astype(np.uint16), staying)

    def cost(self, objective: int, policy: Policy) -> float:
        """Return an upper bound on what a policy earns of a reward from any pair."""
        found = self._solved(FixedPolicy(self._choices, policy, self._rewards(objective, policy)), None)
        units = self._ends.space.units(objective)
        # lemma: from-above
        return self._model.communicator.greatest(scaled_bounds(found, units).upper.max(initial=0.0))

    def _probability(
        self, policy: Policy, stopped: NDArray[np.bool_], won: NDArray[np.bool_]
    ) -> tuple[float, float]:
        """Return bounds on the probability of stopping in some pairs; the graph decides 0 and 1."""
        at_start = self._ends.at_start
        winning = FixedPolicy(self._choices, policy, won.astype(np.float64))
        if not at_start(self._positive(winning)):
            return 0.0, 0.0
        losing = FixedPolicy(self._choices, policy, (stopped & ~won).astype(np.float64))
        if not at_start(self._positive(losing)):
            return 1.0, 1.0
        found = self._solved(winning, 1.0).within(0.0, 1.0)
        return at_start(found.lower), at_start(found.upper)

    def _reward(self, objective: int, policy: Policy) -> tuple[float, float]:
        at_start = self._ends.at_start
        system = FixedPolicy(self._choices, policy, self._rewards(objective, policy))
        if not at_start(self._positive(system)):
            return 0.0, 0.0
        found = scaled_bounds(self._solved(system, None), self._ends.space.units(objective))  # lemma: point
        return at_start(found.lower), at_start(found.upper)

    def _average(
        self, policy: Policy, stopped: NDArray[np.bool_], low: Vector, high: Vector
    ) -> tuple[float, float]:
        """Return bounds on what stopping is worth in the mean, from bounds by pair.

        Lemma: staying (docs/multi.md).
        """
        least, most = (pick(own[stopped]) for pick, own in ((np.min, low), (np.max, high)))
        if least == low[stopped].max() and most == high[stopped].min():
            return float(least), float(most)
        at_start, bounds = self._ends.at_start, []
        for values in (low, high):
            found = self._solved(FixedPolicy(self._choices, policy, values), float(most))
            bounds.append((at_start(found.lower), at_start(found.upper)))
        return max(bounds[0][0], float(least)), min(bounds[1][1], float(most))  # lemma: staying

    def _rewards(self, objective: int, policy: Policy) -> Vector:
        found = np.zeros(self._ends.pairs.size)
        for layer in range(self.stop):
            own = self.earned(objective, layer)
            if own is not None:
                chosen = policy == layer
                found[chosen] = own[chosen]
        return found

    def _positive(self, system: FixedPolicy) -> NDArray[np.bool_]:
        """Return where a system's solution is positive, by its graph."""
        found: NDArray[np.bool_] = system.space.to_host(system.positive()) > 0.0
        self._work.products += system.products
        system.products = 0
        return found

    def _solved(self, system: FixedPolicy, most: float | None) -> StateValues:
        return solve_choices(system, most, self._options, self._work, "objectives of a scheduler")


_BATCH = 16  # steps between two checks of how much still changes
_FINER = 0.01  # of the change at which to check again, where the scheduler is not as good as its bound
_VECTORS = 4


@dataclass(frozen=True, eq=False)
class WeightedOptimum:
    """Bounds on the optimum of one weighted sum.

    No scheduler has a greater one than `most`, all objectives turned so that more is better; the scheduler of
    `point` comes close.
    """

    weights: tuple[float, ...]
    most: float
    point: Point


@dataclass(frozen=True, eq=False)
class CollapsedComponents:
    """The pairs with some end components as one each.

    There are no `groups` if no component has several pairs; `matrices` have the choices that stay in none of
    them.
    """

    components: EndComponents
    groups: Quotient | None
    matrices: ChoiceMatrices


class WeightedSumSolver:
    """Solves weighted sums of the objectives."""

    def __init__(self, ends: Endings, options: CheckOptions, work: SolveStatistics) -> None:
        self._ends, self._options, self._work = ends, options, work
        self._alike = ends.space.model.communicator
        self._long_run = LongRunSums(ends, options, work) if ends.homes else None
        self.schedulers = Schedulers(ends, options, work)
        self._known: dict[tuple[int, ...], CollapsedComponents] = {}
        self._greatest: dict[int, Vector] = {}
        self._costs: dict[int, float] = {}
        self._most: dict[int, float] = {}

    def solve(self, weights: Sequence[float]) -> WeightedOptimum:
        """Return a bound on a weighted sum and a scheduler that comes close."""
        space = self._ends.space
        rewards = [i for i in space.rewards if weights[i] > 0.0]
        priced = tuple(i for i in rewards if not space.objectives[i].maximise)
        collapsed = self._collapsed(priced)
        components = collapsed.components
        staying = None if self._long_run is None else self._long_run.solve(weights)
        worth, sets = self._ends.worth(weights, _nothing if staying is None else staying.worth)

        def point_of(policy: Policy) -> Point:
            own = sets
            if staying is not None:
                policy, own = staying.settled(policy, sets, self.schedulers.stop)
            return self.schedulers.evaluated(self.schedulers.completed(policy, components), own, staying)

        if priced and len(priced) < len(rewards):
            system = self._system(weights, rewards, collapsed, worth, True)
            start = self._start(system, weights, rewards, staying)
            return self._iterated(system, weights, start, staying, point_of)
        stop = worth
        if priced:
            stop = self._ends.missed(weights, sets, 0.0 if staying is None else staying.lacking(sets))
        system = self._system(weights, rewards, collapsed, stop, not priced)
        most, policy = self._of_one_sign(system, weights, rewards, staying)
        return WeightedOptimum(tuple(weights), _turned(most, staying), point_of(policy))

    # ------------------------------------------------------------------ the system

    def _collapsed(self, priced: tuple[int, ...]) -> CollapsedComponents:
        """Return the pairs, the end components in which a sum with some costs earns nothing as one each."""
        if priced not in self._known:
            model, pairs, kept = self._ends.space.model, self._ends.pairs, self._ends.kept
            components = self._ends.components(priced)
            leaving = leaving_choices(model, kept, components)
            matrices = self.schedulers.matrices
            if not self._alike.all(tuple(leaving) == tuple(kept)):
                matrices = ChoiceMatrices(
                    model, pairs, leaving, self._options, self._ends.may_stop, steps=math.inf
                )
            groups = group_states(model, pairs, components)
            self._known[priced] = CollapsedComponents(components, groups, matrices)
        return self._known[priced]

    def _system(
        self,
        weights: Sequence[float],
        rewards: Sequence[int],
        collapsed: CollapsedComponents,
        stop: Vector,
        maximise: bool,
    ) -> ChoiceOperator:
        """Return the operator of a weighted sum, to be minimised that of what it lacks."""
        space = self._ends.space

        def gain(layer: int, rows: StateIndex) -> Vector:
            total = np.zeros(rows.size)
            for i in rewards:
                own = weights[i] * space.earned(i, layer, rows)
                is_cost = maximise and not space.objectives[i].maximise
                total = total - own if is_cost else total + own
            return total

        return collapsed.matrices.system(gain, maximise, collapsed.groups, stop)

    def _of_one_sign(
        self,
        system: ChoiceOperator,
        weights: Sequence[float],
        rewards: Sequence[int],
        staying: Staying | None,
    ) -> tuple[float, Policy]:
        """Return a bound on a sum without costs, or without gains, and what to choose.

        Lemma: half-space (docs/multi.md).
        """
        space, at_start = self._ends.space, self._ends.at_start
        asked = [Fraction(w) for w, o in zip(weights, space.objectives, strict=True) if o.path is not None]
        if staying is not None:
            asked.append(staying.greatest if system.maximise else staying.whole)  # lemma: staying
        # lemma: half-space
        known = float(sum(asked)) * (1.0 + 4.0 * UNIT) if not rewards else None
        found = solve_choices(system, known, self._options, self._work, "a weighted sum of objectives")
        # lemma: half-space, entry-units
        units = max((space.units(i) for i in rewards), default=0.0) + 4.0 * len(weights)
        found = scaled_bounds(found, units)  # lemma: half-space
        near = found.lower if system.maximise else found.upper
        policy = system.space.to_host(system.choose(system.space.vector(near)))
        self._work.products += 1
        if system.maximise:
            return at_start(found.upper), policy  # lemma: half-space
        # lemma: half-space
        return rounded_up(sum(asked, Fraction(0)) - Fraction(at_start(found.lower))), policy

    def _start(
        self,
        system: ChoiceOperator,
        weights: Sequence[float],
        rewards: Sequence[int],
        staying: Staying | None,
    ) -> tuple[Vector, float, float]:
        """Return an upper bound by pair, one no optimum is below, and what rounding may cost a step.

        Lemma: from-above (docs/multi.md).
        """
        space = self._ends.space
        size, units, least = 0.0, 0.0, 0.0
        greatest = 0.0 if staying is None else float(staying.greatest)  # lemma: from-above
        x = np.zeros(system.size)
        for i, objective in enumerate(space.objectives):
            if objective.path is not None:
                greatest += weights[i]
        x += greatest
        for i in rewards:
            size += weights[i] * self._largest(i)
            units = max(units, space.units(i))  # lemma: from-above, entry-units
            if space.objectives[i].maximise:
                x += weights[i] * self._bound(i)
            else:
                least -= weights[i] * self._cost(i)
        x += 16.0 * len(weights) * UNIT * x  # lemma: from-above
        scale = max(self._alike.greatest(x.max(initial=0.0)), -least) + size
        # lemma: from-above, underflow
        error = (3.0 * system.slack + (2.0 * units + 8.0 * len(weights)) * UNIT) * scale + system.underflow
        # Far more than what adding up the costs may have rounded.
        return x, least - scale * 1e-3, error  # lemma: from-above

    def _largest(self, i: int) -> float:
        """Return the greatest reward of a choice."""
        if i not in self._most:
            own = (self.schedulers.earned(i, layer) for layer in range(self.schedulers.stop))
            self._most[i] = self._alike.greatest(
                max((float(v.max()) for v in own if v is not None), default=0.0)
            )
        return self._most[i]

    def _cost(self, i: int) -> float:
        """Return a bound on what some scheduler pays from any pair."""
        if i not in self._costs:
            self._costs[i] = self.schedulers.cost(i, self.schedulers.default)
        return self._costs[i]

    def _bound(self, i: int) -> Vector:
        """Return what no scheduler earns more of, by pair."""
        if i not in self._greatest:
            space, collapsed = self._ends.space, self._collapsed(())
            system = collapsed.matrices.system(
                lambda layer, rows: space.earned(i, layer, rows), True, collapsed.groups,
                np.where(self._ends.may_stop, 0.0, -np.inf),
            )  # fmt: skip
            found = solve_choices(system, None, self._options, self._work, "greatest rewards")
            self._greatest[i] = scaled_bounds(found, space.units(i)).upper  # lemma: from-above
        return self._greatest[i]

    # ------------------------------------------------------------------ the iteration

    def _iterated(
        self,
        system: ChoiceOperator,
        weights: Sequence[float],
        start: tuple[Vector, float, float],
        staying: Staying | None,
        point_of: Callable[[Policy], Point],
    ) -> WeightedOptimum:
        """Iterate from above until a scheduler comes as close as epsilon asks, or nothing changes."""
        space, criterion = system.space, self._options.criterion
        first, least, error = start
        x, y = space.vector(first), system.zeros()
        xp = space.xp
        scale = max(self._alike.greatest(np.abs(first).max(initial=0.0)), -least)
        wanted = 0.1 * criterion.epsilon * scale
        made, looked, change, seconds = 0, 0, np.inf, 0.0
        best: WeightedOptimum | None = None
        while True:
            clock = Clock(self._work.progress)
            while made < criterion.max_iterations:
                for _ in range(_BATCH):
                    system.improve(x, y)
                    y += error  # lemma: from-above
                    xp.minimum(y, x, out=y)
                    xp.maximum(y, least, out=y)
                    x, y = y, x
                made += _BATCH
                change, _ = space.read(space.distance(x, y))
                clock.tick(made, change)
                if change <= wanted:
                    break
            seconds += clock.seconds
            if change > wanted:
                raise NotConvergedError("a weighted sum of objectives", Status.MAX_ITERATIONS, made, change)
            policy = space.to_host(system.choose(x))
            looked += 1
            most = _turned(self._ends.at_start(space.to_host(x)), staying)
            point = point_of(policy)
            reached = float(np.dot(point.lower, weights))
            if best is None or reached > np.dot(best.point.lower, weights):
                best = WeightedOptimum(tuple(weights), most, point)
            else:
                best = WeightedOptimum(tuple(weights), most, best.point)
            known = float(np.dot(np.abs(point.lower), weights))
            size = 1.0 if criterion.absolute else known
            blur = float(np.dot(np.subtract(best.point.upper, best.point.lower), weights))
            close = most - reached <= 2.0 * criterion.epsilon * size + 2.0 * blur
            if close or change <= 2.0 * error or change == 0.0:
                break
            wanted = _FINER * change
        self._work.products += made + looked
        note_steps(self._work, "value iteration", _VECTORS, system, made, seconds)
        return best


def _nothing(number: int) -> float:
    return 0.0


def _turned(most: float, staying: Staying | None) -> float:
    """Return a bound on a sum less what averages that are to be small were taken off.

    Lemma: staying (docs/multi.md).
    """
    if staying is None or not staying.taken:
        return most
    return rounded_up(Fraction(most) - staying.taken)  # lemma: staying
