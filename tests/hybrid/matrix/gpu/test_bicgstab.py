"""BiCGStab on the device: every status there, the CPU's values up to rounding, few launches and looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from gpu_kernels import Device, use_device
from gpu_kernels.runtime._loader import Kernel, Macros
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, FunctionOperator
from hybrid.matrix.gpu.idr import RECORDED_DIRECTIONS as RECORDED
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.space.host import space_of
from hybrid.solvers import BiCGStab, Criterion, Solution, Status
from tests.builders.linear_systems import Dense
from tests.builders.matrices import banded, from_dense
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import COMPILER, HostDevice
from tests.hybrid.matrix.gpu.allocations import CountingModule

PAIR = np.array([[0.0, 1.0], [1.0, 0.0]])
ITERATION = ("aim", "image_sums", "settle", "step_sums", "move_rows")
NEEDS_COMPILER = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")


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
    "an answer to begin with": (RING, SUMS * 1.1, np.zeros(9), Criterion(1e-12), Status.CONVERGED),
}


def off_diagonal(size: int) -> np.ndarray:
    dense = banded(size)
    np.fill_diagonal(dense, 0.0)
    return dense


def shift(size: int) -> np.ndarray:
    """A cycle: residuals become orthogonal to the first one, so that it begins anew thrice."""
    return np.roll(np.eye(size), 1, axis=1)


SYSTEMS = {
    "banded": (off_diagonal(40), 0.2),
    "banded, two blocks": (off_diagonal(260), 0.5),
    "nearly singular": (off_diagonal(40), 1e-4),
    "ring": (RING, 0.1),
    "cycle": (shift(12), 0.3),
    "one state": (np.zeros((1, 1)), 1.0),
}


def system(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrix without diagonal, diagonal of few values or of many, right-hand side."""
    dense, lost = SYSTEMS[name]
    sums = dense.sum(axis=1)
    b = np.eye(len(dense))[0] if name == "cycle" else np.linspace(0.5, 1.0, len(dense))
    return dense, np.where(sums > 0.0, sums, 1.0) * (1.0 + lost), b


FORMS: dict[str, Callable[[np.ndarray, Device], Any]] = {
    "hybrid": lambda dense, device: inject(from_dense(dense), backend="gpu"),
    "explicit": lambda dense, device: ExplicitOperator(
        CsrArrays.from_scipy(csr_matrix(dense)).to_device(device), device, "msr"
    ),
    "function": lambda dense, device: FunctionOperator(
        dense.shape, lambda x: device.xp.asarray(dense) @ x, device
    ),
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SYSTEMS)
def test_systems_are_solved_as_on_the_host(device: Device, name: str, form: str) -> None:
    dense, diagonal, b = system(name)
    method, zero = BiCGStab(Criterion(1e-11)), np.zeros(len(b))
    found = method.solve(FORMS[form](dense, device), diagonal, b, zero)
    expected = method.solve(Dense(dense), diagonal, b, zero)
    assert found.status is expected.status is Status.CONVERGED
    exact = np.linalg.solve(np.diag(diagonal) - dense, b)
    np.testing.assert_allclose(found.values, exact, rtol=1e-6)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-6)
    residual = np.abs(dense @ found.values + b - diagonal * found.values).max()
    assert found.residual == pytest.approx(residual, rel=1e-2, abs=1e-12)
    # Rounding differs, and so may the moment of the end.
    assert abs(found.iterations - expected.iterations) <= 2 + expected.iterations // 2
    if name == "cycle":
        assert found.synchronisations >= 4 + 4


@pytest.mark.parametrize("form", FORMS)
def test_iterates_are_those_of_the_host(device: Device, form: str) -> None:
    dense, diagonal, b = system("banded")
    b = b + np.random.default_rng(31).random(b.size)
    start = np.linspace(-1.0, 1.0, b.size)
    spaces = [space_of(matrix) for matrix in (FORMS[form](dense, device), Dense(dense))]
    spaces[0].stride = 1
    ours, host = (space.system(diagonal, b).idr(start, 1e-12, directions=1) for space in spaces)
    fresh = (dense @ start + b) / diagonal - start
    assert ours.restart() == pytest.approx(np.linalg.norm(fresh), rel=1e-12)
    host.restart()
    for made in range(1, 8):
        found, expected = ours.advance(1), host.advance(1)
        assert found.iterations == expected.iterations == made
        assert (found.ended, found.broken) == (expected.ended, expected.broken) == (False, False)
        assert found.norm == pytest.approx(expected.norm, rel=1e-8)
        np.testing.assert_allclose(to_numpy(ours.x), host.x, rtol=1e-8, atol=1e-10)
        assert found.norm == pytest.approx(np.linalg.norm((dense @ host.x + b) / diagonal - host.x), rel=1e-6)
    assert start[0] == -1.0  # copied
    # A fresh beginning, in the middle: the same residual, and iterations go on being counted.
    assert ours.restart() == pytest.approx(expected.norm, rel=1e-6)
    assert ours.advance(3).iterations == 8


