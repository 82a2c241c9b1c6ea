"""Block rows on a device: steps of a block row are those of all rows, and answers those of the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device, Step, TileMatrix
from gpu_kernels.compressed.steps import Mode
from hybrid.base.arrays import to_host
from hybrid.matrix.gpu.repeated_steps import DeviceBlockRows, DeviceSteps
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.matrix_block_rows import device_block_rows
from hybrid.solvers.block_row_bounds import BlockRowBounds
from tests.builders.matrices import from_dense

SIZE = 128
BLOCK = 16  # rows that refer to each other


@pytest.fixture(autouse=True)
def small_block_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.operators.matrix_block_rows._LEAST_ROWS", 1)
    monkeypatch.setattr("hybrid.matrix.operators.matrix_block_rows._DEVICE_BLOCK_ROW_SIZE", 8)
    monkeypatch.setattr("hybrid.matrix.operators.matrix_block_rows._LEAST_GROUP", 2)
    monkeypatch.setattr("hybrid.solvers.block_row_bounds._BEGIN", 40)


def in_blocks(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Blocks of rows that refer to themselves and to the blocks after them; some rows refer to nothing."""
    block = np.arange(SIZE) // BLOCK
    dense = rng.integers(1, 4, (SIZE, SIZE)) * 0.25 * (rng.random((SIZE, SIZE)) < 0.1)
    dense *= block[:, None] <= block
    np.fill_diagonal(dense, 0.0)
    dense[rng.choice(SIZE, 5)] = 0.0
    return dense


def block_rows_of(types: RowTypes, level: int) -> DeviceBlockRows:
    found = device_block_rows(types, level)
    assert found is not None
    return found


def test_steps_of_block_rows_are_those_of_all_rows(device: Device, rng: np.random.Generator) -> None:
    dense = in_blocks(rng)
    matrix = from_dense(dense)
    operator = inject(matrix, backend="gpu")
    block_rows = block_rows_of(TypedMatrix(matrix).plain, 6)
    assert isinstance(block_rows._tiles, TileMatrix) and block_rows.nbytes > 0
    assert len(block_rows.shares) == SIZE // BLOCK and sum(block_rows.shares) == pytest.approx(1.0, abs=0.1)
    space, xp = operator.vector_space(), device.xp
    # Sums are exact in any order.
    right, start = (rng.integers(1, 64, SIZE) / 8 for _ in range(2))
    steps = space.system(rng.random(SIZE) + dense.sum(axis=1) + 0.5, right).relaxation()
    x = xp.asarray(start)
    whole, out = xp.zeros(SIZE), xp.full(SIZE, -1.0)
    steps.sweep((x, whole), 0, 1)
    expected, changes = to_host(whole), []
    for block_row in block_rows.steps(steps):
        before = np.array(to_host(out))
        block_row.sweep((x, out), 0, 1)
        after = np.array(to_host(out))
        own = np.flatnonzero(after != before)
        np.testing.assert_array_equal(after[own], expected[own])
        np.testing.assert_array_equal(before[own], -1.0)
        changes.append(np.abs(expected - to_host(x))[own].max())
        assert to_host(block_row.changes)[0] == changes[-1]
    np.testing.assert_array_equal(to_host(out), expected)


def test_block_rows_refer_to_themselves_and_to_those_before(device: Device, rng: np.random.Generator) -> None:
    dense = in_blocks(rng)
    block_rows = block_rows_of(TypedMatrix(from_dense(dense)).plain, 6)
    space, xp = inject(from_dense(dense), backend="gpu").vector_space(), device.xp
    steps = space.system(np.ones(SIZE), np.ones(SIZE)).relaxation()
    known = np.zeros(SIZE, bool)
    for block_row in block_rows.steps(steps):
        out = xp.zeros(SIZE)
        block_row.sweep((xp.ones(SIZE), out), 0, 1)
        known |= to_host(out) != 0.0
        assert not dense[known][:, ~known].any()


def test_a_block_row_is_iterated_in_recordings(device: Device, rng: np.random.Generator) -> None:
    dense = in_blocks(rng)
    space, xp = inject(from_dense(dense), backend="gpu").vector_space(), device.xp
    diagonal, right = dense.sum(axis=1) + 0.5, rng.random(SIZE)
    steps = space.system(diagonal, right).relaxation()
    pair = xp.zeros(SIZE), xp.zeros(SIZE)
    for block_row in block_rows_of(TypedMatrix(from_dense(dense)).plain, 6).steps(steps):
        block_row.sweep(pair, 0, 400)
    exact = np.linalg.solve(np.diag(diagonal) - dense, right)
    for vector in pair:
        np.testing.assert_allclose(to_host(vector), exact, rtol=1e-9)


def test_steps_over_other_rows_share_their_state(device: Device) -> None:
    operator = inject(from_dense(np.eye(4)[::-1] * 0.5), backend="gpu")
    steps = operator.vector_space().system(np.ones(4), np.ones(4)).relaxation()
    assert isinstance(steps, DeviceSteps)
    made: list[Mode] = []

    def run(step: Step, x: Any, out: Any) -> None:
        made.append(step.mode)

    other = steps.over(run)
    other.sweep((device.xp.zeros(4), device.xp.zeros(4)), 0, 3)
    assert made == [Mode.JACOBI] * 3 and other.state is steps.state


@pytest.mark.parametrize("question", ["P=? [ F s=FAILED ]", 'R{"sent"}=? [ F s=FAILED | srep!=0 ]'])
def test_a_long_protocol_is_solved_one_block_row_after_another(
    device: Device, question: str, monkeypatch: pytest.MonkeyPatch, examples_folder: Path, tmp_path: Path
) -> None:
    widths: list[float] = []
    solve = BlockRowBounds.solve

    def monitor(leap: BlockRowBounds, *arguments: Any) -> int:
        is_own = leap.from_anywhere
        made = solve(leap, *arguments)
        widths.extend([leap.width] if is_own else [])
        return made

    monkeypatch.setattr(BlockRowBounds, "solve", monitor)
    text = (examples_folder / "brp.prism").read_text(encoding="utf-8")
    (tmp_path / "sent.prism").write_text(text + '\nrewards "sent" s=WAIT : 1; endrewards\n')
    model = hybrid.load(str(tmp_path / "sent.prism"), constants={"N": 48, "MAX": 2})
    expected = hybrid.check(model, question, backend="cpu")
    found = hybrid.check(model, question, backend="gpu")
    assert widths and widths[-1] <= 1e-8
    assert found.lower <= expected.upper and expected.lower <= found.upper
    assert found.upper - found.lower <= 2e-8 * found.upper


def test_without_room_all_rows_are_iterated(
    device: Device, monkeypatch: pytest.MonkeyPatch, examples_folder: Path
) -> None:
    def refuse(*arguments: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("hybrid.matrix.gpu.repeated_steps.check_memory", refuse)
    model = hybrid.load(str(examples_folder / "brp.prism"), constants={"N": 24, "MAX": 2})
    expected = hybrid.check(model, "P=? [ F s=FAILED ]", backend="cpu")
    found = hybrid.check(model, "P=? [ F s=FAILED ]", backend="gpu")
    assert found.lower <= expected.upper and expected.lower <= found.upper
