"""The backend by name: operators, solvers and checks on the device give what the CPU gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

import gpu_kernels
import hybrid
from gpu_kernels import Device, use_device
from hybrid.matrix.backends import choose_backend
from hybrid.matrix.levels.curve import level_curve
from hybrid.matrix.levels.probe import levels_to_time, probe_levels
from hybrid.matrix.operators.inject import inject
from hybrid.solvers import Criterion, Jacobi, Power, Status
from tests.builders.matrices import banded, from_dense
from tests.gpu_kernels.devices import DEVICES
from tests.gpu_kernels.host_device import HostDevice


def chain(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A contracting system: matrix without diagonal, diagonal, right-hand side."""
    dense = banded(size)
    np.fill_diagonal(dense, 0.0)
    return dense, dense.sum(axis=1) + 0.2, np.linspace(0.5, 1.0, size)


@pytest.mark.parametrize(
    ("solver", "with_b"),
    [
        pytest.param(solver, with_b, id=f"{with_b}-{name}")
        for k, (name, solver) in enumerate(
            {"jacobi": Jacobi, "jor": lambda c: Jacobi(c, 0.8), "power": Power}.items()
        )
        for with_b in [k % 2 == 1]
    ],
)
def test_solvers_stop_where_the_cpu_stops(device: Device, solver: type, with_b: bool) -> None:
    dense, diagonal, b = chain(150)
    matrix = from_dense(dense)
    right = b if with_b else None
    method = solver(Criterion(epsilon=1e-9, absolute=not with_b))
    start = np.ones(150)
    expected = method.solve(inject(matrix, backend="cpu"), diagonal, right, start)
    found = method.solve(inject(matrix, backend="gpu"), diagonal, right, start)
    assert found.status is expected.status is Status.CONVERGED
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12, atol=1e-18)
    assert found.difference == pytest.approx(expected.difference, rel=1e-6)
    residual = np.abs(dense @ found.values + (b if with_b else 0.0) - diagonal * found.values).max()
    assert found.residual == pytest.approx(residual, rel=1e-6, abs=1e-15)
    np.testing.assert_array_equal(start, np.ones(150))


@pytest.mark.parametrize("limit", [1, 7, 10, 23])
def test_the_iteration_limit_is_kept(device: Device, limit: int) -> None:
    dense, diagonal, b = chain(60)
    operator = inject(from_dense(dense), backend="gpu")
    found = Jacobi(Criterion(1e-14, max_iterations=limit)).solve(operator, diagonal, b, np.zeros(60))
    assert found.status is Status.MAX_ITERATIONS
    assert found.iterations == limit
    x = np.zeros(60)
    for _ in range(limit):
        x = (dense @ x + b) / diagonal
    np.testing.assert_allclose(found.values, x, rtol=1e-12)


def test_divergence_is_a_status(device: Device) -> None:
    dense, diagonal, b = chain(40)
    operator = inject(from_dense(dense), backend="gpu")
    found = Jacobi(Criterion(1e-9)).solve(operator, diagonal * 1e-30, b, np.ones(40))
    assert found.status is Status.DIVERGED


def test_the_host_looks_rarely() -> None:
    dense, diagonal, b = chain(40)
    looks = []

    class Counting(HostDevice):
        def record(self, work):  # type: ignore[no-untyped-def]
            return lambda: (looks.append(len(self.launches)), work())[1]

    with use_device(Counting()) as host:
        operator = inject(from_dense(dense), backend="gpu")
        found = Jacobi(Criterion(1e-12)).solve(operator, diagonal, b, np.ones(40))
    assert found.status is Status.CONVERGED
    # Two launches an iteration, ten iterations a replay of the recorded launches.
    assert looks and np.all(np.diff(looks) == 20)
    assert host.launches.count("finish_iteration") >= found.iterations


