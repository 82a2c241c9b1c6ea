"""From the property tree to values: each operator is sent to its algorithm.

A formula yields one number or truth value for every reachable state; an answer is that value in the
initial states, or what a filter makes of the values.  Sets of states that operators define become
decision diagrams again, so that operators nest to any depth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hybrid.checking.answer import Answer
from hybrid.checking.bounded_rewards import cumulative_rewards, instantaneous_rewards
from hybrid.checking.combine import (
    apply_arithmetic,
    apply_call,
    apply_logic,
    choose,
    compare,
    equivalent,
    negate,
)
from hybrid.checking.errors import UnsupportedError
from hybrid.checking.filters import Summary, selected, summarise
from hybrid.checking.options import CheckOptions
from hybrid.checking.paths import path_probabilities
from hybrid.checking.quantities import NotConvergedError, StateTruth, StateValues, UnknownError, Work
from hybrid.checking.rewards import reachability_rewards, total_rewards
from hybrid.checking.steady import steady_probabilities, steady_rewards
from hybrid.exact.formulas import ExactFormulas
from hybrid.mdp.operators import optimal_values
from hybrid.properties.tree import (
    Cumulative,
    Filter,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Property,
    Reward,
    SteadyState,
)
from mtbdd.language.errors import LanguageError
from mtbdd.language.syntax import (
    Binary,
    Call,
    Conditional,
    Expression,
    LabelReference,
    Literal,
    Name,
    Unary,
)
from mtbdd.language.walk import walk
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import expression_values
from mtbdd.states import states_from

__all__ = ["Checker", "UnsupportedError"]

_OPERATORS = (Probability, SteadyState, Reward, Filter, Path)
_LOGIC = ("&", "|", "=>", "<=>")
_ARITHMETIC = ("+", "-", "*", "/")
_FINE = 1e-12  # precision of the second attempt at a comparison that the first one left unknown


class Checker:
    """Checks properties of one model.

    Parameters
    ----------
    model : SymbolicModel
    options : CheckOptions
    progress : callable, optional
        Called with (iteration, difference) during iterations.
    """

    def __init__(
        self,
        model: SymbolicModel,
        options: CheckOptions,
        progress: Callable[[int, float], None] | None = None,
    ) -> None:
        self.model = model
        self.options = options
        self._progress = progress
        self._work = Work()
        self._unproven = False
        self._exact: ExactFormulas | None = None

    def answer(self, prop: Property) -> Answer:
        """Return the answer to a resolved property; faults of the property are part of the answer.

        A comparison that bounds leave unknown is tried again with a smaller epsilon, and on small chains
        decided in rational numbers if that does not help.  Only failures
        that concern the property become its error; running out of memory, interrupts and defects of
        the program pass through.
        """
        start = time.perf_counter()
        self._work, self._unproven = Work(progress=self._progress), False
        summary, error = None, None
        try:
            if prop.error is not None:
                raise prop.error
            summary = self._patient_summary(prop.formula)
        except (NotConvergedError, UnknownError, UnsupportedError, LanguageError, ValueError) as fault:
            error = str(fault)
        except RecursionError:
            error = "expected a property nested less deeply; split it with labels"
        seconds = time.perf_counter() - start
        engine, work = self.options.engine, self._work
        if summary is None:
            return Answer(prop.name, prop.text, None, None, None, error, work, seconds, engine)
        bounds = (None, None) if self._unproven else (summary.lower, summary.upper)
        return Answer(
            prop.name, prop.text, summary.value, *bounds, None, work, seconds, engine, summary.listing
        )

    # ------------------------------------------------------------------ top level

    def _patient_summary(self, formula: Expression) -> Summary:
        """Return the answer's value, from better bounds or exact numbers if the first decide nothing."""
        try:
            return self._summary(formula)
        except UnknownError:
            coarse = self.options
            if coarse.enclosing() is None:
                raise
            try:
                epsilon = min(coarse.criterion.epsilon, _FINE)
                self.options = replace(coarse, criterion=replace(coarse.criterion, epsilon=epsilon))
                self._exact = None if self.model.is_mdp else ExactFormulas(self.model, self.states)
                return self._summary(formula)
            finally:
                self.options, self._exact = coarse, None

    def _summary(self, formula: Expression) -> Summary:
        """Return the answer's value: a filter's result, or the value in the initial states."""
        if isinstance(formula, Filter):
            found = self.evaluate(formula.operand)
            return summarise(self.model, formula.operator, found, self._filtered(formula))
        return summarise(self.model, "initial", self.evaluate(formula), self.model.initial)

    def _filtered(self, formula: Filter) -> Node:
        """Return the states that a filter looks at."""
        return self.model.reachable if formula.states is None else self.states(formula.states)

    # ------------------------------------------------------------------ formulas

    def states(self, formula: Expression) -> Node:
        """Return the states that satisfy a state formula.

        Raises
        ------
        UnknownError
            In some state the bounds do not decide.
        """
        model = self.model
        if not _has_operators(formula):
            return model.states(formula)
        if isinstance(formula, Unary) and formula.operator == "!":
            return model.reachable & ~self.states(formula.operand)
        truth = self.evaluate(formula)
        if not isinstance(truth, StateTruth):
            raise UnsupportedError("expected a truth value to define a set, got a number: give it a bound")
        self._unproven |= truth.unproven is not None
        return states_from(model.manager, model.index, truth.decided())

    def evaluate(self, formula: Expression) -> StateValues | StateTruth:
        """Return a formula's value in every state."""
        if isinstance(formula, (Probability, SteadyState, Reward)):
            return self._operator(formula)
        if isinstance(formula, Filter):
            return self._nested_filter(formula)
        if not _has_operators(formula):
            if _is_boolean(formula, self.model):
                return StateTruth(self.model.indicator(self.model.states(formula)))
            return StateValues.exact(expression_values(self.model, formula, self.model.index))
        if isinstance(formula, Unary):
            operand = self.evaluate(formula.operand)
            return operand.negated() if isinstance(operand, StateTruth) else negate(operand)
        if isinstance(formula, Binary):
            return self._binary(formula)
        if isinstance(formula, Call):
            arguments = [self._number(argument) for argument in formula.arguments]
            return apply_call(formula.function, arguments, formula.position)
        if isinstance(formula, Conditional):
            return self._conditional(formula)
        raise UnsupportedError(
            "LTL is not checked by this version: a path operator stands outside of P, or inside another one"
        )

    def _binary(self, formula: Binary) -> StateValues | StateTruth:
        """Join two operands of which one holds an operator."""
        if formula.operator in _ARITHMETIC:
            return apply_arithmetic(formula.operator, self._number(formula.left), self._number(formula.right))
        left, right = self.evaluate(formula.left), self.evaluate(formula.right)
        if isinstance(left, StateTruth) and isinstance(right, StateTruth):
            if formula.operator in _LOGIC:
                return apply_logic(formula.operator, left, right)
            same = equivalent(left, right)
            return same if formula.operator == "=" else same.negated()
        if isinstance(left, StateTruth) or isinstance(right, StateTruth):
            raise UnsupportedError(f"'{formula.operator}' joins a truth value and a number")
        truth = compare(formula.operator, left, right, f"the comparison '{formula.operator}'")
        return self._settled(truth, formula.operator, (formula.left, left), (formula.right, right))

    def _conditional(self, formula: Conditional) -> StateValues | StateTruth:
        """Return ``condition ? then : otherwise``."""
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

    def _nested_filter(self, formula: Filter) -> StateValues | StateTruth:
        """Return a filter's value where another formula uses it: the same in every state."""
        found, states = self.evaluate(formula.operand), self._filtered(formula)
        if formula.operator in ("argmin", "argmax") and isinstance(found, StateValues):
            indices = np.flatnonzero(self.model.indicator(states))
            if indices.size:
                attained = selected(formula.operator, found, indices)
                loose = np.isnan(found.lower)
                return StateTruth(attained, None, loose if bool(loose.any()) else None)
        if formula.operator in ("print", "printall"):
            return found
        summary = summarise(self.model, formula.operator, found, states)
        if summary.value is None:
            raise UnsupportedError("filter(range, ...) is an interval, which no formula around it can use")
        size = self.model.n_states
        if isinstance(summary.value, bool):
            unproven = None if summary.lower is not None else np.ones(size, dtype=np.bool_)
            return StateTruth(np.full(size, summary.value), None, unproven)
        lower, upper = (np.nan if b is None else float(b) for b in (summary.lower, summary.upper))
        return StateValues.constant(float(summary.value), lower, upper, size)

    # ------------------------------------------------------------------ operators

    def _operator(self, formula: Probability | SteadyState | Reward) -> StateValues | StateTruth:
        """Return the values of P, S or R, compared with the operator's bound if it has one."""
        model, options, work = self.model, self.options, self._work
        letter = "P" if isinstance(formula, Probability) else "R" if isinstance(formula, Reward) else "S"
        if model.is_mdp:
            found = optimal_values(model, formula, self.states, options, work)
        elif isinstance(formula, Probability):
            _refuse_optimum(formula.optimum, letter)
            found = path_probabilities(model, formula.path, self.states, options, work)
        elif isinstance(formula, SteadyState):
            found = steady_probabilities(model, self.states(formula.states), options, work)
        else:
            _refuse_optimum(formula.optimum, letter)
            found = self._reward(formula)
        if formula.comparison is None:
            return found
        if not isinstance(formula.threshold, Literal):
            raise UnsupportedError("the operator's bound is not a constant")
        threshold = float(formula.threshold.value)
        bound = StateValues.exact(np.broadcast_to(np.float64(threshold), found.values.shape))
        truth = compare(formula.comparison, found, bound, f"{letter}{formula.comparison}{threshold!r}")
        return self._settled(truth, formula.comparison, (formula, found), (formula.threshold, bound))

    def _settled(
        self,
        truth: StateTruth,
        operator: str,
        left: tuple[Expression, StateValues],
        right: tuple[Expression, StateValues],
    ) -> StateTruth:
        """Decide exactly, in the last attempt, where bounds do not."""
        if self._exact is None or truth.unknown is None:
            return truth
        settled = self._exact.settle(truth, operator, left, right)
        if settled is not truth:
            self._work.method = "exact"
        return settled

    def _reward(self, formula: Reward) -> StateValues:
        """Return the values of R."""
        if formula.index is None:
            raise UnsupportedError("the model has no reward structure for this property")
        model, options, work, target = self.model, self.options, self._work, formula.target
        if isinstance(target, LongRun):
            return steady_rewards(model, formula.index, options, work)
        if isinstance(target, Cumulative):
            if target.time is None:
                return total_rewards(model, formula.index, options, work)
            return cumulative_rewards(model, formula.index, _time(target.time), options, work)
        if isinstance(target, Instantaneous):
            return instantaneous_rewards(model, formula.index, _time(target.time), options, work)
        if isinstance(target, Path) and target.operator == "F" and target.bound is None:
            return reachability_rewards(model, formula.index, self.states(target.right), options, work)
        raise UnsupportedError(
            "rewards are gathered until a set is reached (F without a bound), up to a time (C<=t), at a time "
            "(I=t), in total (C) or in the long run (S); other paths are not checked by this version"
        )


def _time(expression: Expression) -> float:
    """Return a resolved time."""
    if not isinstance(expression, Literal):
        raise UnsupportedError("the time is not a constant")
    value = expression.value
    return value if isinstance(value, int) else float(value)


def _has_operators(formula: Expression) -> bool:
    """Return whether a formula holds an operator of properties."""
    return any(isinstance(part, _OPERATORS) for part in walk(formula))


def _refuse_optimum(optimum: str | None, letter: str) -> None:
    """Refuse Pmin and its like: chains have nothing to choose."""
    if optimum is not None:
        raise UnsupportedError(f"{letter}{optimum} needs an MDP: a chain has no choices; write {letter}")


def _is_boolean(formula: Expression, model: SymbolicModel) -> bool:
    """Whether a resolved, operator-free formula is a truth value."""
    if isinstance(formula, Literal):
        return isinstance(formula.value, bool)
    if isinstance(formula, Name):
        return model.encoding.by_name[formula.name].is_bool
    if isinstance(formula, Conditional):
        return _is_boolean(formula.then, model)
    if isinstance(formula, Binary):
        return formula.operator not in _ARITHMETIC
    return isinstance(formula, LabelReference) or (isinstance(formula, Unary) and formula.operator == "!")
