"""Exact values of formulas in every state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hybrid.analysis.ctl import repeated_target
from hybrid.analysis.exact.budgets import Counted, ExactBudgets
from hybrid.analysis.exact.optima import WORK, BackwardInduction, Exact, ExactOptima, finite
from hybrid.analysis.exact.reading import MAX_TRANSITIONS, ExactModel
from hybrid.analysis.exact.systems import OperationBudget, solve_systems
from hybrid.analysis.operator_values import maximises, until_form
from hybrid.analysis.reward_bounded import units_of
from hybrid.analysis.rewards import no_ratio
from hybrid.analysis.until import TimeWindow
from hybrid.base.errors import NotExactError
from hybrid.base.state_values import StateValues
from hybrid.properties import registry
from hybrid.properties.registry import Capability, has_operator, repeated_form, without_negations
from hybrid.properties.tree import (
    STATE_OPERATORS,
    Filter,
    Path,
    Probability,
    Reward,
    RewardBound,
    RewardBounds,
    SteadyState,
    TimeBound,
)
from mtbdd.build.model import SymbolicModel
from mtbdd.build.reward_split import RewardSplit, split_by_reward
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import backward, bottom_components, prob0, prob1
from mtbdd.language.reals import doubles_around, from_real, real_of
from mtbdd.language.syntax import Binary, Expression, Literal, ModelType, Unary
from mtbdd.offset.states import states_from

# Exact numbers joined and compared.


def calculate(operator: str, a: Exact, b: Exact) -> Exact:
    """Return ``a operator b`` for finite numbers."""
    if not isinstance(a, Fraction) or not isinstance(b, Fraction):
        raise NotExactError("infinite values are not calculated with exactly")
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if b == 0:
        raise NotExactError("a division by zero has no exact value")
    return a / b


def compare_exactly(operator: str, a: Exact, b: Exact) -> bool:
    """Return ``a operator b``."""
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b, "!=": a != b}[operator]


# A chain in rational numbers, and the exact answers of its state formulas' operators.

MAX_UNKNOWN = 2000
"""States whose values may have to be solved for where operations are counted."""


class ExactChain(BackwardInduction):
    """A DTMC or CTMC; all questions about a model share the budget."""

    def __init__(self, numbers: ExactModel, budget: OperationBudget) -> None:
        model = numbers.model
        self.continuous = model.type is ModelType.CTMC
        rates = [row for (row,) in numbers.choices]
        self.exits = [sum(row.values(), Fraction(0)) for row in rates]
        self._numbers = numbers
        self.rows = [
            {j: rate / total for j, rate in row.items()} for row, total in zip(rates, self.exits, strict=True)
        ]
        super().__init__(model, [[row] for row in self.rows], False, budget)

    # ------------------------------------------------------------------ probabilities

    def until(self, safe: Node, target: Node) -> list[Exact]:
        """Return the probability of ``safe U target`` from every state."""
        zero = prob0(self.model, safe, target)
        one = prob1(self.model, safe, target, zero)
        known = self._indicator(one)
        unknown = self._members(self.model.reachable & ~zero & ~one)
        return self._solve(unknown, known, [Fraction(0)] * len(unknown))

    # ------------------------------------------------------------------ rewards

    def reachability_rewards(self, structure: int, target: Node) -> list[Exact]:
        """Return the expected reward before a set is reached; infinite where it need not be reached.

        Not a number where it is infinite and rewards below zero may be earned.
        """
        zero = prob0(self.model, self.model.reachable, target)
        sure = prob1(self.model, self.model.reachable, target, zero)
        known = [Fraction(0) if inside else math.inf for inside in self.model.indicator(sure).tolist()]
        unknown = self._members(sure & ~target)
        rewards = self._visits(structure)
        losing = self._set([i for i, r in enumerate(rewards) if r < 0]) & ~target
        for i in self._members(backward(self.model, losing, self.model.reachable & ~target) & ~sure):
            known[i] = math.nan
        return self._solve(unknown, known, [rewards[i] for i in unknown])

    def total_rewards(self, structure: int) -> list[Exact]:
        """Return the expected reward in all time, from every state.

        Infinite, or not a number, as for `reachability_rewards`: nothing is earned after the states from
        which nothing more can be.
        """
        model = self.model
        rewards = self._visits(structure)
        earning = [i for i, r in enumerate(rewards) if r]
        if not earning:
            return [Fraction(0)] * len(rewards)
        over = model.reachable & ~backward(model, self._set(earning))
        return self.reachability_rewards(structure, over)

    def discounted_rewards(self, structure: int, discount: Fraction) -> list[Exact]:
        """Return the expected reward in all time, that of the k-th step times a power of the discount."""
        rows = [{j: discount * p for j, p in row.items()} for row in self.rows]
        self._grant(len(rows))
        return [x for (x,) in solve_systems(rows, self._gains(structure), self._budget)]

    # ------------------------------------------------------------------ long run

    def long_run_rewards(self, structure: int) -> list[Exact]:
        """Return the long-run average of a reward structure, from every state."""
        return self._long_run(self._visits(structure))

    def long_run_ratios(self, structure: int, divisor: int) -> list[Exact]:
        """Return the long-run ratio of two reward structures, from every state."""
        return self._long_run(self._visits(structure), self._visits(divisor))

    def long_run_probabilities(self, states: Node) -> list[Exact]:
        """Return the long-run probability of a set, from every state."""
        inside = self.model.indicator(states).tolist()
        return self._long_run([t if i else Fraction(0) for t, i in zip(self._stays(), inside, strict=True)])

    def _long_run(self, visits: Sequence[Fraction], per: Sequence[Fraction] | None = None) -> list[Exact]:
        """Return the average of what visits are worth, by default per step or time, from every state.

        In a closed class it is what one round trip from any of its states earns, over the time that it takes,
        or over another worth of its visits.
        """
        model, stays = self.model, self._stays() if per is None else per
        known: list[Exact] = [Fraction(0)] * len(self.rows)
        closed = model.manager.false
        for component in bottom_components(model):
            closed |= component
            members = self._members(component)
            home, others = members[0], members[1:]
            trip = self._solve_columns(others, [[visits[i], stays[i]] for i in others])
            ahead = {s: values for s, values in zip(others, trip, strict=True)}
            earned, taken = (
                own[home]
                + sum((p * ahead[j][k] for j, p in self.rows[home].items() if j != home), Fraction(0))
                for k, own in enumerate((visits, stays))
            )
            if taken <= 0:
                raise no_ratio("a bottom component")
            for i in members:
                known[i] = earned / taken
        unknown = self._members(model.reachable & ~closed)
        return self._solve(unknown, known, [Fraction(0)] * len(unknown))

    # ------------------------------------------------------------------ parts

    def _gains(self, structure: int) -> list[list[Fraction]]:
        """Return what the one choice of every state earns."""
        return [[earned] for earned in self._visits(structure)]

    def _visits(self, structure: int) -> list[Fraction]:
        """Return what one visit of each state earns."""
        rates = self._numbers.gains(structure)
        return [r * t for (r,), t in zip(rates, self._stays(), strict=True)]

    def _stays(self) -> list[Fraction]:
        """Return how long one visit of each state lasts: a step, or the mean time to the next transition."""
        return [1 / total if self.continuous else Fraction(1) for total in self.exits]

    def _solve(
        self, unknown: Sequence[int], known: Sequence[Exact], gains: Sequence[Fraction]
    ) -> list[Exact]:
        """Return ``x = gains + P x`` on the unknown states, with the other states' values known."""
        values = list(known)
        inside = set(unknown)
        right = []
        for i, gain in zip(unknown, gains, strict=True):
            total = gain
            for j, p in self.rows[i].items():
                if j not in inside and values[j] != 0:
                    total += p * finite(values[j])
            right.append([total])
        for i, solved in zip(unknown, self._solve_columns(unknown, right), strict=True):
            values[i] = solved[0]
        return values

    def _solve_columns(
        self, unknown: Sequence[int], right: Sequence[Sequence[Fraction]]
    ) -> list[list[Fraction]]:
        """Solve ``x = right + P x`` on some states, all others being worth nothing."""
        self._grant(len(unknown))
        place = {s: k for k, s in enumerate(unknown)}
        rows = [{place[j]: p for j, p in self.rows[i].items() if j in place} for i in unknown]
        return solve_systems(rows, right, self._budget)

    def _grant(self, unknown: int) -> None:
        """Refuse more unknown states than are granted where operations are counted."""
        if self._budget.left is not None and unknown > MAX_UNKNOWN:
            raise NotExactError(f"{unknown} unknown states are too many for exact solution")

    def _set(self, numbers: Sequence[int]) -> Node:
        """Return the set of some states by their numbers."""
        inside = np.zeros(len(self.rows), dtype=np.bool_)
        inside[list(numbers)] = True
        return states_from(self.model.manager, self.model.index, inside)


