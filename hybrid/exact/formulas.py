"""Exact values of formulas in every state."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hybrid.analysis.bounded_until import Window
from hybrid.analysis.operator_values import is_reached_set, maximises, refuse_long_run
from hybrid.analysis.path_formulas import is_ltl, until_form
from hybrid.analysis.repeated import repeated_form, repeated_target
from hybrid.analysis.reward_bounded import units_of
from hybrid.errors import NotExactError
from hybrid.exact.budgets import ExactBudgets
from hybrid.exact.chain import ExactChain
from hybrid.exact.comparing import calculate
from hybrid.exact.elimination import Budget
from hybrid.exact.induction import WORK, Exact, finite
from hybrid.exact.optima import ExactOptima
from hybrid.exact.reading import MAX_TRANSITIONS, ExactModel
from hybrid.properties.path_operators import has_path
from hybrid.properties.tree import (
    STATE_OPERATORS,
    ConditionalPath,
    Cumulative,
    Filter,
    Instantaneous,
    LongRun,
    Path,
    Probability,
    Reward,
    RewardBound,
    SteadyState,
)
from hybrid.run.state_values import StateValues
from mtbdd.language.rounded import doubles_around, from_real, real_of
from mtbdd.language.syntax import Binary, Expression, Literal, Unary
from mtbdd.language.walk import walk
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.reward_split import RewardSplit, split_by_reward

_REDUCTIONS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "min": min,
    "max": max,
    "sum": lambda values: sum(values, Fraction(0)),
    "avg": lambda values: sum(values, Fraction(0)) / len(values),
    "first": lambda values: values[0],
}
_OPERATORS = (*STATE_OPERATORS, Path)


class ExactFormulas:
    """Exact values over one model.

    Parameters
    ----------
    model : SymbolicModel
    states : callable
        Returns the states that satisfy a state formula.
    asked : bool
        Whether exact answers were asked for: models and work are then limited by time and memory alone.
    most : int, optional
        Operations that they may take where they were not; default `hybrid.exact.induction.WORK`.
    """

    def __init__(
        self,
        model: SymbolicModel,
        states: Callable[[Expression], Node],
        asked: bool = False,
        most: int | None = None,
    ) -> None:
        self.model = model
        self._states = states
        self._model: ExactModel | None = None
        self._chain: ExactChain | None = None
        self._asked = asked
        self._budget = Budget(None if asked else WORK if most is None else most)
        self._known: dict[int, tuple[Expression, list[Exact]]] = {}

    def enclosures(self, formula: Expression) -> StateValues:
        """Return a numeric formula's exact values in every state as the nearest doubles, with bounds.

        Raises
        ------
        NotExactError
        """
        exact = self.values(formula)
        try:
            values = np.array([float(v) for v in exact])
        except OverflowError:
            raise NotExactError("a value is larger than any double") from None
        around = [doubles_around(from_real(v) if isinstance(v, Fraction) else v) for v in exact]
        return StateValues(
            values, np.array([low for low, _ in around]), np.array([high for _, high in around])
        )

    def values(self, formula: Expression) -> list[Exact]:
        """Return a numeric formula's exact value in every state; bounds of operators are not looked at.

        Raises
        ------
        NotExactError
        """
        known = self._known.get(id(formula))
        if known is None:
            # The formula is kept, so that its identity stays its own.
            known = self._known[id(formula)] = formula, self._values(formula)
        return known[1]

    def answer(self, formula: Expression) -> Fraction | None:
        """Return a numeric property's exact answer; None where it is no single rational number.

        Raises
        ------
        NotExactError
        """
        if isinstance(formula, Filter):
            if formula.operator not in _REDUCTIONS:
                return None
            found = self.values(formula)[:1]
        else:
            values = self.values(formula)
            found = [values[i] for i in np.flatnonzero(self.model.indicator(self.model.initial)).tolist()]
        single = found[0] if len(set(found)) == 1 else None
        return single if isinstance(single, Fraction) else None

    def _values(self, formula: Expression) -> list[Exact]:
        """Work out a formula's value in every state."""
        if isinstance(formula, Probability):
            return self._path(formula.path, self._maximises(formula))
        if isinstance(formula, SteadyState):
            refuse_long_run(self.model, formula)
            return self._chain_alone().long_run_probabilities(self._states(formula.states))
        if isinstance(formula, Reward):
            return self._reward(formula)
        if not any(isinstance(part, _OPERATORS) for part in walk(formula)):
            return list(self._numbers_of_model().values(formula))
        if isinstance(formula, Unary) and formula.operator == "-":
            return [-value for value in self.values(formula.operand)]
        if isinstance(formula, Binary) and formula.operator in ("+", "-", "*", "/"):
            pairs = zip(self.values(formula.left), self.values(formula.right), strict=True)
            return [calculate(formula.operator, a, b) for a, b in pairs]
        if isinstance(formula, Filter):
            return self._filter(formula)
        raise NotExactError(f"a {type(formula).__name__} is not evaluated exactly")

    def _filter(self, formula: Filter) -> list[Exact]:
        """Return a filter's value, the same in every state."""
        states = self.model.reachable if formula.states is None else self._states(formula.states)
        inside = np.flatnonzero(self.model.indicator(states)).tolist()
        values = [finite(value) for value in self.values(formula.operand)]
        some = [values[i] for i in inside]
        if not some or formula.operator not in _REDUCTIONS:
            raise NotExactError(f"filter({formula.operator}, ...) is not evaluated exactly")
        return [_REDUCTIONS[formula.operator](some)] * len(values)

    # ------------------------------------------------------------------ operators

    def _maximises(self, formula: Probability | Reward) -> bool:
        """Return whether an operator is about the greatest value; chains have but one."""
        return self.model.is_mdp and maximises(formula)

    def _chain_alone(self) -> ExactChain:
        """Return the chain in rational numbers, read at the first call.

        Raises
        ------
        NotExactError
            It is too large.
        """
        if self._chain is None:
            self._chain = ExactChain(self._numbers_of_model(), self._budget)
        return self._chain

    def _numbers_of_model(self) -> ExactModel:
        """Return the model in rational numbers, read at the first call.

        Raises
        ------
        NotExactError
        """
        if self._model is None:
            self._model = ExactModel(self.model, None if self._asked else MAX_TRANSITIONS)
        return self._model

    def _numbers(self, maximise: bool) -> ExactChain | ExactOptima:
        """Return the solver for chains, or that for least or greatest values."""
        if not self.model.is_mdp:
            return self._chain_alone()
        return ExactOptima(self._numbers_of_model(), maximise, self._budget)

    def _path(self, path: Expression, maximise: bool) -> list[Exact]:
        """Return the probability of a path formula from every state; a complement turns the optimum round."""
        if isinstance(path, ConditionalPath):
            raise NotExactError("conditional probabilities are not solved exactly")
        if is_ltl(path):
            raise NotExactError("LTL is not solved exactly")
        if isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
            return [1 - value for value in self._path(path.operand, not maximise)]
        if not isinstance(path, Path):
            inside = self.model.indicator(self._states(path)).tolist()
            return [Fraction(int(i)) for i in inside]
        if isinstance(path.bound, RewardBound):
            return self._bounded_reward(path, path.bound, maximise)
        if path.operator == "X":
            inside = self.model.indicator(self._states(path.right)).tolist()
            return self._numbers(maximise).step([Fraction(int(i)) for i in inside])
        repeated = repeated_form(path)
        if repeated is not None:
            return self._repeated(self._states(repeated[0]), repeated[1], maximise)
        safe, target, complement = until_form(self.model, path, self._states)
        chain = self._numbers(maximise != complement)
        window = Window.of(path.bound, chain.continuous)
        later = chain.until(safe, target) if window.upper is None else None
        if window == Window():
            if later is None:
                raise NotExactError("a window without end lacks its probabilities")
            found = later
        elif chain.continuous:
            raise NotExactError("probabilities of windows of time are no rational numbers")
        else:
            upper = None if window.upper is None else int(window.upper)
            found = chain.window(safe, target, int(window.lower), upper, later)
        return [1 - value for value in found] if complement else found

    def budgets(self, safe: Node, target: Node, split: RewardSplit, maximise: bool) -> ExactBudgets:
        """Return the exact probabilities of ``safe U target`` within budgets of a reward.

        Raises
        ------
        NotExactError
        """
        numbers = self._numbers_of_model()
        return ExactBudgets(
            numbers, split.structure, split.unit, safe, target, maximise, Budget(self._budget.left)
        )

    def _bounded_reward(self, path: Path, bound: RewardBound, maximise: bool) -> list[Exact]:
        """Return the probability of a path operator with a bound on a reward."""
        assert bound.index is not None
        safe, target, complement = until_form(self.model, path, self._states)
        split = split_by_reward(self.model, bound.index)
        budgets = self.budgets(safe, target, split, maximise != complement)
        found = budgets.at(units_of(bound, split.unit))
        return [1 - value if complement else value for value in found]

    def _repeated(self, states: Node, always: bool, maximise: bool) -> list[Exact]:
        """Return the probability of ``G F states``, or with `always` of ``F G states``."""
        if self.model.is_mdp and not maximise:
            outside = self.model.reachable & ~states
            return [1 - value for value in self._repeated(outside, not always, True)]
        ends = repeated_target(self.model, states, always)
        return self._numbers(maximise).until(self.model.reachable, ends)

    def _reward(self, formula: Reward) -> list[Exact]:
        """Return the values of R."""
        refuse_long_run(self.model, formula)
        numbers = self._numbers(self._maximises(formula))
        target, structure = formula.target, formula.index
        if structure is None:
            raise NotExactError("the model has no reward structure")
        if formula.discount is not None:
            discount = real_of(formula.discount.value) if isinstance(formula.discount, Literal) else None
            if not isinstance(discount, Fraction):
                raise NotExactError("the discount is not known to be rational")
            return numbers.discounted_rewards(structure, discount)
        if isinstance(target, LongRun):
            return self._chain_alone().long_run_rewards(structure)
        if is_reached_set(target):
            return numbers.reachability_rewards(structure, self._states(target.right))
        if isinstance(target, Cumulative):
            if target.time is None:
                return numbers.total_rewards(structure)
            return numbers.cumulative_rewards(structure, _steps(numbers.continuous, target.time))
        if isinstance(target, Instantaneous):
            start = self._numbers_of_model().state_rewards(structure)
            return numbers.later(start, _steps(numbers.continuous, target.time))
        raise NotExactError("this reward is not solved exactly")


def _steps(continuous: bool, time: Expression) -> int:
    """Return a number of steps; times of a CTMC have no rational answers."""
    if continuous or not isinstance(time, Literal):
        raise NotExactError("what happens up to a time is no rational number")
    return int(time.value)
