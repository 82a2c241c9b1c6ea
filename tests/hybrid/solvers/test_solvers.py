"""Iterative methods against dense solutions, and every status they can end with."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybrid import inject
from hybrid.solvers import Criterion, Jacobi, Power, Status
from tests.builders.linear_systems import Dense, linear_system
from tests.builders.matrices import from_dense

TIGHT = Criterion(epsilon=1e-13, max_iterations=100_000)
METHODS = [Jacobi(TIGHT), Jacobi(TIGHT, 0.9), Jacobi(TIGHT, 1.1), Power(TIGHT)]


@pytest.mark.parametrize("solver", METHODS, ids=lambda s: f"{s.name}-{getattr(s, 'omega', '')}")
def test_linear_systems_agree_with_lu(solver, rng):
    matrix, diagonal, b = linear_system(rng)
    expected = np.linalg.solve(np.diag(diagonal) - matrix, b)
    found = solver.solve(Dense(matrix), diagonal, b, np.zeros(b.size))
    assert found.status is Status.CONVERGED
    assert_allclose(found.values, expected, rtol=1e-10)
    assert found.residual == pytest.approx(np.abs(matrix @ found.values + b - diagonal * found.values).max())
    assert found.iterations > 1
    assert found.seconds_per_iteration > 0


@pytest.mark.parametrize("solver", [Jacobi(TIGHT, 0.9), Power(TIGHT)], ids=lambda s: s.name)
def test_stationary_distribution_of_a_periodic_chain(solver):
    rates = np.zeros((4, 4))
    for i, rate in enumerate((1.0, 2.0, 3.0, 4.0)):
        rates[i, (i + 1) % 4] = rate
    exits = rates.sum(axis=1)
    found = solver.solve(Dense(rates.T), exits, None, np.full(4, 0.25))
    assert found.status is Status.CONVERGED
    expected = (1 / exits) / (1 / exits).sum()
    assert_allclose(found.values / found.values.sum(), expected, rtol=1e-10)


def test_jacobi_on_a_periodic_chain_does_not_pretend_to_converge():
    rates = np.array([[0.0, 1.0], [3.0, 0.0]])
    criterion = Criterion(epsilon=1e-6, max_iterations=500)
    found = Jacobi(criterion).solve(Dense(rates.T), rates.sum(axis=1), None, np.array([0.9, 0.1]))
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations == 500
    assert found.difference > 1e-6


def test_divergence_is_a_status():
    matrix = np.array([[0.0, 1e200], [1e200, 0.0]])
    found = Jacobi(TIGHT).solve(Dense(matrix), np.ones(2), np.ones(2), np.ones(2))
    assert found.status is Status.DIVERGED


def test_power_divergence_is_a_status():
    matrix = np.array([[0.0, 1e200], [1e200, 0.0]])
    found = Power(TIGHT).solve(Dense(matrix), np.ones(2), np.ones(2), np.ones(2))
    assert found.status is Status.DIVERGED


@pytest.mark.parametrize("absolute", [False, True])
def test_absolute_and_relative_stopping_differ_on_small_values(absolute):
    # x halves every step: the relative difference stays 1, the absolute one falls below epsilon.
    matrix = np.array([[0.0, 0.5], [0.5, 0.0]])
    criterion = Criterion(epsilon=1e-3, absolute=absolute, max_iterations=50)
    found = Jacobi(criterion).solve(Dense(matrix), np.ones(2), None, np.ones(2))
    assert (found.status is Status.CONVERGED) == absolute


def test_start_is_not_changed(rng):
    matrix, diagonal, b = linear_system(rng, 5)
    start = rng.random(5)
    kept = start.copy()
    Jacobi(TIGHT).solve(Dense(matrix), diagonal, b, start)
    Power(TIGHT).solve(Dense(matrix), diagonal, b, start)
    assert_allclose(start, kept, rtol=0)


def test_progress_is_told(monkeypatch):
    ticks = iter(np.arange(0, 1e6, 1.0))
    monkeypatch.setattr("hybrid.matrix.space.base.time.perf_counter", lambda: next(ticks))
    seen = []
    matrix = np.array([[0.0, 0.5], [0.5, 0.0]])
    Jacobi(TIGHT).solve(Dense(matrix), np.ones(2), np.ones(2), np.zeros(2), lambda k, d: seen.append((k, d)))
    assert [k for k, _ in seen] == list(range(1, len(seen) + 1))
    assert len(seen) > 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Criterion(epsilon=0), "epsilon must lie between 0 and 1, got 0"),
        (lambda: Criterion(epsilon=float("nan")), "epsilon must lie between"),
        (lambda: Criterion(max_iterations=0), "at least 1, got 0"),
        (lambda: Jacobi(omega=0), "omega must lie between 0 and 2, got 0"),
        (lambda: Jacobi(omega=2), "omega must lie between 0 and 2, got 2"),
    ],
)
def test_senseless_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("solver", [Jacobi(TIGHT), Power(TIGHT)], ids=lambda s: s.name)
@pytest.mark.parametrize("name", ["diagonal", "b", "x"])
def test_operands_of_another_length_do_not_reach_compiled_code(solver, name, backend, rng):
    dense, diagonal, b = linear_system(rng)
    n = b.size
    operands = {"diagonal": diagonal, "b": b, "x": np.zeros(n)}
    operands[name] = operands[name][:-1]
    with pytest.raises(ValueError, match=rf"{name}: expected shape \({n},\), got \({n - 1},\)"):
        solver.solve(inject(from_dense(dense), backend=backend), *operands.values())


def test_every_status_tells_what_to_do():
    assert "raise max_iterations" in str(Status.MAX_ITERATIONS)
    assert "a smaller omega" in str(Status.DIVERGED)
    assert str(Status.NO_BOUND).endswith("choose method='jacobi' for an estimate without bounds")
    assert str(Status.CONVERGED) == Status.CONVERGED.value
