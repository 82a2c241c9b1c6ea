"""Iterative methods, one a file, and the choice among them."""

from hybrid.matrix.space.base import Criterion, MatrixOperator, Solution, Status
from hybrid.matrix.space.bounded_solution import BoundedSolution
from hybrid.solvers.average_krylov import GainResult
from hybrid.solvers.average_reward import AverageReward
from hybrid.solvers.bicgstab import BiCGStab
from hybrid.solvers.gauss_seidel import GaussSeidel
from hybrid.solvers.interval import Interval
from hybrid.solvers.iteration import Jacobi, Power
from hybrid.solvers.optimistic import Optimistic
from hybrid.solvers.topological import Topological

__all__ = [
    "BiCGStab",
    "Criterion",
    "BoundedSolution",
    "AverageReward",
    "GainResult",
    "GaussSeidel",
    "Interval",
    "Jacobi",
    "Optimistic",
    "Power",
    "Solution",
    "Status",
    "MatrixOperator",
    "Topological",
]
