"""IDR(s) with vectors of single precision, on a device: bounds, and what is done where it fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.matrix.gpu.idr import DeviceIDR
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.vector_space import RecurrenceStatus
from hybrid.solvers import AverageReward, Criterion
from hybrid.solvers.average_krylov import GainResult
from tests.builders.closed_classes import exact_average, queue, random_class
from tests.builders.matrices import from_dense
from tests.exploring import rounds

SLACK = 1e-14


@pytest.fixture(autouse=True)
def no_vector_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.device_space._SHORT", 0)
    monkeypatch.setattr("hybrid.matrix.gpu.device_space.DeviceSystem.preconditioner", lambda *_: None)


@pytest.fixture(autouse=True)
def on_a_device(device: Device) -> None:
    """Every test has one."""


@pytest.fixture
def precisions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Precision of every recurrence that is made, in their order."""
    made = []
    begin = DeviceIDR.__init__

    def note(self: DeviceIDR, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        made.append(self.r.dtype)

    monkeypatch.setattr(DeviceIDR, "__init__", note)
    return made


def averaged(rates: np.ndarray, rewards: np.ndarray, most: int = 5000) -> GainResult:
    matrix = inject(from_dense(rates), backend="gpu")
    method = AverageReward(Criterion(1e-8, max_iterations=most))
    return method.solve(matrix, rates.sum(axis=1), rewards, SLACK)


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_bounds_hold_on_random_classes(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precisions: list[Any], limit: int
) -> None:
    monkeypatch.setattr("hybrid.solvers.average_reward._SINGLE", limit)
    sizes = rng.integers(2, 40, rounds(12)).tolist()
    classes = [(random_class(rng, size), rng.normal(size=size)) for size in sizes]
    # Of the random ones, most end before a Krylov method begins; this one does not.
    for rates, rewards in [*classes, (queue(60, 1.0, 1.1), np.arange(61.0))]:
        found, value = averaged(rates, rewards), exact_average(rates, rewards)
        slack = 1e-9 * (1.0 + abs(value))  # of the least squares
        assert found.lower - slack <= value <= found.upper + slack
        assert found.status in (Status.CONVERGED, Status.MAX_ITERATIONS)
    assert precisions
    assert (np.float32 in precisions) == (limit > 0)


def test_an_easy_chain_is_solved_with_single_precision_alone(precisions: list[Any]) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    found, value = averaged(rates, rewards), exact_average(rates, rewards)
    assert found.status is Status.CONVERGED
    assert precisions == [np.float32]
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
    assert found.upper - found.lower <= 2e-8 * value


def test_short_vectors_have_double_precision(monkeypatch: pytest.MonkeyPatch, precisions: list[Any]) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.device_space._SHORT", 61)
    assert averaged(queue(60, 1.0, 1.1), np.arange(61.0)).status is Status.CONVERGED
    assert precisions == [np.float64]


@pytest.mark.parametrize("scale", [1e-45, 1e-60])
def test_small_rewards_have_double_precision(scale: float, precisions: list[Any]) -> None:
    """Errors that single precision does not know would seem to be none."""
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    found, value = averaged(rates, scale * rewards), scale * exact_average(rates, rewards)
    assert found.status is Status.CONVERGED
    assert precisions == [np.float64]
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
    assert found.upper - found.lower <= 2e-8 * value


def test_a_hard_chain_has_double_precision(monkeypatch: pytest.MonkeyPatch, precisions: list[Any]) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    monkeypatch.setattr("hybrid.solvers.average_reward._SINGLE", 10)
    assert averaged(rates, rewards).status is Status.CONVERGED
    assert precisions == [np.float64]


@pytest.mark.parametrize("harm", [np.nan, 1e30])
def test_where_single_precision_fails_double_precision_goes_on(
    monkeypatch: pytest.MonkeyPatch, precisions: list[Any], harm: float
) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    advance = DeviceIDR.advance

    def spoil(self: DeviceIDR, most: int) -> RecurrenceStatus:
        found = advance(self, most)
        if self.r.dtype == np.float32:
            self.x[...] *= harm
        return found

    monkeypatch.setattr(DeviceIDR, "advance", spoil)
    found, value = averaged(rates, rewards), exact_average(rates, rewards)
    assert precisions == [np.float32, np.float64]
    assert found.status is Status.CONVERGED
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


def test_it_takes_fewer_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    value, found = exact_average(rates, rewards), []
    for short in (1 << 22, 0):
        monkeypatch.setattr("hybrid.matrix.gpu.device_space._SHORT", short)
        found.append(averaged(rates, rewards))
        assert found[-1].status is Status.CONVERGED
        assert found[-1].lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found[-1].upper
    double, single = found
    assert single.more_vectors < double.more_vectors
    assert single.iterations < 2 * double.iterations


def test_the_course_is_that_of_double_precision(rng: np.random.Generator) -> None:
    rates = random_class(rng, 40)
    rates[rates > 0] = 1.0 + rng.random(int((rates > 0).sum()))
    diagonal, b, start = rates.sum(axis=1), rng.random(40), rng.random(40)
    space: Any = inject(from_dense(rates), backend="gpu").vector_space()
    ours, double = (
        space.system(diagonal, b).idr(space.vector(start), 1e-4, 7, is_single=single)
        for single in (True, False)
    )
    assert (ours.r.dtype, double.r.dtype) == (np.float32, np.float64)
    assert ours.x.dtype == ours.spare.dtype == double.x.dtype == double.spare.dtype == np.float64
    assert ours.restart() == pytest.approx(double.restart(), rel=1e-5)
    found, expected = ours.advance(1), double.advance(1)
    assert found.norm == pytest.approx(expected.norm, rel=1e-2)
    while not found.ended:
        found = ours.advance(3)
    assert not found.broken and ours.refresh() < 2e-4
