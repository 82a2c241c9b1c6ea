"""Products with several vectors at once: the bits of the products one by one, on every backend and level."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, Tuning
from hybrid.base.operands import aligned_empty
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from tests.builders.matrices import banded, from_dense, random_codes, random_sparse
from tests.exploring import each
from tests.gpu_kernels.devices import to_numpy

WIDTHS = (0, 1, 2, 3, 4, 5, 8, 11, 16)


def one_by_one(matrix: HybridMatrix, x: np.ndarray) -> np.ndarray:
    """The products with the columns alone."""
    out = np.empty((matrix.shape[0], x.shape[1]))
    for column in range(x.shape[1]):
        out[:, column] = matrix.multiply(x[:, column])
    return out


@pytest.mark.parametrize(("size", "representation"), each([1, 7, 8, 9, 33, 257], ["row-types", "tasks"]))
def test_the_bits_are_those_of_single_products(
    rng: np.random.Generator, representation: str, size: int, backend: str
) -> None:
    for dense in (random_sparse(rng, size, size, 0.1), banded(size)):
        symbolic = from_dense(dense)
        levels = {0, symbolic.n_levels // 2, symbolic.n_levels}
        for level in sorted(levels if size < 200 or backend == "cpu" else {0}):
            matrix = inject(symbolic, level, backend, representation=representation)
            for width in WIDTHS if backend == "cpu" else (1, 3):
                x = rng.normal(size=(size, width))
                found = matrix @ x
                np.testing.assert_array_equal(found, one_by_one(matrix, x))
                np.testing.assert_allclose(found, dense @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [4, 8, 24])
def test_scales_gaps_and_borders(rng: np.random.Generator, width: int) -> None:
    dense = random_sparse(rng, 90, 33, 0.15)
    dense[rng.integers(0, 90, 60)] = 0.0
    scattered = from_dense(dense, random_codes(rng, 8, 90), random_codes(rng, 8, 33), 8)
    for symbolic in (scattered, from_dense(banded(512))):
        for level in range(0, symbolic.n_levels + 1, 3):
            matrix = inject(symbolic, level, "cpu")
            x = rng.normal(size=(symbolic.n_columns, width))
            np.testing.assert_array_equal(matrix.matmat(x), one_by_one(matrix, x))


@pytest.mark.parametrize("aligned", [False, True])
def test_nothing_else_is_written(rng: np.random.Generator, aligned: bool) -> None:
    matrix = inject(from_dense(banded(300)), backend="cpu")
    room = aligned_empty(302, 8) if aligned else np.empty(302 * 8 + 1)[1:].reshape(302, 8)
    room[:] = 7.0
    x = rng.normal(size=(300, 8))
    matrix.product.multiply_many(x, room[1:301])
    np.testing.assert_array_equal(room[1:301], one_by_one(matrix, x))
    assert (room[[0, 301]] == 7.0).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("width", [3, 8])
def test_what_is_not_finite_stays_in_its_rows_and_columns(bad: float, width: int, backend: str) -> None:
    dense = banded(64)
    dense[:32, 40] = np.where(np.arange(32) % 2, 1.0, 0.0)
    x = np.ones((64, width))
    x[[20, 40], 1] = bad
    symbolic = from_dense(dense)
    for level in range(0, symbolic.n_levels + 1, 2):
        matrix = inject(symbolic, level, backend)
        found = matrix @ x
        np.testing.assert_array_equal(found, one_by_one(matrix, x))
        assert np.isfinite(found[:, [0, 2]]).all()
        assert not np.isfinite(found[:, 1]).all()


def test_any_layout_of_x_is_taken(rng: np.random.Generator) -> None:
    dense = random_sparse(rng, 40, 40, 0.2)
    matrix, x = inject(from_dense(dense), backend="cpu"), rng.integers(-9, 9, size=(40, 16))
    expected = one_by_one(matrix, x.astype(float))
    frozen = x.astype(float)
    frozen.flags.writeable = False
    for given in (x, np.asfortranarray(x), x.astype(np.float32), frozen, x.tolist()):
        np.testing.assert_array_equal(matrix.matmat(given), expected)
    np.testing.assert_array_equal(matrix @ x[:, ::2], expected[:, ::2])
    np.testing.assert_array_equal(matrix @ frozen[:, ::-1], expected[:, ::-1])


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones((3, 2)), ValueError, "x: expected 2 rows, one a column of the matrix"),
        (np.ones(2), ValueError, "two dimensions"),
        (np.ones((2, 2, 2)), ValueError, "two dimensions"),
        (np.ones((2, 3), complex), TypeError, "x: expected real numbers"),
    ],
)
def test_bad_arrays_are_refused(x: np.ndarray, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        inject(from_dense(np.eye(2)), backend="cpu").matmat(x)


LAYOUTS = (
    LayoutOptions(),
    LayoutOptions(Tuning(64, 2, 2), slices=2, unit=4, terms=300, wide=True),
    LayoutOptions(Tuning(32, 1, 1), slices=1, unit=2, terms=20, window_rows=64),
)


@pytest.mark.parametrize("options", LAYOUTS, ids=["default", "wide", "small"])
def test_tiles_serve_several_vectors(
    device: Device, rng: np.random.Generator, options: LayoutOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_kernels.runtime.device.HOST_ITEMS", -1)
    full = np.diag(rng.uniform(1, 2, 100))
    full[40] = rng.uniform(1, 2, 100)
    full[60:80] = 0.0
    for dense in (banded(130), full):
        typed = TypedMatrix(from_dense(dense))
        for types in (typed.plain, typed.scaled):
            layout = build_tile_matrix(device, types, min(3, len(types) - 1), options)
            assert layout is not None
            product, xp = GpuProduct(device, layout), device.xp
            for width, skipped in ((1, 0), (3, 0), (14, 0), (8, 1)):
                x = rng.normal(size=(len(dense), width))
                # One element before the first makes a pair of vectors begin where no pair can be read.
                room, single = xp.full(x.size + 1, np.nan), xp.empty(len(dense))
                out = room[skipped : x.size + skipped].reshape(x.shape)
                product.multiply_many(xp.asarray(x), out)
                for column in range(width):
                    product.multiply(xp.asarray(x[:, column].copy()), single)
                    np.testing.assert_array_equal(to_numpy(out)[:, column], to_numpy(single))


@pytest.mark.parametrize("representation", ["row-types", "tasks"])
def test_matrices_on_a_device(device: Device, rng: np.random.Generator, representation: str) -> None:
    dense = banded(65)
    matrix = inject(from_dense(dense), backend="gpu", representation=representation)
    x = rng.normal(size=(65, 5))
    for given in (x, device.xp.asarray(x)):
        found = matrix @ given
        assert isinstance(found, type(given))
        np.testing.assert_allclose(to_numpy(found), dense @ x, rtol=1e-12, atol=1e-13)
    transposed = to_numpy(matrix.rmatmat(device.xp.asarray(x)))
    np.testing.assert_allclose(transposed, dense.T @ x, rtol=1e-12, atol=1e-13)
    if device.xp is not np:
        with pytest.raises(ValueError, match="expected 65 rows"):
            matrix @ device.xp.ones((64, 2))
