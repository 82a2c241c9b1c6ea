"""Levels where memory decides: what is told, chosen and kept within a budget is what is held."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device
from hybrid.base.errors import OptionError
from hybrid.base.units import bytes_text
from hybrid.matrix.backends import Backend, CpuBackend, GpuBackend, ReferenceBackend
from hybrid.matrix.levels.curve import layer_curve, level_curve
from hybrid.matrix.levels.table import Weight, weigh
from hybrid.matrix.operators.inject import inject
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense
from tests.builders.models import build

# Two counters that drift: diagonals repeat, so that bytes by level are not those of a count.
COUNTERS = """
ctmc
module first
  x : [0..20] init 0;
  [] x<20 -> (1+mod(x,3)) : (x'=x+1);
  [go] x>0 -> 2 : (x'=x-1);
endmodule
module second
  y : [0..20] init 0;
  [go] y<20 -> 1 : (y'=y+1);
  [] y>0 -> 0.5*y : (y'=y-1);
endmodule
"""


@pytest.fixture(scope="module")
def matrix() -> OffsetMTBDD:
    return build(COUNTERS).transitions


def sizes_of(matrix: OffsetMTBDD, backend: Backend) -> dict[int, int]:
    """The bytes of all levels that a backend can use, built one by one."""
    curve = level_curve(matrix)
    usable = [k for k in range(len(curve)) if curve.seconds(k, backend.name) is not None]
    return {k: backend.represent(curve, k).nbytes for k in usable}


@pytest.mark.parametrize("backend", [CpuBackend(), ReferenceBackend()])
def test_no_other_level_takes_less_memory(matrix: OffsetMTBDD, backend: Backend) -> None:
    sizes = sizes_of(matrix, backend)
    assert len(set(sizes.values())) > 5
    operator = inject(matrix, "min-memory", backend)
    assert operator.nbytes == sizes[operator.level] == min(sizes.values())
    assert f"needs the least memory, {bytes_text(operator.nbytes)}" in operator.level_reason


def test_no_other_level_takes_less_memory_on_a_device(device: Device, matrix: OffsetMTBDD) -> None:
    sizes = sizes_of(matrix, GpuBackend())
    operator = inject(matrix, "min-memory", "gpu")
    assert operator.nbytes == sizes[operator.level] == min(sizes.values())


def test_counts_are_no_more_than_what_is_held(device: Device, matrix: OffsetMTBDD) -> None:
    for backend in (CpuBackend(), GpuBackend()):
        sizes = sizes_of(matrix, backend)
        weights = level_curve(matrix).weights(backend.name)
        assert {w.level for w in weights} == set(sizes)
        assert all(w.least_bytes <= sizes[w.level] for w in weights)


@pytest.mark.parametrize("name", ["cpu", "gpu", "reference"])
def test_budgets_are_kept(device: Device, matrix: OffsetMTBDD, name: str) -> None:
    least = inject(matrix, "min-memory", name).nbytes
    free = inject(matrix, "min-time", name).nbytes
    for budget in {least, (least + free) // 2, free, 10 * free}:
        for policy in ("auto", "min-memory", "min-time"):
            operator = inject(matrix, policy, name, memory_budget=budget)
            assert operator.nbytes <= budget
    for policy in ("auto", "min-memory"):
        with pytest.raises(OptionError, match=f"no level fits {least - 1} bytes.* least, {least} bytes"):
            inject(matrix, policy, name, memory_budget=least - 1)
    with pytest.raises(OptionError, match="more than the budget|no level fits"):
        inject(matrix, 0, name, memory_budget=least - 1)
    size = inject(matrix, 0, name).nbytes
    assert inject(matrix, 0, name, memory_budget=size).level == 0


def test_layers_are_weighed_together() -> None:
    wide = from_dense(np.kron(np.eye(16), np.ones((4, 4))))
    curve = layer_curve([wide, wide])
    single = {w.level: w for w in level_curve(wide).weights("cpu")}
    for weight in curve.weights("cpu"):
        own = single[weight.level]
        assert (weight.items, weight.least_bytes) == (2 * own.items, 2 * own.least_bytes)


# ------------------------------------------------------------------ the search


def test_levels_are_built_from_the_least_work_on_while_they_can_be_smaller() -> None:
    built = []

    def build(level: int) -> int:
        built.append(level)
        return {0: 50, 1: 70, 2: 40}[level]

    found = weigh([Weight(30, 2, 10), Weight(10, 1, 20), Weight(20, 3, 70), Weight(25, 0, 60)], build, int)
    # Level 3 cannot be smaller than 70 bytes, which level 1 takes.
    assert built == [1, 0, 2]
    assert (found.best, found.costs) == ((40, 2, 40), {1: 70, 0: 50, 2: 40})


def test_work_beyond_a_limit_is_left() -> None:
    few = [Weight(1 << 20, 0, 0), Weight(1 << 24, 1, 0), Weight(1 << 25, 2, 0)]
    found = weigh(few, lambda level: 100 - level, int)
    assert set(found.costs) == {0, 1}


def test_levels_without_room_are_left_out() -> None:
    def build(level: int) -> int | None:
        if level == 0:
            raise MemoryError("no room")
        return None if level == 1 else 7

    assert weigh([Weight(k, k, 0) for k in range(3)], build, int).costs == {2: 7}
    with pytest.raises(MemoryError, match="no room"):
        weigh([Weight(1, 0, 0), Weight(2, 1, 0)], build, int)
    assert weigh([], build, int).best is None
