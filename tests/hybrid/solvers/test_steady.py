"""Whether an iteration has grown as it does now since it began: rare exits, fronts, rows that have ended."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid.matrix.space.base import LinearOperator
from hybrid.matrix.space.bellman import LowerIterationState
from hybrid.matrix.space.host import HostSpace
from hybrid.solvers.krylov_bounds import is_steady
from tests.builders.linear_systems import Dense


def after(matrix: np.ndarray, b: np.ndarray, steps: int) -> tuple[LowerIterationState, float]:
    """Return what an iteration from 0 holds after some steps, and its greatest relative change."""
    x, y, total = np.zeros_like(b), np.zeros_like(b), np.zeros_like(b)
    for _ in range(steps):
        total += x
        x, y = matrix @ x + b, x
    change = float(np.max((x - y)[x > 0.0] / x[x > 0.0]))
    return LowerIterationState(x, y, total, np.empty_like(b), steps, None, lambda: ({}, {})), change


def steady_after(matrix: np.ndarray, b: np.ndarray, steps: int) -> bool:
    space: LinearOperator = Dense(matrix)
    return is_steady(HostSpace(space), *after(matrix, b, steps))


def rare(leaving: float) -> np.ndarray:
    """Three states that are left rarely, one that leads to them or ends, and one that ends at once."""
    matrix = np.zeros((5, 5))
    matrix[:3, :3] = (1.0 - leaving) / 3.0
    matrix[3, 0] = 0.5
    return matrix


def test_a_chain_that_is_left_rarely_is_steady() -> None:
    for leaving in (1e-12, 1e-7):
        for steps in (40, 80, 1000):
            assert steady_after(rare(leaving), np.ones(5), steps)
    # Rows that are zero are as they always were.
    never = rare(1e-9)
    never[4] = 0.0
    assert steady_after(never, np.array([1.0, 1.0, 1.0, 0.0, 0.0]), 100)
    # What contracts is not: the change is less than it was.
    assert not steady_after(rare(0.05), np.ones(5), 80)


@pytest.mark.parametrize("steps", [40, 80, 160, 320])
@pytest.mark.parametrize("power", [0, 1])
def test_a_front_is_not_steady(steps: int, power: int) -> None:
    """States in a row, each of which gains until it has come to the end."""
    size = 400
    b = np.arange(1.0, size + 1.0) ** power
    for staying in (0.0, 0.3):
        matrix = np.diag(np.full(size, staying)) + np.diag(np.full(size - 1, 1.0 - staying), -1)
        assert not steady_after(matrix, b, steps)


def test_every_row_counts() -> None:
    held, change = after(rare(1e-9), np.ones(5), 100)
    assert is_steady(HostSpace(Dense(np.eye(5))), held, change)
    for row in range(3):
        held, change = after(rare(1e-9), np.ones(5), 100)
        held.y[row] = held.x[row]
        assert not is_steady(HostSpace(Dense(np.eye(5))), held, change)
