"""Methods with bounds, BiCGStab and uniformisation on the device: the CPU's answers, and few looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_kernels import Device, compress, use_device
from hybrid.base.arrays import extremes
from hybrid.matrix.gpu.device_space import DeviceSpace
from hybrid.matrix.gpu.repeated_steps import UnfusedSteps
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.solvers import AverageReward, BiCGStab, Criterion, Interval, Jacobi, Optimistic, Power, Status
from tests.builders.matrices import banded, from_dense
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice

SLACK = 256 * UNIT
SIZE = 40


def system(lost: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A chain that is left with a small probability: matrix without diagonal, diagonal, right-hand side."""
    dense = banded(SIZE)
    np.fill_diagonal(dense, 0.0)
    return dense, dense.sum(axis=1) * (1.0 + lost), np.linspace(0.5, 1.0, SIZE)


def looks_rarely(found: Any) -> bool:
    """Tell whether there was at most one look in ten iterations."""
    return 0 < 10 * found.synchronisations <= found.iterations


class Plain:
    """A matrix on the device whose products relax nothing, as explicit formats are."""

    backend = "gpu"

    def __init__(self, dense: np.ndarray, device: Device) -> None:
        self.device, self.product, self.shape = device, inject(from_dense(dense), backend="gpu"), dense.shape

    def vector_space(self) -> DeviceSpace:
        run = UnfusedSteps(self.device, lambda x, out: self.product.multiply(x, out), self.shape[0])
        return DeviceSpace(self.device, run)


@pytest.mark.parametrize("method", [Optimistic, Interval])
def test_enclosures_that_are_not_reached_say_so(device: Device, method: Any) -> None:
    dense, diagonal, b = system(1e-3)
    matrix = inject(from_dense(dense), backend="gpu")
    found = method(Criterion(1e-9, max_iterations=33)).solve(matrix, diagonal, b, SLACK, 1e6)
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations == 33
    exact = np.linalg.solve(np.diag(diagonal) - dense, b)
    assert np.all(found.lower <= exact)
    assert np.all(exact <= found.upper)
    growing = method(Criterion(1e-9)).solve(matrix, diagonal * 1e-9, b, SLACK, 1e6)
    assert growing.status is Status.DIVERGED


def test_the_gain_is_the_cpus(device: Device) -> None:
    dense = np.random.default_rng(44).random((12, 12))
    np.fill_diagonal(dense, 0.0)
    diagonal, rewards = dense.sum(axis=1), np.linspace(-1.0, 2.0, 12)
    method = AverageReward(Criterion(1e-8), krylov="never")
    found = method.solve(inject(from_dense(dense), backend="gpu"), diagonal, rewards, SLACK)
    expected = method.solve(inject(from_dense(dense), backend="cpu"), diagonal, rewards, SLACK)
    assert found.status is expected.status is Status.CONVERGED
    assert found.iterations == expected.iterations
    assert found.lower <= expected.value <= found.upper
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    assert looks_rarely(found)


def test_bicgstab_is_the_cpus(device: Device) -> None:
    dense, diagonal, b = system(1e-4)
    method = BiCGStab(Criterion(1e-9))
    found = method.solve(inject(from_dense(dense), backend="gpu"), diagonal, b, np.zeros(SIZE))
    assert found.status is Status.CONVERGED
    exact = np.linalg.solve(np.diag(diagonal) - dense, b)
    np.testing.assert_allclose(found.values, exact, rtol=1e-5)
    # One look at the start, one in twenty iterations, and one at the residual of what has been found.
    assert 0 < found.synchronisations <= 2 + -(-found.iterations // 20)
    short = BiCGStab(Criterion(1e-13, max_iterations=3))
    found = short.solve(inject(from_dense(dense), backend="gpu"), diagonal, b, np.zeros(SIZE))
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations == 3


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("solver", [Jacobi, Power])
def test_iterations_that_end_by_themselves_look_rarely(device: Device, solver: Any, fused: bool) -> None:
    dense, diagonal, b = system(0.2)
    matrix = inject(from_dense(dense), backend="gpu") if fused else Plain(dense, device)
    found = solver(Criterion(1e-10)).solve(matrix, diagonal, b, np.zeros(SIZE))
    expected = solver(Criterion(1e-10)).solve(
        inject(from_dense(dense), backend="cpu"), diagonal, b, np.zeros(SIZE)
    )
    assert found.iterations == expected.iterations > 60
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)
    assert looks_rarely(found)


