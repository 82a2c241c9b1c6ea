"""Sweeps over vectors against NumPy: distances, weighted sums, relaxation of products that lie apart."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import (
    Device,
    IterationState,
    Mode,
    add_scaled,
    coded_step,
    compare_rows,
    compress,
    finish_iteration,
    relax_rows,
)
from tests.gpu_kernels.devices import to_numpy

SIZES = (0, 1, 31, 33, 256, 257, 1000)


@pytest.mark.parametrize("size", SIZES)
def test_distances_match_numpy(device: Device, rng: np.random.Generator, size: int) -> None:
    xp = device.xp
    x, y = rng.uniform(1, 2, size), rng.uniform(1, 2, size)
    state = IterationState.create(device)
    compare_rows(device, state, xp.asarray(x), xp.asarray(y), wide=size % 2 == 0)
    gap = np.abs(x - y)
    expected = [gap.max(initial=0.0), (gap / x).max(initial=0.0)]
    np.testing.assert_allclose(to_numpy(state.differences), expected, rtol=1e-14)
    # Measured again, nothing is left of the first time, and equal vectors do not end anything.
    compare_rows(device, state, xp.asarray(x), xp.asarray(x))
    assert to_numpy(state.differences).tolist() == [0.0, 0.0]
    assert to_numpy(state.status).tolist() == [0, 2]


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [([0.0, 1.0], [0.0, 1.0], [0, 0]), ([0.0], [2.0], [2, np.inf]), ([np.nan], [1.0], [np.nan, 0])],
)
def test_distances_of_special_values(
    device: Device, x: list[float], y: list[float], expected: list[float]
) -> None:
    state = IterationState.create(device)
    compare_rows(device, state, device.xp.asarray(np.array(x)), device.xp.asarray(np.array(y)))
    np.testing.assert_array_equal(to_numpy(state.differences), expected)
    assert to_numpy(state.status)[0] == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("with_factor", [False, True])
def test_weighted_sums_match_numpy(
    device: Device, rng: np.random.Generator, size: int, with_factor: bool
) -> None:
    xp = device.xp
    x, total = rng.normal(size=size), rng.normal(size=size)
    found = xp.array(total)
    factor = xp.asarray(np.array(1.5)) if with_factor else None
    add_scaled(device, -0.7, xp.asarray(x), found, factor, wide=size % 2 == 0)
    expected = total - 0.7 * (1.5 if with_factor else 1.0) * x
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-14, atol=1e-15)


def test_products_that_lie_apart_are_not_needed_once_all_is_over(device: Device) -> None:
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, np.full(3, 2.0), None, 1.0, state)
    x, product, out = xp.ones(3), xp.full(3, 2.0), xp.zeros(3)
    relax_rows(device, step, x, out, product=product)
    finish_iteration(device, state, 1e-6, True)
    assert to_numpy(out).tolist() == [1.0] * 3
    assert to_numpy(product).tolist() == [2.0] * 3
    assert to_numpy(state.status).tolist() == [1, 1]
    relax_rows(device, step, x, out, product=xp.full(3, 9.0))
    assert to_numpy(out).tolist() == [1.0] * 3


def test_a_negative_epsilon_ends_nothing(device: Device) -> None:
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, np.ones(2), None, 1.0, state)
    for value in (np.inf, 4.0):
        out = xp.full(2, value)
        relax_rows(device, step, xp.full(2, 4.0), out)
        finish_iteration(device, state, -1.0, False)
        assert to_numpy(out).tolist() == [value] * 2
    assert to_numpy(state.status).tolist() == [0, 2]
    assert to_numpy(state.differences).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("values", [1, 300, 1000])
def test_scaled_vectors_share_their_numbers(device: Device, rng: np.random.Generator, values: int) -> None:
    vector = rng.permutation(np.resize(rng.normal(size=values), 4096 if values < 1000 else 1000))
    coded = compress(device, vector)
    twice = coded.scaled(1.0 + 1e-13)
    np.testing.assert_array_equal(to_numpy(twice.expand(device)), vector * (1.0 + 1e-13))
    assert (twice.elements is coded.elements) == (values < 1000)
    assert compress(device, None).scaled(2.0).bits == 0


def test_bad_operands_of_sums_are_refused(device: Device) -> None:
    xp = device.xp
    x = xp.ones(4)
    with pytest.raises(ValueError, match="shares memory"):
        add_scaled(device, 1.0, x, x)
    with pytest.raises(ValueError, match=r"x: expected shape \(4,\)"):
        add_scaled(device, 1.0, xp.ones(5), x)
    with pytest.raises(ValueError, match="factor: expected one float64 number"):
        add_scaled(device, 1.0, xp.ones(4), x, xp.ones(1))
    with pytest.raises(ValueError, match=r"y: expected shape \(4,\)"):
        compare_rows(device, IterationState.create(device), x, xp.ones(5))


@pytest.mark.parametrize("values", [1, 3, 90, 1000])
def test_coded_vectors_are_worked_on_in_parts(
    device: Device, rng: np.random.Generator, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_kernels.runtime.coded._CHUNK", 64)
    monkeypatch.setattr("gpu_kernels.runtime.coded._LONG", 300)
    x = rng.choice(rng.normal(size=values), 1000)
    x[:200] = x.min()  # the greatest is in none of the first parts
    xp = device.xp
    for found, expected in ((compress(device, xp.asarray(x)), x), (compress(device, None), None)):
        factor = rng.normal(size=len(found))
        out = xp.empty(len(found))
        found.times(xp.asarray(factor), out)
        same = xp.array(factor)
        found.times(same, same)
        assert to_numpy(same).tolist() == to_numpy(out).tolist()
        if expected is not None:
            np.testing.assert_array_equal(to_numpy(out), expected * factor)
            assert found.argmax() == np.argmax(expected)
            assert (float(found.min()), float(found.max())) == (expected.min(), expected.max())
