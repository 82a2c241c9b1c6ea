"""What every explicit format promises: the product of compressed sparse rows, the entries back, its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_kernels import Device, use_device
from tests.contracts.formats import (
    PORTABLE,
    assert_product,
    assert_round_trip,
    banded,
    convert,
    random_matrix,
)
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import COMPILER, HostDevice


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 64, 257, 300])
def test_format_matches_scipy(device: Device, rng: np.random.Generator, name: str, rows: int) -> None:
    matrix = random_matrix(rng, rows, max(1, rows - 7))
    form = convert(device, name, matrix, wide=rows == 33)
    assert_product(device, form, matrix, rng.normal(size=matrix.shape[1]))
    assert_round_trip(form, matrix)


@pytest.mark.parametrize("name", PORTABLE)
def test_format_matches_scipy_on_a_banded_matrix(device: Device, rng: np.random.Generator, name: str) -> None:
    matrix = banded(rng, 3000)
    form = convert(device, name, matrix)
    assert_product(device, form, matrix, rng.normal(size=3000))
    assert_round_trip(form, matrix)


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("shape", [(5, 5), (70, 3), (0, 0)])
def test_format_of_a_zero_matrix(device: Device, name: str, shape: tuple[int, int]) -> None:
    matrix = scipy.sparse.csr_matrix(shape)
    form = convert(device, name, matrix)
    out = device.xp.full(shape[0], np.nan)
    form.multiply(device, device.xp.ones(shape[1]), out)
    np.testing.assert_array_equal(to_numpy(out), np.zeros(shape[0]))
    assert_round_trip(form, matrix)


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("value", [0.0, 0.75])
def test_format_of_one_state(device: Device, name: str, value: float) -> None:
    matrix = scipy.sparse.csr_matrix([[value]])
    form = convert(device, name, matrix)
    assert_product(device, form, matrix, np.array([-3.0]))


@pytest.mark.parametrize("name", PORTABLE)
def test_padding_takes_nothing_from_x(device: Device, name: str) -> None:
    matrix = scipy.sparse.csr_matrix(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 2.0], [1.0, 0.0, 0.0]]))
    form = convert(device, name, matrix)
    # What lies before x, where column -1 would be, is undefined.
    x, out = device.xp.asarray([np.nan, np.inf, 1.0, 1.0])[1:], device.xp.empty(3)
    form.multiply(device, x, out)
    np.testing.assert_array_equal(to_numpy(out), [1.0, 3.0, np.inf])


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@settings(max_examples=25)
@given(
    st.sampled_from(PORTABLE),
    st.lists(st.lists(st.integers(0, 79), unique=True, max_size=12), min_size=1, max_size=75),
    st.integers(100, 2**31),
)
def test_random_matrices(name: str, rows: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.array([column for row in rows for column in row], dtype=np.int64)
    data = rng.choice([0.1, 0.3, 1 / 7, 12.0], len(columns))
    matrix = scipy.sparse.csr_matrix((data, columns, starts), shape=(len(rows), 80))
    with use_device(HostDevice()) as device:
        form = convert(device, name, matrix, wide=bool(seed % 2))
        assert_product(device, form, matrix, rng.normal(size=80))
        assert_round_trip(form, matrix)


def arrays_in(item: Any) -> dict[int, int]:
    """The bytes of all arrays within an object, by their addresses in memory."""
    if hasattr(item, "nbytes") and hasattr(item, "dtype"):
        return {id(item): int(item.nbytes)}
    if isinstance(item, dict):
        item = tuple(item.values())
    parts = (
        item if isinstance(item, tuple) else tuple(vars(item).values()) if hasattr(item, "__dict__") else ()
    )
    return {key: size for part in parts for key, size in arrays_in(part).items()}


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("rows", [0, 33, 3000])
def test_bytes_are_those_of_the_arrays_held(
    device: Device, rng: np.random.Generator, name: str, rows: int
) -> None:
    small = random_matrix(rng, rows, 40) if rows else scipy.sparse.csr_matrix((0, 40))
    matrix = banded(rng, rows) if rows > 1000 else small  # with scratch of several sizes
    form = convert(device, name, matrix)
    held = arrays_in(form)
    assert len(held) > 1
    assert form.nbytes == sum(held.values())
    assert form.traffic_bytes >= form.nbytes + 8 * sum(matrix.shape)
