"""How BiCGStab ends on the device: every status produced there, and the CPU's values up to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.operator import inject
from hybrid.solvers import BiCGStab, Criterion, Solution, Status
from tests.helpers import from_dense

PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])


def ring() -> np.ndarray:
    dense = np.random.default_rng(9).random((9, 9)) + np.roll(np.eye(9), 1, axis=1)
    np.fill_diagonal(dense, 0.0)
    return dense


RING = ring()
SUMS = RING.sum(axis=1)
CASES = {
    # I - M is singular and b outside of its range: a step along its kernel has no length to divide by.
    "a kernel": (PAIR, np.ones(2), np.array([1.0, 2.0]), Criterion(1e-10), Status.BREAKDOWN),
    # Nearly singular: the recurrence gets to the end, and rounding keeps the true residual from following.
    "rounding": (RING, SUMS * (1 + 1e-4), np.ones(9), Criterion(1e-15), Status.STAGNATED),
    "a limit": (RING, SUMS * 1.1, np.ones(9), Criterion(1e-12, max_iterations=2), Status.MAX_ITERATIONS),
    "infinities": (1e200 * PAIR, np.full(2, 1e-200), np.ones(2), Criterion(1e-10), Status.DIVERGED),
    "an answer": (RING, SUMS * 1.1, np.ones(9), Criterion(1e-12), Status.CONVERGED),
}


@pytest.mark.parametrize("case", CASES)
def test_every_status_is_met_on_the_device(device: Device, case: str) -> None:
    dense, diagonal, b, criterion, status = CASES[case]

    def solve(backend: str) -> Solution:
        matrix = inject(from_dense(dense), backend=backend)
        return BiCGStab(criterion).solve(matrix, diagonal, b, np.zeros(len(b)))

    found, expected = solve("gpu"), solve("cpu")
    assert found.status is expected.status is status
    assert found.synchronisations > 0
    assert expected.synchronisations == 0
    assert (found.difference < 2 * criterion.epsilon) == (status is Status.CONVERGED)
    if status is Status.MAX_ITERATIONS:
        assert found.iterations == criterion.max_iterations
    if status in (Status.CONVERGED, Status.MAX_ITERATIONS):
        np.testing.assert_allclose(found.values, expected.values, rtol=1e-9)
    if status is Status.CONVERGED:
        np.testing.assert_allclose(dense @ found.values + b, diagonal * found.values, rtol=1e-10)
