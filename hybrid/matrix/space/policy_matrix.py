"""The rows of a policy as a matrix, on those of all choices."""

from __future__ import annotations

import numpy as np

from hybrid.matrix.space.base import Vector
from hybrid.matrix.space.choosing import Choosing
from hybrid.matrix.space.workspace import Array


class PolicyMatrix:
    """See `MatrixOperator`.

    Parameters
    ----------
    choices : Choosing
        On the host.
    policy : ndarray, shape (size,), uint16
        From `Choosing.choose`.
    """

    def __init__(self, choices: Choosing, policy: Array) -> None:
        self._choices, self._policy = choices, policy
        self.shape = (choices.size, choices.size)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``A x``."""
        result = np.empty(len(x)) if out is None else out
        self._choices.follow(x, result, self._policy)
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``A x + b``: a step with omega 1, where the diagonal is 1."""
        shape = np.zeros(len(x)) if b is None else b
        self._choices.improve(x, out, shape=shape, policy=self._policy)
        absolute, relative = self._choices.space.read(self._choices.changes)
        return absolute, relative
