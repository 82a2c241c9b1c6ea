"""Exact least and greatest values of decision processes.

Without a window, by trying all memoryless schedulers, which suffice for the values asked here; with a number
of steps, backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

from tests.attack.chains import ChainOracle, Enclosure, Window, exactly
from tests.attack.spec import Choice, Expanded

__all__ = ["ProcessOracle", "schedulers"]


def schedulers(model: Expanded) -> int:
    """Return how many memoryless schedulers there are."""
    return math.prod(len(c) for c in model.choices)


class ProcessOracle:
    """An MDP; `largest` says which of the two values is asked for."""

    def __init__(self, model: Expanded) -> None:
        self.model = model
        self.size = model.size
        self.every = set(range(model.size))
        self._chains: list[ChainOracle] | None = None

    def chains(self) -> list[ChainOracle]:
        """Return the chains of all memoryless schedulers."""
        if self._chains is None:
            self._chains = []
            for chosen in product(*self.model.choices):
                chain = Expanded(
                    "dtmc",
                    self.model.states,
                    self.model.names,
                    self.model.initial,
                    [[c] for c in chosen],
                    self.model.rewards,
                )
                self._chains.append(ChainOracle(chain))
        return self._chains

    def next(self, target: set[int], largest: bool) -> list[Enclosure]:
        start = [Fraction(s in target) for s in range(self.size)]
        return exactly(self._back(self.every, start, 1, largest))

    def until(
        self, safe: set[int], target: set[int], window: Window | None, largest: bool
    ) -> list[Enclosure]:
        lower = 0 if window is None else int(window.lower)
        if window is not None and window.upper is not None and window.upper < window.lower:
            return exactly([Fraction(0)] * self.size)
        if window is None or window.upper is None:
            x = self._best(lambda c: c.until(safe, target, None), largest)
        else:
            x = [Fraction(s in target) for s in range(self.size)]
            x = self._back(safe - target, x, int(window.upper) - lower, largest)
        for _ in range(lower):
            x = self._back(safe, x, 1, largest)
            x = [v if s in safe else Fraction(0) for s, v in enumerate(x)]
        return exactly(x)

    def repeated(self, states: set[int], always: bool, largest: bool) -> list[Enclosure]:
        return exactly(self._best(lambda c: c.repeated(states, always), largest))

    def steady(self, states: set[int], largest: bool) -> list[Enclosure]:
        return exactly(self._best(lambda c: c.steady(states), largest))

    def reward(
        self, structure: int, kind: str, argument: set[int] | Fraction | None, largest: bool
    ) -> list[Enclosure]:
        if kind in ("F", "S") or argument is None:
            return exactly(self._best(lambda c: c.reward(structure, kind, argument), largest))
        assert isinstance(argument, Fraction)
        state = self.model.rewards[structure]
        if kind == "I":
            return exactly(self._back(self.every, list(state), int(argument), largest))
        x: list[Fraction] = [Fraction(0)] * self.size
        pick = max if largest else min
        for _ in range(int(argument)):
            x = [
                state[s] + pick(c.rewards[structure] + _mean(c, x) for c in self.model.choices[s])
                for s in range(self.size)
            ]
        return exactly(x)

    def _back(self, moving: set[int], x: list[Fraction], steps: int, largest: bool) -> list[Fraction]:
        pick = max if largest else min
        for _ in range(steps):
            x = [
                pick(_mean(c, x) for c in self.model.choices[s]) if s in moving else x[s]
                for s in range(self.size)
            ]
        return x

    def _best(self, value: Callable[[ChainOracle], list[Enclosure]], largest: bool) -> list[Fraction]:
        pick = max if largest else min
        found: list[Fraction] | None = None
        for chain in self.chains():
            new = [v[0] for v in value(chain) if v is not None]
            found = new if found is None else [pick(a, b) for a, b in zip(found, new, strict=True)]
        assert found is not None
        return found


def _mean(choice: Choice, x: Sequence[Fraction]) -> Fraction:
    return sum((p * x[t] for t, p in choice.row.items()), Fraction(0))
