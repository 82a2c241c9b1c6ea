"""Iterative methods, one a file, and the choice among them."""

from hybrid.solvers.base import Criterion, Solution, Status, Sweeper
from hybrid.solvers.bicgstab import BiCGStab
from hybrid.solvers.enclosure import Enclosure
from hybrid.solvers.gain import Gain, GainResult
from hybrid.solvers.gauss_seidel import GaussSeidel
from hybrid.solvers.interval import Interval
from hybrid.solvers.jacobi import Jacobi
from hybrid.solvers.optimistic import Optimistic
from hybrid.solvers.power import Power
from hybrid.solvers.topological import Topological

__all__ = [
    "BiCGStab",
    "Criterion",
    "Enclosure",
    "Gain",
    "GainResult",
    "GaussSeidel",
    "Interval",
    "Jacobi",
    "Optimistic",
    "Power",
    "Solution",
    "Status",
    "Sweeper",
    "Topological",
]
