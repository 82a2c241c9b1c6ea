"""Weighted sums of long-run averages: the best average of one reward, and the scheduler that has it.

A mixture of schedulers without memory reaches all that schedulers reach, but for a limit. A reward of which
less is better is taken off the greatest one, so that no number of a sum is negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.long_run import steady_probabilities, steady_rewards
from hybrid.analysis.long_run_choices import best_averages, state_share, unsigned_rewards
from hybrid.analysis.multi.memory import Objective
from hybrid.analysis.multi.weighted_sum import Point, WeightedOptimum
from hybrid.analysis.operator_values import OperatorQuery, Scope
from hybrid.analysis.rewards import reward_units
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.scheduler import SchedulerBuilder
from hybrid.base.directed_rounding import rounded_up
from hybrid.matrix.operators.layer_choices import RewardOf
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.properties.tree import SteadyState
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import induced_chain
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression
from mtbdd.offset.states import StateIndex, index_states

Vector = NDArray[np.float64]

_CLOSER = 0.01  # share of epsilon that a sum and a point get


class LongRunSums:
    """Solves weighted sums of objectives that are long-run averages; see `WeightedSumSolver`."""

    def __init__(
        self,
        model: SymbolicModel,
        objectives: Sequence[Objective],
        states: Callable[[Expression], Node],
        options: CheckOptions,
        work: SolveStatistics,
    ) -> None:
        self._model, self._objectives, self._work = model, objectives, work
        self._options = replace(options, epsilon=_CLOSER * options.epsilon)
        self._states = states
        self._earned: list[RewardOf] = [
            state_share(model, states(o.formula.states))
            if isinstance(o.formula, SteadyState)
            else unsigned_rewards(model, o.place)
            for o in objectives
        ]
        rows = [index_states(model.manager, layer.enabled) for layer in model.layers]
        self._most = [
            max(float(own(layer, there).max(initial=0.0)) for layer, there in enumerate(rows))
            for own in self._earned
        ]
        self._units = [0.0 if o.structure is None else reward_units(model, o.structure) for o in objectives]
        self._start = int(np.flatnonzero(model.indicator(model.initial))[0])

    def solve(self, weights: Sequence[float]) -> WeightedOptimum:
        """Return a bound on a weighted sum and a scheduler that comes close.

        Lemma: half-space (docs/multi.md).
        """
        model, objectives = self._model, self._objectives
        used = [i for i, weight in enumerate(weights) if weight > 0.0]

        def earned(layer: int, rows: StateIndex) -> Vector:
            total = np.zeros(rows.size)
            for i in used:
                own = self._earned[i](layer, rows)
                total += weights[i] * (own if objectives[i].maximise else self._most[i] - own)
            return total

        maker = SchedulerBuilder(model)
        found = best_averages(model, earned, True, self._options, self._work, maker)
        most = Fraction(float(found.upper[self._start]))
        for i in used:
            # No number of the sum is greater than `size`, by which errors of rounding are counted.
            size = Fraction(weights[i]) * Fraction(self._most[i])
            # lemma: half-space, entry-units
            most += size * Fraction((self._units[i] + 2.0 * len(used) + 4.0) * UNIT) + Fraction(2) ** -1000
            if not objectives[i].maximise:
                most -= size  # lemma: half-space
        return WeightedOptimum(tuple(weights), rounded_up(most), self._point(maker))

    def _point(self, maker: SchedulerBuilder) -> Point:
        """Return bounds on every objective of the chain that a scheduler leaves."""
        scheduler = maker.finish()
        chain = induced_chain(self._model, scheduler.chosen())
        bounds = []
        for objective in self._objectives:
            query = OperatorQuery(
                chain, objective.formula, None, True, self._states, self._options, self._work, None,
                Scope.of(chain, chain.initial),
            )  # fmt: skip
            found = steady_rewards(query) if objective.structure is not None else steady_probabilities(query)
            lower, upper = float(found.lower[0]), float(found.upper[0])
            bounds.append((lower, upper) if objective.maximise else (-upper, -lower))  # lemma: turned
        none = np.zeros(0, np.uint16)
        return Point(tuple(b[0] for b in bounds), tuple(b[1] for b in bounds), none, none.astype(np.uint8))
