"""Exact answers about chains, an enclosure a state: windows of steps and time, rewards, long-run values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tests.attack import balls, linear
from tests.attack.spec import Expanded

__all__ = ["ChainOracle", "Enclosure", "Window", "complement", "exactly"]

# Both ends are fractions or infinite; None is a value that does not exist, for which an error is due.
Enclosure = tuple[Fraction | float, Fraction | float] | None
_FEW_STEPS = 40  # more are made by squaring, with an error


class Window:
    """Steps or times from `lower` on, to `upper` if that is not None."""

    def __init__(self, lower: Fraction, upper: Fraction | None, positive: bool = False) -> None:
        self.lower, self.upper = lower, upper
        self.positive = positive  # time 0 is left out although `lower` is 0


def exactly(values: Sequence[Fraction | float | None]) -> list[Enclosure]:
    return [None if v is None else (v, v) for v in values]


def complement(values: Sequence[Enclosure]) -> list[Enclosure]:
    """Return 1 minus probabilities."""
    return [None if v is None else (1 - v[1], 1 - v[0]) for v in values]


class ChainOracle:
    """A DTMC or CTMC.

    Attributes
    ----------
    rows : list of dict
        Probabilities or rates.
    """

    def __init__(self, model: Expanded) -> None:
        self.model = model
        self.continuous = model.kind == "ctmc"
        self.rows = [c[0].row for c in model.choices]
        self.size = model.size
        self.every = set(range(model.size))

    def earned(self, structure: int) -> list[Fraction]:
        """Return what a step earns (DTMC), or a unit of time (CTMC)."""
        return [
            r + c[0].rewards[structure]
            for r, c in zip(self.model.rewards[structure], self.model.choices, strict=True)
        ]

    # ------------------------------------------------------------------ probabilities

    def next(self, target: set[int], largest: bool = True) -> list[Enclosure]:
        found = []
        for row in self.rows:
            found.append(sum((p for t, p in row.items() if t in target), Fraction(0)) / sum(row.values()))
        return exactly(found)

    def until(
        self, safe: set[int], target: set[int], window: Window | None, largest: bool = True
    ) -> list[Enclosure]:
        if window is None:
            return exactly(linear.until(self.rows, safe, target))
        if window.upper is None:
            later = exactly(linear.until(self.rows, safe, target))
        elif window.upper < window.lower:
            return exactly([Fraction(0)] * self.size)
        else:
            start = exactly([Fraction(s in target) for s in range(self.size)])
            later = self._run(safe - target, target, start, window.upper - window.lower)
            some = linear.can_reach(self.rows, target, safe - target)
            later = [_unit(v) if s in some else (Fraction(0),) * 2 for s, v in enumerate(later)]
        if window.lower == 0 and not window.positive:
            return later
        if window.lower == 0:
            return [v if s in safe else (Fraction(0),) * 2 for s, v in enumerate(later)]
        if self.continuous:
            later = [v if s in safe else (Fraction(0),) * 2 for s, v in enumerate(later)]
            found = self._run(safe, self.every - safe, later, window.lower)
            some = linear.can_reach(self.rows, {s for s, v in enumerate(later) if v[1] > 0}, safe)
            return [_unit(v) if s in some & safe else (Fraction(0),) * 2 for s, v in enumerate(found)]
        # A state that is not safe may be entered by the last step alone: it has no part in the others.
        after = self._steps(safe, self.every - safe, later, 1)
        after = [v if s in safe else (Fraction(0),) * 2 for s, v in enumerate(after)]
        if window.lower == 1:
            return after
        found = self._run(safe, self.every - safe, after, window.lower - 1)
        return [_unit(v) if s in safe else (Fraction(0),) * 2 for s, v in enumerate(found)]

    def repeated(self, states: set[int], always: bool, largest: bool = True) -> list[Enclosure]:
        """Return the probability of seeing `states` again and again, or of staying in them at last."""
        ends: set[int] = set()
        for component in linear.bottom_components(self.rows):
            if component <= states if always else component & states:
                ends |= component
        return exactly(linear.until(self.rows, self.every, ends))

    # ------------------------------------------------------------------ long run and rewards

    def steady(self, states: set[int], largest: bool = True) -> list[Enclosure]:
        return exactly(linear.long_run(self.rows, [Fraction(s in states) for s in range(self.size)]))

    def reward(
        self, structure: int, kind: str, argument: set[int] | Fraction | None, largest: bool = True
    ) -> list[Enclosure]:
        """Return R for "F" (a set), "C" (a time or None), "I" (a time) or "S"."""
        earned = self.earned(structure)
        if kind == "S":
            return exactly(linear.long_run(self.rows, earned))
        if kind == "F":
            assert isinstance(argument, set)
            return exactly(linear.total(self.rows, earned, argument))
        if argument is None:
            over = self.every - linear.can_reach(self.rows, [s for s in range(self.size) if earned[s]])
            return exactly(linear.total(self.rows, earned, over))
        assert isinstance(argument, Fraction)
        if kind == "I":
            return self._run(self.every, set(), exactly(self.model.rewards[structure]), argument)
        if self.continuous:
            _, average, error = balls.exponential(self.rows, argument)
            found = balls.times(average, error, [(r, r) for r in earned])
            some = linear.can_reach(self.rows, [s for s in range(self.size) if earned[s]])
            return [
                (low * argument, high * argument) if s in some else (Fraction(0),) * 2
                for s, (low, high) in enumerate(found)
            ]
        if argument <= _FEW_STEPS:
            x = [Fraction(0)] * self.size
            for _ in range(int(argument)):
                x = [r + _mean(row, x) for r, row in zip(earned, self.rows, strict=True)]
            return exactly(x)
        return list(balls.times(*balls.sums(self.rows, int(argument)), [(r, r) for r in earned]))

    # ------------------------------------------------------------------ runs

    def _run(
        self, moving: set[int], fixed: set[int], start: list[Enclosure], length: Fraction
    ) -> list[Enclosure]:
        """Return the values a time before `start`; states that are not `moving` keep theirs."""
        if length == 0:
            return start
        if not self.continuous and length <= _FEW_STEPS:
            return self._steps(moving, fixed, start, int(length))
        rows: list[dict[int, Fraction]] = [dict(r) if s in moving else {} for s, r in enumerate(self.rows)]
        if self.continuous:
            matrix, _, error = balls.exponential(rows, length)
        else:
            rows = [r or {s: Fraction(1)} for s, r in enumerate(rows)]
            matrix, error = balls.power(rows, int(length))
        return list(balls.times(matrix, error, [v for v in start if v is not None]))

    def _steps(
        self, moving: set[int], fixed: set[int], start: list[Enclosure], count: int
    ) -> list[Enclosure]:
        low = [v[0] for v in start if v is not None]
        high = [v[1] for v in start if v is not None]
        same = low == high
        for _ in range(count):
            low = [_mean(self.rows[s], low) if s in moving else v for s, v in enumerate(low)]
            high = (
                low if same else [_mean(self.rows[s], high) if s in moving else v for s, v in enumerate(high)]
            )
        return list(zip(low, high, strict=True))


def _mean(row: dict[int, Fraction], x: Sequence[Fraction | float]) -> Fraction:
    return sum((p * x[t] for t, p in row.items()), Fraction(0))


def _unit(value: Enclosure) -> Enclosure:
    assert value is not None
    return max(Fraction(0), value[0]), min(Fraction(1), value[1])


INFINITE = math.inf
