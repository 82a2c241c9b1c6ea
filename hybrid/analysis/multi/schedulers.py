"""Schedulers of weighted sums: made whole and proper, evaluated for every objective between bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_systems import ChoiceMatrices, solve_choices
from hybrid.analysis.multi.endings import Endings
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.scheduler import SchedulerMaker
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.rounding import scaled_bounds
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator, Policy
from hybrid.matrix.space.fixed_policy import FixedPolicy
from mtbdd.graph.components import EndComponents
from mtbdd.offset.states import states_from

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Point:
    """What one scheduler reaches, all objectives turned so that more is better.

    Attributes
    ----------
    lower, upper : tuple of float
        Bounds by objective.
    policy : ndarray, shape (pairs,), uint16
        The layer of each pair; one more than the last for "stop".
    sets : ndarray, shape (pairs,), uint8
        By pair the number of the set of objectives that stopping there wins.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    policy: Policy
    sets: NDArray[np.uint8]


class Schedulers:
    """Evaluates schedulers on the matrices of the choices kept, laid out once.

    Parameters
    ----------
    ends : Endings
    options : CheckOptions
    work : Work

    Attributes
    ----------
    stop : int
        The layer that stands for stopping.
    matrices : ChoiceMatrices
        Of all choices kept.
    """

    def __init__(self, ends: Endings, options: CheckOptions, work: Work) -> None:
        self._ends, self._options, self._work = ends, options, work
        self._model = ends.space.model
        self.stop = len(self._model.layers)
        self.matrices = ChoiceMatrices(self._model, ends.pairs, ends.kept, options, ends.may_stop)
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
            ends, maker = self._ends, SchedulerMaker(self._model)
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
        """Return a policy with a choice everywhere that surely stops.

        Parameters
        ----------
        policy : ndarray, shape (pairs,), uint16
            In an end component one pair has a choice, the others `NO_CHOICE`: these go to it inside.
        """
        policy = policy.copy()
        missing = policy == NO_CHOICE
        if self._model.communicator.any(missing.any()):
            manager, maker = self._model.manager, SchedulerMaker(self._model)
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

    def _numbers(self, maker: SchedulerMaker) -> Policy:
        """Return what was chosen by pair, "stop" elsewhere."""
        found = np.full(self._ends.pairs.size, self.stop, np.uint16)
        for layer, states in enumerate(maker.chosen):
            if states != self._model.manager.false:
                found[self._model.indicator(states, self._ends.pairs)] = layer
        return found

    # ------------------------------------------------------------------ values

    def evaluated(self, policy: Policy, sets: NDArray[np.int64]) -> Point:
        """Return bounds on every objective under a policy that surely stops.

        Parameters
        ----------
        sets : ndarray of int64, shape (pairs,)
            By pair the number of the set of objectives that stopping there wins.

        Raises
        ------
        NotConvergedError
        """
        stopped = policy == self.stop
        bounds = []
        for i, objective in enumerate(self._ends.space.objectives):
            if objective.path is None:
                lower, upper = self._reward(i, policy)
                bounds.append((lower, upper) if objective.maximise else (-upper, -lower))  # lemma: turned
            else:
                bounds.append(self._probability(policy, stopped, stopped & self._wins(i, sets)))
        lowest, highest = tuple(b[0] for b in bounds), tuple(b[1] for b in bounds)
        return Point(lowest, highest, policy, sets.astype(np.uint8))

    def cost(self, objective: int, policy: Policy) -> float:
        """Return an upper bound on what a policy earns of a reward from any pair."""
        found = self._solved(FixedPolicy(self._choices, policy, self._rewards(objective, policy)), None)
        units = self._ends.space.units(objective)
        # lemma: from-above
        return self._model.communicator.greatest(scaled_bounds(found, units).upper.max(initial=0.0))

    def _wins(self, objective: int, sets: NDArray[np.int64]) -> NDArray[np.bool_]:
        decided = self._ends.decided.get(objective)
        if decided is not None:
            return decided
        return np.array([objective in won for won, _ in self._ends.sets])[sets]

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
