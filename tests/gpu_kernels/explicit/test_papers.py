"""The worked examples of the papers: the same arrays, and the same scans and products."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from gpu_kernels import FORMATS, Device, ExplicitMatrix
from gpu_kernels.explicit import Msr, MsrHalfWarp, MsrWarp, ScanPlan
from gpu_kernels.explicit.matrix import THREADS
from gpu_kernels.explicit.rows import ITEMS
from tests.gpu_kernels.devices import to_numpy

TILE = THREADS * ITEMS

# The letters a to k of [WB13] figure 4.
a, b, c, d, e, f, g, h, i, j, k = np.arange(1.0, 12.0) / 8
FIGURE_4 = np.array(
    [
        [0, a, b, 0, 0, 0, 0],
        [0, 0, c, d, 0, 0, 0],
        [0, 0, 0, 0, e, 0, 0],
        [f, 0, 0, g, 0, 0, 0],
        [0, 0, 0, 0, h, 0, 0],
        [i, j, 0, 0, 0, 0, 0],
        [0, 0, k, 0, 0, 0, 0],
    ]
)
ROW_STARTS = [0, 2, 4, 5, 7, 8, 10, 11]
COLUMNS = [1, 2, 2, 3, 4, 0, 3, 4, 0, 1, 2]
VALUES = [a, b, c, d, e, f, g, h, i, j, k]


class FourWarp(MsrWarp):
    """Full-warp segments of the example, whose warps have four threads."""

    warp: ClassVar[int] = 4


class FourHalfWarp(MsrHalfWarp):
    """Half-warp segments of the example."""

    warp: ClassVar[int] = 4


def backward_segmented_scan(values: np.ndarray, flags: np.ndarray) -> np.ndarray:
    """Return the sum from every element to the end of its segment, added from right to left.

    Flags are not zero where a segment begins; the first element begins one in any case.
    """
    result = np.array(values, dtype=np.float64)
    flags = np.array(flags, dtype=bool)
    flags[:1] = True
    ends = np.append(np.flatnonzero(flags)[1:], len(flags)) - 1
    distance = np.repeat(ends, np.diff(np.append(-1, ends))) - np.arange(len(flags))
    # All elements at the same distance from their segment's end take a step together.
    order = np.argsort(distance, kind="stable")
    bounds = np.searchsorted(distance[order], np.arange(1, (distance.max() if len(distance) else 0) + 2))
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        at = order[begin:end]
        result[at] += result[at + 1]
    return result


def multiply(device: Device, form: ExplicitMatrix, x: np.ndarray) -> np.ndarray:
    out = device.xp.full(form.shape[0], np.nan)
    form.multiply(device, device.xp.asarray(x), out)
    return np.asarray(to_numpy(out))


def test_msr_of_000_figure_4(device: Device, rng: np.random.Generator) -> None:
    form = Msr.from_csr(device, ROW_STARTS, COLUMNS, VALUES)
    assert to_numpy(form.row_starts).tolist() == ROW_STARTS
    assert to_numpy(form.columns).tolist() == COLUMNS
    assert to_numpy(form.plain_values()).tolist() == VALUES
    x = rng.normal(size=7)
    np.testing.assert_allclose(multiply(device, form, x), FIGURE_4 @ x, rtol=1e-14)


def test_full_warp_segments_of_000_section_4_2(device: Device, rng: np.random.Generator) -> None:
    form = FourWarp.from_csr(device, ROW_STARTS, COLUMNS, VALUES)
    assert to_numpy(form.segment_starts).tolist() == [0, 8, 14]
    assert to_numpy(form.columns).tolist() == [1, 2, 4, 0, 2, 3, -1, 3, 4, 0, 2, -1, 1, -1]
    assert to_numpy(form.plain_values()).tolist() == [a, c, e, f, b, d, 0, g, h, i, k, 0, j, 0]
    assert form.remainder == 3
    x = rng.normal(size=7)
    np.testing.assert_allclose(multiply(device, form, x), FIGURE_4 @ x, rtol=1e-14)


def test_half_warp_segments_of_000_section_4_3(device: Device, rng: np.random.Generator) -> None:
    form = FourHalfWarp.from_csr(device, ROW_STARTS, COLUMNS, VALUES)
    assert to_numpy(form.segment_starts).tolist() == [0, 4, 8, 12, 14]
    assert to_numpy(form.columns).tolist() == [1, 2, 2, 3, 4, -1, 0, 3, 4, -1, 0, 1, 2, -1]
    assert to_numpy(form.plain_values()).tolist() == [a, b, c, d, e, 0, f, g, h, 0, i, j, k, 0]
    assert form.remainder == 1
    x = rng.normal(size=7)
    np.testing.assert_allclose(multiply(device, form, x), FIGURE_4 @ x, rtol=1e-14)


def test_compact_storage_reorders_the_numbers_of_values(device: Device) -> None:
    values = [0.5, 0.25, 0.5, 0.5, 1.0, 0.25, 0.5, 1.0, 0.25, 0.25, 1.0]
    form = FourWarp.from_csr(device, ROW_STARTS, COLUMNS, values, compact=True)
    assert to_numpy(form.values.table).tolist() == [0.25, 0.5, 1.0]
    assert to_numpy(form.values.elements).dtype == np.uint8
    assert to_numpy(form.values.elements).tolist() == [1, 1, 2, 0, 0, 1, 0, 1, 2, 0, 2, 0, 0, 0]
    starts, columns, found = (to_numpy(a).tolist() for a in form.to_csr())
    assert (starts, columns, found) == (ROW_STARTS, COLUMNS, values)


@pytest.mark.parametrize("compact", [False, True])
def test_compressed_rows_of_002_section_4(device: Device, compact: bool) -> None:
    form = Msr.from_csr(device, [0, 1, 2, 3], [0, 2, 2], [1.0, 2.0, 3.0], compact=compact)
    assert to_numpy(form.row_starts).tolist() == [0, 1, 2, 3]
    assert to_numpy(form.columns).tolist() == [0, 2, 2]
    assert to_numpy(form.plain_values()).tolist() == [1.0, 2.0, 3.0]
    assert multiply(device, form, np.array([1.0, 10.0, 100.0])).tolist() == [1.0, 200.0, 300.0]


def test_segmented_scan_of_001(device: Device) -> None:
    products = np.array([4.0, 1, 6, 3, 8, 6, 1, 2, 5])
    flags = np.array([1, 0, 0, 1, 0, 1, 0, 0, 0], np.uint8)
    result = [11.0, 7, 6, 11, 8, 14, 8, 7, 5]
    assert backward_segmented_scan(products, flags).tolist() == result
    on_device = device.xp.array(products)
    ScanPlan.create(device, device.xp.asarray(flags)).run(device, on_device)
    assert to_numpy(on_device).tolist() == result


@pytest.mark.parametrize("density", [0.0, 0.001, 0.2, 1.0])
@pytest.mark.parametrize("size", [1, 255, TILE - 1, TILE, TILE + 1, 5 * TILE + 17])
def test_segmented_scan_matches_its_twin(
    device: Device, rng: np.random.Generator, size: int, density: float
) -> None:
    values, flags = rng.integers(-9, 9, size).astype(float), (rng.random(size) < density).astype(np.uint8)
    # Sums of small integers are exact in any order.
    expected = backward_segmented_scan(values, flags)
    plan = ScanPlan.create(device, device.xp.asarray(flags))
    on_device = device.xp.array(values)
    plan.run(device, on_device, wide=size == TILE + 1)
    np.testing.assert_array_equal(to_numpy(on_device), expected)
    assert len(plan.flags) == (1 if size <= TILE else 2)
    for at in (0, size // 2):
        end = np.append(np.flatnonzero(flags[at + 1 :]) + at + 1, size)[0]
        assert expected[at] == values[at:end].sum()


def test_segmented_scan_of_two_levels_of_carries(device: Device, rng: np.random.Generator) -> None:
    tile = 32 * ITEMS
    size = tile * tile + 5
    values, flags = np.ones(size), np.zeros(size, np.uint8)
    flags[[7, size - tile - 9]] = 1
    plan = ScanPlan.create(device, device.xp.asarray(flags), threads=32)
    assert len(plan.flags) == 3
    plan.run(device, on_device := device.xp.asarray(values))
    ends = np.array([7, size - tile - 9, size])
    expected = ends[np.searchsorted(ends, np.arange(size), side="right")] - np.arange(size)
    np.testing.assert_array_equal(to_numpy(on_device), expected)


def test_segments_that_end_with_tiles_take_nothing_from_the_next(device: Device) -> None:
    tile = 32 * ITEMS
    lengths = np.array([3 * tile, tile, 2 * tile, 5])
    flags = np.zeros(lengths.sum(), np.uint8)
    flags[np.append(0, np.cumsum(lengths)[:-1])] = 1
    plan = ScanPlan.create(device, device.xp.asarray(flags), threads=32)
    plan.run(device, on_device := device.xp.ones(len(flags)))
    expected = np.concatenate([np.arange(length, 0, -1) for length in lengths])
    np.testing.assert_array_equal(to_numpy(on_device), expected)


def test_empty_scan_is_nothing(device: Device) -> None:
    plan = ScanPlan.create(device, device.xp.zeros(0, np.uint8))
    plan.run(device, device.xp.zeros(0))
    assert plan.nbytes == 0


EXAMPLES = {
    "[WB13] figure 4": (ROW_STARTS, COLUMNS, VALUES, 7),
    "[CB12] §4": ([0, 1, 2, 3], [0, 2, 2], [1.0, 2.0, 3.0], 3),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_holds_the_examples(
    device: Device, rng: np.random.Generator, name: str, example: str, wide: bool
) -> None:
    if name == "cusparse" and (device.name == "host" or wide):
        pytest.skip("cuSPARSE is called on a CUDA device, with 32-bit row starts")
    starts, columns, values, size = EXAMPLES[example]
    form = FORMATS[name].from_csr(device, starts, columns, values, size, wide)
    dense = np.zeros((size, size))
    dense[np.repeat(np.arange(size), np.diff(starts)), columns] = values
    assert example != "[WB13] figure 4" or (dense == FIGURE_4).all()
    x = rng.normal(size=size)
    np.testing.assert_allclose(multiply(device, form, x), dense @ x, rtol=1e-14)
    found = [to_numpy(array).tolist() for array in form.to_csr()]
    assert found == [starts, columns, values]
    assert int((form.element_columns() >= 0).sum()) == len(values)
