"""Steps of one kind on the host, one after the other; see :class:`hybrid.matrix.space.workspace.Steps`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.matrix.space.base import MatrixOperator, Vector
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.workspace import Pair


class HostRelaxation:
    """Jacobi and JOR steps; their changes come with them.

    Parameters
    ----------
    matrix : MatrixOperator
    passes : Passes
    diagonal, b : ndarray of float64, shape (n,)
        b None is zero.
    omega : float
        Relaxation weight.
    """

    def __init__(
        self, matrix: MatrixOperator, passes: Passes, diagonal: Vector, b: Vector | None, omega: float
    ) -> None:
        self._matrix, self._passes, self._diagonal, self._b, self._omega = matrix, passes, diagonal, b, omega
        self._made, self._absolute, self._relative = 0, float("inf"), float("inf")

    def sweep(self, pair: Pair, done: int, count: int, total: Vector | None = None) -> None:
        """Make the steps."""
        step: Callable[..., tuple[float, float]] = self._matrix.jacobi_step
        for k in range(done, done + count):
            x, out = pair[k % 2], pair[1 - k % 2]
            if total is not None:
                with np.errstate(over="ignore"):
                    self._passes.add_scaled(1.0, x, total)
            self._absolute, self._relative = step(x, out, self._b, self._diagonal, self._omega)
        self._made = done + count

    @property
    def changes(self) -> Vector:
        """Changes of the last step."""
        return self._passes.agreed(np.array([self._absolute, self._relative]))

    @property
    def course(self) -> Vector:
        """Steps made and the changes of the last one."""
        return np.append(float(self._made), self.changes)


class HostUniformised:
    """Steps of the uniformised chain; changes are measured when they are asked for.

    Parameters
    ----------
    matrix, passes, diagonal, b
        As for `HostRelaxation`.
    weight : float
        One over the rate of the chain.
    """

    def __init__(
        self, matrix: MatrixOperator, passes: Passes, diagonal: Vector, b: Vector | None, weight: float
    ) -> None:
        self._matrix, self._passes, self._weight = matrix, passes, weight
        self._diagonal = np.ascontiguousarray(diagonal, dtype=np.float64)
        self._b = None if b is None else np.ascontiguousarray(b, dtype=np.float64)
        self._made = 0
        self._last: tuple[Vector, Vector] | None = None

    def sweep(self, pair: Pair, done: int, count: int, total: Vector | None = None) -> None:
        """Make the steps."""
        for k in range(done, done + count):
            x, out = pair[k % 2], pair[1 - k % 2]
            with np.errstate(over="ignore", invalid="ignore"):
                if total is not None:
                    self._passes.add_scaled(1.0, x, total)
                self._matrix.multiply(x, out)
                self._passes.uniformise(x, self._b, self._diagonal, self._weight, out)
            self._last = x, out
        self._made = done + count

    @property
    def changes(self) -> Vector:
        """Changes of the last step."""
        if self._last is None:
            return np.full(2, np.inf)
        x, out = self._last
        return self._passes.greatest_changes(out, x)

    @property
    def course(self) -> Vector:
        """Steps made and the changes of the last one."""
        return np.append(float(self._made), self.changes)
