"""Methods hold no more vectors than they say."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import hybrid.mdp.solvers as choices
from hybrid.cpu.csr import CsrMatrix
from hybrid.solvers import (
    BiCGStab,
    Criterion,
    Gain,
    GaussSeidel,
    Interval,
    Jacobi,
    Optimistic,
    Power,
    Topological,
)
from hybrid.solvers.base import LEAST_VECTORS, MOST_VECTORS

SIZE = 1 << 16
FEW = Criterion(1e-12, max_iterations=40)
ESTIMATES = (Jacobi(FEW), Jacobi(FEW, 0.9), Power(FEW), GaussSeidel(FEW), BiCGStab(FEW))
ENCLOSING = (Interval(FEW), Optimistic(FEW))


def system(closed: bool = False) -> tuple[CsrMatrix, Any, Any]:
    """A walk along a line; open at its ends, or closed."""
    off = np.full(SIZE - 1, 0.5)
    matrix = CsrMatrix(sp.csr_array(sp.diags_array([off, off], offsets=[-1, 1]), dtype=np.float64))
    diagonal = np.ones(SIZE)
    if closed:
        diagonal[[0, -1]] = 0.5
    b = np.zeros(SIZE)
    b[-1] = 0.5
    return matrix, diagonal, b


def vectors_at_peak(work: Any) -> float:
    """Return the most memory that a call holds, in vectors of the system's size."""
    work()  # compiled, and what is kept for ever is there
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (most - before) / (8 * SIZE)


OPERANDS = 2


@pytest.mark.parametrize("method", ESTIMATES, ids=lambda m: m.name)
def test_estimates(method: Any) -> None:
    matrix, diagonal, b = system()
    start = np.zeros(SIZE)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, start))
    assert held + OPERANDS <= method.vectors + 0.6


@pytest.mark.parametrize("method", ENCLOSING, ids=lambda m: m.name)
def test_bounds(method: Any) -> None:
    matrix, diagonal, b = system()
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50, 1.0))
    assert held + OPERANDS <= method.vectors + 0.6


def test_averages() -> None:
    matrix, diagonal, b = system(closed=True)
    method = Gain(FEW)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50))
    assert held + OPERANDS <= method.vectors + 0.6


def test_the_least_and_the_most_are_those_of_the_methods() -> None:
    told = [m.vectors for m in (*ESTIMATES, *ENCLOSING, Gain, Topological)]
    assert (min(told), max(told)) == (LEAST_VECTORS, MOST_VECTORS)
    assert choices.ValueIteration.vectors < choices.Intervals.vectors == choices.OptimisticIteration.vectors
