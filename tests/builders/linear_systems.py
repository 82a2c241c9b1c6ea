"""Small linear systems `(D - A) x = b`: random ones, the plainest operator for them, exact solutions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tests.oracles.chains import solve_exactly

__all__ = ["Dense", "exact_solution", "linear_system"]

Array = NDArray[np.float64]


class Dense:
    """The plainest matrix that offers what the methods ask for."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = np.asarray(matrix, dtype=float)

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    def multiply(self, x, out=None):
        with np.errstate(over="ignore", invalid="ignore"):
            y = self.matrix @ x
        if out is None:
            return y
        out[:] = y
        return out

    def jacobi_step(self, x, out, b, diagonal, omega):
        y = self.multiply(x)
        if b is not None:
            y = y + b
        with np.errstate(all="ignore"):
            new = (1 - omega) * x + omega * y / diagonal
            difference = np.abs(new - x)
            relative = np.where(difference == 0, 0.0, difference / np.abs(new))
        out[:] = new
        return float(difference.max(initial=0)), float(relative.max(initial=0))


def linear_system(rng: np.random.Generator, n: int = 30) -> tuple[Array, Array, Array]:
    """Draw a matrix, a diagonal that dominates it and a right-hand side: `(D - A) x = b`."""
    matrix = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    np.fill_diagonal(matrix, 0)
    diagonal = matrix.sum(axis=1) * (1.1 + rng.random(n)) + 0.1
    b = rng.random(n)
    return matrix, diagonal, b


def exact_solution(matrix: Array, diagonal: Array, b: Array) -> list[Fraction]:
    """Solve `(D - A) x = b` in fractions."""
    rows = [
        [(Fraction(d) if i == j else Fraction(0)) - Fraction(x) for j, x in enumerate(row)]
        for i, (d, row) in enumerate(zip(diagonal.tolist(), matrix.tolist(), strict=True))
    ]
    return solve_exactly(rows, [Fraction(x) for x in b.tolist()])