def test_products_of_host_and_device_arrays(device: Device) -> None:
    dense = banded(100)
    operator = inject(from_dense(dense), backend="gpu")
    x = np.random.default_rng(3).random((100, 2))
    np.testing.assert_allclose(operator @ x[:, 0], dense @ x[:, 0], rtol=1e-13)
    np.testing.assert_allclose(operator @ x, dense @ x, rtol=1e-13)
    np.testing.assert_allclose(operator.rmatvec(x[:, 0]), dense.T @ x[:, 0], rtol=1e-13)
    np.testing.assert_allclose(operator.row_sums(), dense.sum(axis=1), rtol=1e-13)
    for operand in (device.xp.asarray(x), device.xp.asarray(x[:, 0].copy())):
        found = operator @ operand
        assert isinstance(found, device.xp.ndarray)
        np.testing.assert_allclose(found.get() if hasattr(found, "get") else found, dense @ (
            operand.get() if hasattr(operand, "get") else operand
        ), rtol=1e-13)  # fmt: skip
    statistics = operator.statistics
    assert statistics.backend == "gpu"
    assert statistics.representation_memory_bytes == operator.nbytes > 0


@pytest.mark.parametrize("policy", ["auto", "min-memory", "min-time", 4])
def test_level_policies(device: Device, policy: str | int) -> None:
    dense = banded(100)
    operator = inject(from_dense(dense), policy, "gpu")
    np.testing.assert_allclose(operator @ np.ones(100), dense.sum(axis=1), rtol=1e-13)
    assert operator.level_reason


@pytest.mark.parametrize(
    ("name", "constants"), [("kanban", {"t": 1}), ("tandem", {"c": 3}), ("brp", {"N": 4, "MAX": 2})]
)
def test_checks_agree_with_the_cpu(
    device: Device, examples_folder: Path, name: str, constants: dict[str, int]
) -> None:
    model = hybrid.load(examples_folder / f"{name}.prism", constants=constants)
    properties = examples_folder / f"{name}.props"
    options = {"epsilon": 1e-10, "method": "jor"}
    expected = hybrid.check_all(model, properties, backend="cpu", **options)
    found = hybrid.check_all(model, properties, backend="gpu", **options)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.error is None, mine.error
        assert mine.value == pytest.approx(theirs.value, rel=1e-7)


COMPONENTS = """
ctmc
module m
  s : [0..6] init 0;
  [] s=0 -> 2:(s'=1) + 1:(s'=3) + 0.5:(s'=6);
  [] s=1 -> 3:(s'=2) + 1:(s'=0);
  [] s=2 -> 1:(s'=1) + 0.25:(s'=3);
  [] s=3 -> 1.5:(s'=4);
  [] s=4 -> 1:(s'=5) + 2:(s'=3);
  [] s=5 -> 4:(s'=3);
  [] s=6 -> 1:(s'=6);
endmodule
rewards s<3 : 2; s=4 : 3; s=6 : 0.5; endrewards
"""

PROPERTIES = (
    "P=? [ F s=4 ]",
    "R=? [ F s>=3 ]",
    "S=? [ s=4 ]",
    "R=? [ S ]",
    "P=? [ F<=1.5 s=4 ]",
    "P=? [ s<3 U[0.5,2] s>=3 ]",
    "R=? [ C<=2 ]",
    "R=? [ I=2 ]",
)


@pytest.fixture(params=["reference", *DEVICES])
def any_backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every backend besides the CPU; the GPU's on the emulator and, marked, on a card."""
    if request.param == "reference":
        yield "reference"
    elif request.param == "host":
        with use_device(HostDevice()):
            yield "gpu"
    else:
        with use_device(gpu_kernels.CudaDevice()):
            yield "gpu"


def test_sound_answers_agree_with_the_cpu(any_backend: str, tmp_path: Path) -> None:
    path = tmp_path / "components.prism"
    path.write_text(COMPONENTS)
    model = hybrid.load(path)
    for text in PROPERTIES:
        expected = hybrid.check(model, text, backend="cpu", epsilon=1e-7, throw=False)
        found = hybrid.check(model, text, backend=any_backend, epsilon=1e-7, throw=False)
        assert found.error is None, found.error
        assert found.value == pytest.approx(expected.value, rel=1e-6)
        assert found.lower <= expected.upper
        assert expected.lower <= found.upper
        assert found.upper - found.lower <= 2e-7 * max(found.value, 1.0)
        assert found.statistics.backend in (any_backend, None)


