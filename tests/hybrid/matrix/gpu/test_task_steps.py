"""Steps over tasks on a device, by the block kernel, against the reference backend."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, Mode, coded_step
from gpu_kernels.compressed.steps import IterationState
from hybrid.matrix.gpu.product import GpuProduct
from hybrid.matrix.injection.injected import cut_tasks, inject_level
from hybrid.matrix.reference import ReferenceProduct
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import block_tasks, from_dense, random_codes, random_sparse
from tests.gpu_kernels.devices import to_numpy


def sparse(rng: np.random.Generator, n_rows: int, n_columns: int) -> OffsetMTBDD:
    dense = random_sparse(rng, n_rows, n_columns, 0.05)
    dense[rng.integers(0, n_rows, n_rows // 3)] = 0.0
    return from_dense(dense, random_codes(rng, 10, n_rows), random_codes(rng, 10, n_columns), 10)


def reference(matrix: OffsetMTBDD, level: int) -> ReferenceProduct:
    return ReferenceProduct(cut_tasks(inject_level(matrix, level)))


@pytest.mark.parametrize("size", [1, 255, 256, 257, 601])
def test_products_at_several_levels(device: Device, rng: np.random.Generator, size: int) -> None:
    matrix = sparse(rng, size, max(1, size - 2))
    x, expected = rng.random(matrix.n_columns), np.empty(size)
    for level in (0, 5, 9, 13, 20):
        product = GpuProduct(device, block_tasks(device, matrix, level))
        out = np.full(size, np.nan)
        product.multiply(x, out)
        reference(matrix, level).multiply(x, expected)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        assert product.nbytes > 0


def test_tasks_without_instances_are_rows_of_zeros(device: Device, rng: np.random.Generator) -> None:
    dense = np.zeros((1100, 1100))
    dense[300, 5] = dense[1099, 1099] = 2.5
    x, out = rng.random(1100), np.full(1100, np.nan)
    GpuProduct(device, block_tasks(device, from_dense(dense), 4)).multiply(x, out)
    np.testing.assert_array_equal(out, dense @ x)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("with_b", [False, True])
def test_steps_are_those_of_the_reference(
    device: Device, rng: np.random.Generator, wide: bool, with_b: bool
) -> None:
    size, level = 603, 9
    matrix = sparse(rng, size, size)
    product = GpuProduct(device, block_tasks(device, matrix, level, wide))
    x, diagonal = rng.random(size), rng.choice((1.5, 1.75, 2.0), size)
    b = rng.random(size) if with_b else None
    out, expected = np.empty(size), np.empty(size)
    for omega in (1.0, 0.9):
        changes = product.relax(x, b, diagonal, omega, out)
        wanted = reference(matrix, level).relax(x, b, diagonal, omega, expected)
        np.testing.assert_allclose(out, expected, rtol=1e-13)
        assert changes == pytest.approx(wanted, rel=1e-11)
    reference(matrix, level).multiply(x, expected)
    residual = expected + (0.0 if b is None else b) - diagonal * x
    state = IterationState.create(device)
    step = coded_step(device, Mode.POWER, diagonal, b, 0.25, state)
    result = device.xp.empty(size)
    product.run(step, device.xp.asarray(x), result)
    np.testing.assert_allclose(to_numpy(result), x + 0.25 * residual, rtol=1e-12)
    space = product.vector_space()
    (found,) = space.read(space.system(diagonal, b).residual(device.xp.asarray(x), device.xp.empty(size)))
    assert found == pytest.approx(np.abs(residual).max(), rel=1e-11)


def test_steps_after_the_end_leave_everything_as_it_is(device: Device, rng: np.random.Generator) -> None:
    matrix = sparse(rng, 300, 300)
    product = GpuProduct(device, block_tasks(device, matrix, 6))
    state = IterationState.create(device)
    state.status[0] = 1
    step = coded_step(device, Mode.JACOBI, np.ones(300), None, 1.0, state)
    out = device.xp.full(300, 7.0)
    product.run(step, device.xp.ones(300), out)
    np.testing.assert_array_equal(to_numpy(out), np.full(300, 7.0))
