"""Averages by Krylov methods: bounds around exact values, when it is tried, what is left when it fails."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import ProgressMonitor, Status
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.idr import IDR, IDR_VECTORS
from hybrid.matrix.space.vector_space import RecurrenceStatus
from hybrid.solvers import AverageReward, Criterion
from hybrid.solvers.average_krylov import AnchoredSolution, GainResult
from hybrid.solvers.forecast import Forecast
from tests.builders.closed_classes import exact_average, queue, random_class
from tests.builders.linear_systems import Dense
from tests.builders.matrices import from_dense
from tests.exploring import rounds

SLACK = 1e-14
Krylov = Literal["auto", "always", "never"]


def averaged(
    rates: np.ndarray,
    rewards: np.ndarray,
    krylov: Krylov,
    criterion: Criterion | None = None,
    monitor: ProgressMonitor | None = None,
) -> GainResult:
    method = AverageReward(criterion or Criterion(), krylov=krylov)
    return method.solve(Dense(rates), rates.sum(axis=1), rewards, SLACK, monitor)


@pytest.mark.parametrize("krylov", ["auto", "always"])
def test_bounds_hold_on_random_classes(rng: np.random.Generator, krylov: Krylov) -> None:
    for _ in range(rounds(60)):
        size = int(rng.integers(2, 40))
        rates, rewards = random_class(rng, size), rng.normal(size=size)
        found = averaged(rates, rewards, krylov, Criterion(1e-8, max_iterations=5000))
        value = exact_average(rates, rewards)
        slack = 1e-9 * (1.0 + abs(value))  # of the least squares
        assert found.lower - slack <= value <= found.upper + slack
        assert found.status in (Status.CONVERGED, Status.MAX_ITERATIONS)


@pytest.mark.parametrize("krylov", ["auto", "always"])
def test_slow_chains_take_fewer_products(krylov: Krylov) -> None:
    rates = queue(60, 1.0, 1.1)
    rewards = np.arange(61.0)
    plain, quick = averaged(rates, rewards, "never"), averaged(rates, rewards, krylov)
    assert plain.status is quick.status is Status.CONVERGED
    assert quick.iterations < plain.iterations / 3
    value = exact_average(rates, rewards)
    for found in (plain, quick):
        assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
        assert found.upper - found.lower <= 2e-8 * value


def test_parts_that_meet_rarely_take_few_products() -> None:
    """Bounds stand still for 10^6 steps, and no pace tells why; but every row stands still."""
    part = np.kron(np.eye(2), queue(5, 1.0, 1.5))
    part[0, 6] = part[6, 0] = 1e-7
    rewards = np.append(np.arange(6.0), np.arange(6.0) + 1.0)
    found = averaged(part, rewards, "auto")
    assert found.status is Status.CONVERGED
    assert found.iterations < 600
    value = exact_average(part, rewards)
    assert found.lower <= value * (1 + 1e-6) and value * (1 - 1e-6) <= found.upper


def test_fronts_are_left_to_value_iteration() -> None:
    """A full queue that empties: bounds stand still as well, but row after row moves."""
    rates, rewards = queue(600, 1.0, 40.0), np.arange(601.0)
    plain, found = averaged(rates, rewards, "never"), averaged(rates, rewards, "auto")
    assert plain.iterations > 600
    # One of the errors that were, to see whether they stand still.
    assert found.more_vectors == 1
    assert (found.iterations, found.lower, found.upper) == (plain.iterations, plain.lower, plain.upper)


def test_quick_chains_are_left_to_value_iteration() -> None:
    rates = np.ones((9, 9)) - np.eye(9)
    rewards = np.arange(9.0)
    found = averaged(rates, rewards, "auto")
    assert found.iterations == averaged(rates, rewards, "never").iterations
    assert found.lower <= 4.0 <= found.upper


def test_no_try_is_made_that_would_cost_more_than_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A try in vain lets the lengths of visits go: what is left then has to be worth finding them anew."""
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    plain = averaged(rates, rewards, "never")
    no_room(monkeypatch)
    # No pace speaks for a try before nearly all is done, and then it does.
    few = 0.1 * plain.iterations
    monkeypatch.setattr(Forecast, "budget", lambda self, left, more=0.0: left if 0.0 < left < few else 0.0)
    monkeypatch.setattr(Forecast, "is_long", lambda self, left, more=0.0: False)
    found = averaged(rates, rewards, "auto")
    assert (found.iterations, found.lower, found.upper) == (plain.iterations, plain.lower, plain.upper)


def test_the_lengths_of_visits_outlive_a_late_try_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    plain, tried = averaged(rates, rewards, "never"), []

    def breaks(self: IDR, most: int) -> RecurrenceStatus:
        tried.append(most)
        return RecurrenceStatus(1, math.inf, ended=True, broken=True)

    few = 0.1 * plain.iterations
    monkeypatch.setattr(Forecast, "budget", lambda self, left, more=0.0: left if 0.0 < left < few else 0.0)
    monkeypatch.setattr(Forecast, "is_long", lambda self, left, more=0.0: False)
    monkeypatch.setattr(IDR, "advance", breaks)
    found, value = averaged(rates, rewards, "auto"), exact_average(rates, rewards)
    assert tried and found.status is Status.CONVERGED
    assert found.iterations < plain.iterations + 0.1 * few
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