def test_too_little_memory_is_refused_with_both_numbers() -> None:
    matrix = from_dense(banded(100))
    with (
        use_device(HostDevice(free=1000)),
        pytest.raises(MemoryError, match=r"needs up to \d+ bytes .* 1000 are free"),
    ):
        inject(matrix, backend="gpu").multiply(np.ones(100))


def test_auto_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = from_dense(banded(100))
    with use_device(HostDevice()):
        assert choose_backend("auto").name == "gpu"
        small = inject(matrix)
        assert small.backend == "cpu"
        assert "too few for the GPU" in small.backend_reason
        monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 0)
        large = inject(matrix)
        assert large.backend == "gpu"
        assert "host" in large.backend_reason
    with use_device(HostDevice(free=100)):
        full = inject(matrix)
        assert full.backend == "cpu"
        assert "100 are free" in full.backend_reason


def test_levels_are_timed_where_that_pays(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = banded(100)
    matrix = from_dense(dense)
    monkeypatch.setattr("hybrid.matrix.levels.probe.PROBE_ENTRIES", 0)
    operator = inject(matrix, "min-time", "gpu")
    assert "was measured to be the fastest" in operator.level_reason
    assert operator._product is not None
    np.testing.assert_allclose(operator @ np.ones(100), dense.sum(axis=1), rtol=1e-13)
    assert operator.level in levels_to_time(operator.curve, frozenset(range(99)))
    fixed = inject(matrix, 3, "gpu")
    assert fixed.level == 3
    assert fixed._product is None
    assert "predicted" in inject(matrix, "auto", "gpu").level_reason
    tight = inject(matrix, "min-memory", "gpu").nbytes
    budget = inject(matrix, "min-time", "gpu", memory_budget=tight)
    assert budget.nbytes == tight
    assert "was measured" in budget.level_reason or "needs the least memory" in budget.level_reason
    monkeypatch.setattr("hybrid.matrix.gpu.build.check_memory", _refuse)
    assert "predicted" in inject(matrix, "auto", "gpu").level_reason


class TimingDevice(HostDevice):
    """Tells made-up times: of work queued by the host always the same, of recorded work one by one."""

    def __init__(self, queued: float, replayed: Iterable[float]) -> None:
        super().__init__()
        self.queued, self.replayed = queued, iter(replayed)
        self.recordings: list[Callable[[], None]] = []

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.recordings.append(super().record(work))
        return self.recordings[-1]

    def seconds(self, work: Callable[[], None], repeats: int) -> float:
        return next(self.replayed) if work in self.recordings else self.queued


def test_short_products_are_timed_without_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.levels.probe.PROBE_ENTRIES", 0)
    curve = level_curve(from_dense(banded(100)))
    levels = levels_to_time(curve, frozenset(range(len(curve.typed.plain))))
    assert len(levels) > 2
    # Queued, all levels take what the host takes; replayed, the one before the last is the fastest.
    times = [5e-4 - 1e-4 * (k == levels[-2]) for k in levels]
    short = TimingDevice(2e-5, times)
    with use_device(short):
        found = probe_levels(short, curve)
    assert found is not None
    assert found[0].level == levels[-2]
    assert len(short.recordings) == len(levels)
    assert "40 µs a product" in found[0].reason
    long = TimingDevice(2e-4, [])
    with use_device(long):
        assert probe_levels(long, curve) is not None
    assert long.recordings == []


def _refuse(*_: object) -> None:
    raise MemoryError


def test_asked_for_without_a_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "there is none")
    with pytest.raises(ValueError, match="'gpu' cannot run here: there is none"):
        choose_backend("gpu")
    assert choose_backend("auto").name == "cpu"
    assert "there is none" in choose_backend("auto").reason
    if gpu_kernels.unavailable_reason() is not None:
        with pytest.raises(RuntimeError):
            gpu_kernels.current_device()
