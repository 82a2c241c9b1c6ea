"""Long-run averages among several objectives: what staying in an end component is worth.

A run stays in an end component almost surely, where its averages are those of a scheduler that stays. A
weighted sum of averages is the average of one reward, which has a best one in every end component. A reward
of which less is better is taken off the greatest one, so that no number of a sum is negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.long_run import average_reward, share_of_time
from hybrid.analysis.long_run_choices import BestAverages, EndComponentAverages
from hybrid.analysis.multi.memory import Endings
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.scheduler import SchedulerBuilder
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.layer_choices import RewardOf
from hybrid.matrix.operators.rounding import scaled_bounds
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import NO_CHOICE, Policy
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import induced_chain
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import model_end_components
from mtbdd.offset.states import StateIndex, index_states, states_from

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

_CLOSER = 0.01  # share of epsilon that averages get


class LongRunSums:
    """Solves weighted sums of long-run averages in the end components where runs may stay.

    These are laid out once for all weights.
    """

    def __init__(self, ends: Endings, options: CheckOptions, work: SolveStatistics) -> None:
        self.ends, self.work = ends, work
        closer = replace(options, epsilon=_CLOSER * options.epsilon)
        # Averages of classes have bounds whatever the method, and optimistic iteration has none to offer.
        self.options = replace(closer, method="auto")
        space, model = ends.space, ends.space.model
        if model.communicator.size > 1:
            raise UnsupportedError(
                "long-run averages among several objectives are not found in parts by this version: choose "
                "one process without parts"
            )
        self._earned = {i: _kept(space.averaged(i)) for i in space.averages}
        self._averages = [EndComponentAverages(model, closer, work, home) for home, _ in ends.homes]
        self.places = []
        for averages in self._averages:
            place = np.full(ends.pairs.size, -1, np.int64)
            place[model.indicator(averages.ends.index.states, ends.pairs)] = averages.ends.component
            self.places.append(place)
        every = self._averages[0].ends
        self._most = {i: float(every.extremes(own)[1].max()) for i, own in self._earned.items()}
        self.units = {i: space.units(i) for i in space.averages}
        self._known: dict[tuple[float, ...], Staying] = {}

    def solve(self, weights: Sequence[float]) -> Staying:
        """Return what staying is worth in a weighted sum, and a policy in each end component for it.

        Without a weight on an average the policy is a best one for all averages together.
        """
        space = self.ends.space
        own = tuple(weights[i] for i in self._earned)
        if own not in self._known:
            parts = {i: weights[i] for i in self._earned if weights[i] > 0.0}
            used = parts or {i: 1.0 / most for i, most in self._most.items() if most > 0.0}

            def earned(layer: int, rows: StateIndex) -> Vector:
                total = np.zeros(rows.size)
                for i, weight in used.items():
                    reward = self._earned[i](layer, rows)
                    total += weight * (reward if space.objectives[i].maximise else self._most[i] - reward)
                return total

            # No number of a sum is greater than its size, by which errors of rounding are counted.
            sizes = {i: Fraction(weight) * Fraction(self._most[i]) for i, weight in parts.items()}
            off = Fraction(2) ** -1000
            for i, size in sizes.items():
                # lemma: staying, entry-units
                off += size * Fraction((self.units[i] + 2.0 * len(parts) + 4.0) * UNIT)
            homes, upper = [], []
            for averages in self._averages:
                best = averages.best(earned, True, True)
                homes.append(StayingPolicy(self, best))
                upper.append(np.nextafter(best.upper + rounded_up(off), np.inf))  # lemma: staying
            if not parts:
                upper = [np.zeros(own.size) for own in upper]
            whole = sum(sizes.values(), Fraction(0))
            taken = sum((s for i, s in sizes.items() if not space.objectives[i].maximise), Fraction(0))
            self._known[own] = Staying(self, homes, upper, whole, taken)
        return self._known[own]


def _kept(earned: RewardOf) -> RewardOf:
    """Return rewards that are evaluated once for every layer and set of states."""
    known: dict[tuple[int, Node], Vector] = {}

    def kept(layer: int, rows: StateIndex) -> Vector:
        key = layer, rows.states
        if key not in known:
            known[key] = earned(layer, rows)
        return known[key]

    return kept


@dataclass(frozen=True, eq=False)
class Staying:
    """Values of staying for ever in a weighted sum of averages, by number of a set of `Endings.sets`.

    `upper` has by end component what no scheduler earns more of; `whole` is what all averages could earn, of
    which `taken` stands for those that are to be small.
    """

    sums: LongRunSums
    homes: list[StayingPolicy]
    upper: list[Vector]
    whole: Fraction
    taken: Fraction

    @property
    def greatest(self) -> Fraction:
        """The greatest of all values."""
        return Fraction(max(float(own.max(initial=0.0)) for own in self.upper))

    def worth(self, number: int) -> Vector:
        """Return what staying earns at most, by pair, where it wins a set with a number."""
        place = self.sums.places[number]
        return np.where(place >= 0, self.upper[number][place], 0.0)

    def lacking(self, sets: Numbers) -> Vector:
        """Return what staying misses at least of the whole, by pair, where it wins sets with some numbers."""
        earned = np.zeros(sets.size)
        for number in np.unique(sets).tolist():
            earned = np.where(sets == number, self.worth(number), earned)
        # lemma: staying
        return np.maximum(np.nextafter(rounded_down(self.whole) - earned, -np.inf), 0.0)

    def settled(self, policy: Policy, sets: Numbers, stop: int) -> tuple[Policy, Numbers]:
        """Return a policy that stops in all pairs without a choice where it stops in their end component."""
        policy, sets = policy.copy(), sets.copy()
        for number in np.unique(sets[policy == stop]).tolist():
            place = self.sums.places[number]
            stopped = np.zeros(self.upper[number].size, np.bool_)
            stopped[place[(policy == stop) & (sets == number)]] = True
            more = (policy == NO_CHOICE) & (place >= 0) & stopped[place]
            policy[more], sets[more] = stop, number
        return policy, sets

    def bounds(self, objective: int, stopped: NDArray[np.bool_], sets: Numbers) -> tuple[Vector, Vector]:
        """Return bounds on an average by pair: where runs stop that of the policy that stays, else zero."""
        low, high = np.zeros(sets.size), np.zeros(sets.size)
        for number in np.unique(sets[stopped]).tolist():
            here = stopped & (sets == number)
            place = self.sums.places[number][here]
            low[here], high[here] = self.homes[number].bounds(objective, place)
        return low, high


class StayingPolicy:
    """A policy that stays in its end component, and is led to one recurrent class of each.

    `chosen` has for every layer the pairs that take its choice, `classes` the pairs of the classes.
    """

    def __init__(self, sums: LongRunSums, best: BestAverages) -> None:
        self._sums, self.ends = sums, best.ends
        self._model = model = best.ends.model
        self._maker = SchedulerBuilder(model)
        best.settle(self._maker, self.ends.index.states)
        chosen = self._maker.chosen
        found = model_end_components(model, self.ends.index.states, chosen)
        self._classes: dict[int, Node] = {}
        for own in found.components:
            self._classes.setdefault(int(self._numbers(own.states)[0]), own.states)
        # Of a component with several classes one counts.
        alone = model.indicator(found.single.states, self.ends.index)
        alone[np.isin(self.ends.component, list(self._classes))] = False
        _, first = np.unique(self.ends.component[alone], return_index=True)
        single = np.zeros(alone.size, np.bool_)
        single[np.flatnonzero(alone)[first]] = True
        self._single = states_from(model.manager, self.ends.index, single)
        self.classes = model.manager.disjunction([self._single, *self._classes.values()])
        self.chosen = [own & self.classes for own in chosen]
        self._chain: SymbolicModel | None = None
        self._bounds: dict[int, tuple[Vector, Vector]] = {}

    def _numbers(self, states: Node) -> Numbers:
        """Return the numbers of the components of some pairs."""
        return self.ends.component[self._model.indicator(states, self.ends.index)]

    def bounds(self, objective: int, place: Numbers) -> tuple[Vector, Vector]:
        """Return bounds on the average in the classes of some components, given as numbers."""
        if objective not in self._bounds:
            self._bounds[objective] = self._alone(objective)
        low, high = self._bounds[objective]
        for number in np.unique(place[np.isnan(low[place])]).tolist():
            low[number], high[number] = self._average(objective, self._classes[number])
        return low[place], high[place]

    def _alone(self, objective: int) -> tuple[Vector, Vector]:
        """Return bounds in classes of a single pair, by component, NaN elsewhere."""
        space, size = self._sums.ends.space, int(self.ends.component.max(initial=-1)) + 1
        found = np.full((2, size), np.nan)
        for layer, own in enumerate(self.chosen):
            rows = index_states(self._model.manager, own & self._single)
            if rows.total:
                earned = StateValues.exact(space.averaged(objective)(layer, rows))
                bounds = scaled_bounds(earned, self._sums.units[objective])  # lemma: staying, entry-units
                found[:, self._numbers(rows.states)] = bounds.lower, bounds.upper
        return found[0], found[1]

    def _average(self, objective: int, states: Node) -> tuple[float, float]:
        """Return bounds on the average in a class of several pairs."""
        if self._chain is None:
            self._maker.finish()
            self._chain = induced_chain(self._model, self._maker.chosen)
        averaged = self._sums.ends.space.averages[objective]
        if isinstance(averaged, int):
            average = partial(average_reward, self._chain, averaged)
        else:
            average = partial(share_of_time, self._chain, averaged)
        _, lower, upper = average(self._sums.options, self._sums.work, states)
        return max(lower, 0.0), upper
