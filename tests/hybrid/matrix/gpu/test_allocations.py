"""Nothing is allocated inside the loops of the methods: as much memory after 20 iterations as after 200."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_kernels import CodedVector, CudaDevice, IterationState, Mode, Step, current_device, use_device
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.gpu.repeated_steps import RECORDED, DeviceSteps
from hybrid.matrix.operators.device_choices import DeviceChoices, device_choices
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import ChoiceProblem
from hybrid.solvers import AverageReward, BiCGStab, Criterion, Interval, Jacobi, Optimistic, Power
from hybrid.solvers.iteration import ValueIteration
from tests.builders.matrices import from_dense
from tests.gpu_kernels.host_device import COMPILER, HostDevice
from tests.hybrid.matrix.gpu.allocations import CountingModule, memory_at_looks

Solve = Callable[[int], Any]
NAMES = ("jacobi", "jor", "power", "optimistic", "interval", "gain", "bicgstab", "value-iteration")
SLACK = 1e-13


def walk(size: int, lost: float) -> tuple[np.ndarray, np.ndarray]:
    """A walk on a line that ends so rarely that no method is done soon; and its diagonal."""
    dense = np.zeros((size, size))
    inner = np.arange(size - 1)
    dense[inner, inner + 1] = 0.5 + 0.25 * (inner % 3 == 0)
    dense[inner + 1, inner] = 0.5
    return dense, dense.sum(axis=1) * (1.0 + lost)


def solver(name: str, size: int) -> Solve:
    """Return a function that makes so many iterations on the current device; the matrix lies there."""
    if name == "value-iteration":
        return _choices(size)
    dense, diagonal = walk(size, 0.0 if name == "gain" else 1e-6)
    matrix = inject(from_dense(dense), size.bit_length() // 2, "gpu")
    b, zero = np.linspace(0.5, 1.0, size), np.zeros(size)

    def solve(iterations: int) -> Any:
        criterion = Criterion(1e-15, max_iterations=iterations)
        if name == "gain":
            return AverageReward(criterion, krylov="never").solve(matrix, diagonal, b, SLACK)
        if name in ("optimistic", "interval"):
            method = Optimistic(criterion) if name == "optimistic" else Interval(criterion)
            return method.solve(matrix, diagonal, b, SLACK, 1e9)
        plain = {
            "jacobi": Jacobi(criterion),
            "jor": Jacobi(criterion, 0.9),
            "power": Power(criterion),
            "bicgstab": BiCGStab(criterion),
        }
        return plain[name].solve(matrix, diagonal, b, zero)

    return solve


def _operator(size: int) -> DeviceChoices:
    dense, diagonal = walk(size, 1e-6)
    dense /= diagonal[:, None]
    layer_choices = [
        LayerChoices(layer, None, from_dense(dense * (1.0 - 1e-6 * layer)), np.full(size, 1e-3), None)
        for layer in range(2)
    ]
    system = device_choices(
        layer_choices, ChoiceProblem(size, True, None, SLACK), CheckOptions.of(backend="gpu").matrix_backend()
    )
    assert system is not None
    return system


def _choices(size: int) -> Solve:
    system = _operator(size)

    def solve(iterations: int) -> Any:
        system.space.xp, system.space.synchronisations = current_device().xp, 0
        return ValueIteration(Criterion(1e-15, max_iterations=iterations)).solve(system)

    return solve


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")
@pytest.mark.parametrize("name", NAMES)
def test_loops_make_no_arrays(name: str) -> None:
    size, few, many = 60, 20, 60
    device = HostDevice()
    with use_device(device):
        solve = solver(name, size)
        solve(few)  # steps recorded
        counts, looks = [], []
        for iterations in (few, many):
            counting = device.xp = CountingModule()
            found = solve(iterations)
            assert found.iterations == iterations
            counts.append(counting.made)
            looks.append(found.synchronisations)
    vectors = [[made for made in count if made[1] == size] for count in counts]
    assert vectors[0] == vectors[1]
    # A look gathers some numbers, and measures; besides that, iterations make nothing.
    each = {"interval": 4, "gain": 10}.get(name, 2)
    assert len(counts[1]) - len(counts[0]) <= each * (looks[1] - looks[0]), counts[1]


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_pool_does_not_grow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    pool, size = cupy.get_default_memory_pool(), 2048
    with use_device(CudaDevice()):
        solve = solver(name, size)
        solve(200)  # kernels loaded, steps recorded
        found = []
        for iterations in (20, 200):
            gc.collect()
            with memory_at_looks(monkeypatch, pool.used_bytes) as used:
                assert solve(iterations).iterations == iterations
            gc.collect()
            # The last look but one lies in the loop; the last one is at the residual.
            found.append((pool.total_bytes(), pool.used_bytes(), used[-2]))
    # Not a vector more, and no number for every one of 180 iterations: the pool's blocks have 512 bytes.
    assert max(abs(after - before) for before, after in zip(*found, strict=True)) < 8 * size, found


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")
def test_recordings_keep_the_vectors_of_two_solutions() -> None:
    with use_device(HostDevice()) as device:
        state = IterationState.create(device)
        nothing = CodedVector(0, 0, None, None)
        step = Step(Mode.PRODUCT, nothing, nothing, 1.0, state)
        steps = DeviceSteps(device, lambda *_: None, step, -1.0, False, lambda: None)
        vectors = []
        for _ in range(4):
            pair = np.zeros(3), np.zeros(3)
            vectors.append(weakref.ref(pair[0]))
            steps.sweep(pair, 0, 3 * RECORDED)
            del pair
        gc.collect()
        assert [vector() is not None for vector in vectors] == [False, False, True, True]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_recordings_of_choices_go_with_their_operator() -> None:
    with use_device(HostDevice()):
        system = _operator(60)
        pair = system.zeros(), system.zeros()
        # Kept for a second time, which would be recorded.
        system.repeat(pair, 0, RECORDED)
        left = weakref.ref(system), weakref.ref(pair[0])
        gc.disable()
        try:
            del system, pair
            assert all(found() is None for found in left)
        finally:
            gc.enable()