class Watched(HostDevice):
    """A host that records as a card does: nothing runs meanwhile, and all must have been loaded before."""

    def __init__(self) -> None:
        super().__init__()
        self.recordings: list[list[str]] = []
        self.replays = 0
        self._loaded: set[tuple[str, str, Macros]] = set()
        self._recording: list[str] | None = None

    def kernel(self, source: str, name: str, macros: Macros) -> Kernel:
        run = super().kernel(source, name, macros)

        def launch(*arguments: Any, **options: Any) -> None:
            if self._recording is not None:
                assert (source, name, macros) in self._loaded, name
                self._recording.append(name)
                return
            self._loaded.add((source, name, macros))
            run(*arguments, **options)

        return launch

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self._recording = []
        work()
        self.recordings.append(self._recording)
        self._recording = None

        def replay() -> None:
            self.replays += 1
            work()

        return replay


def watched(form: str, name: str, criterion: Criterion) -> tuple[Watched, Solution]:
    """Solve on a watched device; its launches begin with the solution."""
    dense, diagonal, b = system(name)
    with use_device(Watched()) as device:
        matrix = FORMS[form](dense, device)
        matrix.vector_space()  # built by now
        device.launches.clear()
        return device, BiCGStab(criterion).solve(matrix, diagonal, b, np.zeros(b.size))


@NEEDS_COMPILER
@pytest.mark.parametrize("form", ["hybrid", "explicit"])
def test_an_iteration_is_two_products_and_five_launches(form: str) -> None:
    counts = []
    for iterations in (20, 28):
        device, found = watched(form, "nearly singular", Criterion(1e-16, max_iterations=iterations))
        assert found.iterations == iterations
        counts.append(Counter(device.launches))
        assert device.replays == iterations // RECORDED
        # Recorded once, and nothing but the iterations.
        assert [Counter(work) for work in device.recordings] == [Counter(device.recordings[0])]
        assert [name for name in device.recordings[0] if name in ITERATION] == list(ITERATION) * RECORDED
    more = counts[1] - counts[0]
    products = {name: count for name, count in more.items() if name not in ITERATION}
    assert [more[name] for name in ITERATION] == [8] * 5
    # A product of the hybrid matrix is one launch, and one more if rows are empty.
    assert 2 * 8 <= sum(products.values()) <= 2 * 8 * (2 if form == "hybrid" else 1), products
    assert "relax_rows" not in products
    assert "finish_iteration" not in products


@NEEDS_COMPILER
@pytest.mark.parametrize("form", FORMS)
def test_a_stride_of_iterations_is_looked_at_once(form: str) -> None:
    for iterations in (3, 21):
        device, found = watched(form, "nearly singular", Criterion(1e-16, max_iterations=iterations))
        assert found.status is Status.MAX_ITERATIONS
        assert found.iterations == iterations
        # Two looks at fresh residuals besides.
        assert found.synchronisations == 2 + -(-iterations // 20)
        assert len(device.recordings) == (iterations >= RECORDED and form != "function")


@NEEDS_COMPILER
@pytest.mark.parametrize("form", ["hybrid", "explicit"])
def test_iterations_allocate_nothing(form: str) -> None:
    dense = off_diagonal(260)
    diagonal, b = dense.sum(axis=1) * (1.0 + 1e-4), np.linspace(0.5, 1.0, 260)
    with use_device(HostDevice()) as device:
        matrix = FORMS[form](dense, device)
        matrix.multiply(np.ones(b.size), np.empty(b.size))
        made, looks = [], []
        for iterations in (20, 40):
            counting = device.xp = CountingModule()
            if form == "explicit":
                matrix.xp = counting
            method = BiCGStab(Criterion(1e-16, max_iterations=iterations))
            found = method.solve(matrix, diagonal, b, np.zeros(b.size))
            assert found.iterations == iterations
            made.append(counting.made)
            looks.append(found.synchronisations)
    # A look gathers some numbers, of which the status is a whole one.
    more = Counter(made[1]) - Counter(made[0])
    assert {(name, size < 50) for name, size in more} == {("asarray", True), ("concatenate", True)}
    assert more.total() == 2 * (looks[1] - looks[0]) > 0


@NEEDS_COMPILER
def test_products_beyond_the_end_are_not_made() -> None:
    dense, diagonal, b = system("ring")
    with use_device(HostDevice()):
        matrix = inject(from_dense(dense), backend="gpu")
        recurrence = matrix.vector_space().system(diagonal, b).idr(np.zeros(9), 1e-9, directions=1)
        recurrence.restart()
        standing = recurrence.advance(20)
        assert standing.ended
        assert not standing.broken
        assert standing.iterations < 20
        kernels: Any = recurrence
        last = kernels._kernels.g[0]
        last[...] = 7.0
        x = recurrence.x.copy()
        assert recurrence.advance(20) == standing
        assert last.tolist() == [7.0] * 9
        assert recurrence.x.tolist() == x.tolist()


def test_vectors_without_elements_have_arrived(device: Device) -> None:
    nothing = FunctionOperator((0, 0), lambda x: x, device)
    found = BiCGStab().solve(nothing, np.zeros(0), np.zeros(0), np.zeros(0))
    assert (found.status, found.values.size, found.iterations) == (Status.CONVERGED, 0, 0)
