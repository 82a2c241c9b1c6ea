"""Iterative methods, one a file, and the choice among them."""

from hybrid.solvers.base import Criterion, Solution, Status, Sweeper
from hybrid.solvers.jacobi import Jacobi
from hybrid.solvers.power import Power

__all__ = ["Criterion", "Jacobi", "Power", "Solution", "Status", "Sweeper"]
