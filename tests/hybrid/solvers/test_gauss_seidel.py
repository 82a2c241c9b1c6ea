"""Gauss-Seidel on every form of matrix: the right solution, fewer iterations, every way to end."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.solvers import Criterion, Jacobi, Status
from hybrid.solvers.iteration import GaussSeidel
from tests.builders.matrices import from_dense

N = 500


def walk(n=N, up=0.45, down=0.53):
    """Return a walk that ends with a small probability in every step."""
    dense = np.diag(np.full(n - 1, up), 1) + np.diag(np.full(n - 1, down), -1)
    return dense, np.ones(n), np.full(n, 1.0 - up - down)


def held(form, dense):
    if form == "csr":
        return CsrMatrix(csr_matrix(dense))
    return inject(from_dense(dense, n_bits=9), 6, form)


@pytest.mark.parametrize(
    ("form", "omega"),
    [(form, omega) for form in ("csr", "cpu", "reference") for omega in (1.0, 0.7)] + [("csr", 1.2)],
)
def test_the_solution_is_found_in_fewer_iterations_than_by_jacobi(form, omega):
    dense, diagonal, b = walk()
    matrix = held(form, dense)
    found = GaussSeidel(Criterion(1e-12), omega).solve(matrix, diagonal, b, np.zeros(N))
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(found.values, np.linalg.solve(np.diag(diagonal) - dense, b), rtol=1e-9)
    assert found.residual < 1e-10
    if omega == 1.0:
        jacobi = Jacobi(Criterion(1e-12)).solve(CsrMatrix(csr_matrix(dense)), diagonal, b, np.zeros(N))
        assert found.iterations <= jacobi.iterations * (0.7 if form == "csr" else 1.0)


@pytest.mark.parametrize("form", ["csr", "cpu", "reference"])
def test_every_status(form):
    dense, diagonal, b = walk()
    matrix = held(form, dense)
    short = GaussSeidel(Criterion(1e-12, False, 3)).solve(matrix, diagonal, b, np.zeros(N))
    assert (short.status, short.iterations) == (Status.MAX_ITERATIONS, 3)
    growing = GaussSeidel(Criterion(1e-12)).solve(matrix, np.full(N, 1e-3), b, np.zeros(N))
    assert growing.status is Status.DIVERGED


def test_absolute_and_relative_differences():
    dense, diagonal, b = walk(60)
    b = b * 1e-12
    matrix = CsrMatrix(csr_matrix(dense))
    absolute = GaussSeidel(Criterion(1e-8, True)).solve(matrix, diagonal, b, np.zeros(60))
    relative = GaussSeidel(Criterion(1e-8)).solve(matrix, diagonal, b, np.zeros(60))
    assert absolute.iterations == 1 < relative.iterations


def test_the_start_is_kept_and_progress_is_told():
    dense, diagonal, b = walk(60)
    start = np.zeros(60)
    GaussSeidel().solve(CsrMatrix(csr_matrix(dense)), diagonal, b, start, lambda k, d: None)
    assert not start.any()


@pytest.mark.parametrize("omega", [0.0, 2.0, -1.0, float("nan")])
def test_senseless_relaxation_is_refused(omega):
    with pytest.raises(ValueError, match="between 0 and 2"):
        GaussSeidel(omega=omega)


def test_a_device_is_refused():
    matrix = SimpleNamespace(backend="gpu", shape=(1, 1))
    with pytest.raises(ValueError, match="does not run on the backend gpu"):
        GaussSeidel().solve(matrix, np.ones(1), np.ones(1), np.zeros(1))
