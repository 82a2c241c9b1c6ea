"""How layers are cut into tiles: crowded tiles alone are split, heavy items come first, units carry marks."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import (
    ChoiceStep,
    Device,
    TileMatrix,
    Tuning,
    explicit_csr,
    mark_entries,
    product_step,
    run_choices,
    run_tiles,
)
from gpu_kernels.compressed.tiles import LANES
from hybrid.matrix.gpu.build import code_gains
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tuning import LayoutOptions
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from mtbdd.offset.distributed import stack_layers
from tests.builders.matrices import from_dense
from tests.gpu_kernels.devices import to_numpy

SIZE, CROWDED, TERMS = 1024, 32, 220

TUNING = Tuning(threads=64, min_blocks=1, members=2)

FIRST_GROUP = 2
ROWS = FIRST_GROUP + 3
TERM_COUNT = FIRST_GROUP + 7
"""Words of an item with 32-bit indices."""


def matrices(rng: np.random.Generator, row: int = 200) -> dict[int, np.ndarray]:
    """Layer 0 a diagonal with a dense corner from some row on, layer 1 a shifted diagonal."""
    first = np.eye(SIZE)
    corner = rng.random((CROWDED, CROWDED))
    # Eight entries a row, all of them different.
    corner[:, 8:] = 0.0
    first[row : row + CROWDED, :CROWDED] = rng.permuted(corner, axis=1)
    second = 0.25 * np.eye(SIZE, k=3)
    return {0: first, 1: second}


def laid_out(device: Device, dense: dict[int, np.ndarray], options: LayoutOptions) -> TileMatrix:
    stacked = stack_layers({layer: from_dense(m) for layer, m in dense.items()}, len(dense))
    tiles = build_tile_matrix(device, TypedMatrix(stacked).plain, stacked.first_level, options, stacked)
    assert tiles is not None
    return tiles


def test_crowded_tiles_alone_are_split(device: Device, rng: np.random.Generator) -> None:
    dense = matrices(rng)
    tiles = laid_out(device, dense, LayoutOptions(TUNING, slices=16, terms=TERMS))
    rows = to_numpy(tiles.items)[:, ROWS]
    # Rows 192 to 255 have the corner; the tile around it is halved until its terms fit.
    assert rows.sum() == SIZE
    assert rows.max() == 16 * LANES
    assert LANES in rows
    assert len(rows) < SIZE // LANES // 2
    x, out = rng.random(SIZE), device.xp.full(SIZE, np.nan)
    zeros = {layer: np.zeros(SIZE) for layer in dense}
    gains = code_gains(device, mark_entries(device, tiles), zeros, {}, 2, True)
    run_choices(device, tiles, gains, ChoiceStep(True), device.xp.asarray(x), out)
    worth = np.maximum(dense[0] @ x, dense[1] @ x)
    np.testing.assert_allclose(to_numpy(out), worth, rtol=1e-14)


def test_tiles_that_stay_crowded_are_refused(device: Device, rng: np.random.Generator) -> None:
    stacked = stack_layers({layer: from_dense(m) for layer, m in matrices(rng).items()}, 2)
    options = LayoutOptions(TUNING, slices=16, terms=20)
    assert (
        build_tile_matrix(device, TypedMatrix(stacked).plain, stacked.first_level, options, stacked) is None
    )


def test_tiles_with_many_entries_are_split_down_to_a_slice_for_every_warp(
    device: Device, rng: np.random.Generator
) -> None:
    dense = np.eye(SIZE)
    for shift in range(1, 9):
        # Nine entries a row in the first half, one in the other.
        dense[: SIZE // 2] += 0.01 * np.eye(SIZE, k=shift)[: SIZE // 2]
    tiles = laid_out(device, {0: dense}, LayoutOptions(TUNING, slices=16, entries=1000))
    items = to_numpy(tiles.items)
    items = items[np.argsort(items[:, 0])]
    assert items[:, ROWS].tolist() == [128, 128, 128, 128, 512]
    x, out = rng.random(SIZE), device.xp.full(SIZE, np.nan)
    gains = code_gains(device, mark_entries(device, tiles), {0: np.zeros(SIZE)}, {}, 1, True)
    run_choices(device, tiles, gains, ChoiceStep(True), device.xp.asarray(x), out)
    np.testing.assert_allclose(to_numpy(out), dense @ x, rtol=1e-14)


def test_heavy_items_come_first(device: Device, rng: np.random.Generator) -> None:
    tiles = laid_out(device, matrices(rng, 6 * LANES), LayoutOptions(TUNING, slices=1))
    items = to_numpy(tiles.items)
    assert items[0, TERM_COUNT] == items[:, TERM_COUNT].max() > 100
    begin = items[1:, 0]
    assert (np.diff(begin) > 0).all()


@pytest.mark.parametrize(("terms", "look_ups"), [(TERMS, 1), (640, 4)])
def test_many_look_ups_go_side_by_side(
    device: Device, rng: np.random.Generator, terms: int, look_ups: int
) -> None:
    dense = matrices(rng) if look_ups == 1 else {0: rng.random((64, 64)) * (rng.random((64, 64)) < 0.1)}
    tuning = TUNING if look_ups == 1 else Tuning(threads=32, min_blocks=1, members=1)
    tiles = laid_out(device, dense, LayoutOptions(tuning, terms=terms))
    assert tiles.look_ups == look_ups


def test_units_carry_marks(device: Device) -> None:
    layer = 0.5 * np.eye(64) + 0.25 * np.eye(64, k=1) + 0.125 * np.eye(64, k=5)
    tiles = laid_out(device, {0: layer, 1: layer}, LayoutOptions(TUNING, slices=2, unit=2))
    marks, cells = to_numpy(tiles.marks), to_numpy(tiles.cells)
    # Three entries a row take two units a layer; the second layer's terms come after those of the first.
    assert [cells[0, 1], cells[1, 1]] == [4, 4]
    first = cells[0, 0]
    found = marks[first : first + 4]
    assert (found & 0x7FFF).tolist() == [0, 0, 3, 3]
    assert (found >> 15 & 1).tolist() == [0, 0, 0, 1]
    assert (found >> 16).tolist() == [0, 1, 0, 2]
    # One unit more than there are, which is read ahead.
    assert len(marks) * LANES * tiles.unit == len(tiles.codes)
    assert marks[-1] == 0
    assert (to_numpy(tiles.codes)[-LANES * tiles.unit :] == 255).all()


def test_kernels_refuse_tiles_of_the_other_kind(device: Device, rng: np.random.Generator) -> None:
    dense = matrices(rng)
    layers = laid_out(device, dense, LayoutOptions(TUNING))
    x, out = device.xp.asarray(rng.random(SIZE)), device.xp.full(SIZE, np.nan)
    gains = code_gains(device, mark_entries(device, layers), {}, {}, 2, True)
    with pytest.raises(ValueError, match="tiles of a single matrix, got those of 2 layers"):
        run_tiles(device, layers, product_step(), x, out)
    with pytest.raises(ValueError, match="tiles of a single matrix, got those of 2 layers"):
        explicit_csr(device, layers)
    single = build_tile_matrix(device, TypedMatrix(from_dense(dense[0])).plain, 3)
    assert single is not None
    with pytest.raises(ValueError, match="tiles of layers, with marks, got those of a single matrix"):
        run_choices(device, single, gains, ChoiceStep(True), x, out)
    with pytest.raises(ValueError, match="tiles of layers, with marks, got those of a single matrix"):
        mark_entries(device, single)


def random_layer(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of one of several shapes, rows missing, and gains, finite where there are entries."""
    kind, matrix = rng.integers(3), np.zeros((size, size))
    if kind == 0:
        for shift in rng.integers(1 - size, size, 3):
            matrix += 0.25 * np.eye(size, k=shift)
    elif kind == 1:
        matrix = rng.random((size, size)) * (rng.random((size, size)) < 3 / size)
    else:
        matrix[:, :16] = rng.choice([0.0, 0.0625], (size, min(size, 16)))
    matrix[rng.random(size) < rng.choice([0.0, 0.3, 0.9])] = 0.0
    gains = np.where(rng.random(size) < 0.3, np.inf, rng.choice([0.0, 0.5, 1.0], size))
    entries = matrix.any(axis=1)
    gains[entries & np.isinf(gains)] = 0.25
    return matrix, gains


