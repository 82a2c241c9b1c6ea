"""Quantiles: the least or greatest reward bounds for which a probability meets its threshold."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from hybrid.analysis.exact.budgets import ExactBudgets
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.analysis.memory_scheduler import number_of_bits
from hybrid.analysis.operator_values import maximises, until_form
from hybrid.analysis.reward_bounded import BudgetSweep, check_bounded_method
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import until_probabilities
from hybrid.base.directed_rounding import rounded_down, rounded_up
from hybrid.base.errors import NotExactError, PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.arithmetic import compare, constant_values
from hybrid.checking.filters import Summary, gathered
from hybrid.matrix.space.base import Clock
from hybrid.properties.registry import LTL, asked_quantity
from hybrid.properties.tree import Path, Probability, Quantile, RewardBound, RewardBounds
from mtbdd.base.errors import option
from mtbdd.base.records import Record
from mtbdd.build.automaton_product import counter_product
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_reward, split_by_rewards
from mtbdd.diagrams.manager import Node
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import Expression, Literal
from mtbdd.offset.states import index_states

_COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
FINER = 1000.0  # of epsilon: what budgets leave adds up, and how many there will be is not known


def quantile(
    model: SymbolicModel,
    formula: Quantile,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: SolveStatistics,
    exact: ExactFormulas | None = None,
) -> Summary:
    """Answer `quantile(min B, P>=p [ F{"x"}<=B states ])` and its like, resolved.

    Returns a multiple of the unit of the rewards, or infinity where no bound will do, or every one; of a
    search that was ended before its time bounds alone. `exact` decides in rational numbers what bounds leave
    open. Raises PropertyError where no bound is small enough, or the search has taken as many budgets as
    iterations are allowed, UnknownError where the bounds on the probability do not say which bound on the
    reward it is, and UnsupportedError for several initial states, a question without an end, and what
    reward-bounded probabilities refuse.
    """
    check_bounded_method(options)
    return QuantileSearch(model, formula, states, options, work, exact).found()


class QuantileSearch:
    """Searches the bound of one reward; of a `complement` the threshold is one on the rest.

    `safe`, `target`: of the until whose probability is compared, the greatest if `maximise`.
    """

    def __init__(
        self,
        model: SymbolicModel,
        formula: Quantile,
        states: Callable[[Expression], Node],
        options: CheckOptions,
        work: SolveStatistics,
        exact: ExactFormulas | None,
    ) -> None:
        probability = formula.probability
        assert isinstance(probability, Probability) and isinstance(probability.threshold, Literal)
        path = probability.path
        assert isinstance(path, Path) and isinstance(path.bound, RewardBound) and path.bound.index is not None
        if asked_quantity(probability) is LTL:
            raise UnsupportedError("quantile: expected one path operator over state formulas, got LTL")
        starts = index_states(model.manager, model.initial).total
        if starts != 1:
            raise UnsupportedError(
                f"quantile: expected one initial state, which the answer is about, got {starts}"
            )
        self._model, self._options, self._work = model, options, work
        self._first = np.flatnonzero(model.indicator(model.initial))  # none in other processes
        self._operator, self._threshold = probability.comparison or "", probability.threshold.value
        self.safe, self.target, self._complement = until_form(model, path, states)
        wanted = not model.is_mdp or maximises(probability)
        self.maximise = wanted != self._complement
        self._least = formula.optimum == "min"
        if self._least != ((self._operator[0] == ">") != self._complement):
            other, more = ("max", "smaller") if self._least else ("min", "greater")
            raise UnsupportedError(
                f"quantile: where a bound will do, all {more} ones do, too, so that {formula.optimum} asks "
                f"for nothing; ask with {other}"
            )
        self._split: RewardSplit = split_by_reward(model, path.bound.index)
        self._exact: ExactBudgets | None = None
        if exact is not None:
            with suppress(NotExactError):
                self._exact = exact.budgets(self.safe, self.target, self._split, self.maximise)

    def found(self) -> Summary:
        """Return the answer."""
        model, options, work = self._model, self._options, self._work
        always = until_probabilities(model, self.safe, self.target, self.maximise, options, work)
        holds = self._holds(always)
        if holds is not None and holds != self._least:
            return Summary(math.inf, math.inf, math.inf)
        if max(self._split.parts, default=0) == 0:
            if holds is None:
                raise UnknownError(self._reason)
            return self._decided(0, 0)
        epsilon = options.criterion.epsilon / FINER
        sweep = BudgetSweep(model, self._split, self.safe, self.target, self.maximise, options, work, epsilon)
        opened: int | None = None
        clock, most = Clock(work.progress), options.criterion.max_iterations
        with clock.cancellable():
            while True:
                sweep.advance()
                k = sweep.budget
                holds = self._holds(sweep.values(), k)
                if holds == self._least:
                    return self._decided(k if opened is None else opened, k)
                if holds is None and opened is None:
                    opened = k
                if sweep.settled:
                    if opened is not None:
                        raise UnknownError(self._reason)
                    return Summary(math.inf, math.inf, math.inf)
                is_ended = sweep.ended or clock.tick(sweep.made, math.inf)
                lower = (k + 1 if opened is None else opened) - (not self._least)
                if is_ended:
                    # lemma: arithmetic
                    return Summary(None, rounded_down(max(lower, 0) * self._split.unit), math.inf)
                if sweep.made >= most:
                    raise PropertyError(
                        f"quantile: the bound is at least {self._shown(lower)}, and {most} budgets of reward "
                        f"are done, as many as iterations are allowed: raise {option('max-iters')}"
                    )

    def _holds(self, found: StateValues, budget: int | None = None) -> bool | None:
        """Return whether values are as they should be in the initial state; None if bounds leave it open.

        Those of a budget are then found in rational numbers, where that goes.
        """
        first = self._initial(found)
        truth = self.compared(first)
        if truth.unknown is not None and bool(truth.unknown[0]):
            self._reason = truth.reason
            return None if budget is None else self._exactly(first, budget)
        return bool(truth.values[0])

    @property
    def split(self) -> RewardSplit:
        """The matrices by the reward."""
        return self._split

    def compared(self, found: StateValues) -> StateTruth:
        """Return whether probabilities of the until are as they should be."""
        own = found.complement() if self._complement else found
        what = f"quantile: P{self._operator}{float(self._threshold)!r}"
        return compare(self._operator, own, constant_values(self._threshold, own.values.size), what)

    def _initial(self, found: StateValues) -> StateValues:
        """Return the value in the initial state, whichever process has it."""
        together = gathered(self._model.communicator, found, self._first)
        assert isinstance(together, StateValues)
        return together

    def _exactly(self, own: StateValues, budget: int) -> bool | None:
        """Return the same in rational numbers; None if they cannot be had, or contradict the bounds."""
        if self._exact is None:
            return None
        try:
            value = self._exact.at(budget)[int(self._first[0])]
        except NotExactError:
            self._exact = None
            return None
        if not Fraction(float(own.lower[0])) <= value <= Fraction(float(own.upper[0])):
            return None
        return self.holds_exactly(value)

    def holds_exactly(self, value: Fraction) -> bool | None:
        """Return whether a probability of the until is as it should be; None for an irrational threshold."""
        threshold = real_of(self._threshold)
        if not isinstance(threshold, (int, Fraction)):
            return None
        value = 1 - value if self._complement else value
        return bool(_COMPARED[self._operator](value, threshold))

    def _decided(self, first: int, last: int) -> Summary:
        """Return the answer from the first budget that may decide and the first one that does."""
        if not self._least:
            first, last = first - 1, last - 1
        if last < 0:
            raise PropertyError("quantile: no bound will do, not even 0")
        if first != last:
            raise UnknownError(
                f"quantile: unknown at this precision, between {self._shown(max(first, 0))} and "
                f"{self._shown(last)}: {self._reason}"
            )
        exact = last * self._split.unit
        value = exact.numerator if exact.denominator == 1 else float(exact)
        return Summary(value, rounded_down(exact), rounded_up(exact))  # lemma: arithmetic

    def _shown(self, units: int) -> str:
        return str(Fraction(units) * self._split.unit)

    _reason = ""


# Quantiles of two bounds on rewards: the least pairs for which a probability meets its threshold.
#
# A counter of the first reward is beside the states, from the initial one with any number. With k of M units
# counted the probability is that of M - k units. So one budget of the second reward has a column: the
# probability for all first bounds up to M. Columns rise from budget to budget, and the least pairs are a
# staircase. It leads from the least second bound at all to the least first one; `QuantileSearch` finds both.

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

        Raises UnknownError: bounds on the probability do not say of some pair whether it is enough. Raises
        PropertyError: the search has taken as many budgets, or units, as iterations are allowed.
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
