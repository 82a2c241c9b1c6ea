"""Memory is asked for before it is taken: block tasks, layers of choices, vectors of methods."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import use_device
from hybrid.matrix.operators.inject import inject
from hybrid.solvers import AverageReward, BiCGStab, Criterion, Interval, Jacobi, Optimistic, Power
from hybrid.solvers.average_krylov import DAMPED_VECTORS
from tests.builders.matrices import banded, block_tasks, from_dense, random_sparse
from tests.gpu_kernels.host_device import COMPILER, HostDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")


@pytest.mark.parametrize("wide", [False, True])
def test_block_tasks_ask_for_what_they_take(rng: np.random.Generator, wide: bool) -> None:
    matrix = from_dense(random_sparse(rng, 300, 300, 0.5))
    with pytest.raises(
        MemoryError, match=r"2 tasks of 2 instances need \d+ bytes and 1000 are free"
    ) as refused:
        block_tasks(HostDevice(free=1000), matrix, 0, wide)
    asked = int(re.findall(r"need (\d+) bytes", str(refused.value))[0])
    tasks = block_tasks(HostDevice(free=asked), matrix, 0, wide)
    assert asked / 2 < tasks.nbytes <= asked
    with pytest.raises(MemoryError):
        block_tasks(HostDevice(free=asked - 1), matrix, 0, wide)


def test_layers_of_choices_that_do_not_fit_are_refused(examples_folder: Path) -> None:
    model = hybrid.load(examples_folder / "coin.prism", constants={"K": 1})
    with (
        use_device(HostDevice(free=1000)) as host,
        pytest.raises(MemoryError, match=r"level \d+ needs up to \d+ bytes on host .* 1000 are free; choose"),
    ):
        hybrid.check(model, 'Pmin=? [ F "all_heads" ]', backend="gpu", level=5)
    assert host.launches == []


def test_layers_that_run_out_of_room_while_they_are_built_are_refused(
    examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.load(examples_folder / "coin.prism", constants={"K": 1})
    tried = []

    def build(device: Any, types: Any, k: int, options: Any, stacked: Any) -> None:
        tried.append(k)
        raise MemoryError("out of room on the card")

    monkeypatch.setattr("hybrid.matrix.levels.probe.build_tile_matrix", build)
    with use_device(HostDevice()), pytest.raises(MemoryError, match="out of room on the card"):
        hybrid.check(model, 'Pmin=? [ F "all_heads" ]', backend="gpu")
    # Other levels take less.
    assert len(set(tried)) > 1


FEW = Criterion(0.05, max_iterations=100)


@pytest.mark.parametrize(
    "method",
    [m(FEW) for m in (Jacobi, Power, BiCGStab, Optimistic, Interval, AverageReward)],
    ids=lambda method: method.name,
)
def test_methods_ask_for_their_vectors(method: Any) -> None:
    dense = banded(40)
    np.fill_diagonal(dense, 0.0)
    diagonal, b = dense.sum(axis=1) * 1.1, np.ones(40)
    more = {Jacobi: (np.zeros(40),), Power: (np.zeros(40),), BiCGStab: (np.zeros(40),)}.get(type(method))
    arguments = more or ((1e-12,) if isinstance(method, AverageReward) else (1e-12, 10.0))
    least = DAMPED_VECTORS if isinstance(method, AverageReward) else method.vectors
    with use_device(HostDevice()) as host:
        matrix = inject(from_dense(dense), backend="gpu")
        matrix.multiply(b)
        launches = len(host.launches)
        host.free = 4 * 8 * 40 - 1
        with pytest.raises(
            MemoryError,
            match=rf"with {least} vectors of 40 elements needs \d+ .* 1279 are free; choose",
        ):
            method.solve(matrix, diagonal, b, *arguments)
        assert len(host.launches) == launches
        host.free = least * 8 * 40
        assert method.solve(matrix, diagonal, b, *arguments).iterations > 0