LAYOUTS = {
    "rounds": LayoutOptions(TUNING, slices=2, unit=4, terms=60),
    "wide": LayoutOptions(Tuning(128, 1, 4), unit=1, look_ups=4, wide=True),
    "one-member": LayoutOptions(Tuning(64, 1, 1), slices=3, unit=2, turns=3, window_rows=16),
}


@pytest.mark.parametrize(
    ("options", "maximise"),
    [
        pytest.param(options, maximise, id=f"{maximise}-{name}")
        for k, (name, options) in enumerate(LAYOUTS.items())
        for maximise in [k % 2 == 0]
    ],
)
def test_random_layers_agree_with_dense_matrices(
    device: Device, rng: np.random.Generator, options: LayoutOptions, maximise: bool
) -> None:
    worst, xp = -np.inf if maximise else np.inf, device.xp
    for size in (5, 33, 64, 130, 300):
        cases = [random_layer(rng, size) for _ in range(int(rng.integers(1, 6)))]
        stacked = stack_layers({k: from_dense(m) for k, (m, _) in enumerate(cases)}, len(cases))
        types = TypedMatrix(stacked).plain
        level = int(rng.integers(stacked.first_level, len(types)))
        tiles = build_tile_matrix(device, types, level, options, stacked)
        if tiles is None:
            continue
        gains = {k: np.where(np.isinf(g), worst, g) for k, (_, g) in enumerate(cases)}
        coded = code_gains(device, mark_entries(device, tiles), gains, {}, len(cases), maximise)
        x, out = rng.random(size), xp.full(size, np.nan)
        run_choices(device, tiles, coded, ChoiceStep(maximise), xp.asarray(x), out)
        worth = np.array([m @ x + gains[k] for k, (m, _) in enumerate(cases)])
        best = worth.max(axis=0) if maximise else worth.min(axis=0)
        np.testing.assert_allclose(to_numpy(out), best, rtol=1e-13)
