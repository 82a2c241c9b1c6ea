"""Products by pairs against dense products: levels, launch shapes, index widths, scales, gaps, long rows."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, Mode, PairMatrix, PairTuning, TileMatrix, coded_step, use_device
from gpu_kernels.compressed.steps import IterationState
from hybrid.matrix.gpu.build import PairOptions, build_pairs, build_product
from hybrid.matrix.gpu.cost import (
    count_pairs,
    has_long_rows,
    longest_row,
    pair_build_bytes,
    predicted_level_seconds,
    rank_levels,
    reason_for_cpu,
    uses_pairs,
)
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.row_types import enumerate_groups
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.inject import inject
from hybrid.solvers import Criterion, Jacobi, Status
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice

OPTIONS = (
    PairOptions(),
    PairOptions(PairTuning(1, 1, 128, 1)),
    PairOptions(PairTuning(2, 2, 1, 32), wide=True),
    PairOptions(PairTuning(32, 4, 32, 4)),
)
IDS = ["chosen", "alone", "wide", "warp"]


def ring(bits: int) -> np.ndarray:
    """A matrix of 2 ** bits states that is nearly a product of small ones: rows of 2 to 2 ** bits entries."""
    size = 1 << bits
    state = np.arange(size)
    bit = (state[:, None] >> np.arange(bits)) & 1
    before = np.roll(bit, 1, axis=1)
    dense = np.ones((size, size))
    for i in range(bits):
        equal = bit[:, i] == before[:, i]
        dense *= np.where(equal[:, None], 0.5, (before[:, i][:, None] == bit[:, i][None, :]).astype(float))
    return dense


def one_long_row(size: int) -> np.ndarray:
    """Empty rows, rows of one entry, and one full row."""
    rng = np.random.default_rng(41)
    dense = np.diag(rng.uniform(1, 2, size))
    dense[size // 2] = rng.uniform(1, 2, size)
    dense[3 : size // 4] = 0.0
    return dense


def check(
    device: Device, dense: np.ndarray, level: int, options: PairOptions, matrix: OffsetMTBDD | None = None
) -> None:
    """Compare products by pairs with the dense matrix, twice: the same bits."""
    typed = TypedMatrix(from_dense(dense) if matrix is None else matrix)
    x = np.random.default_rng(78).normal(size=dense.shape[1])
    for types in (typed.plain, typed.scaled):
        if level >= len(types):
            continue
        layout = build_pairs(device, types, level, options)
        assert layout is not None
        product = GpuProduct(device, layout)
        out, again = np.full((2, dense.shape[0]), np.nan)
        product.multiply(x, out)
        product.multiply(x, again)
        np.testing.assert_allclose(out, dense @ x, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(out, again)
        assert product.nbytes >= 8 * len(layout.products)


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
@pytest.mark.parametrize("size", [1, 33, 70])
def test_random_matrices_at_several_levels(device: Device, options: PairOptions, size: int) -> None:
    dense = random_sparse(np.random.default_rng(400 + size), size, size, 0.1)
    n_levels = from_dense(dense).n_levels
    for level in sorted({n_levels // 2, n_levels}):
        check(device, dense, level, options)


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
@pytest.mark.parametrize("level", [0, 5, 8])
def test_long_rows(device: Device, options: PairOptions, level: int) -> None:
    check(device, ring(6), level, options)
    check(device, one_long_row(90), level, options)


def test_scattered_rows_leave_gaps(device: Device) -> None:
    rng = np.random.default_rng(913)
    dense = random_sparse(rng, 90, 33, 0.15)
    dense[rng.integers(0, 90, 60)] = 0.0
    matrix = from_dense(dense, random_codes(rng, 8, 90), random_codes(rng, 8, 33), 8)
    for level in (0, 5, 11, 16):
        check(device, dense, level, OPTIONS[2], matrix)


def test_zero_matrix(device: Device) -> None:
    typed = TypedMatrix(from_dense(np.zeros((5, 5)), np.arange(5), np.arange(5), 3))
    layout = build_pairs(device, typed.plain, 2)
    assert layout is not None
    out = np.full(5, np.nan)
    GpuProduct(device, layout).multiply(np.ones(5), out)
    np.testing.assert_array_equal(out, np.zeros(5))


def test_pairs_are_multiplied_once(device: Device) -> None:
    """Two halves of the rows meet the same submatrices at the same columns, up to a scale."""
    part = random_sparse(np.random.default_rng(17), 32, 64, 0.3)
    dense = np.vstack((part, 3.0 * part))
    check(device, dense, 2, OPTIONS[0])
    typed = TypedMatrix(from_dense(dense))
    plain, scaled = (build_pairs(device, types, 2) for types in (typed.plain, typed.scaled))
    assert plain is not None and scaled is not None
    assert len(plain.base) == len(plain.slot_product) == len(scaled.slot_product) == 4
    assert len(scaled.base) == 2
    assert (plain.scale.bits, scaled.scale.size) == (0, 4)


@pytest.mark.parametrize("options", OPTIONS, ids=IDS)
@pytest.mark.parametrize("with_b", [False, True])
def test_relaxation_matches_numpy(device: Device, options: PairOptions, with_b: bool) -> None:
    dense = ring(6)
    dense[20:30] = 0.0
    size = len(dense)
    layout = build_pairs(device, TypedMatrix(from_dense(dense)).scaled, 6, options)
    assert layout is not None
    product = GpuProduct(device, layout)
    rng = np.random.default_rng(20)
    x, diagonal = rng.random(size), rng.choice((1.5, 1.75, 2.0), size)
    b = rng.random(size) if with_b else None
    right = b if b is not None else 0.0
    out = np.empty(size)
    absolute, relative = product.relax(x, b, diagonal, 0.9, out)
    expected = 0.1 * x + 0.9 * (dense @ x + right) / diagonal
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    assert absolute == pytest.approx(np.abs(expected - x).max(), rel=1e-12)
    assert relative == pytest.approx((np.abs(expected - x) / np.abs(expected)).max(), rel=1e-12)
    state = IterationState.create(device)
    step = coded_step(device, Mode.POWER, diagonal, b, 0.25, state)
    xp = device.xp
    result = xp.empty(size)
    product.run(step, xp.asarray(x), result)
    residual = dense @ x + right - diagonal * x
    np.testing.assert_allclose(to_numpy(result), x + 0.25 * residual, rtol=1e-13)
    # Once an iteration has ended its steps do nothing.
    state.status[0] = 1
    product.run(step, xp.asarray(2.0 * x), result)
    np.testing.assert_allclose(to_numpy(result), x + 0.25 * residual, rtol=1e-13)
    space = product.vector_space()
    (found,) = space.read(space.system(diagonal, b).residual(xp.asarray(x), xp.empty(size)))
    assert found == pytest.approx(np.abs(residual).max(), rel=1e-12)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_infinite_elements_reach_only_their_own_rows(device: Device, bad: float) -> None:
    dense = ring(6)
    layout = build_pairs(device, TypedMatrix(from_dense(dense)).scaled, 6)
    assert layout is not None
    x, out = np.ones(64), np.empty(64)
    x[20] = bad
    GpuProduct(device, layout).multiply(x, out)
    expected = np.array([sum(v * x[j] for j, v in enumerate(row) if v != 0.0) for row in dense])
    np.testing.assert_allclose(out, expected, rtol=1e-13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 4, 32, 8), "entry_lanes: expected a power of two from 1 to 32, got 3"),
        ((8, 8, 32, 8), "members: expected a power of two from 1 to 4, got 8"),
        ((8, 4, 256, 1), "rows: expected a power of two from 1 to 128, got 256"),
        ((8, 4, 8, 2), r"rows \* parts: expected a power of two from 32 to 1024, got 16"),
    ],
)
def test_impossible_launch_shapes_are_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PairTuning(*arguments)


@pytest.mark.parametrize("scaled", [False, True])
def test_pairs_are_counted_without_listing_groups(scaled: bool) -> None:
    for dense in (ring(6), banded(70), random_sparse(np.random.default_rng(21), 60, 60, 0.2)):
        typed = TypedMatrix(from_dense(dense))
        types = typed.scaled if scaled else typed.plain
        below = types.classes.matrix.entries_below
        counts = count_pairs(types.classes)
        assert len(counts) == types.classes.matrix.n_levels + 1
        for k in range(len(types)):
            groups = enumerate_groups(np, types, k)
            own = types.classes.classes[k][groups.node]
            pairs = {(int(c), int(b)) for c, b in zip(own, groups.base, strict=True)}
            chosen = types.classes.representative[k][[c for c, _ in pairs]]
            assert counts[k].pairs == len(pairs)
            assert counts[k].entries == below[k][chosen].sum()
            assert counts[k].products == types.classes.matrix.rows[k][chosen].sum()


def test_pairs_stop_being_counted_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.cost.PAIR_LIMIT", 12)
    typed = TypedMatrix(from_dense(ring(6)))
    counts = count_pairs(typed.plain.classes)
    assert [c.pairs for c in counts] == [1, 2, 4, 6, 12]


def test_long_rows_are_held_as_pairs_and_others_as_tiles(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    long, short = (TypedMatrix(from_dense(dense)) for dense in (ring(9), banded(500)))
    assert has_long_rows(long)
    assert not has_long_rows(short)
    assert all(uses_pairs(long, k) for k, _, _ in rank_levels(long))
    assert not any(uses_pairs(short, k) for k, _, _ in rank_levels(short))
    level = rank_levels(long)[0][0]
    product = build_product(long, level)
    assert isinstance(product.matrix, PairMatrix)
    assert isinstance(build_product(long, level, LayoutOptions()).matrix, TileMatrix)
    assert isinstance(build_product(short, 8).matrix, TileMatrix)
    x, out = np.random.default_rng(5).random(512), np.empty(512)
    product.multiply(x, out)
    np.testing.assert_allclose(out, ring(9) @ x, rtol=1e-12)
    # A single row is enough where it is long enough.
    monkeypatch.setattr("hybrid.matrix.gpu.cost.LONGEST_ROW", 100)
    lone = TypedMatrix(from_dense(one_long_row(128)))
    assert longest_row(lone.plain) == 128
    assert has_long_rows(lone)


def test_scales_that_would_cost_accuracy_are_not_used(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = TypedMatrix(from_dense(ring(9)))
    level = next(k for k, types, _ in rank_levels(typed) if types.classes.scaled)
    monkeypatch.setattr("hybrid.matrix.injection.submatrices._MAX_ULP", -1)
    product = build_product(typed, level)
    assert isinstance(product.matrix, PairMatrix)
    assert product.matrix.scale.bits == 0


def test_operators_with_long_rows_solve_as_the_cpu_does(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    dense = ring(9)
    matrix = from_dense(dense)
    monkeypatch.setattr("hybrid.matrix.levels.probe.PROBE_ENTRIES", 0)
    monkeypatch.setattr("hybrid.matrix.levels.probe._CANDIDATES", 2)
    monkeypatch.setattr("hybrid.matrix.levels.probe._SHORT_SECONDS", np.inf)
    monkeypatch.setattr("hybrid.matrix.levels.probe._REPEATS", 1)
    operator = inject(matrix, "min-time", "gpu")
    assert "was measured to be the fastest" in operator.level_reason
    diagonal = dense.sum(axis=1) + 2.0
    method = Jacobi(Criterion(epsilon=1e-9))
    found = method.solve(operator, diagonal, np.ones(512), np.zeros(512))
    expected = method.solve(inject(matrix, backend="cpu"), diagonal, np.ones(512), np.zeros(512))
    assert found.status is expected.status is Status.CONVERGED
    assert found.iterations == expected.iterations
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_too_little_memory_for_pairs_is_refused_with_both_numbers() -> None:
    typed = TypedMatrix(from_dense(ring(9)))
    level, types, _ = rank_levels(typed)[0]
    required = pair_build_bytes(types, level)
    with (
        use_device(HostDevice(free=required - 1)),
        pytest.raises(MemoryError, match=f"needs up to {required} bytes .* {required - 1} are free"),
    ):
        build_product(typed, level)


def test_a_device_that_would_wait_for_long_rows_is_not_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SMALL_ENTRIES", 0)
    typed = TypedMatrix(from_dense(ring(9)))
    assert reason_for_cpu(HostDevice(), typed) is None
    # Without pairs, one thread a row: the device waits for the longest.
    slow = TypedMatrix(from_dense(ring(9)))
    monkeypatch.setattr("hybrid.matrix.gpu.cost._pair_seconds", lambda *_: None)
    monkeypatch.setattr("hybrid.matrix.gpu.cost.SECONDS_SERIAL_ENTRY", 1e-6)
    assert predicted_level_seconds(slow, 8) > 512e-6
    reason = reason_for_cpu(HostDevice(), slow)
    assert reason is not None and "longer than a CPU takes for 19684 non-zeros" in reason
