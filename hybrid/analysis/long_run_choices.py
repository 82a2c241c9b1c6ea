"""Long-run averages of decision processes: the best average of every end component, and the way there.

A scheduler ends in an end component.  It earns there, on average, no more than the best that the component
has to offer.  The graph shows where that is the greatest (or least) reward, earned in every step.  Other
components are iterated (`hybrid.solvers.component_averages`).

Then each maximal end component is one state that may be left, or settled in for its average.  A system over
all states weighs these averages (P. Ashok et al., Value iteration for long-run average reward in Markov
decision processes, CAV 2017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import ChoiceMatrices, check_method, choice_operator, solve_choices
from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.precomputation import end_components, prob1e
from hybrid.analysis.rewards import inside_choices, reward_units
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.scheduler import SchedulerBuilder
from hybrid.base.directed_rounding import GREATEST, added
from hybrid.base.errors import NotConvergedError, PropertyError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import RewardOf
from hybrid.matrix.operators.rounding import scaled_bounds
from hybrid.matrix.space.base import Criterion
from hybrid.matrix.space.bounded_solution import UNIT, middle_of
from hybrid.matrix.space.choice_operator import ChoiceOperator, Policy
from hybrid.solvers import Status
from hybrid.solvers.component_averages import AverageIteration, ComponentAverages
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import reward_rates
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import EndComponents, model_end_components
from mtbdd.offset.states import StateIndex, index_states, states_from

Vector = NDArray[np.float64]
Places = NDArray[np.int64]

_SHARE = 0.5  # of epsilon for averages, and for what is made of them: the distances of bounds add up
_WHAT = "long-run averages"


def optimal_probabilities(a: OperatorQuery) -> StateValues:
    """Return the least or greatest share of time spent in a set in the long run."""
    earned = state_share(a.model, a.states(a.formula.states))
    return a.scope.of_values(best_averages(a.model, earned, a.maximise, a.options, a.work, a.maker))


def optimal_rewards(a: OperatorQuery) -> StateValues:
    """Return the least or greatest long-run average of a reward structure.

    Lemma: averages-below-zero (docs/averages.md).
    """
    model, structure, alike = a.model, a.formula.place, a.model.communicator
    averages, earned = EndComponentAverages(model, a.options, a.work), rewards_of_choices(model, structure)
    least, most = _extremes(alike, np.concatenate(averages.ends.extremes(earned, signed=True)))
    if least < 0.0 and not most - least <= GREATEST:
        raise PropertyError(
            f"R: expected rewards of an MDP that are less than 1.79e308, the largest double, apart, got "
            f"{least} and {most}: give smaller rewards"
        )
    best = averages.best(earned, a.maximise, a.maker is not None)
    found = optimal_values(best, a.maximise, a.options, a.work, a.maker)
    units = 0.0 if alike.any(np.isnan(found.lower).any()) else reward_units(model, structure)
    if least >= 0.0 or units == 0.0:
        return a.scope.of_values(scaled_bounds(found, units))  # lemma: entry-units
    # lemma: averages-below-zero, entry-units
    off = np.full(len(found.lower), (units + 4.0) * UNIT * max(-least, most))
    # lemma: averages-below-zero
    lower, upper = added(found.lower, -off)[0], added(found.upper, off)[1]
    return a.scope.of_values(StateValues(found.values, lower, upper))


def best_averages(
    model: SymbolicModel,
    earned: RewardOf,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
) -> StateValues:
    """Return the best average of what choices earn, not negative, from every state.

    There are no bounds (NaN) if the method gives none. A `maker` is given a scheduler.
    """
    found = EndComponentAverages(model, options, work).best(earned, maximise, maker is not None)
    return optimal_values(found, maximise, options, work, maker)


def optimal_values(
    found: BestAverages,
    maximise: bool,
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
) -> StateValues:
    """Return the best value from every state, the best ones of end components being known.

    There are no bounds (NaN) if the method gives none. A `maker` is given a scheduler.
    """
    return _Averages(found, maximise, options, work, maker).values()


def state_share(model: SymbolicModel, inside: Node) -> RewardOf:
    """Return what is earned where time in a set counts."""

    def earned(layer: int, rows: StateIndex) -> Vector:
        return model.indicator(inside, rows).astype(np.float64)

    return earned


def rewards_of_choices(model: SymbolicModel, structure: int) -> RewardOf:
    """Return what a reward structure gives choices, of any sign."""

    def earned(layer: int, rows: StateIndex) -> Vector:
        return reward_rates(model, structure, rows, layer)

    return earned


@dataclass(frozen=True, eq=False)
class EndNumbers:
    """End components of a model, their states and choices in numbers.

    `index` numbers their states, `component` has the number of each one's component, `choices` has for every
    layer the states whose choice stays inside. Where processes share the states, components of several states
    come first, with the same numbers in all processes; then come the own states that are components.
    """

    model: SymbolicModel
    components: EndComponents
    index: StateIndex
    component: Places
    choices: tuple[Node, ...]

    @classmethod
    def of(cls, model: SymbolicModel, components: EndComponents | None = None) -> EndNumbers:
        """Return the numbers of end components, by default of the maximal ones."""
        ends = model_end_components(model) if components is None else components
        index = index_states(model.manager, ends.states)
        component = np.full(index.size, -1, np.int64)
        for number, own in enumerate(ends.components):
            component[model.indicator(own.states, index)] = number
        single = component < 0
        component[single] = len(ends.components) + np.arange(int(single.sum()))
        return cls(model, ends, index, component, inside_choices(ends, len(model.layers)))

    @property
    def common(self) -> int:
        """Number of components of several states, which come first."""
        return len(self.components.components)

    def extremes(self, earned: RewardOf, signed: bool = False) -> tuple[Vector, Vector]:
        """Return the least and the greatest reward of each component's choices.

        Unless `signed` rewards below zero are refused.
        """
        alike, common = self.model.communicator, self.common
        count = max(int(self.component.max(initial=-1)) + 1, common)
        least, most = np.full(count, np.inf), np.full(count, -np.inf)
        for layer, states in enumerate(self.choices):
            rows = index_states(self.model.manager, states)
            if rows.total:
                own = self.component[self.model.indicator(states, self.index)]
                rewards = earned(layer, rows)
                np.minimum.at(least, own, rewards)
                np.maximum.at(most, own, rewards)
        if alike.size > 1:
            # lemma: end-component-averages
            least[:common] = alike.gather(least[:common]).min(axis=0)
            # lemma: end-component-averages
            most[:common] = alike.gather(most[:common]).max(axis=0)
        lowest = alike.least(float(least.min(initial=0.0)))
        if lowest < 0.0 and not signed:
            raise PropertyError(
                f"R: expected no negative rewards in ratios and several objectives of an MDP, got {lowest}: "
                "ask for an average alone, or add a number to the rewards of all states, by which it grows"
            )
        return least, most

    def attaining(self, earned: RewardOf, best: Vector) -> EndComponents:
        """Return the end components of the choices that earn what is the best in their component."""
        model, allowed = self.model, []
        for layer, states in enumerate(self.choices):
            rows = index_states(model.manager, states)
            if rows.total:
                own = self.component[model.indicator(states, self.index)]
                # lemma: end-component-averages
                states = states_from(model.manager, rows, earned(layer, rows) == best[own])
            allowed.append(states)
        return end_components(model, model.manager.disjunction(allowed), allowed)

    def within(self, chosen: NDArray[np.bool_]) -> Node:
        """Return the states of some components, given as a mask over these."""
        return states_from(self.model.manager, self.index, chosen[self.component])

    def spread(self, numbers: Vector, otherwise: float) -> Vector:
        """Return a number a component as one a state of the model."""
        full = np.full(self.model.index.size, otherwise)
        full[self.model.indicator(self.index.states)] = numbers[self.component]
        return full


@dataclass(frozen=True, eq=False)
class BestAverages:
    """The best averages of end components, between bounds, and what to choose for them.

    `lower` and `upper` have a number a component. The graph has decided those that are not `is_open`: choices
    of `tight` earn the best reward in every step. Of the others `policy` has the choices, by states.
    """

    ends: EndNumbers
    lower: Vector
    upper: Vector
    is_open: NDArray[np.bool_]
    tight: EndComponents
    policy: tuple[StateIndex, Policy] | None

    def settle(self, maker: SchedulerBuilder, states: Node) -> None:
        """Choose, in the states of some components, what their averages come from."""
        ends = self.ends
        maker.take([own & states for own in inside_choices(self.tight, len(ends.model.layers))])
        decided = ends.within(~self.is_open) & states
        maker.route(self.tight.states & states, decided, ends.choices)
        if self.policy is not None:
            index, policy = self.policy
            for layer in np.unique(policy).tolist():
                maker.choose(layer, states_from(ends.model.manager, index, policy == layer) & states)


class EndComponentAverages:
    """Finds the best averages of end components, of one reward after another.

    Components whose averages are iterated are laid out once, as long as they are the same ones. By default
    the components are the maximal ones of the model.
    """

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        work: SolveStatistics,
        components: EndComponents | None = None,
    ) -> None:
        self._model, self._options, self._work = model, _own_options(options), work
        self.ends = EndNumbers.of(model, components)
        self._laid_out: tuple[NDArray[np.bool_], StateIndex, ChoiceMatrices] | None = None

    def best(self, earned: RewardOf, maximise: bool, choosing: bool) -> BestAverages:
        """Return the best averages of what choices earn; if `choosing`, with policies.

        Lemma: averages-below-zero (docs/averages.md).
        """
        least, most = self.ends.extremes(earned, signed=True)
        best = most if maximise else least
        tight, decided = self._attained(earned, best)
        lower, upper = np.where(decided, best, least), np.where(decided, best, most)
        policy = None
        if not self._model.communicator.all(decided.all()):
            index, component, matrices = self._open(~decided)
            least, most = least[~decided], most[~decided]
            raised = np.maximum(-least, 0.0)

            def gain(layer: int, rows: StateIndex) -> Vector:
                more = raised[component[self._model.indicator(rows.states, index)]]
                return earned(layer, rows) + more

            is_signed = bool(raised.any())
            operator = matrices.system(gain if is_signed else earned, maximise, None)
            common = int(np.count_nonzero(~decided[: self.ends.common]))
            averages = self._iterated(
                operator, component, least + raised, most + raised, self._options.criterion, common,
                raised if is_signed else None,
            )  # fmt: skip
            # A sum of two doubles is rounded once.
            off = np.where(raised > 0.0, UNIT * (most + raised), 0.0)  # lemma: averages-below-zero
            # lemma: averages-below-zero
            below = added(added(averages.lower, -raised)[0], -off)[0]
            # lemma: averages-below-zero
            above = added(added(averages.upper, -raised)[1], off)[1]
            lower[~decided], upper[~decided] = np.maximum(below, least), np.minimum(above, most)
            policy = (index, policy_at(operator, averages.bias)) if choosing else None
        return BestAverages(self.ends, lower, upper, ~decided, tight, policy)

    def _attained(self, earned: RewardOf, best: Vector) -> tuple[EndComponents, NDArray[np.bool_]]:
        """Return the choices that earn the best reward in every step, and which components have them."""
        tight = self.ends.attaining(earned, best)
        decided = np.zeros(len(best), np.bool_)
        decided[self.ends.component[self._model.indicator(tight.states, self.ends.index)]] = True
        alike, common = self._model.communicator, self.ends.common
        if alike.size > 1:
            decided[:common] = alike.gather(decided[:common]).any(axis=0)
        return tight, decided

    def _open(self, is_open: NDArray[np.bool_]) -> tuple[StateIndex, Places, ChoiceMatrices]:
        """Return the states of open components, the number of each one's component, and the matrices."""
        ends = self.ends
        known = self._laid_out is not None and np.array_equal(self._laid_out[0], is_open)
        if self._laid_out is None or not self._model.communicator.all(known):
            index = index_states(self._model.manager, ends.within(is_open))
            allowed = [states & index.states for states in ends.choices]
            self._laid_out = is_open, index, ChoiceMatrices(self._model, index, allowed, self._options)
        _, index, matrices = self._laid_out
        numbers = np.cumsum(is_open) - 1
        return index, numbers[ends.component[is_open[ends.component]]], matrices

    def _iterated(
        self,
        operator: ChoiceOperator,
        component: Places,
        least: Vector,
        most: Vector,
        criterion: Criterion,
        common: int = 0,
        raised: Vector | None = None,
    ) -> ComponentAverages:
        """Return the best averages of the open components, between `least` and `most`."""
        work = self._work
        method = AverageIteration(operator, component, least, most, criterion, common, raised)
        found = method.solve(work.following(None))
        work.note(method.name, operator, found.iterations, found.seconds, 8 * method.vectors * operator.size)
        work.products += operator.products
        if found.status not in (Status.CONVERGED, Status.INTERRUPTED):
            error = NotConvergedError(_WHAT, found.status, found.iterations, found.difference)
            work.settle_for(error, self._options.bounding_method() is not None)
        return found


