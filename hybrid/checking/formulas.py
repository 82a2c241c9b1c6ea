"""From the property tree to values: connectives, arithmetic, filters and the sets that formulas define."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.operator_values import Scope, operator_values
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.base.directed_rounding import outward
from hybrid.base.errors import NotConvergedError, NotExactError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.filters import decided_by_all, selected_by_all, summarise
from hybrid.matrix.space.base import ProgressMonitor
from hybrid.matrix.space.bounded_solution import TINY
from hybrid.properties import registry
from hybrid.properties.registry import Capability, asked_quantity, has_operator
from hybrid.properties.tree import STATE_OPERATORS, Filter, Probability, Quantified, Reward, SteadyState
from mtbdd.base.budget import BudgetError
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import expression_enclosure
from mtbdd.diagrams.manager import Node
from mtbdd.language.errors import EvaluationError, Fault, format_state
from mtbdd.language.syntax import Binary, Call, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.offset.states import index_states, states_from

if TYPE_CHECKING:
    from hybrid.analysis.exact.formulas import ExactFormulas
    from hybrid.analysis.scheduler import Scheduler


KEPT = 1 << 18
"""States up to which an answer holds the values of all of them unasked: 6 MB with their bounds."""


FORMULAS = Capability[StateValues | StateTruth](
    lambda e, reason: UnsupportedError(reason),
    "{} is about the initial state and stands alone: not in other operators, in connectives or in filters",
)
"""Methods of `FormulaChecker` that return the values of an operator in the present scope."""

# Iterations that lead nowhere on a small model give way to exact answers.
_LOOSE = 1000.0  # times epsilon that bounds may be apart before exact answers are tried
_FEW_STATES = 5000  # beyond, exact answers are not worth trying
_FEW_ITERATIONS = 4096  # beyond, iterations over few states may well lead nowhere
_FEW_OPERATIONS = 125_000  # of an exact solution, which take about as long

LOGIC = ("&", "|", "=>", "<=>")
_ARITHMETIC = ("+", "-", "*", "/")


class FormulaChecker:
    """Values of formulas in the states where they are requested; `hybrid.analysis` answers the operators.

    `progress` is called with (iteration, difference) during iterations, which a
    `hybrid.matrix.space.base.ProgressMonitor` may end; with `values` the values of all states are kept,
    however many these are.
    """

    MANY: ClassVar[int] = 1 << 20
    """States beyond which values that are diagrams are not read one by one."""

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        progress: Callable[[int, float], None] | None = None,
        values: bool = False,
    ) -> None:
        self.model, self.options, self._progress = model, options, progress
        self._unproven = False
        self._exact: ExactFormulas | None = None
        self._scope = Scope.every(model)
        self._work = SolveStatistics()
        self._keeps = values or (model.n_states <= KEPT and model.communicator.size == 1)
        self._top: Expression | None = None
        self._whole: StateValues | StateTruth | None = None
        self._scheduled: Expression | None = None
        self._scheduler: Scheduler | None = None

    def _filtered(self, formula: Filter) -> Node:
        """Return the states of a filter."""
        return self.model.reachable if formula.states is None else self.states(formula.states)

    def states(self, formula: Expression) -> Node:
        """Return the states that satisfy a state formula; UnknownError where bounds do not decide."""
        from hybrid.analysis.ctl import ctl_states

        model = self.model
        if not has_operator(formula):
            return model.states(formula)
        if isinstance(formula, Unary) and formula.operator == "!":
            return model.reachable & ~self.states(formula.operand)
        if isinstance(formula, Quantified):
            return ctl_states(model, formula, self.states)
        if self.is_wide(model.reachable):
            found = self._states_on_diagrams(formula)
            if found is not None:
                return found
            model.index.require_numbers("ask for P and R with bounds, and connectives of these")
        model.index.require_numbers()
        with self._within(Scope.every(self.model)):
            truth = self.evaluate(formula)
        if not isinstance(truth, StateTruth):
            raise UnsupportedError("expected a truth value to define a set, got a number: give it a bound")
        self._unproven |= model.communicator.any(truth.unproven is not None)
        return states_from(model.manager, model.index, decided_by_all(model.communicator, truth))

    def is_wide(self, states: Node) -> bool:
        """Return whether states are too many for arrays, or for values of diagrams read one by one."""
        if self.options.exact or index_states(self.model.manager, states).total <= self.MANY:
            return False
        return self.options.engine == "symbolic" or not self.model.is_numbered

    def _states_on_diagrams(self, formula: Expression) -> Node | None:
        """Return the states that satisfy a formula with operators; None where that takes arrays."""
        if isinstance(formula, Binary) and formula.operator in LOGIC:
            left, right, every = self.states(formula.left), self.states(formula.right), self.model.reachable
            if formula.operator == "&":
                return left & right
            if formula.operator == "|":
                return left | right
            missed = left & ~right
            return every & ~(missed if formula.operator == "=>" else missed | (right & ~left))
        if not isinstance(formula, (Probability, Reward)) or formula.comparison is None:
            return None
        from hybrid.analysis.on_diagrams import diagram_values

        scope, comparison = Scope.every(self.model), formula.comparison
        found = diagram_values(self.model, formula, self.states, self.options, self._work, scope)
        return found.where(lambda values: self._compared(formula, comparison, values)[0])

    @contextmanager
    def _within(self, scope: Scope) -> Iterator[None]:
        """Make a scope the present one, while the block lasts."""
        outer, self._scope = self._scope, scope
        try:
            yield
        finally:
            self._scope = outer

    def evaluate(self, formula: Expression) -> StateValues | StateTruth:
        """Return a formula's value in every state of the present scope."""
        scope = self._scope
        if isinstance(formula, STATE_OPERATORS):
            return FORMULAS.of(formula)(self, formula)
        from hybrid.checking.arithmetic import apply_call, negate

        if not has_operator(formula):
            if is_truth_value(formula, self.model):
                holds = self.model.states(formula, scope.index.states)
                return StateTruth(self.model.indicator(holds, scope.index))
            return self._expression(formula)
        if isinstance(formula, Unary):
            operand = self.evaluate(formula.operand)
            return operand.negated() if isinstance(operand, StateTruth) else negate(operand)
        if isinstance(formula, Binary):
            return self._binary(formula)
        if isinstance(formula, Call):
            arguments = [self._number(argument) for argument in formula.arguments]
            return apply_call(formula.function, arguments)
        if isinstance(formula, Conditional):
            return self._conditional(formula)
        raise UnsupportedError(
            "a path operator stands where a state formula is expected: only P and R take formulas with "
            "path operators in one another"
        )

    @FORMULAS.answers(registry.QUANTIFIED)
    def _quantified(self, formula: Quantified) -> StateTruth:
        """Return the truth of A or E in every state of the present scope; on estimates it is unproven."""
        before, self._unproven = self._unproven, False
        truth = StateTruth(self.model.indicator(self.states(formula), self._scope.index))
        if self._unproven:
            truth = truth.without_bounds()
        self._unproven |= before
        return truth

    def _expression(self, formula: Expression) -> StateValues:
        """Return an operator-free number in every state of the present scope."""
        from hybrid.checking.arithmetic import constant_values

        index = self._scope.index
        if isinstance(formula, Literal):
            return constant_values(formula.value, index.size)
        values, error = expression_enclosure(self.model, formula, index)
        missing = np.isnan(values)
        if self.model.communicator.any(missing.any()):
            self.model.translator.require_value(formula, index.states)
            raise self._undefined(formula, missing)
        if error is None:
            return StateValues.exact(values)
        return StateValues(values, *outward(values, error))  # lemma: arithmetic

    def _undefined(self, formula: Expression, missing: NDArray[np.bool_]) -> EvaluationError:
        """Return the fault of a number that has no value in some states of the present scope."""
        state = self._some_state(missing)
        fault = Fault(formula.position, f"expected a value in every state asked for, got none in {state}")
        return EvaluationError([fault])

    def _no_value(
        self, formula: Probability | SteadyState | Reward, missing: NDArray[np.bool_]
    ) -> UnsupportedError:
        """Return why P or R has no value in some states of the present scope."""
        if not isinstance(formula, Probability):
            return UnsupportedError(
                "R: rewards below zero that may be earned for ever need not add up to anything: "
                "give a time with C<=t, or ask for the long-run average with S"
            )
        state = self._some_state(missing)
        return UnsupportedError(
            f"P: the condition after '||' has probability 0 in {state}: expected one that is possible in all "
            "states asked for"
        )

    def _some_state(self, chosen: NDArray[np.bool_]) -> str:
        """Return a state of the present scope that is marked, as text; the same in all processes."""
        from mtbdd.build.state_order import in_order

        own = None
        if chosen.any():
            first = in_order(self.model, np.flatnonzero(chosen), self._scope.index)[:1]
            own = format_state(self.model.describe(first, self._scope.index)[0])
        return self.model.communicator.first_text(own) or ""

    def _binary(self, formula: Binary) -> StateValues | StateTruth:
        """Join two operands of which one holds an operator."""
        from hybrid.checking.arithmetic import apply_arithmetic, apply_logic, compare, equivalent

        if formula.operator in _ARITHMETIC:
            return apply_arithmetic(formula.operator, self._number(formula.left), self._number(formula.right))
        left, right = self.evaluate(formula.left), self.evaluate(formula.right)
        if isinstance(left, StateTruth) and isinstance(right, StateTruth):
            if formula.operator in LOGIC:
                return apply_logic(formula.operator, left, right)
            same = equivalent(left, right)
            return same if formula.operator == "=" else same.negated()
        if isinstance(left, StateTruth) or isinstance(right, StateTruth):
            raise UnsupportedError(f"'{formula.operator}' joins a truth value and a number")
        for side, found in ((formula.left, left), (formula.right, right)):
            missing = np.isnan(found.values)
            if self.model.communicator.any(missing.any()):
                raise self._undefined(side, missing)
        truth = compare(formula.operator, left, right, f"the comparison '{formula.operator}'")
        sides = (formula.left, left), (formula.right, right)
        return self._settled(truth, formula.operator, *sides, self._scope.positions)

    def _conditional(self, formula: Conditional) -> StateValues | StateTruth:
        """Return ``condition ? then : otherwise``."""
        from hybrid.checking.arithmetic import apply_logic, choose

        condition = self.evaluate(formula.condition)
        then, otherwise = self.evaluate(formula.then), self.evaluate(formula.otherwise)
        if not isinstance(condition, StateTruth):
            raise UnsupportedError("the condition before '?' is a number")
        if isinstance(then, StateValues) and isinstance(otherwise, StateValues):
            return choose(condition, then, otherwise)
        if isinstance(then, StateTruth) and isinstance(otherwise, StateTruth):
            chosen = apply_logic("&", condition, then)
            return apply_logic("|", chosen, apply_logic("&", condition.negated(), otherwise))
        raise UnsupportedError("the branches of '? :' are a number and a truth value")

    def _number(self, formula: Expression) -> StateValues:
        found = self.evaluate(formula)
        if isinstance(found, StateTruth):
            raise UnsupportedError("expected a number, got a truth value")
        return found

    @FORMULAS.answers(registry.FILTER)
    def _nested_filter(self, formula: Filter) -> StateValues | StateTruth:
        """Return a filter's value where another formula uses it: the same in every state."""
        if formula.operator in ("print", "printall"):
            return self.evaluate(formula.operand)
        states = self._filtered(formula)
        scope = Scope.of(self.model, states)
        with self._within(scope):
            found = self.evaluate(formula.operand)
        if formula.operator in ("argmin", "argmax") and isinstance(found, StateValues):
            return self._selected(formula, scope, found)
        summary = summarise(self.model, formula.operator, found, states, scope.index)
        if summary.value is None:
            raise UnsupportedError("filter(range, ...) is an interval, which no formula around it can use")
        size = self._scope.index.size
        if isinstance(summary.value, bool):
            unproven = None if summary.lower is not None else np.ones(size, dtype=np.bool_)
            return StateTruth(np.full(size, summary.value), None, unproven)
        lower, upper = (np.nan if b is None else float(b) for b in (summary.lower, summary.upper))
        return StateValues.constant(float(summary.value), lower, upper, size)

    def _selected(self, formula: Filter, scope: Scope, found: StateValues) -> StateTruth:
        """Return where argmin or argmax is attained, of the states of the filter's scope."""
        truth = selected_by_all(self.model.communicator, formula.operator, found)
        if self._exact is not None and truth.unknown is not None:
            from hybrid.analysis.exact.objectives import attained

            settled = attained(self._exact, formula, truth, scope.positions)
            if settled is not truth:
                self._work.method = "exact"
            truth = settled
        size = self.model.index.size
        values = scope.everywhere(truth.values, size)
        unknown, unproven = (
            None if mask is None else scope.everywhere(mask, size) for mask in (truth.unknown, truth.unproven)
        )
        return self._scope.of_truth(StateTruth(values, unknown, unproven, truth.reason))

    def _settled(
        self,
        truth: StateTruth,
        operator: str,
        left: tuple[Expression, StateValues],
        right: tuple[Expression, StateValues],
        positions: NDArray[np.int64] | None,
    ) -> StateTruth:
        """Decide exactly, in the last attempt, where bounds do not; the values are those at `positions`."""
        if self._exact is None or truth.unknown is None:
            return truth
        from hybrid.analysis.exact.objectives import settle

        settled = settle(self._exact, truth, operator, left, right, positions)
        if settled is not truth:
            self._work.method = "exact"
        return settled

    # ------------------------------------------------------------------ what P, S and R are worth

    def _stopped(self) -> BaseException | None:
        """Return what ended an iteration before its time, if anything did."""
        return self._progress.stopped if isinstance(self._progress, ProgressMonitor) else None

    @FORMULAS.answers(
        *(
            quantity
            for quantity in registry.QUANTITIES
            if quantity not in (registry.QUANTIFIED, registry.FILTER, registry.MULTI, registry.QUANTILE)
        )
    )
    def _operator(self, formula: Probability | SteadyState | Reward) -> StateValues | StateTruth:
        """Return the values of P, S or R in the present scope, compared with the operator's bound if any."""
        # Every state takes a system of its own.
        is_one_by_one = self.model.is_mdp and asked_quantity(formula) is registry.CONDITIONAL
        is_kept = self._keeps and formula is self._top and not is_one_by_one
        scope = Scope.every(self.model) if is_kept else self._scope
        before, self._unproven = self._unproven, False
        found = self._values(formula, scope)
        if self._unproven:
            found = found.without_bounds()
        self._unproven |= before
        missing = np.isnan(self._asked_for(found, scope).values)
        if self.model.communicator.any(missing.any()):
            raise self._no_value(formula, missing)
        comparison = formula.comparison
        answer = found if comparison is None else self._against_bound(formula, comparison, found, scope)
        if not is_kept:
            return answer
        self._whole = answer
        return (
            self._scope.of_truth(answer) if isinstance(answer, StateTruth) else self._scope.of_values(answer)
        )

    def _against_bound(
        self, formula: Probability | SteadyState | Reward, comparison: str, found: StateValues, scope: Scope
    ) -> StateTruth:
        """Compare values in a scope with the operator's bound."""
        truth, bound = self._compared(formula, comparison, found)
        assert formula.threshold is not None
        sides = (formula, found), (formula.threshold, bound)
        return self._settled(truth, comparison, *sides, scope.positions)

    def _compared(
        self, formula: Probability | SteadyState | Reward, comparison: str, found: StateValues
    ) -> tuple[StateTruth, StateValues]:
        """Compare values with the operator's bound, and return that as well."""
        from hybrid.checking.arithmetic import compare, constant_values

        if not isinstance(formula.threshold, Literal):
            raise UnsupportedError("the operator's bound is not a constant")
        threshold = float(formula.threshold.value)
        bound = constant_values(formula.threshold.value, found.values.size)
        return compare(comparison, found, bound, f"{formula.letter}{comparison}{threshold!r}"), bound

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
        before, maker = self._work.unfinished, None
        if formula is self._scheduled:
            from hybrid.analysis.scheduler import SchedulerBuilder

            maker = SchedulerBuilder(self.model)
        try:
            soon = self._soon(formula, scope) if patient else None
            asked = self.model, formula, self.states, self.options, self._work, maker, scope
            found = operator_values(*asked) if soon is None else soon
            if maker is not None:
                self._scheduler = maker.finish()
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
                if not isinstance(self._progress, ProgressMonitor):
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
        self.options = few = replace(options, max_iterations=_FEW_ITERATIONS)
        try:
            found = operator_values(self.model, formula, self.states, few, self._work, scope=scope)
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
        """Return whether bounds are much further apart than epsilon."""
        told = np.isfinite(some.lower) & np.isfinite(some.upper) & (np.abs(some.upper) > TINY)
        with np.errstate(invalid="ignore"):
            width = np.where(told, some.upper - some.lower, 0.0)
        size = 1.0 if self.options.criterion.absolute else np.maximum(np.abs(some.lower), np.abs(some.upper))
        return bool((width > _LOOSE * self.options.criterion.epsilon * size).any())


def is_truth_value(formula: Expression, model: SymbolicModel) -> bool:
    """Return whether a resolved, operator-free formula is a truth value."""
    if isinstance(formula, Literal):
        return isinstance(formula.value, bool)
    if isinstance(formula, Name):
        return model.encoding.by_name[formula.name].is_bool
    if isinstance(formula, Conditional):
        return is_truth_value(formula.then, model)
    if isinstance(formula, Binary):
        return formula.operator not in _ARITHMETIC
    return isinstance(formula, LabelReference) or (isinstance(formula, Unary) and formula.operator == "!")