_REDUCTIONS: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "min": min,
    "max": max,
    "sum": lambda values: sum(values, Fraction(0)),
    "avg": lambda values: sum(values, Fraction(0)) / len(values),
    "first": lambda values: values[0],
}
EXACT = Capability[list[Exact]](lambda e, reason: NotExactError(reason), "{} is not solved exactly")
"""Methods of `ExactFormulas` that return an operator's values in every state."""


class ExactFormulas:
    """Exact values over one model.

    Where exact answers were `asked` for, models and work are limited by time and memory alone, else to `most`
    operations, by default `hybrid.analysis.exact.optima.WORK`.
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
        self._budget = OperationBudget(None if asked else WORK if most is None else most)
        self._known: dict[int, tuple[Expression, list[Exact]]] = {}

    def enclosures(self, formula: Expression) -> StateValues:
        """Return a numeric formula's exact values in every state as the nearest doubles, with bounds."""
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
        """Return a numeric formula's exact value in every state; bounds of operators are not examined."""
        known = self._known.get(id(formula))
        if known is None:
            # The formula is kept, so that its identity stays its own.
            known = self._known[id(formula)] = formula, self._values(formula)
        return known[1]

    def answer(self, formula: Expression) -> Fraction | None:
        """Return a numeric property's exact answer; None where it is no single rational number."""
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
        if isinstance(formula, STATE_OPERATORS):
            return EXACT.of(formula)(self, formula)
        if not has_operator(formula):
            return list(self._numbers_of_model().values(formula))
        if isinstance(formula, Unary) and formula.operator == "-":
            return [-value for value in self.values(formula.operand)]
        if isinstance(formula, Binary) and formula.operator in ("+", "-", "*", "/"):
            pairs = zip(self.values(formula.left), self.values(formula.right), strict=True)
            return [calculate(formula.operator, a, b) for a, b in pairs]
        raise NotExactError(f"a {type(formula).__name__} is not evaluated exactly")

    @EXACT.answers(registry.FILTER)
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

    def _chain_alone(self) -> ExactChain:
        """Return the chain in rational numbers, read at the first call."""
        if self._chain is None:
            self._chain = ExactChain(self._numbers_of_model(), self._budget)
        return self._chain

    def _numbers_of_model(self) -> ExactModel:
        """Return the model in rational numbers, read at the first call."""
        if self._model is None:
            self._model = ExactModel(self.model, None if self._asked else MAX_TRANSITIONS)
        return self._model

    def _numbers(self, maximise: bool) -> ExactChain | ExactOptima:
        """Return the solver for chains, or that for least or greatest values."""
        if not self.model.is_mdp:
            return self._chain_alone()
        return ExactOptima(self._numbers_of_model(), maximise, self._budget)

    def _optimum(self, formula: Reward) -> ExactChain | ExactOptima:
        """Return the solver for the optimum of a reward."""
        return self._numbers(maximises(formula))

    def _inside(self, states: Expression) -> list[Exact]:
        """Return 1 in some states and 0 in the others."""
        return [Fraction(int(i)) for i in self.model.indicator(self._states(states)).tolist()]

    @EXACT.answers(registry.STEADY)
    def _steady(self, formula: SteadyState) -> list[Exact]:
        return self._numbers(maximises(formula)).long_run_probabilities(self._states(formula.states))

    @EXACT.answers(
        registry.NOW,
        registry.NEXT,
        registry.REPEATED,
        registry.REWARD_BOUNDED,
        registry.WINDOW,
        registry.UNTIL,
    )
    def _probability(self, formula: Probability) -> list[Exact]:
        """Return the probability of a path formula; each complement turns the optimum round."""
        path, negations = without_negations(formula.path)
        turned = negations % 2 == 1
        found = self._path(path, maximises(formula) != turned)
        return [1 - value for value in found] if turned else found

    def _path(self, path: Expression, maximise: bool) -> list[Exact]:
        """Return the probability of a path formula without a negation in front."""
        if not isinstance(path, Path):
            return self._inside(path)
        if path.operator == "X":
            return self._numbers(maximise).step(self._inside(path.right))
        repeated = repeated_form(path)
        if repeated is not None:
            return self._repeated(self._states(repeated[0]), repeated[1], maximise)
        safe, target, complement = until_form(self.model, path, self._states)
        maximise = maximise != complement
        if isinstance(path.bound, RewardBound):
            assert path.bound.index is not None
            split = split_by_reward(self.model, path.bound.index)
            budgets = self.budgets(safe, target, split, maximise)
            found: list[Exact] = list(budgets.at(units_of(path.bound.most, split.unit, path.bound.is_strict)))
        else:
            assert not isinstance(path.bound, RewardBounds)  # which are refused by name
            found = self._until(safe, target, path.bound, maximise)
        return [1 - value for value in found] if complement else found

    def _until(self, safe: Node, target: Node, bound: TimeBound | None, maximise: bool) -> list[Exact]:
        """Return the probability of an until, within a window of steps if there is a bound."""
        chain = self._numbers(maximise)
        window = TimeWindow.of(bound, chain.continuous)
        later = chain.until(safe, target) if window.upper is None else None
        if window == TimeWindow() and later is not None:
            return later
        if chain.continuous:
            raise NotExactError("probabilities of windows of time are no rational numbers")
        upper = None if window.upper is None else int(window.upper)
        return chain.window(safe, target, int(window.lower), upper, later)

    def budgets(
        self, safe: Node, target: Node, split: RewardSplit, maximise: bool, counted: Counted | None = None
    ) -> ExactBudgets:
        """Return the exact probabilities of ``safe U target`` within budgets of a reward."""
        numbers, work = self._numbers_of_model(), OperationBudget(self._budget.left)
        return ExactBudgets(numbers, split.structure, split.unit, safe, target, maximise, work, counted)

    def _repeated(self, states: Node, always: bool, maximise: bool) -> list[Exact]:
        """Return the probability of ``G F states``, or with `always` of ``F G states``."""
        if self.model.is_mdp and not maximise:
            outside = self.model.reachable & ~states
            return [1 - value for value in self._repeated(outside, not always, True)]
        ends = repeated_target(self.model, states, always)
        return self._numbers(maximise).until(self.model.reachable, ends)

    @EXACT.answers(registry.AVERAGE)
    def _average(self, formula: Reward) -> list[Exact]:
        return self._optimum(formula).long_run_rewards(formula.place)

    @EXACT.answers(registry.RATIO)
    def _ratio(self, formula: Any) -> list[Exact]:
        return self._optimum(formula).long_run_ratios(formula.place, formula.target.divisor.place)

    @EXACT.answers(registry.DISCOUNTED)
    def _discounted(self, formula: Reward) -> list[Exact]:
        discount = real_of(formula.discount.value) if isinstance(formula.discount, Literal) else None
        if not isinstance(discount, Fraction):
            raise NotExactError("the discount is not known to be rational")
        return self._optimum(formula).discounted_rewards(formula.place, discount)

    @EXACT.answers(registry.REACHED, registry.ELAPSED_TIME)
    def _reached(self, formula: Any) -> list[Exact]:
        reached = self._states(formula.target.right)
        return self._optimum(formula).reachability_rewards(formula.place, reached)

    @EXACT.answers(registry.TOTAL)
    def _total(self, formula: Reward) -> list[Exact]:
        return self._optimum(formula).total_rewards(formula.place)

    @EXACT.answers(registry.CUMULATIVE)
    def _cumulative(self, formula: Any) -> list[Exact]:
        numbers = self._optimum(formula)
        return numbers.cumulative_rewards(formula.place, _steps(numbers.continuous, formula.target.time))

    @EXACT.answers(registry.INSTANTANEOUS)
    def _instantaneous(self, formula: Any) -> list[Exact]:
        numbers = self._optimum(formula)
        start = self._numbers_of_model().state_rewards(formula.place)
        return numbers.later(start, _steps(numbers.continuous, formula.target.time))


def _steps(continuous: bool, time: Expression) -> int:
    """Return a number of steps; times of a CTMC have no rational answers."""
    if continuous or not isinstance(time, Literal):
        raise NotExactError("what happens up to a time is no rational number")
    return int(time.value)
