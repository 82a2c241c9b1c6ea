"""Averages in the fewest vectors: the same bounds, where value iteration has no room."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import hybrid
from gpu_kernels import Device
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.gpu.device_space import DeviceSpace
from hybrid.matrix.gpu.halo import DevicePlace
from hybrid.matrix.gpu.idr import DeviceIDR, PolynomialIDR
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.swept import PROBES
from hybrid.solvers import AverageReward, Criterion
from hybrid.solvers.average_krylov import (
    DAMPED_VECTORS,
    LEAN_VECTORS,
    AnchoredSolution,
    BiasResult,
    DampedAverage,
    LowMemoryAverage,
)
from tests.builders.closed_classes import exact_average
from tests.builders.linear_systems import Dense
from tests.builders.matrices import from_dense
from tests.exploring import rounds
from tests.source_tree import ROOT

SLACK = 1e-14


def chain(size: int, arrive: float = 1.0, serve: float = 1.01) -> np.ndarray:
    """Rates of a queue."""
    return np.diag(np.full(size - 1, arrive), 1) + np.diag(np.full(size - 1, serve), -1)


@pytest.fixture
def pressed(monkeypatch: pytest.MonkeyPatch) -> list[LowMemoryAverage]:
    """Room for the fewest vectors alone; the courses that are made of it."""
    for space in (HostSpace, DeviceSpace):

        def reserve(self: Any, vectors: int, size: int) -> None:
            if vectors > LEAN_VECTORS:
                raise MemoryError(f"no room for {vectors} vectors")

        monkeypatch.setattr(space, "reserve", reserve)
    made: list[LowMemoryAverage] = []
    begin = LowMemoryAverage.__post_init__
    monkeypatch.setattr(LowMemoryAverage, "__post_init__", lambda self: made.append(self) or begin(self))
    return made


def test_bounds_are_those_of_value_iteration(
    pressed: list[LowMemoryAverage], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "hybrid.solvers")
    rates, rewards = chain(64), np.arange(64.0) - 20.0
    found = AverageReward().solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert "no room for all vectors of an average" in caplog.text
    monkeypatch.undo()
    expected = AverageReward(Criterion(1e-10)).solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert len(pressed) == 1
    assert found.status is Status.CONVERGED
    assert found.lower <= expected.upper and expected.lower <= found.upper
    assert found.upper - found.lower <= 2e-6 * found.value
    assert found.nbytes == LEAN_VECTORS * rewards.nbytes
    assert found.products >= found.iterations > 20


def test_bounds_hold_where_it_fails(rng: np.random.Generator, pressed: list[LowMemoryAverage]) -> None:
    ended = []
    draws = rounds(40)
    for _ in range(draws):
        size = int(rng.integers(2, 30))
        rates = np.where(rng.random((size, size)) < 0.2, 10.0 ** rng.uniform(-3, 3, (size, size)), 0.0)
        np.fill_diagonal(rates, 0.0)
        rates[np.arange(size), (np.arange(size) + 1) % size] += 10.0 ** rng.uniform(-3, 3, size)
        rewards = rng.normal(size=size)
        found = AverageReward(Criterion(1e-9, max_iterations=30)).solve(
            Dense(rates), rates.sum(axis=1), rewards, SLACK
        )
        generator = rates - np.diag(rates.sum(axis=1))
        system = np.vstack((generator.T, np.ones(size)))
        stationary = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
        value = float(stationary @ rewards)
        assert found.lower - 1e-8 <= value <= found.upper + 1e-8
        ended.append(found.status)
    assert set(ended) > {Status.CONVERGED}
    assert len(pressed) == draws


def test_a_course_goes_on_where_another_one_was(pressed: list[LowMemoryAverage]) -> None:
    rates, rewards = chain(40, 1.0, 1.3), np.arange(40.0)
    space, anchor = HostSpace(Dense(rates)), 3
    first = LowMemoryAverage(space, rates.sum(axis=1), rewards)

    class Silent:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: None

    def floor(average: float, spread: float) -> float:
        return 0.0

    clock: Any = Silent()
    assert first.run(anchor, Criterion(1e-9), floor, clock) is Status.CONVERGED
    vectors, numbers = first.state()
    kept: Any = type("Kept", (), {"vectors": {"h": vectors["h"] + 5.0}, "numbers": numbers})
    second = LowMemoryAverage(space, rates.sum(axis=1), rewards)
    second.take(kept)
    assert second.run(anchor, Criterion(1e-9), floor, clock) is Status.CONVERGED
    # It has but to see that it is there.
    assert second.products == first.products + 1
    lower, upper = second.bounds(SLACK)
    assert upper - lower <= 2e-9 * upper


def test_a_bias_without_numbers_leaves_the_bounds_of_the_rewards(
    pressed: list[LowMemoryAverage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: AnchoredSolution, before: int, most: float, clock: Any) -> BiasResult:
        self.recurrence.x[...] = np.nan
        return BiasResult(Status.BREAKDOWN, np.inf, 4)

    monkeypatch.setattr(AnchoredSolution, "run", lost)
    rates, rewards = chain(8), np.arange(8.0) - 3.0
    found = AverageReward().solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert found.status is Status.BREAKDOWN
    assert (found.lower, found.upper) == (-3.0, 4.0)


def room_for(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let so many vectors have room, on the host and on a device."""

    def reserve(self: Any, vectors: int, size: int) -> None:
        if vectors > most:
            raise MemoryError(f"no room for {vectors} vectors")

    for space in (HostSpace, DeviceSpace):
        monkeypatch.setattr(space, "reserve", reserve)


