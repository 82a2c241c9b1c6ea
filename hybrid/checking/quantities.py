"""Values of a property in every state, and the account of the numerical work behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.solvers import Solution, Status

__all__ = ["NotConvergedError", "StateValues", "Work"]


class NotConvergedError(ArithmeticError):
    """An iteration that did not reach an answer.

    Attributes
    ----------
    solution : Solution
        The last iterate, which is not an answer.
    """

    def __init__(self, what: str, solution: Solution) -> None:
        self.solution = solution
        detail = f"after {solution.iterations} iterations, last difference {solution.difference:.3g}"
        super().__init__(f"{what}: {solution.status.value} ({detail})")


@dataclass
class Work:
    """What the solving of one property cost, summed over its linear systems.

    Attributes
    ----------
    method, backend : str or None
        None while no system had to be solved.
    level : int or None
        Injection level of the largest system.
    iterations : int
    seconds : float
        Wall time of the iterations.
    base_bytes, representation_bytes : int
        Iteration vectors, diagonal and right-hand side; matrix (MemB and MemR of the largest system).
    residual : float
        Greatest residual of any system.
    """

    method: str | None = None
    backend: str | None = None
    level: int | None = None
    iterations: int = 0
    seconds: float = 0.0
    base_bytes: int = 0
    representation_bytes: int = 0
    residual: float = 0.0
    progress: Callable[[int, float], None] | None = field(default=None, repr=False)

    def add(
        self,
        what: str,
        solution: Solution,
        method: str,
        backend: str,
        level: int,
        base_bytes: int,
        representation_bytes: int,
    ) -> None:
        """Account for one system; refuse one that did not converge.

        Raises
        ------
        NotConvergedError
        """
        self.method, self.backend = method, backend
        self.iterations += solution.iterations
        self.seconds += solution.seconds
        if base_bytes + representation_bytes >= self.base_bytes + self.representation_bytes:
            self.level, self.base_bytes, self.representation_bytes = level, base_bytes, representation_bytes
        if solution.status is not Status.CONVERGED:
            raise NotConvergedError(what, solution)
        self.residual = max(self.residual, solution.residual)


@dataclass(frozen=True)
class StateValues:
    """One number (or truth value) for every reachable state, in index order.

    Attributes
    ----------
    values : ndarray of float64 or bool, shape (n_states,)
    exact : ndarray of bool, shape (n_states,), or None
        Where the value follows from the graph alone; None means everywhere.
    """

    values: NDArray[np.float64] | NDArray[np.bool_]
    exact: NDArray[np.bool_] | None = None

    def is_exact(self, indices: NDArray[np.int64]) -> bool:
        """Whether all the named states have exact values."""
        return self.exact is None or bool(self.exact[indices].all())
