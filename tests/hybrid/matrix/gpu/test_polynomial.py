"""IDR(s) with several damped steps for a product: the system it solves, bounds around exact values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import CodedVector, Device, IterationState, Mode, Step, compress
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.gpu.build import PairOptions, build_pairs
from hybrid.matrix.gpu.device_space import DeviceSystem
from hybrid.matrix.gpu.idr import DeviceIDR, PolynomialIDR, PolynomialSystem, RepeatedSteps
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.base import Status
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.repeated import OMEGA, STEPS
from hybrid.matrix.space.vector_space import RecurrenceStatus
from hybrid.solvers import AverageReward, Criterion, Optimistic
from hybrid.solvers.krylov_bounds import MORE_VECTORS
from tests.builders.closed_classes import exact_average, queue, random_class
from tests.builders.linear_systems import exact_solution, linear_system
from tests.builders.matrices import from_dense
from tests.exploring import each, pairs
from tests.gpu_kernels.devices import to_numpy

SLACK = 64 * UNIT


def in_pairs(dense: np.ndarray, device: Device) -> GpuProduct:
    typed = TypedMatrix(from_dense(dense))
    layout = build_pairs(device, typed.plain, from_dense(dense).n_levels, PairOptions())
    assert layout is not None
    return GpuProduct(device, layout)


FORMS = {
    "pairs": in_pairs,
    "hybrid": lambda dense, device: inject(from_dense(dense), backend="gpu"),
    "tasks": lambda dense, device: inject(from_dense(dense), backend="gpu", representation="tasks"),
    "explicit": lambda dense, device: ExplicitOperator(
        CsrArrays.from_scipy(csr_matrix(dense)).to_device(device), device, "msr"
    ),
    "function": lambda dense, device: FunctionOperator(
        dense.shape, lambda x: device.xp.asarray(dense) @ x, device
    ),
}


def system_of(form: str, device: Device, dense: np.ndarray, diagonal: np.ndarray, b: np.ndarray) -> Any:
    return space_of(FORMS[form](dense, device)).system(diagonal, b)


def iteration(dense: np.ndarray, diagonal: np.ndarray, anchor: int | None) -> np.ndarray:
    """The matrix T of a step without right-hand side."""
    moved = np.array(dense)
    if anchor is not None:
        moved[:, anchor] -= 1.0
    return (1.0 - OMEGA) * np.eye(len(dense)) + OMEGA * moved / diagonal[:, None]


@pytest.mark.parametrize(("anchor", "form"), each([None, 4], FORMS))
def test_a_product_is_several_steps(
    device: Device, rng: np.random.Generator, form: str, anchor: int | None
) -> None:
    dense, diagonal, b = linear_system(rng, 40)
    xp, x, start = device.xp, rng.normal(size=40), rng.random(40)
    held = FORMS[form](dense, device)
    space: Any = space_of(held)
    step = np.linalg.matrix_power(iteration(dense, diagonal, anchor), STEPS)
    repeated = RepeatedSteps(space._run, xp.zeros(40), anchor)
    nothing, out = CodedVector(0, 0, None, None), xp.zeros(40)
    jacobi = Step(Mode.JACOBI, compress(device, diagonal), nothing, 1.0, IterationState.create(device))
    repeated(jacobi, xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), step @ x, rtol=1e-12, atol=1e-13)
    # The residual that it begins with is what the steps change in x.
    found = space.system(diagonal, b).preconditioner().idr(None, space.vector(start), 0.0, anchor)
    assert isinstance(found, PolynomialIDR)
    system = np.diag(diagonal) - dense
    if anchor is not None:
        system[:, anchor] += 1.0
    solution = np.linalg.solve(system, b)
    assert found.restart() == pytest.approx(np.linalg.norm(solution - start - step @ (solution - start)))
    np.testing.assert_allclose(
        to_numpy(found.r), solution - start - step @ (solution - start), rtol=1e-9, atol=1e-12
    )
    assert found.products == STEPS
    # And the one that is measured is that of the system.
    np.testing.assert_allclose(
        to_numpy(found.plain_residual()), (b - system @ start) / diagonal, rtol=1e-9, atol=1e-12
    )
    assert found.products == STEPS + 1


@pytest.mark.parametrize(("is_weighed", "anchor", "form"), pairs([False, True], [None, 7], FORMS))
def test_it_arrives_where_the_system_is_solved(
    device: Device, rng: np.random.Generator, form: str, anchor: int | None, is_weighed: bool
) -> None:
    dense, diagonal, b = linear_system(rng, 60)
    system = system_of(form, device, dense, diagonal, b)
    other, start = rng.random(60), rng.random(60)
    space = system._space
    weights = space.vector(rng.random(60) + 0.5) if is_weighed else None
    full = np.diag(diagonal) - dense
    if anchor is not None:
        full[:, anchor] += 1.0
    for right in (None, other):
        ours = system.preconditioner().idr(
            None if right is None else space.vector(right), space.vector(start), 1e-11, anchor, weights
        )
        ours.restart()
        looks, standing = space.synchronisations, ours.advance(1)
        while not standing.ended:
            standing = ours.advance(3)
        assert not standing.broken
        assert space.synchronisations - looks <= 2 * standing.iterations
        np.testing.assert_allclose(
            to_numpy(ours.x), np.linalg.solve(full, b if right is None else right), rtol=1e-8
        )
        # Its own, those of fresh residuals, and nothing once it has ended.
        made, kept = ours.products, to_numpy(ours.x).tolist()
        assert 0 <= made - ours.cost * standing.iterations <= STEPS * (1 + standing.iterations)
        assert ours.advance(3) == standing
        assert ours.products == made and to_numpy(ours.x).tolist() == kept


def test_a_period_is_no_obstacle(device: Device) -> None:
    """Of a ring T^k has as many eigenvalues 1 as k and the period have in common, but for the damping."""
    rates = np.roll(np.eye(16), 1, axis=1)
    rewards = np.arange(16.0)
    found = AverageReward().solve(inject(from_dense(rates), backend="gpu"), np.ones(16), rewards, 1e-14)
    assert found.status is Status.CONVERGED
    assert found.lower <= 7.5 <= found.upper


@pytest.mark.parametrize("form", [form for form in FORMS if form != "pairs"])
def test_averages_lie_between_the_bounds(device: Device, rng: np.random.Generator, form: str) -> None:
    for k in range(12):
        size = int(rng.integers(2, 40))
        rates = random_class(rng, size) if k % 2 else queue(size, *rng.uniform(0.5, 2.0, 2))
        rewards = rng.normal(size=len(rates))
        found = AverageReward(Criterion(1e-8, max_iterations=20000)).solve(
            FORMS[form](rates, device), rates.sum(axis=1), rewards, 1e-14
        )
        value = exact_average(rates, rewards)
        slack = 1e-9 * (1.0 + abs(value))  # of the least squares
        assert found.lower - slack <= value <= found.upper + slack
        assert found.status in (Status.CONVERGED, Status.MAX_ITERATIONS)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """Return a list to which the kind of every recurrence is added."""
    made: list[type] = []
    own = DeviceIDR.__init__

    def note(self: DeviceIDR, *arguments: Any, **named: Any) -> None:
        made.append(type(self))
        own(self, *arguments, **named)

    monkeypatch.setattr(DeviceIDR, "__init__", note)
    return made


def test_averages_begin_with_it(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    side = 24
    forth, still = queue(side - 1, 1.0, 1.2), np.eye(side)
    rates = np.kron(forth, still) + np.kron(still, forth)
    rewards, diagonal = np.arange(float(side * side)), rates.sum(axis=1)
    matrix, made = inject(from_dense(rates), backend="gpu"), noted(monkeypatch)
    quick = AverageReward().solve(matrix, diagonal, rewards, 1e-14)
    assert made == [PolynomialIDR]
    monkeypatch.setattr(DeviceSystem, "preconditioner", lambda *_: None)
    plain = AverageReward().solve(matrix, diagonal, rewards, 1e-14)
    assert quick.status is plain.status is Status.CONVERGED
    # Some more may be needed, but vectors are passed over once in several.
    assert quick.products < 2 * plain.products
    assert quick.synchronisations < plain.synchronisations
    assert quick.lower <= plain.upper and plain.lower <= quick.upper


def breaks(self: PolynomialIDR, most: int) -> RecurrenceStatus:
    self._kernels.x *= 1e200
    return RecurrenceStatus(1, np.inf, ended=True, broken=True)


def stands_still(self: PolynomialIDR, most: int) -> RecurrenceStatus:
    self._made += 1
    return RecurrenceStatus(1, 1.0, ended=False, broken=False)


@pytest.mark.parametrize("fails", [breaks, stands_still])
def test_where_it_fails_the_steps_go_on(
    device: Device, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator, fails: Any
) -> None:
    rates, rewards = queue(30, 1.0, 1.5), rng.random(31)
    monkeypatch.setattr(PolynomialIDR, "cycles", 1)
    monkeypatch.setattr(PolynomialIDR, "advance", fails)
    matrix = inject(from_dense(rates), backend="gpu")
    found = AverageReward().solve(matrix, rates.sum(axis=1), rewards, 1e-14)
    assert found.status is Status.CONVERGED
    value = exact_average(rates, rewards)
    assert found.lower - 1e-9 <= value <= found.upper + 1e-9


def test_without_room_for_one_vector_more_products_are_made(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates, rewards = queue(30, 1.0, 1.5), np.arange(31.0)
    matrix, made = inject(from_dense(rates), backend="gpu"), noted(monkeypatch)
    for vectors in (1, 1 << 40):
        monkeypatch.setattr(PolynomialSystem, "more_vectors", vectors)
        found = AverageReward(krylov="always").solve(matrix, rates.sum(axis=1), rewards, 1e-14)
        assert found.status is Status.CONVERGED
    assert made == [PolynomialIDR, DeviceIDR]


def test_room_in_pieces_is_none(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    rates, rewards = queue(30, 1.0, 1.5), np.arange(31.0)
    matrix, made = inject(from_dense(rates), backend="gpu"), noted(monkeypatch)

    def full(*_: Any) -> None:
        raise MemoryError("no piece is large enough")

    monkeypatch.setattr(PolynomialIDR, "_prepare", full)
    found = AverageReward(krylov="always").solve(matrix, rates.sum(axis=1), rewards, 1e-14)
    assert made == [DeviceIDR]
    assert found.status is Status.CONVERGED


@pytest.mark.parametrize("form", ["hybrid", "explicit"])
def test_bounds_hold(
    device: Device, form: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    made, tried = noted(monkeypatch), 0
    monkeypatch.setattr("hybrid.solvers.krylov_bounds._BRIEF", 1)
    walk = queue(59, 1.0, 0.9)
    last = np.append(np.zeros(59), 1.0)
    systems = [(walk, walk.sum(axis=1) + last, last), *(linear_system(rng, 40) for _ in range(6))]
    for dense, diagonal, b in systems:
        made.clear()
        found = Optimistic(krylov="always").solve(FORMS[form](dense, device), diagonal, b, SLACK, None)
        assert found.status is Status.CONVERGED
        exact = exact_solution(dense, diagonal, b)
        bounds = zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True)
        assert all(low <= x <= high for low, x, high in bounds)
        # Products come first.
        is_tried = PolynomialIDR in made
        assert made[0] is DeviceIDR
        assert found.more_vectors == MORE_VECTORS + is_tried
        tried += is_tried
    assert tried
