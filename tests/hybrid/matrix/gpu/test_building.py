"""The building blocks on the device give what their host counterparts give."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid.matrix.gpu
from gpu_kernels import Device, Host, copied_to
from gpu_kernels.runtime.coded import owners, pointers, ranges
from hybrid.base.arrays import concatenated_ranges
from hybrid.matrix.gpu.build import build_pairs
from hybrid.matrix.gpu.cost import rank_levels
from hybrid.matrix.gpu.tile_layout import build_tile_matrix
from hybrid.matrix.gpu.tile_table import cut_tiles, fill_tiles, gather_units, share_cells
from hybrid.matrix.gpu.tile_terms import cut_types, list_terms, slice_entries
from hybrid.matrix.gpu.tuning import TileShape
from hybrid.matrix.injection.row_types import RowTypes, enumerate_groups
from hybrid.matrix.injection.submatrices import class_submatrices, find_block_classes
from hybrid.matrix.injection.typed_matrix import TypedMatrix
from mtbdd.offset.tuples import distinct, distinct_rows, stable_order
from tests.builders.matrices import banded, from_dense, random_sparse
from tests.gpu_kernels.devices import to_numpy


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("level", [0, 3, 8, 14])
def test_classes_and_groups_match_the_host(device: Device, scaled: bool, level: int) -> None:
    for dense in (banded(100), random_sparse(np.random.default_rng(8), 90, 90, 0.1)):
        classes = find_block_classes(from_dense(dense), scaled)
        types = RowTypes(classes)
        found = class_submatrices(device.xp, classes, level)
        expected = class_submatrices(np, classes, level)
        assert found is not None and expected is not None
        for name in ("ptr", "row", "column", "value"):
            np.testing.assert_array_equal(to_numpy(getattr(found, name)), getattr(expected, name))
        groups, host = enumerate_groups(device.xp, types, level), enumerate_groups(np, types, level)
        for name in ("row", "type", "ptr", "base", "node"):
            np.testing.assert_array_equal(to_numpy(getattr(groups, name)), getattr(host, name))


@pytest.mark.parametrize("pairs", [False, True], ids=["tiles", "pairs"])
@pytest.mark.parametrize("scaled", [False, True])
def test_layouts_made_on_the_host_are_those_made_on_the_device(
    device: Device, scaled: bool, pairs: bool
) -> None:
    types = RowTypes(find_block_classes(from_dense(banded(100)), scaled))
    build = build_pairs if pairs else build_tile_matrix
    for level in (0, 5, 14):
        made, copied = build(device, types, level), build(Host(), types, level)
        assert made is not None and copied is not None
        assert_same_arrays(made, copied_to(device, copied))


def assert_same_arrays(made: Any, copied: Any) -> None:
    for field in fields(made):
        own, other = getattr(made, field.name), getattr(copied, field.name)
        if is_dataclass(own):
            assert_same_arrays(own, other)
        elif hasattr(own, "dtype"):
            assert type(own) is type(other)
            assert own.dtype == other.dtype
            np.testing.assert_array_equal(to_numpy(own), to_numpy(other), err_msg=field.name)
        else:
            assert own == other, field.name


def test_scales_that_would_cost_accuracy_are_refused(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = find_block_classes(from_dense(banded(100)), True)
    monkeypatch.setattr("hybrid.matrix.injection.submatrices._MAX_ULP", -1)
    assert any(class_submatrices(device.xp, classes, level) is None for level in range(14))


def test_array_sweeps(device: Device, rng: np.random.Generator) -> None:
    xp = device.xp
    counts = np.array([0, 3, 0, 0, 2, 1, 0])
    ptr = pointers(xp, xp.asarray(counts))
    assert to_numpy(owners(xp, ptr, 6)).tolist() == [1, 1, 1, 4, 4, 5]
    starts = np.array([9, 5, 7, 1, 20, 3, 2])
    numbers, _ = ranges(xp, xp.asarray(starts), ptr, 6)
    np.testing.assert_array_equal(to_numpy(numbers), concatenated_ranges(starts, counts))
    for span in (3, 2**40):
        columns = [rng.integers(-span, span, 500) for _ in range(3)]
        first, inverse = distinct(xp, [xp.asarray(c) for c in columns])
        expected_first, expected_inverse = distinct_rows(columns)
        np.testing.assert_array_equal(to_numpy(first), expected_first)
        np.testing.assert_array_equal(to_numpy(inverse), expected_inverse)
        order = to_numpy(stable_order(xp, [xp.asarray(c) for c in columns]))
        np.testing.assert_array_equal(order, np.lexsort(columns[::-1]))
    empty = xp.zeros(0, np.int64)
    assert len(distinct(xp, [empty])[0]) == len(stable_order(xp, [empty])) == 0


@pytest.mark.parametrize("level", [0, 5, 9, 14])
def test_entries_of_slices_are_those_of_the_tiles(
    device: Device, rng: np.random.Generator, level: int
) -> None:
    types = RowTypes(find_block_classes(from_dense(random_sparse(rng, 100, 100, 0.1)), False))
    blocks = class_submatrices(device.xp, types.classes, level, np.int64)
    assert blocks is not None
    cuts = cut_types(device.xp, types, level, 1)  # every slice is a tile
    tiles, _ = list_terms(device.xp, types, level, blocks, cuts)
    expected = np.bincount(to_numpy(tiles.tile), minlength=len(tiles.begin))
    found = to_numpy(slice_entries(device.xp, types, level, blocks, cuts))
    assert found.dtype == np.int64 and expected.sum() > 0
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("level", [0, 5, 14])
def test_a_single_matrix_has_the_tiles_of_one_layer_without_marks(device: Device, level: int) -> None:
    types = RowTypes(find_block_classes(from_dense(banded(100)), False))
    entries = class_submatrices(device.xp, types.classes, level, np.int64)
    assert entries is not None
    shape = TileShape(2, 4, 640, 1 << 40)
    layer = device.xp.zeros(len(types[level].blocks), np.int64)
    tiles = (cut_tiles(device.xp, types, level, entries, shape, own) for own in (None, layer))
    single, layered = (None if own is None else fill_tiles(device.xp, own, shape) for own in tiles)
    assert single is not None and layered is not None
    assert single.cells.marks is None and layered.cells.marks is not None
    # Units of layers are read ahead.
    codes = layered.cells.codes[: -32 * shape.unit]
    assert_same_arrays(single, replace(layered, cells=replace(layered.cells, codes=codes, marks=None)))


def test_equal_cells_are_stored_once(device: Device, rng: np.random.Generator) -> None:
    xp = device.xp
    contents = [rng.integers(0, 255, (n, 128)).astype(np.uint8) for n in (2, 1, 0, 3)]
    chosen = [0, 1, 0, 2, 3, 1, 2, 3, 0]
    codes = np.concatenate([contents[c] for c in chosen]).ravel()
    ptr = np.concatenate(([0], np.cumsum([len(contents[c]) for c in chosen])))
    first, units, kept = share_cells(xp, xp.asarray(ptr), xp.asarray(codes), 4)
    assert len(kept) == 6
    rows = to_numpy(gather_units(xp.asarray(codes), 4, kept)).reshape(-1, 128)
    for c, begin, count in zip(chosen, to_numpy(first), to_numpy(units), strict=True):
        np.testing.assert_array_equal(rows[begin : begin + count], contents[c])


def test_equal_cells_with_other_marks_are_kept(device: Device) -> None:
    xp = device.xp
    codes, ptr = xp.zeros(5 * 32, np.uint8), xp.asarray(np.array([0, 2, 4, 5]))
    marks = xp.asarray(np.array([1, 2, 1, 2, 1]))
    first, units, kept = share_cells(xp, ptr, codes, 1, marks)
    assert [to_numpy(a).tolist() for a in (first, units, kept)] == [[0, 0, 2], [2, 2, 1], [0, 1, 4]]
    marks[2] = 3
    first, _, kept = share_cells(xp, ptr, codes, 1, marks)
    assert [to_numpy(a).tolist() for a in (first, kept)] == [[0, 2, 4], [0, 1, 2, 3, 4]]


def test_colliding_hashes_share_nothing(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    xp = device.xp
    monkeypatch.setattr("hybrid.matrix.gpu.tile_table.scramble", lambda xp, key: key * xp.uint64(0))
    codes = xp.arange(256).astype(np.uint8)
    first, units, kept = share_cells(xp, xp.asarray(np.array([0, 1, 2])), codes, 4)
    assert to_numpy(first).tolist() == [0, 1]
    assert to_numpy(units).tolist() == [1, 1]
    assert to_numpy(kept).tolist() == [0, 1]


def test_the_design_page_has_the_drawing_of_the_package() -> None:
    page = (Path(hybrid.matrix.gpu.__file__).parents[3] / "docs/design/tiles.md").read_text(encoding="utf-8")
    drawing = page.split("```text\n")[1].split("```")[0].strip()
    assert len(drawing.splitlines()) > 20
    text = hybrid.matrix.gpu.__doc__
    assert text is not None
    assert drawing in "\n".join(line.removeprefix("    ") for line in text.splitlines())


def test_levels_are_ranked_by_predicted_time() -> None:
    typed = TypedMatrix(from_dense(banded(500)))
    ranked = rank_levels(typed)
    assert [s for _, _, s in ranked] == sorted(s for _, _, s in ranked)
    assert {k for k, _, _ in ranked} == set(range(len(typed)))
    assert all(seconds > 0 for _, _, seconds in ranked)
