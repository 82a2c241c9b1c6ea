"""Quantiles of two bounds on rewards: the least pairs for which a probability meets its threshold.

A counter of the first reward is beside the states, from the initial one with any number. With k of M units
counted the probability is that of M - k units. So one budget of the second reward has a column: the
probability for all first bounds up to M. Columns rise from budget to budget, and the least pairs are a
staircase. It leads from the least second bound at all to the least first one; `QuantileSearch` finds both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.memory_scheduler import number_of_bits
from hybrid.analysis.reward_bounded import BudgetSweep, check_bounded_method
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import until_probabilities
from hybrid.base.errors import NotExactError, PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.checking.filters import Summary
from hybrid.checking.quantiles import FINER, QuantileSearch
from hybrid.matrix.space.base import Clock
from hybrid.properties.tree import Path, Probability, Quantile, RewardBounds
from mtbdd.base.errors import option
from mtbdd.base.records import Record
from mtbdd.build.automaton_product import counter_product
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_rewards
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression

_LEAST_COUNTED = 7  # units of the first reward to begin with


class _Stair(Record):
    """The first bounds of one second bound: less than `least` is too little, `enough` is enough, or more."""

    least: int
    enough: int


class QuantilePairs:
    """Searches the least pairs of bounds on two rewards; parameters as for `quantile`."""

    def __init__(
        self,
        model: SymbolicModel,
        formula: Quantile,
        states: Callable[[Expression], Node],
        options: CheckOptions,
        work: SolveStatistics,
        exact: ExactFormulas | None,
    ) -> None:
        check_bounded_method(options)
        if model.communicator.size > 1:
            raise UnsupportedError("quantile: pairs of bounds are not found in parts: choose one process")
        probability = formula.probability
        assert isinstance(probability, Probability) and isinstance(probability.path, Path)
        path = probability.path
        assert isinstance(path.bound, RewardBounds)
        bounds = {bound.asked: bound for bound in path.bound.bounds}
        own = [bounds[name] for name in formula.names]
        self._model, self._options, self._work = model, options, work
        self._searches = [
            QuantileSearch(
                model,
                replace(formula, probability=replace(probability, path=replace(path, bound=bound))),
                states,
                options,
                work,
                exact,
            )
            for bound in own
        ]
        self._split = split_by_rewards(model, [bound.index or 0 for bound in own])
        self._exact, self._reason = exact, ""

    def found(self) -> Summary:
        """Return the pairs, by their first bounds; of a search that was ended before its time nothing.

        Raises
        ------
        UnknownError
            Bounds on the probability do not say of some pair whether it is enough.
        PropertyError
            The search has taken as many budgets, or units, as iterations are allowed.
        """
        ends = [search.found().value for search in self._searches]
        if math.inf in ends:
            return Summary(None, None, None, pairs=())
        if None in ends:
            return Summary(None, None, None)
        # Values are multiples of the unit, or the doubles next to them.
        first, second = (
            round(Fraction(end) / unit)  # lemma: arithmetic
            for end, unit in zip(ends, self._split.units, strict=True)
            if end is not None
        )
        most = self._options.criterion.max_iterations
        counted = min(max(2 * first, _LEAST_COUNTED), most)
        while True:
            stairs = self._stairs(counted, first, second)
            if stairs is None:
                return Summary(None, None, None)
            if stairs:
                return self._pairs(stairs, second)
            if counted >= most:
                raise PropertyError(
                    f"quantile: the least second bound takes a first one of more than {most} units, as many "
                    f"as iterations are allowed: raise {option('max-iters')}"
                )
            counted = min(2 * counted + 1, most)

    def _stairs(self, counted: int, first: int, second: int) -> Sequence[_Stair] | None:
        """Return the stairs of the second bounds from the least one; none if too little is counted.

        None where the search was ended before its time.
        """
        search, options, work = self._searches[1], self._options, self._work
        product = counter_product(self._model, self._split.parts, [counted + 1], anywhere=True)
        pairs = product.model
        inside = pairs.reachable & product.at_most(0, counted)
        safe, target = product.lifted(search.safe) & inside, product.lifted(search.target) & inside
        places = np.flatnonzero(pairs.indicator(product.lifted(self._model.initial) & inside))
        counts = number_of_bits(pairs, product.counters[0])[places]
        column = places[np.argsort(-counts)]
        split = RewardSplit(
            search.split.structure,
            self._split.units[1],
            {reward: tuple(product.parts[(reward,)]) for (reward,) in sorted(product.parts)},
        )
        exact = self._exact_columns(counted)
        if max(split.parts) == 0:
            found = until_probabilities(pairs, safe, target, search.maximise, options, work)
            return self._lowered([], found.at(column), first, partial(exact, 0))
        epsilon = options.criterion.epsilon / FINER
        sweep = BudgetSweep(pairs, split, safe, target, search.maximise, options, work, epsilon)
        stairs: Sequence[_Stair] = []
        clock, most = Clock(work.progress), options.criterion.max_iterations
        with clock.cancellable():
            while True:
                sweep.advance()
                if sweep.budget >= second:
                    own = sweep.values().at(column)
                    stairs = self._lowered(stairs, own, first, partial(exact, sweep.budget))
                    if not stairs or stairs[-1].enough == first or sweep.settled:
                        return stairs
                if sweep.ended or clock.tick(sweep.made, math.inf):
                    return None
                if sweep.made >= most:
                    raise PropertyError(
                        f"quantile: {most} budgets of the second reward are done, as many as iterations are "
                        f"allowed: raise {option('max-iters')}"
                    )

    def _exact_columns(self, counted: int) -> Callable[[int], Sequence[Fraction]]:
        """Return what finds the exact column of a budget; an empty one where it cannot be had."""
        search, budgets = self._searches[1], None
        split, other = search.split, self._searches[0].split.structure
        if self._exact is not None:
            with suppress(NotExactError):
                budgets = self._exact.budgets(
                    search.safe, search.target, split, search.maximise,
                    (other, self._split.units[0], counted + 1),
                )  # fmt: skip
        begin = int(np.flatnonzero(self._model.indicator(self._model.initial))[0]) * (counted + 1)

        def column(budget: int) -> Sequence[Fraction]:
            with suppress(NotExactError):
                return [] if budgets is None else budgets.at(budget)[begin : begin + counted + 1]
            return []

        return column

    def _lowered(
        self,
        stairs: Sequence[_Stair],
        column: StateValues,
        first: int,
        exactly: Callable[[], Sequence[Fraction]],
    ) -> Sequence[_Stair]:
        """Return stairs with that of the next column; none where all of the first one is too little."""
        search, counted = self._searches[1], column.values.size - 1
        truth = search.compared(column)
        values, unknown = truth.values.copy(), np.zeros(counted + 1, np.bool_)
        if truth.unknown is not None and bool(truth.unknown.any()):
            unknown, self._reason = truth.unknown.copy(), truth.reason
            exact = exactly()
            for k in np.flatnonzero(unknown).tolist() if exact else []:
                holds = search.holds_exactly(exact[k])
                if holds is not None and column.lower[k] <= exact[k] <= column.upper[k]:
                    values[k], unknown[k] = holds, False
        before = stairs[-1] if stairs else _Stair(counted + 1, counted + 1)
        sure, may = np.flatnonzero(values & ~unknown), np.flatnonzero(values | unknown)
        least = min([before.least, *may[:1].tolist()])
        if least > counted:
            return []
        # Less than the first bound that is enough without a second one never is.
        return [*stairs, _Stair(max(least, first), min([before.enough, *sure[:1].tolist()]))]

    def _pairs(self, stairs: Sequence[_Stair], second: int) -> Summary:
        """Return the corners, each with what is one less on either side too little."""
        certain: list[tuple[int, int]] = []
        unsure: list[tuple[int, int]] = []
        before = math.inf
        for budget, stair in enumerate(stairs, start=second):
            if stair.least < before:
                (certain if stair.least == stair.enough else unsure).append((stair.least, budget))
            before = stair.least
        units = self._split.units
        found, open_pairs = (
            tuple((a * units[0], b * units[1]) for a, b in reversed(own))  # lemma: arithmetic
            for own in (certain, unsure)
        )
        if unsure:
            shown = [", ".join(f"({a}, {b})" for a, b in own) or "none" for own in (open_pairs, found)]
            raise UnknownError(
                f"quantile: unknown at this precision of {shown[0]}, certain of {shown[1]}: {self._reason}"
            )
        return Summary(None, None, None, pairs=found)
