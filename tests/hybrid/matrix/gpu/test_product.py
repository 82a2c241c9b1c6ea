"""Products in tiles against dense products: levels, tile sizes, rounds, index widths, scales, gaps."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, Mode, Tuning, coded_step, explicit_csr
from gpu_kernels.compressed.steps import IterationState
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse
from tests.gpu_kernels.devices import to_numpy

SMALL = LayoutOptions(Tuning(32, 1, 1), slices=1, unit=2, terms=20, window_rows=64)
OPTIONS = (
    LayoutOptions(),
    LayoutOptions(Tuning(64, 2, 2), slices=2, unit=4, terms=300, wide=True),
    SMALL,
)


def check(
    device: Device, dense: np.ndarray, level: int, options: LayoutOptions, matrix: object = None
) -> None:
    """Compare every use of a layout with the dense matrix."""
    typed = TypedMatrix(from_dense(dense) if matrix is None else matrix)
    rng = np.random.default_rng(77)
    x = rng.normal(size=dense.shape[1])
    for types in (typed.plain, typed.scaled):
        if level >= len(types):
            continue
        layout = build_tile_matrix(device, types, level, options)
        assert layout is not None
        out = np.full(dense.shape[0], np.nan)
        GpuProduct(device, layout).multiply(x, out)
        np.testing.assert_allclose(out, dense @ x, rtol=1e-12, atol=1e-12)
        assert layout.nbytes > 0
        indptr, indices, data = (to_numpy(a) for a in explicit_csr(device, layout))
        found = np.zeros(dense.shape)
        for i in range(len(dense)):
            row = slice(indptr[i], indptr[i + 1])
            assert np.all(np.diff(indices[row]) > 0)
            found[i, indices[row]] = data[row]
        np.testing.assert_allclose(found, dense, rtol=1e-15)


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "wide", "small"])
@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 129])
def test_random_matrices_at_several_levels(device: Device, options: LayoutOptions, size: int) -> None:
    dense = random_sparse(np.random.default_rng(300 + size), size, size, 0.1)
    n_levels = from_dense(dense).n_levels
    for level in sorted({0, n_levels // 2, n_levels}):
        check(device, dense, level, options)


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "wide", "small"])
def test_blocks_shared_up_to_a_scale(device: Device, options: LayoutOptions) -> None:
    check(device, banded(200), 7, options)


def test_scattered_rows_leave_gaps(device: Device) -> None:
    rng = np.random.default_rng(911)
    dense = random_sparse(rng, 90, 33, 0.15)
    dense[rng.integers(0, 90, 60)] = 0.0
    matrix = from_dense(dense, random_codes(rng, 8, 90), random_codes(rng, 8, 33), 8)
    for level in (0, 5, 11, 16):
        check(device, dense, level, SMALL, matrix)


def test_a_full_row_takes_several_rounds(device: Device) -> None:
    rng = np.random.default_rng(912)
    dense = np.diag(rng.uniform(1, 2, 100))
    dense[40] = rng.uniform(1, 2, 100)
    typed = TypedMatrix(from_dense(dense))
    layout = build_tile_matrix(device, typed.plain, 0, SMALL)
    assert layout is not None
    assert len(layout.term_ptr) - 1 > len(layout.items)
    check(device, dense, 0, SMALL)
    # Limits beyond what the fast memory holds are lowered.
    check(device, dense, 0, LayoutOptions(Tuning(128, 8, 4), slices=4, unit=4, terms=65535, wide=True))


@pytest.mark.parametrize(("size", "bits"), [(100, 8), (300, 16)])
def test_entries_of_rounds_with_many_terms_take_two_bytes(device: Device, size: int, bits: int) -> None:
    rng = np.random.default_rng(913)
    dense = np.diag(rng.uniform(1, 2, size))
    dense[40] = rng.uniform(1, 2, size)
    layout = build_tile_matrix(device, TypedMatrix(from_dense(dense)).plain, 0)
    assert layout is not None
    assert layout.code_bits == bits
    check(device, dense, 0, LayoutOptions())


def test_large_tables_serve_fewer_groups_at_once(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = TypedMatrix(from_dense(banded(512)))
    usual = build_tile_matrix(device, typed.scaled, 14)
    monkeypatch.setattr("hybrid.matrix.gpu.tile_layout._LARGE_TABLE", 0)
    small = build_tile_matrix(device, typed.scaled, 14)
    assert usual is not None and small is not None
    assert (usual.tuning.members, small.tuning.members) == (4, 2)
    check(device, banded(512), 14, LayoutOptions())


def test_zero_matrix(device: Device) -> None:
    typed = TypedMatrix(from_dense(np.zeros((5, 5)), np.arange(5), np.arange(5), 3))
    layout = build_tile_matrix(device, typed.plain, 2)
    assert layout is not None
    out = np.full(5, np.nan)
    GpuProduct(device, layout).multiply(np.ones(5), out)
    np.testing.assert_array_equal(out, np.zeros(5))


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "wide", "small"])
@pytest.mark.parametrize("with_b", [False, True])
def test_relaxation_matches_numpy(device: Device, options: LayoutOptions, with_b: bool) -> None:
    size = 203
    dense = banded(size)
    dense[50:70] = 0.0
    layout = build_tile_matrix(device, TypedMatrix(from_dense(dense)).scaled, 8, options)
    assert layout is not None
    product = GpuProduct(device, layout)
    rng = np.random.default_rng(19)
    x, diagonal = rng.random(size), rng.choice((1.5, 1.75, 2.0), size)
    b = rng.random(size) if with_b else None
    out = np.empty(size)
    absolute, relative = product.relax(x, b, diagonal, 0.9, out)
    expected = 0.1 * x + 0.9 * (dense @ x + (b if b is not None else 0.0)) / diagonal
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    assert absolute == pytest.approx(np.abs(expected - x).max(), rel=1e-12)
    assert relative == pytest.approx((np.abs(expected - x) / np.abs(expected)).max(), rel=1e-12)
    state = IterationState.create(device)
    step = coded_step(device, Mode.POWER, diagonal, b, 0.25, state)
    xp = device.xp
    result = xp.empty(size)
    product.run(step, xp.asarray(x), result)
    residual = dense @ x + (b if b is not None else 0.0) - diagonal * x
    np.testing.assert_allclose(to_numpy(result), x + 0.25 * residual, rtol=1e-13)
    scratch = xp.empty(size)
    space = product.vector_space()
    (found,) = space.read(space.system(diagonal, b).residual(xp.asarray(x), scratch))
    assert found == pytest.approx(np.abs(residual).max(), rel=1e-12)


def test_results_do_not_depend_on_the_launch(device: Device) -> None:
    dense = random_sparse(np.random.default_rng(5), 300, 300, 0.05)
    typed = TypedMatrix(from_dense(dense))
    x = np.random.default_rng(6).random(300)
    results = []
    for options in OPTIONS[:2]:
        layout = build_tile_matrix(device, typed.plain, 4, options)
        assert layout is not None
        for _ in range(2):
            out = np.empty(300)
            GpuProduct(device, layout).multiply(x, out)
            results.append(out)
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[2], results[3])
    np.testing.assert_allclose(results[0], results[2], rtol=1e-13)
