"""Monotone equations for the contracts of operators and methods with bounds, and what is exact of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from hybrid.matrix.space.bellman import BellmanOperator, DirectedSystem
from hybrid.matrix.space.bounded_solution import ENCLOSING_VECTORS, UNIT
from tests.builders.choice_systems import Choices, random_choices
from tests.builders.linear_systems import exact_solution, linear_system
from tests.contracts.choice_operators import ONE_PASS, make_operator
from tests.contracts.matrices import Make

__all__ = ["BellmanCase", "Step", "chain_case", "choice_case", "fractions"]

Vector = list[Fraction]
Step = Callable[[Vector], Vector]


@dataclass(frozen=True)
class BellmanCase:
    """An operator over fourteen states or twelve, and what is exact of its equation.

    Attributes
    ----------
    operator : BellmanOperator
    step : callable
        f, in fractions.
    exact : list of Fraction
        The least solution of x = f(x).
    divisor : list of Fraction
        What residuals are multiplied by: the diagonal.
    """

    operator: BellmanOperator
    step: Step
    exact: Vector
    divisor: Vector

    def positive(self) -> list[bool]:
        """Where the least solution is positive."""
        return [x > 0 for x in self.exact]


def sparse(row: np.ndarray) -> list[tuple[int, Fraction]]:
    """Places and values of what is not zero in a row."""
    return [(j, Fraction(v)) for j, v in enumerate(row.tolist()) if v]


def fractions(x: np.ndarray) -> Vector:
    return [Fraction(v) for v in x.tolist()]


@cache
def _chain(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, Step, Vector]:
    """A random chain of twelve states that loses something in each step, and two that lead to nothing."""
    rng = np.random.default_rng(seed)
    matrix, diagonal, b = np.zeros((14, 14)), np.ones(14), np.zeros(14)
    matrix[:12, :12], diagonal[:12], b[:12] = linear_system(rng, 12)
    matrix[12, 13], matrix[3, 13] = 0.5, 0.0625
    diagonal[3] += 0.125
    b[rng.random(14) < 0.5] = 0.0
    b[[0, 12, 13]] = 0.5, 0.0, 0.0
    rows, divisor, right = [sparse(row) for row in matrix], fractions(diagonal), fractions(b)

    def step(x: Vector) -> Vector:
        sums = (sum((v * x[j] for j, v in row), Fraction(0)) for row in rows)
        return [(s + r) / d for s, r, d in zip(sums, right, divisor, strict=True)]

    return matrix, diagonal, b, step, exact_solution(matrix, diagonal, b)


def chain_case(make: Make, seed: int) -> BellmanCase:
    """A chain's equation, on one implementation of its matrix."""
    matrix, diagonal, b, step, exact = _chain(seed)
    operator = DirectedSystem(make(matrix), diagonal, b, 256 * UNIT, ENCLOSING_VECTORS)
    return BellmanCase(operator, step, exact, fractions(diagonal))


def choice_case(name: str, seed: int, maximise: bool) -> BellmanCase:
    """An optimum's equation, of one operator over choices."""
    case, step, exact = _choices(seed, maximise, name != ONE_PASS)
    return BellmanCase(make_operator(name, case, slack=256 * UNIT), step, exact, [Fraction(1)] * 12)


@cache
def _choices(seed: int, maximise: bool, partial: bool) -> tuple[Choices, Step, Vector]:
    """Choices of twelve states, some without a value, which a few steps tell, others that take many steps."""
    rng, choose = np.random.default_rng(seed), max if maximise else min
    while True:
        case = random_choices(rng, maximise, 12, partial, zeros=0.6)
        has = [[k for k in range(3) if np.isfinite(case.gains[k, s])] for s in range(12)]
        own = [[(k, sparse(case.dense[k, s]), Fraction(case.gains[k, s])) for k in has[s]] for s in range(12)]

        def worth(x: Vector, own: Any = own) -> list[list[tuple[Fraction, int]]]:
            return [
                [(sum((v * x[j] for j, v in row), gain), k) for k, row, gain in choices] for choices in own
            ]

        def step(x: Vector, worth: Any = worth) -> Vector:
            return [choose(found)[0] for found in worth(x)]

        zeros = [True] * 12
        for _ in range(12):
            after = step([Fraction(not z) for z in zeros])
            zeros = [x == 0 for x in after]
        # Steps from above are zero there after a few steps, and not all is known by then.
        above = [Fraction(4)] * 12
        for _ in range(4):
            above = step(above)
        if not any(zeros) or [x == 0 for x in above] != zeros:
            continue
        exact = _optimum(case, worth)
        below = [Fraction(0)] * 12
        for _ in range(12):
            below = step(below)
        if below != exact:
            return case, step, exact


def _optimum(case: Choices, worth: Any) -> Vector:
    """Solve x = f(x) by policy iteration in fractions; every step loses something: policies have values."""
    choose, states = max if case.maximise else min, np.arange(case.size)
    policy = [choose(found)[1] for found in worth([Fraction(0)] * case.size)]
    while True:
        x = exact_solution(case.dense[policy, states], np.ones(case.size), case.gains[policy, states])
        # A choice stays unless another one is better for certain.
        better = [
            k if (value := choose(found)) and dict((j, v) for v, j in found)[k] == value[0] else value[1]
            for k, found in zip(policy, worth(x), strict=True)
        ]
        if better == policy:
            return x
        policy = better