@pytest.mark.parametrize("directions", [DIRECTIONS, 1])
def test_what_fails_is_gone_on_with(monkeypatch: pytest.MonkeyPatch, directions: int) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    tried = []
    if directions == 1:
        no_room(monkeypatch)

    def breaks(self: IDR, most: int) -> RecurrenceStatus:
        tried.append(len(self._u))
        self.x *= 1e200
        return RecurrenceStatus(1, math.inf, ended=True, broken=True)

    monkeypatch.setattr(IDR, "advance", breaks)
    found, plain = averaged(rates, rewards, "auto"), averaged(rates, rewards, "never")
    assert set(tried) == {directions}
    assert found.status is Status.CONVERGED
    # The bias is kept, and the lengths of visits where there is room: little is paid but what was tried.
    assert found.iterations < plain.iterations + (700 if directions == 1 else 100)
    value = exact_average(rates, rewards)
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave room for the vectors that a method counts, and for no more."""
    reserve = HostSpace.reserve

    def refuse(self: HostSpace, vectors: int, size: int) -> None:
        if vectors != AverageReward.vectors:
            raise MemoryError
        reserve(self, vectors, size)

    monkeypatch.setattr(HostSpace, "reserve", refuse)


def test_bicgstab_takes_over_where_there_is_no_room_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    roomy = averaged(rates, rewards, "always")
    assert roomy.more_vectors == IDR_VECTORS - 5
    no_room(monkeypatch)
    narrow = averaged(rates, rewards, "always")
    assert narrow.status is Status.CONVERGED
    assert narrow.more_vectors == 0
    value = exact_average(rates, rewards)
    for found in (roomy, narrow):
        assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


def test_bicgstab_is_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    begin = IDR.restart

    def restart(self: IDR) -> float:
        begun.append(len(self._u))
        return begin(self)

    monkeypatch.setattr(IDR, "restart", restart)
    method = CheckOptions.of(method="bicgstab").average_reward()
    assert method is not None
    rates, rewards = queue(60, 1.0, 1.1), np.arange(61.0)
    found = method.solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert set(begun) == {1} and found.more_vectors == 0
    value = exact_average(rates, rewards)
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper


def test_convective_chains_are_solved() -> None:
    """Two queues in a row: BiCGStab breaks down, and residuals grow before they fall."""
    size = 24
    first, second = np.divmod(np.arange(size * size), size)
    rates = np.zeros((size * size, size * size))
    for into, out, rate in ((1, 0, 40.0), (-1, 1, 2.0), (0, -1, 4.0)):
        to_first, to_second = first + into, second + out
        there = (to_first >= 0) & (to_first < size) & (to_second >= 0) & (to_second < size)
        rates[np.flatnonzero(there), (to_first * size + to_second)[there]] = rate
    rewards = (first + second).astype(float)
    found = averaged(rates, rewards, "always", Criterion(1e-9, max_iterations=2000))
    assert found.status is Status.CONVERGED
    value = exact_average(rates, rewards)
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
    assert found.upper - found.lower <= 2e-9 * value


def test_the_limit_and_a_watch_end_it_with_bounds_that_hold() -> None:
    rates, rewards = queue(200, 1.0, 1.02), np.arange(201.0)
    value = exact_average(rates, rewards)
    found = averaged(rates, rewards, "always", Criterion(1e-8, max_iterations=31))
    assert found.status is Status.MAX_ITERATIONS
    assert 31 <= found.iterations <= 31 + 2 * 5
    assert found.lower <= value <= found.upper

    class Impatient(ProgressMonitor):
        is_pressing = True

        def __call__(self, iteration: int, difference: float) -> None:
            self.stopped = KeyboardInterrupt()

    ended = averaged(rates, rewards, "always", monitor=Impatient())
    assert ended.status is Status.INTERRUPTED
    assert ended.lower <= value <= ended.upper


def test_constant_rewards_and_absolute_bounds() -> None:
    rates = queue(50, 1.0, 1.0)
    same = averaged(rates, np.full(51, 3.0), "always")
    assert (same.lower, same.upper) == (3.0, 3.0)
    found = averaged(rates, np.arange(51.0) - 25.0, "always", Criterion(1e-6, absolute=True))
    assert found.status is Status.CONVERGED
    assert -1e-6 <= found.lower <= 1e-9 and -1e-9 <= found.upper <= 1e-6


def test_a_device_gives_the_same(device: Device) -> None:
    rates = queue(63, 1.0, 1.01)
    rewards = np.arange(64.0)
    value = exact_average(rates, rewards)
    for representation in ("row-types", "tasks"):
        matrix = inject(from_dense(rates), backend="gpu", representation=representation)
        for krylov in ("always", "auto"):
            method = AverageReward(krylov=krylov)
            found = method.solve(matrix, rates.sum(axis=1), rewards, SLACK)
            assert found.status is Status.CONVERGED
            assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
            assert found.upper - found.lower <= 2e-8 * value


def test_solutions_count_their_products() -> None:
    rates, rewards = queue(30, 1.0, 1.2), np.arange(31.0)
    made = []

    class Counted(Dense):
        def multiply(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            made.append(1)
            return super().multiply(x, out)

    found = AverageReward(krylov="always").solve(Counted(rates), rates.sum(axis=1), rewards, SLACK)
    # Two products of the bounds besides; beginnings are steps of the matrix and no products.
    assert found.iterations - 2 <= len(made) <= found.iterations + 2
    assert AnchoredSolution.products.__doc__
