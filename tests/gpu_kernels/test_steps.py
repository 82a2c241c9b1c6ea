"""Relaxation, reduction and the stopping test against NumPy, over sizes around the borders of blocks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_kernels import (
    Device,
    IterationState,
    Mode,
    coded_step,
    compress,
    finish_iteration,
    product_step,
    relax_rows,
)
from tests.gpu_kernels.devices import to_numpy

SIZES = (1, 31, 32, 33, 255, 256, 257, 1000)


def vectors(rng: np.random.Generator, size: int) -> tuple[np.ndarray, ...]:
    return rng.normal(size=size), rng.normal(size=size), rng.uniform(1, 2, size), rng.normal(size=size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("omega", [1.0, 0.9])
def test_jacobi_step_matches_numpy(device: Device, rng: np.random.Generator, size: int, omega: float) -> None:
    xp = device.xp
    x, product, diagonal, b = vectors(rng, size)
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, diagonal, b, omega, state)
    out = xp.array(product)
    relax_rows(device, step, xp.asarray(x), out, wide=size % 2 == 0)
    finish_iteration(device, state, 0.0, False)
    expected = (1 - omega) * x + omega * (product + b) / diagonal
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-14, atol=1e-15)
    absolute, relative = to_numpy(state.differences).tolist()
    # Of the result itself: where it nearly vanishes, rounding would change the relative difference.
    found = to_numpy(out)
    change = np.abs(found - x)
    assert absolute == pytest.approx(change.max(), rel=1e-14)
    assert relative == pytest.approx((change / np.abs(found)).max(), rel=1e-14)
    assert to_numpy(state.status).tolist() == [0, 1]
    assert not to_numpy(state.changes).any()


@pytest.mark.parametrize("size", [1, 257])
def test_power_step_and_residual_match_numpy(device: Device, rng: np.random.Generator, size: int) -> None:
    xp = device.xp
    x, product, diagonal, b = vectors(rng, size)
    state = IterationState.create(device)
    out = xp.array(product)
    relax_rows(device, coded_step(device, Mode.POWER, diagonal, b, 0.25, state), xp.asarray(x), out)
    expected = x + 0.25 * (product + b - diagonal * x)
    np.testing.assert_allclose(to_numpy(out), expected, rtol=1e-13, atol=1e-14)
    state = IterationState.create(device)
    relax_rows(
        device,
        coded_step(device, Mode.RESIDUAL, diagonal, b, 1.0, state),
        xp.asarray(x),
        xp.array(product),
    )
    finish_iteration(device, state, 0.0, True)
    found = to_numpy(state.differences)[0]
    assert found == pytest.approx(np.abs(product + b - diagonal * x).max(), rel=1e-12)


@pytest.mark.parametrize("mode", [Mode.JACOBI, Mode.POWER, Mode.RESIDUAL])
def test_an_anchor_is_taken_from_every_row(device: Device, rng: np.random.Generator, mode: Mode) -> None:
    xp, anchor = device.xp, 100
    x, product, diagonal, b = vectors(rng, 300)
    found = []
    for right, place in ((b, anchor), (b - x[anchor], None)):
        state, out = IterationState.create(device), xp.array(product)
        step = replace(coded_step(device, mode, diagonal, right, 0.75, state), anchor=place)
        relax_rows(device, step, xp.asarray(x), out)
        finish_iteration(device, state, 0.0, True)
        found.append((to_numpy(out).tolist(), to_numpy(state.differences).tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("anchor", [-1, 3])
def test_an_anchor_is_a_row(device: Device, anchor: int) -> None:
    xp, state = device.xp, IterationState.create(device)
    step = replace(coded_step(device, Mode.JACOBI, np.ones(3), None, 1.0, state), anchor=anchor)
    with pytest.raises(ValueError, match=f"expected a row below 3 .* got {anchor}"):
        relax_rows(device, step, xp.ones(3), xp.ones(3))


def test_a_product_has_no_anchor(device: Device) -> None:
    with pytest.raises(ValueError, match="a step that relaxes, got 0"):
        relax_rows(device, replace(product_step(), anchor=0), device.xp.ones(3), device.xp.ones(3))


@pytest.mark.parametrize(
    ("product", "absolute", "relative"),
    [([2.0, 0.0], 0.0, 0.0), ([5.0, 0.0], 3.0, 0.6), ([0.0, 0.0], 2.0, np.inf), ([2.0, np.nan], np.nan, 0.0)],
)
def test_changes_of_special_values(
    device: Device, product: list[float], absolute: float, relative: float
) -> None:
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, np.ones(2), None, 1.0, state)
    relax_rows(device, step, xp.asarray(np.array([2.0, 0.0])), xp.asarray(np.array(product)))
    finish_iteration(device, state, 1e-9, False)
    np.testing.assert_array_equal(to_numpy(state.differences), [absolute, relative])
    # An undefined change means divergence, no change convergence.
    assert to_numpy(state.status)[0] == (2 if np.isnan(absolute) else 1 if relative == 0.0 else 0)


def test_without_relaxation_the_old_iterate_takes_no_part(device: Device) -> None:
    """Not even as zero times infinity."""
    xp = device.xp
    step = coded_step(device, Mode.JACOBI, np.full(3, 2.0), None, 1.0, IterationState.create(device))
    out = xp.array([1.0, 3.0, 5.0])
    relax_rows(device, step, xp.array([np.inf, -np.inf, np.nan]), out)
    assert to_numpy(out).tolist() == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("slot", [0, 1, 31, 32, 127, 224, 255])
def test_the_change_of_any_block_is_seen(device: Device, slot: int) -> None:
    state = IterationState.create(device)
    bits = np.array([3.0, 0.5]).view(np.uint64)
    state.changes[slot], state.changes[256 + slot] = bits
    finish_iteration(device, state, 1.0, False)
    assert to_numpy(state.differences).tolist() == [3.0, 0.5]
    assert not to_numpy(state.changes).any()
    assert to_numpy(state.status).tolist() == [1, 1]


def test_ended_iterations_change_nothing(device: Device) -> None:
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, np.ones(3), None, 1.0, state)
    x, out = xp.ones(3), xp.ones(3) + 1e-9
    relax_rows(device, step, x, out)
    finish_iteration(device, state, 1e-6, True)
    assert to_numpy(state.status).tolist() == [1, 1]
    later = xp.full(3, 7.0)
    relax_rows(device, step, x, later)
    finish_iteration(device, state, 1e-6, True)
    assert to_numpy(later).tolist() == [7.0] * 3
    assert to_numpy(state.status).tolist() == [1, 1]


@pytest.mark.parametrize("values", [1, 16, 256, 257])
def test_compressed_vectors_keep_every_bit(device: Device, rng: np.random.Generator, values: int) -> None:
    table = rng.normal(size=values)
    table[0] = -0.0
    vector = table[rng.integers(0, values, 4096)]
    vector[:values] = table
    coded = compress(device, vector)
    assert coded.bits == (8 if values <= 256 else 16)
    assert coded.nbytes < vector.nbytes
    found = to_numpy(coded.expand(device))
    np.testing.assert_array_equal(found.view(np.int64), vector.view(np.int64))


def test_vectors_of_many_values_stay_plain(device: Device, rng: np.random.Generator) -> None:
    vector = rng.normal(size=1000)
    coded = compress(device, vector)
    assert coded.bits == 64
    np.testing.assert_array_equal(to_numpy(coded.expand(device)), vector)
    assert compress(device, None).nbytes == 0


def test_bad_operands_are_refused(device: Device) -> None:
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, np.ones(4), None, 1.0, state)
    x = xp.ones(4)
    with pytest.raises(ValueError, match="shares memory"):
        relax_rows(device, step, x, x)
    with pytest.raises(ValueError, match=r"x: expected shape \(4,\)"):
        relax_rows(device, step, xp.ones(5), xp.ones(4))
    with pytest.raises(TypeError, match="expected dtype float64"):
        relax_rows(device, step, x, xp.ones(4, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        relax_rows(device, step, x, xp.ones(8)[::2])
    with pytest.raises(TypeError, match="array on the device"):
        relax_rows(device, step, x, [1.0] * 4)
    with pytest.raises(ValueError, match="diagonal: expected 5 elements"):
        relax_rows(device, step, xp.ones(5), xp.ones(5))
    with pytest.raises(ValueError, match="needs a diagonal"):
        relax_rows(device, coded_step(device, Mode.JACOBI, None, None, 1.0, state), x, xp.ones(4))
    out = xp.ones(4)
    relax_rows(device, product_step(), x, out)
    assert to_numpy(out).tolist() == [1.0] * 4
