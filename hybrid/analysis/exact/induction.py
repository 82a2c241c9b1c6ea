"""Backward induction in rational numbers: ``x = opt over choices of (gain + P x)``, a number of times.

A chain has one choice a state.  Where the number of steps is fixed, the best scheduler takes the best choice
at every step, so that induction is exact for decision processes too (M. Puterman, Markov decision processes,
1994, section 4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from hybrid.analysis.exact.elimination import Budget
from hybrid.base.errors import NotExactError
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node

WORK = 1_000_000
"""Operations that exact answers of one model may take where the user has not asked for exact answers."""

_MOST_OPERATIONS = 10**9
"""Operations that steps may take where the budget has no limit; more would not end."""

Exact = Fraction | float
"""A rational number, or infinity."""

Gains = Sequence[Sequence[Fraction]]
"""What every choice of every state earns."""


class BackwardInduction:
    """Values of the coming steps, from every state.

    Parameters
    ----------
    model : SymbolicModel
    choices : sequence of sequences of mappings
        For every state its choices, each a successor -> probability; at least one.
    maximise : bool
    budget : Budget
    """

    continuous = False

    def __init__(
        self,
        model: SymbolicModel,
        choices: Sequence[Sequence[Mapping[int, Fraction]]],
        maximise: bool,
        budget: Budget,
    ) -> None:
        self.model = model
        self.choices = choices
        self.maximise = maximise
        self._budget = budget

    def step(self, values: Sequence[Exact]) -> list[Exact]:
        """Return the expected value one step later, from every state."""
        return list(self._step([finite(v) for v in values], range(len(self.choices))).values())

    def later(self, values: Sequence[Exact], steps: int) -> list[Exact]:
        """Return the expected value a number of steps later, from every state."""
        return self._repeat(values, range(len(self.choices)), steps)

    def window(
        self, safe: Node, target: Node, lower: int, upper: int | None, later: list[Exact] | None
    ) -> list[Exact]:
        """Return the probability of ``safe U target`` in a window of steps, from every state.

        Parameters
        ----------
        lower, upper : int
            First and last step at which the target counts; `upper` None is without end, and `later` then
            holds the probabilities without a window.
        """
        if upper is not None and upper < lower:
            return self._nothing()
        if upper is not None:
            later = self._repeat(self._indicator(target), self._members(safe & ~target), upper - lower)
        if later is None:
            raise ValueError("a window without end needs the probabilities without a window")
        if lower == 0:
            return later
        safe_states, values = self._members(safe), self._nothing()
        for state, value in self._step([finite(v) for v in later], safe_states).items():
            values[state] = value
        return self._repeat(values, safe_states, lower - 1)

    # ------------------------------------------------------------------ parts

    def _repeat(
        self, values: Sequence[Exact], states: Sequence[int], steps: int, gains: Gains | None = None
    ) -> list[Exact]:
        """Return values after steps of ``x = opt (gains + P x)`` in some states, the others' values fixed."""
        x = [finite(value) for value in values]
        each = sum(1 + len(row) for i in states for row in self.choices[i])
        for made in range(steps):
            # Values that become constant at all do so within as many steps as there are states.
            left = _MOST_OPERATIONS if self._budget.left is None else self._budget.left
            if made > len(self.choices) and (steps - made) * each > left:
                raise NotExactError(f"{steps} steps, each of which changes something, are too many")
            new = self._step(x, states, gains)
            if all(x[i] == value for i, value in new.items()):
                break
            for i, value in new.items():
                x[i] = value
        return list(x)

    def _step(
        self, x: Sequence[Fraction], states: Iterable[int], gains: Gains | None = None
    ) -> dict[int, Fraction]:
        """Return ``opt (gains + P x)`` in some states."""
        choose = max if self.maximise else min
        new = {}
        for i in states:
            worth = []
            for k, row in enumerate(self.choices[i]):
                total = Fraction(0) if gains is None else gains[i][k]
                for j, p in row.items():
                    total += p * x[j]
                self._budget.spend(1 + len(row), total)
                worth.append(total)
            new[i] = choose(worth)
        return new

    def _nothing(self) -> list[Exact]:
        """Return zeros."""
        return [Fraction(0)] * len(self.choices)

    def _indicator(self, states: Node) -> list[Exact]:
        """Return 1 in a set and 0 elsewhere."""
        return [Fraction(int(inside)) for inside in self.model.indicator(states).tolist()]

    def _members(self, states: Node) -> list[int]:
        """Return the numbers of a set's states."""
        found: list[int] = np.flatnonzero(self.model.indicator(states)).tolist()
        return found


def finite(value: Exact) -> Fraction:
    """Return a finite value.

    Raises
    ------
    NotExactError
        The value is infinite.
    """
    if not isinstance(value, Fraction):
        raise NotExactError("infinite values have no rational expectation")
    return value
