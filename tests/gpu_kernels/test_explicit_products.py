"""The published block kernel against dense products."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, block_spmv
from tests.builders.matrices import block_tasks, from_dense, random_sparse
from tests.gpu_kernels.devices import to_numpy

SIZES = (1, 31, 33, 255, 256, 257, 600)


def skewed(rng: np.random.Generator, size: int) -> np.ndarray:
    """A matrix with empty rows and one full row."""
    dense = random_sparse(rng, size, size, 0.05)
    dense[rng.integers(0, size, size // 3)] = 0.0
    dense[size // 2] = rng.uniform(1, 2, size)
    return dense


@pytest.mark.parametrize("size", SIZES)
def test_block_spmv_matches_dense(device: Device, rng: np.random.Generator, size: int) -> None:
    dense = skewed(rng, size)
    matrix = from_dense(dense)
    x = rng.normal(size=size)
    for level in range(0, matrix.n_levels + 1, max(1, matrix.n_levels // 3)):
        tasks = block_tasks(device, matrix, level, wide=level % 2 == 1)
        out = device.xp.full(size, np.nan)
        block_spmv(device, tasks, device.xp.asarray(x), out)
        np.testing.assert_allclose(to_numpy(out), dense @ x, rtol=1e-12, atol=1e-12)
        assert tasks.nbytes > 0
