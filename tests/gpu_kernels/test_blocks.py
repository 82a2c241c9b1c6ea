"""Vectors put together from blocks, against NumPy: sizes around the span of a block of threads."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, copy_blocks
from tests.gpu_kernels.devices import to_numpy

SPAN = 4096


@pytest.mark.parametrize("dtype", [np.float64, np.bool_])
@pytest.mark.parametrize(
    "lengths", [[1], [SPAN], [SPAN + 1], [3, 1, SPAN - 4, 5], [10000, 1, 7, 9000], [2] * 5000]
)
def test_blocks_follow_each_other(
    device: Device, rng: np.random.Generator, lengths: list[int], dtype: type
) -> None:
    xp = device.xp
    flat = rng.integers(0, 2, 12000).astype(dtype) if dtype is np.bool_ else rng.random(12000)
    starts = np.array([rng.integers(0, 12000 - length) for length in lengths])
    ends = np.cumsum(lengths)
    out = xp.zeros(int(ends[-1]), dtype)
    copy_blocks(device, xp.asarray(flat), xp.asarray(starts), xp.asarray(ends), out)
    expected = np.concatenate([flat[a : a + n] for a, n in zip(starts, lengths, strict=True)])
    np.testing.assert_array_equal(to_numpy(out), expected)


def test_nothing_is_written_to_an_empty_vector(device: Device) -> None:
    xp = device.xp
    none = xp.zeros(0, np.int64)
    copy_blocks(device, xp.zeros(0), none, none, xp.zeros(0))


def test_arrays_that_do_not_fit_are_refused(device: Device) -> None:
    xp = device.xp
    ends, starts = xp.asarray(np.array([2])), xp.asarray(np.array([0]))
    with pytest.raises(TypeError, match="flat: expected float64 or bool, got int64"):
        copy_blocks(device, starts, starts, ends, xp.zeros(2))
    with pytest.raises(TypeError, match="out: expected dtype float64"):
        copy_blocks(device, xp.zeros(4), starts, ends, xp.zeros(2, np.int64))
    with pytest.raises(ValueError, match="starts: expected shape"):
        copy_blocks(device, xp.zeros(4), xp.asarray(np.array([0, 1])), ends, xp.zeros(2))
