"""A chain in rational numbers, and the exact answers of its state formulas' operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.elimination import Budget
from hybrid.analysis.exact.induction import BackwardInduction, Exact, finite
from hybrid.analysis.exact.reading import ExactModel
from hybrid.analysis.exact.systems import solve_systems
from hybrid.base.errors import NotExactError
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import backward, bottom_components, prob0, prob1
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import states_from

MAX_UNKNOWN = 2000
"""States whose values may have to be solved for where operations are counted."""


class ExactChain(BackwardInduction):
    """A DTMC or CTMC.

    Parameters
    ----------
    numbers : ExactModel
    budget : Budget
        Shared by all questions about the model.
    """

    def __init__(self, numbers: ExactModel, budget: Budget) -> None:
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

    def cumulative_rewards(self, structure: int, steps: int) -> list[Exact]:
        """Return the expected reward of the first steps, from every state of a DTMC."""
        gains = [[earned] for earned in self._visits(structure)]
        return self._repeat(self._nothing(), range(len(self.rows)), steps, gains)

    def discounted_rewards(self, structure: int, discount: Fraction) -> list[Exact]:
        """Return the expected reward in all time, that of the k-th step times a power of the discount."""
        rows = [{j: discount * p for j, p in row.items()} for row in self.rows]
        right = [[earned] for earned in self._visits(structure)]
        self._grant(len(rows))
        return [x for (x,) in solve_systems(rows, right, self._budget)]

    # ------------------------------------------------------------------ long run

    def long_run_rewards(self, structure: int) -> list[Exact]:
        """Return the long-run average of a reward structure, from every state."""
        return self._long_run(self._visits(structure))

    def long_run_probabilities(self, states: Node) -> list[Exact]:
        """Return the long-run probability of a set, from every state."""
        inside = self.model.indicator(states).tolist()
        return self._long_run([t if i else Fraction(0) for t, i in zip(self._stays(), inside, strict=True)])

    def _long_run(self, visits: Sequence[Fraction]) -> list[Exact]:
        """Return the average per step or time of what visits are worth, from every state.

        In a closed class it is what one round trip from any of its states earns, over the time that it takes.
        """
        model, stays = self.model, self._stays()
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
            for i in members:
                known[i] = earned / taken
        unknown = self._members(model.reachable & ~closed)
        return self._solve(unknown, known, [Fraction(0)] * len(unknown))

    # ------------------------------------------------------------------ parts

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
