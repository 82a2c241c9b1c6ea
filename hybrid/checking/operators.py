"""What P, S and R are worth: by iteration, or exactly where iterations lead nowhere on a small model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.operator_values import operator_values
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.scope import Scope
from hybrid.base.errors import NotConvergedError, NotExactError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.arithmetic import constant_values
from hybrid.checking.combine import compare
from hybrid.checking.every_state import KEPT
from hybrid.checking.formulas import FormulaChecker
from hybrid.matrix.space.bounded_solution import TINY
from hybrid.matrix.space.watch import Watch
from hybrid.properties.tree import Probability, Reward, SteadyState
from mtbdd.base.budget import BudgetError
from mtbdd.build.model import SymbolicModel
from mtbdd.language.syntax import Expression, Literal

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import Scheduler

_LOOSE = 1000.0  # times epsilon that bounds may be apart before exact answers are tried
_FEW_STATES = 5000  # beyond, exact answers are not worth trying
_FEW_ITERATIONS = 4096  # beyond, iterations over few states may well lead nowhere
_FEW_OPERATIONS = 125_000  # of an exact solution, which take about as long


class OperatorChecker(FormulaChecker):
    """Values of formulas whose operators are answered by the algorithms of `hybrid.analysis`.

    Parameters
    ----------
    model : SymbolicModel
    options : CheckOptions
    progress : callable, optional
        Called with (iteration, difference) during iterations.  A `hybrid.matrix.space.watch.Watch` may end
        them.
    values : bool
        Whether the values of all states are kept, however many these are.
    """

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        progress: Callable[[int, float], None] | None = None,
        values: bool = False,
    ) -> None:
        super().__init__(model)
        self.options, self._progress = options, progress
        self._work = Work()
        self._keeps = values or (model.n_states <= KEPT and model.communicator.size == 1)
        self._top: Expression | None = None
        self._whole: StateValues | StateTruth | None = None
        self._scheduled: Expression | None = None
        self._scheduler: Scheduler | None = None

    def _stopped(self) -> BaseException | None:
        """Return what ended an iteration before its time, if anything did."""
        return self._progress.stopped if isinstance(self._progress, Watch) else None

    def _operator(self, formula: Probability | SteadyState | Reward) -> StateValues | StateTruth:
        """Return the values of P, S or R in the present scope, compared with the operator's bound if any."""
        if not (self._keeps and formula is self._top):
            return self._compared(formula, self._scope)
        self._whole = found = self._compared(formula, Scope.every(self.model))
        return self._scope.of_truth(found) if isinstance(found, StateTruth) else self._scope.of_values(found)

    def _compared(
        self, formula: Probability | SteadyState | Reward, scope: Scope
    ) -> StateValues | StateTruth:
        """Return the same in another scope, which has the states of the present one."""
        letter = formula.letter
        before, self._unproven = self._unproven, False
        found = self._values(formula, scope)
        if self._unproven:
            found = found.without_bounds()
        self._unproven |= before
        missing = np.isnan(self._asked_for(found, scope).values)
        if self.model.communicator.any(missing.any()):
            raise self._no_value(formula, missing)
        if formula.comparison is None:
            return found
        if not isinstance(formula.threshold, Literal):
            raise UnsupportedError("the operator's bound is not a constant")
        threshold = float(formula.threshold.value)
        bound = constant_values(formula.threshold.value, found.values.size)
        truth = compare(formula.comparison, found, bound, f"{letter}{formula.comparison}{threshold!r}")
        sides = (formula, found), (formula.threshold, bound)
        return self._settled(truth, formula.comparison, *sides, scope.positions)

    def _asked_for(self, found: StateValues, scope: Scope) -> StateValues:
        """Return, of values in a scope with all states of the present one, those in the present one."""
        return found if scope is self._scope else self._scope.of_values(found)

    def _values(self, formula: Probability | SteadyState | Reward, scope: Scope) -> StateValues:
        """Return the values of P, S or R, exact ones where iterations lead nowhere and the model is small."""
        if self.options.exact:
            assert self._exact is not None
            found = self._exact.enclosures(formula)
            self._work.method = "exact"
            return scope.of_values(found)
        is_divided = self.model.communicator.size > 1
        patient = self.options.method == "auto" and formula is not self._scheduled and not is_divided
        before = self._work.unfinished
        try:
            soon = self._soon(formula, scope) if patient else None
            found = self._iterated(formula, scope) if soon is None else soon
        except NotConvergedError:
            exact = self._exactly(formula) if patient and self._stopped() is None else None
            if exact is None:
                raise
            return scope.of_values(exact)
        if self._work.unfinished is not before and self._stopped() is None:
            exact = self._exactly(formula) if patient else None
            if exact is not None:
                self._work.unfinished, found = before, scope.of_values(exact)
            return found
        if self._stopped() is not None:
            return found
        if patient and self.model.n_states <= _FEW_STATES and self._is_loose(self._asked_for(found, scope)):
            try:
                exact = self._exactly(formula)
                return found if exact is None else scope.of_values(exact)
            except BudgetError as spent:
                if not isinstance(self._progress, Watch):
                    raise
                self._progress.stopped = spent  # the bounds stay
        return found

    def _soon(self, formula: Probability | SteadyState | Reward, scope: Scope) -> StateValues | None:
        """Return the values of a small model by few iterations, or exact ones where these do not do.

        None where neither ends soon, where iterations are kept for a run to come, or are few anyway.
        """
        options, before = self.options, self._work.unfinished
        criterion = options.criterion
        if self.model.n_states > _FEW_STATES or criterion.max_iterations <= _FEW_ITERATIONS:
            return None
        if self._work.checkpoint is not None:
            return None
        self.options = replace(options, max_iterations=_FEW_ITERATIONS)
        try:
            found = self._iterated(formula, scope)
        except NotConvergedError:
            pass
        except UnsupportedError:
            return None  # too many steps for the limit, perhaps
        else:
            if self._work.unfinished is before or self._stopped() is not None:
                return found
        finally:
            self.options = options
        self._work.unfinished = before
        exact = self._exactly(formula, _FEW_OPERATIONS)
        return None if exact is None else scope.of_values(exact)

    def _exactly(
        self, formula: Probability | SteadyState | Reward, most: int | None = None
    ) -> StateValues | None:
        """Return exact values, rounded to the doubles around them; None if they cannot be had.

        `most` is how many operations they may take, if that is fewer than usual.
        """
        from hybrid.analysis.exact.formulas import ExactFormulas

        try:
            found = ExactFormulas(self.model, self.states, most=most).enclosures(formula)
        except NotExactError:
            return None
        self._work.method = "exact"
        return found

    def _is_loose(self, some: StateValues) -> bool:
        """Whether bounds are much further apart than epsilon."""
        told = np.isfinite(some.lower) & np.isfinite(some.upper) & (np.abs(some.upper) > TINY)
        with np.errstate(invalid="ignore"):
            width = np.where(told, some.upper - some.lower, 0.0)
        size = 1.0 if self.options.criterion.absolute else np.maximum(np.abs(some.lower), np.abs(some.upper))
        return bool((width > _LOOSE * self.options.criterion.epsilon * size).any())

    def _iterated(self, formula: Probability | SteadyState | Reward, scope: Scope) -> StateValues:
        """Return the values of P, S or R by its algorithm."""
        maker = None
        if formula is self._scheduled:
            from hybrid.analysis.scheduler import SchedulerMaker

            maker = SchedulerMaker(self.model)
        found = operator_values(self.model, formula, self.states, self.options, self._work, maker, scope)
        if maker is not None:
            self._scheduler = maker.finish()
        return found

    def _decided_exactly(self) -> None:
        """Note that a comparison was decided in rational numbers."""
        self._work.method = "exact"