class _Averages:
    """The averages of all components, and what schedulers make of them."""

    def __init__(
        self,
        found: BestAverages,
        maximise: bool,
        options: CheckOptions,
        work: SolveStatistics,
        maker: SchedulerBuilder | None,
    ) -> None:
        self._model, self._maximise, self._work, self._maker = found.ends.model, maximise, work, maker
        self._options = _own_options(options)
        self._found, self._ends, self._lower, self._upper = found, found.ends, found.lower, found.upper

    # ------------------------------------------------------------------ the way to components

    def values(self) -> StateValues:
        """Return the best average from every state; without bounds (NaN) if the method gives none."""
        found = self._weighed()
        return found.without_bounds() if self._options.bounding_method() is None else found

    def _weighed(self) -> StateValues:
        lower, upper, size = self._lower, self._upper, self._model.index.size
        alike = self._model.communicator
        (least, greatest), (lowest, highest) = (_extremes(alike, bounds) for bounds in (lower, upper))
        if least == greatest and lowest == highest:
            self._settle(self._ends.index.states)
            value = middle_of(np.array([least]), np.array([highest]))
            return StateValues.constant(float(value[0]), least, highest, size)
        # States that surely reach the best component of all need no weighing.
        end = highest if self._maximise else least
        is_top = (lower == end) & (upper == end)
        top = self._ends.within(is_top)
        sure = prob1e(self._model, self._model.reachable, top) if alike.any(is_top.any()) else top
        found = None
        if sure != self._model.reachable:
            found = self._between(top, sure, end, least, highest)
        elif self._maker is not None:
            self._settle(top)
            self._maker.until(self._model.reachable, top, self._model.manager.false, sure, True)
        inside = self._model.indicator(sure)
        parts = [np.full(size, end)] * 3 if found is None else [found.values, found.lower, found.upper]
        # No average is beyond those of all components.
        parts = [np.where(inside, end, np.clip(part, least, highest)) for part in parts]
        return StateValues.exact(parts[0]) if found is None else StateValues(*parts)

    def _between(self, top: Node, sure: Node, end: float, least: float, highest: float) -> StateValues:
        """Return bounds on the values, from those on the averages, `least` and `highest` among these.

        States that surely reach the best component have its average, which is the `end`.

        Lemma: averages-below-zero (docs/averages.md).
        """
        alike, raised = self._model.communicator, np.array([max(-least, 0.0)])
        # lemma: averages-below-zero
        lower, upper = added(self._lower, raised)[0], added(self._upper, raised)[1]
        first, last = added(np.array([end]), raised)  # lemma: averages-below-zero
        middle = middle_of(lower, upper)
        # lemma: end-component-averages
        errors = np.maximum(upper - middle, middle - lower) / np.where(middle > 0.0, middle, 1.0)
        off = alike.greatest(float(errors.max(initial=0.0)))
        most = highest + raised[0] if self._options.absolute else 1.0
        if alike.all((middle > 0.0)[upper > 0.0].all()) and off * most <= self._options.epsilon:
            found = self._solved(middle, top, sure, float(middle_of(first, last)[0]), True)
            # lemma: end-component-averages
            found = scaled_bounds(found, off * 2.0**53 * (1.0 + 2.0**-50))
        else:
            low = self._solved(lower, top, sure, float(first[0]), self._maximise)
            # lemma: end-component-averages
            high = self._solved(upper, top, sure, float(last[0]), not self._maximise)
            found = StateValues(middle_of(low.lower, high.upper), low.lower, high.upper)
        if raised[0] > 0.0:
            # lemma: averages-below-zero
            found = StateValues(
                found.values - raised, added(found.lower, -raised)[0], added(found.upper, -raised)[1]
            )
        return found

    def _solved(self, averages: Vector, top: Node, sure: Node, end: float, is_safe: bool) -> StateValues:
        """Return the values where each component may be settled in for an average of its own, not negative.

        States that surely reach the best one may take its average, which is the `end`, at once. A maker is
        given the choices if averages are no better than they are, which `is_safe`.
        """
        model, options, worst = self._model, self._options, -np.inf if self._maximise else np.inf
        stop = self._ends.spread(averages, worst)
        stop[model.indicator(sure)] = end
        components = self._ends.components
        operator = choice_operator(
            model, model.index, _nothing, self._maximise, options, components=components, stop=stop
        )
        most = model.communicator.greatest(float(averages.max(initial=end)))
        found = solve_choices(operator, most, options, self._work, _WHAT, model.index)
        bound = found.lower if self._maximise else found.upper
        if self._maker is not None and is_safe:
            policy = policy_at(operator, np.where(np.isnan(bound), found.values, bound))
            self._schedule(self._maker, operator, found, policy, top, sure)
        return found

    # ------------------------------------------------------------------ schedulers

    def _schedule(
        self,
        maker: SchedulerBuilder,
        operator: ChoiceOperator,
        found: StateValues,
        policy: Policy,
        top: Node,
        sure: Node,
    ) -> None:
        """Choose as a policy of the whole does, one layer more than the model's being that of settling."""
        model, ends = self._model, self._ends
        stops = (policy == len(model.layers)) & ~model.indicator(sure)
        settled = np.zeros(len(self._lower), np.bool_)
        settled[ends.component[stops[model.indicator(ends.index.states)]]] = True
        self._settle(ends.within(settled) | top)
        maker.until(model.reachable, top, model.manager.false, sure, True)
        maker.policy(model.index, operator, found, ends.components)

    def _settle(self, states: Node) -> None:
        if self._maker is not None:
            self._found.settle(self._maker, states)


def policy_at(operator: ChoiceOperator, x: Vector) -> Policy:
    """Return the choices that are best at a vector, both on the host."""
    policy: Policy = operator.space.to_host(operator.choose(operator.space.vector(x)))
    return policy


def _extremes(alike: Communicator, numbers: Vector) -> tuple[float, float]:
    """Return the least and the greatest number of all processes."""
    return alike.least(float(numbers.min(initial=np.inf))), alike.greatest(
        float(numbers.max(initial=-np.inf))
    )


def _nothing(layer: int, rows: StateIndex) -> Vector:
    return np.zeros(rows.size)


def _own_options(options: CheckOptions) -> CheckOptions:
    """Return the options of the systems, each with its share of epsilon."""
    check_method(options)
    return replace(options, epsilon=_SHARE * options.epsilon)
