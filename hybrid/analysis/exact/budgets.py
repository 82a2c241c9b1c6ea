"""Until within a budget of reward in rational numbers, budget after budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.optima import Option, solve_optima
from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.exact.systems import OperationBudget
from hybrid.analysis.precomputation import never_reached
from hybrid.base.errors import NotExactError
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import ModelType

Counted = tuple[int, Fraction, int]
"""A reward structure beside that of the budgets, its unit, and how many numbers of units may be left."""


class ExactBudgets:
    """Goes from budget to budget as `hybrid.analysis.reward_bounded.BudgetSweep` does.

    All rewards of the structure are multiples of the unit, see `mtbdd.build.reward_split.split_by_reward`.
    Refused are CTMCs, rows of a DTMC with several rewards, and too many states on cycles of free steps.
    """

    def __init__(
        self,
        numbers: ExactModel,
        structure: int,
        unit: Fraction,
        safe: Node,
        target: Node,
        maximise: bool,
        work: OperationBudget,
        counted: Counted | None = None,
    ) -> None:
        model = numbers.model
        if model.type is ModelType.CTMC:
            raise NotExactError("bounds on rewards of a CTMC are not solved exactly")
        own = [structure] if counted is None else [structure, counted[0]]
        items = [] if model.given is not None else [i for s in own for i in model.source.rewards[s].items]
        several = any(len(shares) > 1 for own in numbers.actions for shares in own)
        if several and any(item.is_transition for item in items):
            raise NotExactError("a row with several rewards is not split exactly")
        self._rows, self._maximise, self._work = numbers.choices, maximise, work
        self._rewards = [[int(r / unit) for r in own] for own in numbers.gains(structure)]
        self._goal = model.indicator(target).tolist()
        unknown = safe & ~target & ~never_reached(model, safe, target, maximise)
        self._unknown: list[int] = np.flatnonzero(model.indicator(unknown)).tolist()
        if counted is not None:
            self._count(numbers.gains(counted[0]), *counted[1:])
        self._order = self._without_cycles()
        self._all = self._values()
        self._made = 0
        self._last: list[Fraction] = []

    def _count(self, earned: Sequence[Sequence[Fraction]], unit: Fraction, size: int) -> None:
        """Have each state as often as units of another reward may be left, ascending from 0."""
        spent = [[int(r / unit) for r in own] for own in earned]
        self._rows = [
            [
                {j * size + left - less: p for j, p in row.items()} if less <= left else {}
                for less, row in zip(spent[i], own, strict=True)
            ]
            for i, own in enumerate(self._rows)
            for left in range(size)
        ]
        self._rewards = [own for own in self._rewards for _ in range(size)]
        self._goal = [inside for inside in self._goal for _ in range(size)]
        self._unknown = [i * size + left for i in self._unknown for left in range(size)]

    def at(self, budget: int) -> list[Fraction]:
        """Return the probabilities of a budget, not less than the one requested before, from every state."""
        if not self._unknown or not any(r for own in self._rewards for r in own):
            budget = 0  # all budgets are the same
        while self._made <= budget:
            self._last = next(self._all)
            self._made += 1
        return self._last

    def _values(self) -> Iterator[list[Fraction]]:
        """Yield the probabilities of budgets from 0."""
        greatest = max((r for own in self._rewards for r in own), default=0)
        before: deque[list[Fraction]] = deque(maxlen=max(greatest, 1))
        while True:
            values = [Fraction(int(inside)) for inside in self._goal]
            if self._order is None:
                self._solve(values, before)
            else:
                choose = max if self._maximise else min
                for i in self._order:
                    values[i] = choose(
                        self._gain(i, k, before)
                        + sum((p * values[j] for j, p in self._free(i, k).items()), Fraction(0))
                        for k in range(len(self._rows[i]))
                    )
            before.appendleft(values)
            yield values

    def _gain(self, state: int, choice: int, before: deque[list[Fraction]]) -> Fraction:
        """Return what a choice is worth beyond its free steps to unknown states."""
        reward, row, total = self._rewards[state][choice], self._rows[state][choice], Fraction(0)
        if reward > len(before):
            return total
        for j, p in row.items():
            if self._goal[j]:
                total += p
            elif reward:
                total += p * before[reward - 1][j]
        self._work.spend(1 + len(row), total)
        return total

    def _free(self, state: int, choice: int) -> dict[int, Fraction]:
        """Return where a choice leads among unknown states without earning."""
        if self._rewards[state][choice]:
            return {}
        return {j: p for j, p in self._rows[state][choice].items() if not self._goal[j] and j in self._inside}

    def _solve(self, values: list[Fraction], before: deque[list[Fraction]]) -> None:
        """Set the values of unknown states whose free steps cycle.

        Of a minimum every policy is proper, see `hybrid.analysis.reward_bounded`. Of a maximum each policy
        is strictly better than a proper one before it: a class that it never left would have one value, and
        no changed choice.
        """
        place = {s: k for k, s in enumerate(self._unknown)}
        options = [
            [
                Option(self._gain(i, k, before), {place[j]: p for j, p in self._free(i, k).items()})
                for k in range(len(self._rows[i]))
            ]
            for i in self._unknown
        ]
        for i, value in zip(self._unknown, solve_optima(options, self._maximise, self._work), strict=True):
            values[i] = value

    def _without_cycles(self) -> list[int] | None:
        """Return the unknown states, each behind those that it reaches for nothing; None if they cycle."""
        self._inside = set(self._unknown)
        ahead = {i: {j for k in range(len(self._rows[i])) for j in self._free(i, k)} for i in self._unknown}
        order: list[int] = []
        behind: dict[int, list[int]] = {i: [] for i in ahead}
        for i, successors in ahead.items():
            for j in successors:
                behind[j].append(i)
        ready = [i for i, successors in ahead.items() if not successors]
        while ready:
            j = ready.pop()
            order.append(j)
            for i in behind[j]:
                ahead[i].discard(j)
                if not ahead[i]:
                    ready.append(i)
        return order if len(order) == len(ahead) else None
