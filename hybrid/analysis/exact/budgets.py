"""Until within a budget of reward in rational numbers, budget after budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.exact.systems import Budget, solve_rationals
from hybrid.analysis.precomputation import never_reached
from hybrid.base.errors import NotExactError
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import ModelType

_MOST_UNKNOWN = 500
"""States of a chain with cycles of steps that earn nothing: every budget solves a system of them."""


class ExactBudgets:
    """Goes from budget to budget as `hybrid.analysis.reward_budgets.BudgetSweep` does.

    All rewards of the structure are multiples of the unit, see `mtbdd.build.reward_split.split_by_reward`.
    Refused are CTMCs, rows of a DTMC with several rewards, cycles of steps of an MDP that earn nothing, and
    too many states.
    """

    def __init__(
        self,
        numbers: ExactModel,
        structure: int,
        unit: Fraction,
        safe: Node,
        target: Node,
        maximise: bool,
        work: Budget,
    ) -> None:
        model = numbers.model
        if model.type is ModelType.CTMC:
            raise NotExactError("bounds on rewards of a CTMC are not solved exactly")
        items = () if model.given is not None else model.source.rewards[structure].items
        several = any(len(shares) > 1 for own in numbers.actions for shares in own)
        if several and any(item.is_transition for item in items):
            raise NotExactError("a row with several rewards is not split exactly")
        self._rows, self._maximise, self._work = numbers.choices, maximise, work
        self._rewards = [[int(r / unit) for r in own] for own in numbers.gains(structure)]
        self._goal = model.indicator(target).tolist()
        unknown = safe & ~target & ~never_reached(model, safe, target, maximise)
        self._unknown: list[int] = np.flatnonzero(model.indicator(unknown)).tolist()
        self._order = self._without_cycles()
        if self._order is None and (model.is_mdp or len(self._unknown) > _MOST_UNKNOWN):
            raise NotExactError("steps that earn nothing form a cycle, which is not solved exactly here")
        self._all = self._values()
        self._made = 0
        self._last: list[Fraction] = []

    def at(self, budget: int) -> list[Fraction]:
        """Return the probabilities of a budget, not less than the one asked for before, from every state."""
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
        """Set the values of a chain's unknown states."""
        place = {s: k for k, s in enumerate(self._unknown)}
        rows = [{place[j]: p for j, p in self._free(i, 0).items()} for i in self._unknown]
        right = [[self._gain(i, 0, before)] for i in self._unknown]
        for i, (value,) in zip(self._unknown, solve_rationals(rows, right, self._work), strict=True):
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
