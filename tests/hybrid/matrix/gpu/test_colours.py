"""Gauss-Seidel by colours on a device: the order of a sweep, its results and its refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid
from gpu_kernels import Device
from gpu_kernels.runtime.csr import CsrArrays
from hybrid.base.errors import OptionError
from hybrid.matrix.explicit import ExplicitOperator
from hybrid.matrix.gpu.colours import MOST_COLOURS, colours_of
from hybrid.matrix.operators.inject import inject
from hybrid.solvers import Criterion, GaussSeidel, Jacobi, Status
from tests.builders.held_models import tandem
from tests.builders.matrices import from_dense

N = 60
BITS = 6


def chain(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A walk with some longer jumps, rows without entries among them, as a system that ends in every step."""
    dense = np.diag(np.full(N - 1, 0.45), 1) + np.diag(np.full(N - 1, 0.4), -1)
    dense[rng.integers(0, N, 25), rng.integers(0, N, 25)] += 0.05
    dense[[7, 8, 40]] = 0.0
    np.fill_diagonal(dense, 0.0)
    return dense, 1.0 + rng.random(N), rng.random(N)


def by_numpy(
    dense: np.ndarray, diagonal: np.ndarray, b: np.ndarray, x: np.ndarray, colour: np.ndarray, omega: float
) -> np.ndarray:
    """One sweep, colour after colour."""
    x = x.copy()
    for number in range(int(colour.max()) + 1):
        rows = colour == number
        x[rows] += omega * ((dense[rows] @ x + b[rows]) / diagonal[rows] - x[rows])
    return x


def colours_of_rows(dense: np.ndarray, form: str = "msr") -> np.ndarray:
    """Rows without entries are no groups of tiles: nothing in the graph, and of the first colour."""
    rows = np.flatnonzero(dense.any(axis=1)) if form == "tiles" else np.arange(len(dense))
    arrows = (places.astype(np.int64) for places in np.nonzero(dense[np.ix_(rows, rows)]))
    colour = np.zeros(len(dense), np.int64)
    colour[rows] = colours_of(len(rows), *arrows)
    return colour


def held(device: Device, dense: np.ndarray, form: str) -> Any:
    if form == "tiles":
        return inject(from_dense(dense, n_bits=BITS), 2 * BITS, "gpu")  # every group is a row
    return ExplicitOperator(CsrArrays.from_scipy(csr_matrix(dense)).to_device(device), device, form)


def test_colours_are_first_fit() -> None:
    walk = np.arange(9)
    assert colours_of(10, walk, walk + 1).tolist() == [0, 1] * 5
    # One direction is enough; an isolated vertex has the first colour.
    assert colours_of(4, np.array([2, 3]), np.array([0, 0])).tolist() == [0, 0, 1, 1]
    n = MOST_COLOURS + 3
    everywhere = [np.repeat(np.arange(n), n), np.tile(np.arange(n), n)]
    apart = everywhere[0] != everywhere[1]
    found = colours_of(n, everywhere[0][apart], everywhere[1][apart])
    assert found.tolist() == [*range(MOST_COLOURS), 0, 1, 2]
    assert colours_of(0, np.zeros(0, np.int64), np.zeros(0, np.int64)).size == 0


def test_rows_of_a_colour_do_not_read_one_another(rng: np.random.Generator) -> None:
    dense = chain(rng)[0]
    colour = colours_of_rows(dense)
    row, column = np.nonzero(dense)
    assert (colour[row] != colour[column]).all()
    assert 2 <= colour.max() + 1 <= 5


@pytest.mark.parametrize("form", ["msr", "csell", "tiles"])
@pytest.mark.parametrize("omega", [1.0, 0.7])
def test_a_sweep_reads_the_newest_values(
    device: Device, rng: np.random.Generator, form: str, omega: float
) -> None:
    dense, diagonal, b = chain(rng)
    matrix, start = held(device, dense, form), rng.random(N)
    once = GaussSeidel(Criterion(1e-12, False, 1), omega).solve(matrix, diagonal, b, start.copy())
    expected = by_numpy(dense, diagonal, b, start, colours_of_rows(dense, form), omega)
    np.testing.assert_allclose(once.values, expected, rtol=1e-13)
    assert once.difference == pytest.approx((np.abs(expected - start) / expected).max(), rel=1e-10)
    left = dense @ expected + b - diagonal * expected
    assert once.residual == pytest.approx(np.abs(left).max(), rel=1e-9)