def test_without_krylov_methods_damped_steps_go_on(pressed: list[LowMemoryAverage]) -> None:
    rates, rewards = chain(8, 1.0, 2.0), np.arange(8.0)
    found = AverageReward(krylov="never").solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert [type(course) for course in pressed] == [DampedAverage]
    assert found.status is Status.CONVERGED and found.nbytes == DAMPED_VECTORS * rewards.nbytes


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_damped_steps_have_the_fewest_vectors(
    device: Device, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    rates, rewards = chain(20, 1.0, 2.0), np.arange(20.0) - 3.0
    value = exact_average(rates, rewards)
    matrix: Any = Dense(rates) if backend == "cpu" else inject(from_dense(rates), backend="gpu")
    room_for(monkeypatch, DAMPED_VECTORS)
    found = AverageReward().solve(matrix, rates.sum(axis=1), rewards, SLACK)
    assert found.status is Status.CONVERGED and found.lower <= value <= found.upper
    assert found.upper - found.lower <= 2e-6 * abs(value) and found.nbytes == DAMPED_VECTORS * rewards.nbytes
    # A run that is not done has bounds, too.
    found = AverageReward(Criterion(1e-6, max_iterations=20)).solve(matrix, rates.sum(axis=1), rewards, SLACK)
    assert found.status is Status.MAX_ITERATIONS and found.lower <= value <= found.upper
    assert found.iterations == 20
    room_for(monkeypatch, DAMPED_VECTORS - 1)
    with pytest.raises(MemoryError, match=f"no room for {DAMPED_VECTORS} vectors"):
        AverageReward().solve(matrix, rates.sum(axis=1), rewards, SLACK)


def test_damped_steps_take_over_where_a_krylov_method_finds_no_room(
    pressed: list[LowMemoryAverage], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, rewards = chain(20, 1.0, 2.0), np.arange(20.0)
    # There is room for its vectors, in pieces.
    monkeypatch.setattr(LowMemoryAverage, "_recurrence", lambda self, start: make_room(1))
    found = AverageReward().solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert [type(course) for course in pressed] == [LowMemoryAverage, DampedAverage]
    value = exact_average(rates, rewards)
    assert found.status is Status.CONVERGED and found.lower <= value <= found.upper


def test_damped_steps_go_on_where_a_run_was_and_end_without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = chain(20, 1.0, 2.0), np.arange(20.0)

    class Silent:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: None

    clock: Any = Silent()
    first = DampedAverage(HostSpace(Dense(rates)), rates.sum(axis=1), rewards)
    assert first.run(0, Criterion(1e-9), lambda *_: 0.0, clock) is Status.CONVERGED
    vectors, numbers = first.state()
    second = DampedAverage(HostSpace(Dense(rates)), rates.sum(axis=1), rewards)
    second.take(cast("Any", SimpleNamespace(vectors={"h": vectors["h"].copy()}, numbers=numbers)))
    assert second.run(0, Criterion(1e-9), lambda *_: 0.0, clock) is Status.CONVERGED
    assert second.products == first.products + 10
    lost = DampedAverage(HostSpace(Dense(rates)), rates.sum(axis=1), np.full(20, 1e308))
    assert lost.run(0, Criterion(1e-9), lambda *_: 0.0, clock) in (Status.DIVERGED, Status.CONVERGED)


@pytest.mark.parametrize("values", [3, 90])
def test_operands_by_dictionary(
    device: Device, pressed: list[LowMemoryAverage], rng: np.random.Generator, values: int
) -> None:
    rates = chain(90, 1.0, 1.5)
    rewards = rng.choice(rng.normal(size=values), 90)
    place = DevicePlace(device)
    matrix = inject(from_dense(rates), backend="gpu")
    diagonal, right = (place.compressed(place.array(x)) for x in (rates.sum(axis=1), rewards))
    found = AverageReward().solve(matrix, diagonal, right, SLACK)
    plain = AverageReward().solve(Dense(rates), rates.sum(axis=1), rewards, SLACK)
    assert len(pressed) == 2
    assert found.status is Status.CONVERGED
    assert found.lower <= plain.upper and plain.lower <= found.upper
    # Where operands take hardly any there is room for the vector between the steps of a product.
    assert found.nbytes == 7 * rewards.nbytes + diagonal.nbytes + right.nbytes


def make_room(size: int) -> None:
    raise MemoryError(f"no room for {size} bytes")


@pytest.mark.parametrize("form", ["swept", "steps", "products", "pieces"])
def test_a_preconditioner_is_taken_where_there_is_room_for_it(
    device: Device, pressed: list[LowMemoryAverage], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    side = 12
    forth, still = chain(side, 1.0, 1.3), np.eye(side)
    rates = np.kron(forth, still) + np.kron(still, forth)
    rewards, diagonal = np.arange(float(side * side)), rates.sum(axis=1)
    made: list[type] = []
    own = AnchoredSolution.__init__

    def noted(self: AnchoredSolution, space: Any, recurrence: Any, *arguments: Any) -> None:
        made.append(type(recurrence))
        assert recurrence.cost == 2 * recurrence.steps
        own(self, space, recurrence, *arguments)

    monkeypatch.setattr(AnchoredSolution, "__init__", noted)
    matrix: Any = CsrMatrix(csr_matrix(rates))
    if form != "swept":
        matrix = inject(from_dense(rates), backend="gpu")
    given = (diagonal, rewards)
    if form == "pieces":
        # There is room, and no piece of it is large enough.
        monkeypatch.setattr(PolynomialIDR, "_prepare", lambda *_: make_room(1 << 60))
    if form in ("steps", "pieces"):
        place = DevicePlace(device)
        given = tuple(place.compressed(place.array(x)) for x in given)
    found = AverageReward().solve(matrix, *given, SLACK)
    assert made == [{"swept": IDR, "steps": PolynomialIDR}.get(form, DeviceIDR)]
    assert found.status is Status.CONVERGED
    value = exact_average(rates, rewards)
    assert found.lower <= value * (1 + 1e-9) and value * (1 - 1e-9) <= found.upper
    assert found.products >= found.iterations + (PROBES if form == "swept" else 0)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_checks_answer_with_the_room_there_is(
    device: Device, pressed: list[LowMemoryAverage], backend: Any
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    found = hybrid.check(model, 'R{"throughput"}=? [ S ]', backend=backend)
    assert pressed and found.kind == "certified"
    assert found.lower <= 0.09258463463 * (1 + 1e-5) and 0.09258463463 * (1 - 1e-5) <= found.upper
    assert found.upper - found.lower <= 2e-6 * found.value
    assert found.statistics.base_bytes >= 6 * 8 * model.n_states


@pytest.mark.parametrize("pressed_rank", [0, 2])
def test_processes_choose_alike(monkeypatch: pytest.MonkeyPatch, pressed_rank: int) -> None:
    made: list[int] = []
    begin, reserve = LowMemoryAverage.__post_init__, HostSpace.reserve

    def noted(self: LowMemoryAverage) -> None:
        made.append(self.space.communicator.rank)
        begin(self)

    def refuse(self: HostSpace, vectors: int, size: int) -> None:
        if vectors > LEAN_VECTORS and self.communicator.rank == pressed_rank:
            raise MemoryError(f"no room for {vectors} vectors")
        reserve(self, vectors, size)

    monkeypatch.setattr(LowMemoryAverage, "__post_init__", noted)
    monkeypatch.setattr(HostSpace, "reserve", refuse)
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    found = hybrid.check(model, 'R{"throughput"}=? [ S ]', ranks=3)
    assert sorted(made) == [0, 1, 2]
    assert found.lower <= 0.09258463463 * (1 + 1e-5) and 0.09258463463 * (1 - 1e-5) <= found.upper
