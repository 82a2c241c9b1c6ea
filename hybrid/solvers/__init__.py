"""Iterative methods, one a file, and the choice among them."""

from __future__ import annotations

from mtbdd.base.lazy_loading import lazy_names

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from hybrid.matrix.space.base import Criterion, LinearOperator, Solution, Status
    from hybrid.matrix.space.bounded_solution import BoundedSolution
    from hybrid.solvers.average_krylov import GainResult
    from hybrid.solvers.average_reward import AverageReward
    from hybrid.solvers.bicgstab import BiCGStab
    from hybrid.solvers.interval import Interval
    from hybrid.solvers.iteration import GaussSeidel, Jacobi, Power
    from hybrid.solvers.optimistic import Optimistic
    from hybrid.solvers.topological import Topological

__all__ = [
    "BiCGStab", "Criterion", "BoundedSolution", "AverageReward", "GainResult", "GaussSeidel", "Interval",
    "Jacobi", "Optimistic", "Power", "Solution", "Status", "LinearOperator", "Topological",
]  # fmt: skip

_HOMES = {
    "average_krylov": ("GainResult",),
    "average_reward": ("AverageReward",),
    "bicgstab": ("BiCGStab",),
    "hybrid.matrix.space.base": ("Criterion", "LinearOperator", "Solution", "Status"),
    "hybrid.matrix.space.bounded_solution": ("BoundedSolution",),
    "interval": ("Interval",),
    "iteration": ("GaussSeidel", "Jacobi", "Power"),
    "optimistic": ("Optimistic",),
    "topological": ("Topological",),
}

_GONE = {"MatrixOperator": "it is LinearOperator"}
"""Names of the release before."""

if not TYPE_CHECKING:  # type checkers have the imports above
    # On first use: an answer takes one method.
    __getattr__ = lazy_names(__name__, _HOMES, gone=_GONE)
