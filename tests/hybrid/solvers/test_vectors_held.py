"""Methods hold no more vectors than they say."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import DEFAULT_VECTORS, LEAST_VECTORS
from hybrid.matrix.space.choice_operator import BOUND_VECTORS
from hybrid.solvers import (
    AverageReward,
    BiCGStab,
    Criterion,
    GaussSeidel,
    Interval,
    Jacobi,
    Optimistic,
    Power,
    Topological,
)
from hybrid.solvers.average_krylov import LEAN_VECTORS
from hybrid.solvers.iteration import ValueIteration
from tests.builders.models import build

SIZE = 1 << 16
FEW = Criterion(1e-12, max_iterations=15)
ESTIMATES = (Jacobi(FEW), Jacobi(FEW, 0.9), Power(FEW), GaussSeidel(FEW), BiCGStab(FEW))
ENCLOSING = (Interval(FEW), Optimistic(FEW))


DOUBLING = f"""
ctmc
module doubling
  s : [0..{SIZE - 1}];
  [] true -> 0.5 : (s'=mod(2*s, {SIZE})) + 0.5 : (s'=mod(2*s + 1, {SIZE}));
endmodule
"""


@pytest.fixture(autouse=True)
def entries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first calls of a function make once and for all is not counted."""
    monkeypatch.setattr("hybrid.matrix.cpu.entries._AFTER", 0)


@pytest.fixture(scope="module", params=["compressed", "explicit"])
def matrix(request: pytest.FixtureRequest) -> HybridMatrix | CsrMatrix:
    """Every state leads to every other within a few steps; without the diagonal."""
    if request.param == "compressed":
        model = build(DOUBLING)
        return inject(model.submatrix(model.index, model.index, diagonal=False), backend="cpu").prepare()
    s = np.arange(SIZE)
    rows, columns = np.concatenate((s, s)), np.concatenate((2 * s, 2 * s + 1)) % SIZE
    kept = rows != columns
    entries = np.full(np.count_nonzero(kept), 0.5)
    return CsrMatrix(sp.csr_array((entries, (rows[kept], columns[kept])), shape=(SIZE, SIZE)))


def system(closed: bool = False) -> tuple[Any, Any]:
    """Diagonal and right-hand side; the first and the last state are left for good half the time, or not."""
    diagonal = np.ones(SIZE)
    if closed:
        diagonal[[0, -1]] = 0.5
    b = np.zeros(SIZE)
    b[-1] = 0.5
    return diagonal, b


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


def most(matrix: Any, method: Any) -> float:
    """Vectors besides the operands, and what is worked on part by part."""
    return method.vectors - 2 + getattr(matrix, "spare_vectors", 0) + 0.4


@pytest.mark.parametrize("method", ESTIMATES, ids=lambda m: m.name)
def test_estimates(matrix: Any, method: Any) -> None:
    diagonal, b = system()
    start = np.zeros(SIZE)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, start))
    assert held <= most(matrix, method)


@pytest.mark.parametrize("method", ENCLOSING, ids=lambda m: m.name)
def test_bounds(matrix: Any, method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Widths are measured part by part: of vectors as short as these a part is all of them.
    monkeypatch.setattr("hybrid.matrix.space.bounded_solution._PART", SIZE // 16)
    diagonal, b = system()
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50, 1.0))
    assert held <= most(matrix, method)


def test_averages(matrix: Any) -> None:
    diagonal, b = system(closed=True)
    method = AverageReward(FEW, krylov="never")
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50))
    assert held <= most(matrix, method)


def test_averages_in_the_fewest_vectors(matrix: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    diagonal, b = system(closed=True)
    monkeypatch.setattr(AverageReward, "has_room", lambda self, matrix: False)
    method = AverageReward(FEW)
    found = method.solve(matrix, diagonal, b, 2.0**-50)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50))
    assert found.nbytes == LEAN_VECTORS * b.nbytes
    # What is worked on part by part is half of vectors as short as these.
    assert held <= LEAN_VECTORS - 2 + getattr(matrix, "spare_vectors", 0) + 1.4


def test_averages_by_idr(matrix: Any) -> None:
    diagonal, b = system(closed=True)
    method = AverageReward(FEW, krylov="always")
    found = method.solve(matrix, diagonal, b, 2.0**-50)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50))
    assert found.more_vectors > 0
    # Parts of vectors as long as half of these, on several threads.
    assert most(matrix, method) < held <= most(matrix, method) + found.more_vectors + 1.0


def test_bounds_by_idr(matrix: Any) -> None:
    diagonal, b = system()
    method = Optimistic(Criterion(1e-12, max_iterations=80), krylov="always")
    found = method.solve(matrix, diagonal, b, 2.0**-50, 1.0)
    held = vectors_at_peak(lambda: method.solve(matrix, diagonal, b, 2.0**-50, 1.0))
    assert found.more_vectors > 0
    assert most(matrix, method) < held <= most(matrix, method) + found.more_vectors + 1.0


def test_what_admission_counts_is_what_methods_hold() -> None:
    assert min(m.vectors for m in (*ESTIMATES, *ENCLOSING, AverageReward, Topological)) == LEAST_VECTORS
    assert max(m.vectors for m in (Optimistic, AverageReward, Topological)) == DEFAULT_VECTORS
    assert ValueIteration.vectors < BOUND_VECTORS == Optimistic.vectors
