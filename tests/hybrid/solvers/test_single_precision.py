"""IDR(s) with vectors of single precision: products, bounds of averages, and what is done where it fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.idr import IDR
from hybrid.solvers import AverageReward, Criterion
from hybrid.solvers.average_krylov import GainResult
from tests.builders.closed_classes import exact_average, queue, random_class
from tests.builders.matrices import from_dense, random_codes, random_sparse

SLACK = 1e-14


@pytest.fixture(autouse=True)
def no_vector_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.space.host._SHORT", 0)


@pytest.fixture
def precisions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Precision of every recurrence that is made, in their order."""
    made = []
    begin = IDR.__init__

    def note(self: IDR, *arguments: Any, **named: Any) -> None:
        begin(self, *arguments, **named)
        made.append(self.r.dtype)

    monkeypatch.setattr(IDR, "__init__", note)
    return made


def averaged(rates: np.ndarray, rewards: np.ndarray, most: int = 5000, backend: str = "cpu") -> GainResult:
    matrix = inject(from_dense(rates), backend=backend)
    method = AverageReward(Criterion(1e-8, max_iterations=most))
    return method.solve(matrix, rates.sum(axis=1), rewards, SLACK)


@pytest.mark.parametrize("size", [1, 7, 9, 17, 100, 300])
def test_products_are_those_of_double_precision(rng: np.random.Generator, size: int) -> None:
    dense = random_sparse(rng, size, size, 0.2)
    codes = random_codes(rng, 9, size)
    matrix = from_dense(dense, codes, codes, 9)
    x = rng.random(size).astype(np.float32)
    for level in range(0, matrix.n_levels + 1, 3):
        out = np.full(size, np.nan, np.float32)
        product: Any = inject(matrix, level, "cpu").product
        product.multiply_single(x, out)
        # What is added up has double precision: one rounding alone.
        np.testing.assert_allclose(out, (dense @ x.astype(np.float64)).astype(np.float32), rtol=2e-7)


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_bounds_hold_on_random_classes(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, precisions: list[Any], limit: int
) -> None:
    monkeypatch.setattr("hybrid.solvers.average_reward._SINGLE", limit)
    sizes = rng.integers(2, 40, 40).tolist()
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
    monkeypatch.setattr("hybrid.matrix.space.host._SHORT", 61)
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
    cycle = IDR._cycle

    def spoil(self: IDR) -> bool:
        went_on = cycle(self)
        if self.r.dtype == np.float32:
            self.x *= harm
        return went_on

    monkeypatch.setattr(IDR, "_cycle", spoil)
    found, value = averaged(rates, rewards), exact_average(rates, rewards)
    assert precisions == [np.float32, np.float64]
    assert found.status is Status.CONVERGED
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


def test_on_a_device(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    value, found = exact_average(rates, rewards), []
    monkeypatch.setattr("hybrid.matrix.gpu.device_space.DeviceSystem.preconditioner", lambda *_: None)
    for short in (1 << 22, 0):
        monkeypatch.setattr("hybrid.matrix.gpu.device_space._SHORT", short)
        found.append(averaged(rates, rewards, backend="gpu"))
        assert found[-1].status is Status.CONVERGED
        assert found[-1].lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found[-1].upper
    double, single = found
    assert single.more_vectors < double.more_vectors
    assert single.iterations < 2 * double.iterations


def test_the_course_on_a_device_is_that_of_the_host(device: Device, rng: np.random.Generator) -> None:
    rates = random_class(rng, 40)
    rates[rates > 0] = 1.0 + rng.random(int((rates > 0).sum()))
    diagonal, b, start = rates.sum(axis=1), rng.random(40), rng.random(40)
    spaces: list[Any] = [inject(from_dense(rates), backend=name).vector_space() for name in ("gpu", "cpu")]
    ours, host = (
        space.system(diagonal, b).idr(space.vector(start), 1e-4, 7, is_single=True) for space in spaces
    )
    assert ours.r.dtype == host.r.dtype == np.float32
    assert ours.x.dtype == ours.spare.dtype == host.x.dtype == host.spare.dtype == np.float64
    assert ours.restart() == pytest.approx(host.restart(), rel=1e-5)
    found, expected = ours.advance(1), host.advance(1)
    assert found.norm == pytest.approx(expected.norm, rel=1e-2)
    while not found.ended:
        found = ours.advance(3)
    assert not found.broken and ours.refresh() < 2e-4