@pytest.mark.parametrize("count", [1, 2, 3, 12, 25])
def test_steps_that_nothing_ends_are_measured_at_the_last_one(count: int) -> None:
    dense, diagonal, b = system(0.2)
    x = np.ones(SIZE)
    for _ in range(count):
        before, x = x, (dense @ x + b) / diagonal
    with use_device(HostDevice()) as host:
        space = inject(from_dense(dense), backend="gpu").vector_space()
        steps = space.system(diagonal, b).relaxation()
        pair = space.xp.ones(SIZE), space.xp.ones(SIZE)
        for _ in range(3):  # the third time from recordings
            host.launches.clear()
            pair[0][...], pair[1][...] = 1.0, 1.0
            steps.sweep(pair, 0, count)
            assert host.launches.count("finish_iteration") == sum(min(own, 2) for own in stretches(count))
            np.testing.assert_allclose(pair[count % 2], x, rtol=1e-13)
            made, absolute, _ = space.read(steps.course)
            assert made == count
            assert absolute == pytest.approx(np.abs(x - before).max(), rel=1e-12)


def stretches(count: int) -> list[int]:
    """Lengths of what is queued at once."""
    return [10] * (count // 10) + [count % 10]


def test_nothing_is_copied_while_iterating(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []

    def counted(array: Any) -> Any:
        copies.append(array.size)
        return array

    monkeypatch.setattr("hybrid.matrix.gpu.device_space.to_host", counted)
    dense, diagonal, b = system(0.2)
    with use_device(HostDevice()) as host:
        found = Interval(Criterion(1e-8)).solve(
            inject(from_dense(dense), backend="gpu"), diagonal, b, SLACK, 1e4
        )
        assert found.status is Status.CONVERGED
        # Some numbers at a time, one for the residual, and in the end the values and their bounds.
        assert max(copies[:-3]) <= 6
        assert copies[-3:] == [SIZE, SIZE, SIZE]
        # One of the looks is a recording for each of the two sequences of steps.
        assert len(copies) == found.synchronisations - 2 + 4
        assert host.launches.count("compare_rows") == found.synchronisations - 2


def test_extremes_of_long_vectors_are_found_in_parts(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.device_space._PART", 16)
    space = DeviceSpace(device, lambda *given: None)
    for size in (1, 16, 17, 100):
        x = rng.normal(size=size)
        assert space.read(*space.extremes(device.xp.asarray(x))) == [x.min(), x.max()]


@pytest.mark.parametrize("size", [0, 1, 16, 17, 100])
def test_extremes_are_those_of_all_parts(
    device: Device, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    x = rng.normal(size=size)
    expected = extremes(x)
    monkeypatch.setattr("hybrid.base.arrays._PART", 16)
    there = device.xp.asarray(x)
    assert extremes(there) == expected
    assert extremes(compress(device, there)) == expected
    if size:
        assert expected == (x.min(), x.max())
        x[size // 2] = np.nan
        assert all(map(np.isnan, extremes(device.xp.asarray(x))))


def test_short_operands_on_a_device_stay_as_they_are(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.device_space._SHORT", 100)
    space = DeviceSpace(device, lambda *given: None)
    for size, bits in ((100, 64), (101, 8)):
        there = device.xp.full(size, 3.0)
        diagonal, right = space._coded(there, None)
        # What the host has is coded there.
        assert diagonal.bits == (8 if isinstance(there, np.ndarray) else bits)
        assert right.bits == 0 and diagonal.size == size
        np.testing.assert_array_equal(to_numpy(diagonal.expand(device)), np.full(size, 3.0))
        (own,) = space._coded(diagonal)
        assert own is diagonal
