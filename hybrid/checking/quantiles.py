"""Quantiles: the least or greatest reward bound for which a probability meets its threshold."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.budgets import ExactBudgets
from hybrid.analysis.exact.formulas import ExactFormulas
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
from hybrid.properties.tree import Path, Probability, Quantile, RewardBound
from mtbdd.base.errors import option
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_reward
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

    Attributes
    ----------
    safe, target : Node
        Of the until whose probability is compared, the greatest if `maximise`.
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
