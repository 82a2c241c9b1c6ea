"""From the property tree to values: each operator is sent to its algorithm.

A formula yields one value for every reachable state (`StateValues`); an answer is that value
in the initial states, or what a filter makes of the values.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.answer import Answer
from hybrid.checking.filters import Summary, summarise
from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import NotConvergedError, StateValues, Work
from hybrid.checking.rewards import reachability_rewards
from hybrid.checking.steady import steady_probabilities, steady_rewards
from hybrid.checking.until import until_probabilities
from hybrid.properties.tree import Filter, LongRun, Path, Probability, Property, Reward, SteadyState
from mtbdd.language import LanguageError
from mtbdd.language.syntax import Binary, Conditional, Expression, LabelReference, Literal, Name, Unary
from mtbdd.language.walk import walk
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.rewards import expression_values

__all__ = ["Checker", "UnsupportedError"]

_COMPARE: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS = (Probability, SteadyState, Reward, Filter)


class UnsupportedError(NotImplementedError):
    """A property that parses but that this version cannot check."""


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

    def answer(self, prop: Property) -> Answer:
        """Return the answer to a resolved property; faults of the property are part of the answer.

        Only failures that concern the property become its error; running out of memory,
        interrupts and defects of the program pass through.
        """
        start = time.perf_counter()
        self._work = work = Work(progress=self._progress)
        summary, error = None, None
        try:
            if prop.error is not None:
                raise prop.error
            summary = self._summary(prop.formula)
        except (NotConvergedError, UnsupportedError, LanguageError, ValueError) as fault:
            error = str(fault)
        seconds = time.perf_counter() - start
        if summary is None:
            return Answer(prop.name, prop.text, None, None, None, error, work, seconds, self.options.engine)
        value, bound = summary.value, summary.value if summary.exact else None
        return Answer(prop.name, prop.text, value, bound, bound, None, work, seconds, self.options.engine)

    # ------------------------------------------------------------------ top level

    def _summary(self, formula: Expression) -> Summary:
        """Return the answer's value: a filter's result, or the value in the initial states."""
        if isinstance(formula, Filter):
            states = self.model.reachable if formula.states is None else self.states(formula.states)
            return summarise(self.model, formula.operator, self.values(formula.operand), states)
        return summarise(self.model, "initial", self.values(formula), self.model.initial)

    # ------------------------------------------------------------------ formulas

    def states(self, formula: Expression) -> Node:
        """Return the states that satisfy a formula without operators."""
        nested = [part for part in walk(formula) if isinstance(part, _OPERATORS)]
        if nested:
            kind = type(nested[0]).__name__
            raise UnsupportedError(f"operators inside operators are not checked by this version: {kind}")
        return self.model.states(formula)

    def values(self, formula: Expression) -> StateValues:
        """Return a formula's value in every state."""
        if isinstance(formula, Probability):
            return self._compared(formula, self._probability(formula))
        if isinstance(formula, SteadyState):
            found = steady_probabilities(self.model, self.states(formula.states), self.options, self._work)
            return self._compared(formula, found)
        if isinstance(formula, Reward):
            return self._compared(formula, self._reward(formula))
        if any(isinstance(part, _OPERATORS) for part in walk(formula)):
            raise UnsupportedError(
                "operators joined by boolean or arithmetic connectives are not checked by this version"
            )
        if _is_boolean(formula, self.model):
            return StateValues(self.model.indicator(self.states(formula)))
        return StateValues(expression_values(self.model, formula, self.model.index))

    def _probability(self, formula: Probability) -> StateValues:
        """Return the probabilities of an unbounded until or eventually."""
        _refuse_optimum(formula.optimum, "P")
        path = formula.path
        if not isinstance(path, Path) or path.operator not in ("U", "F") or path.bound is not None:
            shape = path.operator if isinstance(path, Path) else type(path).__name__
            bounded = isinstance(path, Path) and path.bound is not None
            what = f"{shape} with a bound" if bounded else shape
            raise UnsupportedError(f"P [ {what} ] is not checked by this version: U and F without bounds are")
        safe = self.model.reachable if path.left is None else self.states(path.left)
        target = self.states(path.right)
        return until_probabilities(self.model, safe, target, self.options, self._work)

    def _reward(self, formula: Reward) -> StateValues:
        """Return reachability or long-run rewards."""
        _refuse_optimum(formula.optimum, "R")
        if formula.index is None:
            raise UnsupportedError("the model has no reward structure for this property")
        target = formula.target
        if isinstance(target, LongRun):
            return steady_rewards(self.model, formula.index, self.options, self._work)
        if isinstance(target, Path) and target.operator == "F" and target.bound is None:
            states = self.states(target.right)
            return reachability_rewards(self.model, formula.index, states, self.options, self._work)
        raise UnsupportedError("rewards C, I= and bounded ones are not checked by this version: F and S are")

    def _compared(self, formula: Probability | SteadyState | Reward, found: StateValues) -> StateValues:
        """Apply the operator's bound, if it has one.

        Values that carry no error bound and lie within the precision of the threshold decide
        nothing; they are refused rather than guessed.
        """
        if formula.comparison is None:
            return found
        if not isinstance(formula.threshold, Literal):
            raise UnsupportedError("the operator's bound is not a constant")
        threshold = float(formula.threshold.value)
        close = np.abs(found.values - threshold) <= 1e-6 * max(abs(threshold), 1e-300)
        if found.exact is not None and (close & ~found.exact).any():
            raise UnsupportedError(
                f"the value lies too close to the bound {threshold} to decide at this precision, "
                "in some state; ask for the value with =?"
            )
        return StateValues(_COMPARE[formula.comparison](found.values, threshold), found.exact)


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
        return formula.operator not in ("+", "-", "*", "/")
    return isinstance(formula, LabelReference) or (isinstance(formula, Unary) and formula.operator == "!")