@pytest.mark.parametrize("form", ["msr", "tiles"])
def test_the_solution_is_found_in_fewer_iterations_than_by_jacobi(
    device: Device, rng: np.random.Generator, form: str
) -> None:
    dense, diagonal, b = chain(rng)
    matrix = held(device, dense, form)
    found = GaussSeidel(Criterion(1e-12)).solve(matrix, diagonal, b, np.zeros(N))
    assert found.status is Status.CONVERGED and found.residual < 1e-10
    np.testing.assert_allclose(found.values, np.linalg.solve(np.diag(diagonal) - dense, b), rtol=1e-9)
    jacobi = Jacobi(Criterion(1e-12)).solve(matrix, diagonal, b, np.zeros(N))
    assert found.iterations < 0.7 * jacobi.iterations


@pytest.mark.parametrize("level", [0, 4, 8])
def test_rows_of_a_group_see_old_values(device: Device, rng: np.random.Generator, level: int) -> None:
    dense, diagonal, b = chain(rng)
    matrix = inject(from_dense(dense, n_bits=BITS), level, "gpu")
    found = GaussSeidel(Criterion(1e-12)).solve(matrix, diagonal, b, np.zeros(N))
    np.testing.assert_allclose(found.values, np.linalg.solve(np.diag(diagonal) - dense, b), rtol=1e-9)
    if level == 0:
        jacobi = Jacobi(Criterion(1e-12)).solve(matrix, diagonal, b, np.zeros(N))
        assert (found.iterations, found.difference) == (jacobi.iterations, jacobi.difference)


def test_every_status(device: Device, rng: np.random.Generator) -> None:
    dense, diagonal, b = chain(rng)
    for form in ("msr", "tiles"):
        matrix = held(device, dense, form)
        short = GaussSeidel(Criterion(1e-12, False, 3)).solve(matrix, diagonal, b, np.zeros(N))
        assert (short.status, short.iterations) == (Status.MAX_ITERATIONS, 3)
        growing = GaussSeidel(Criterion(1e-12)).solve(matrix, np.full(N, 1e-3), b, np.zeros(N))
        assert growing.status is Status.DIVERGED


def test_matrices_without_entries(device: Device) -> None:
    for form in ("msr", "tiles"):
        matrix = held(device, np.zeros((N, N)), form)
        found = GaussSeidel().solve(matrix, np.full(N, 2.0), np.ones(N), np.zeros(N))
        assert found.values.tolist() == [0.5] * N


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
@pytest.mark.parametrize(
    "question", ["P=? [ sm<2 U sc=3 ]", 'R{"customers"}=? [ F "full" ]', 'S=? [ "full" ]']
)
def test_answers_are_those_of_the_reference(device: Device, engine: str, question: str) -> None:
    model = tandem("reversed")
    options: Any = {"engine": engine, "backend": "gpu", "method": "gauss-seidel", "epsilon": 1e-12}
    found = hybrid.check(model, question, **options)
    expected = hybrid.check(model, question, backend="reference", epsilon=1e-12)
    assert found.value == pytest.approx(expected.value, rel=1e-8)
    assert (found.statistics.backend, found.statistics.method) == ("gpu", "gauss-seidel")
    np.testing.assert_allclose(
        model.steady_state(**options), model.steady_state(backend="reference"), atol=1e-9
    )


def test_tasks_have_no_colours(device: Device) -> None:
    with pytest.raises(OptionError, match="tasks have none; choose representation='row-types'"):
        hybrid.check(
            tandem("reversed"), 'S=? [ "full" ]', backend="gpu", method="gauss-seidel", representation="tasks"
        )
    matrix = inject(from_dense(np.eye(4, k=1), n_bits=2), 2, "gpu", representation="tasks")
    with pytest.raises(ValueError, match="tasks have none"):
        matrix.coloured()
