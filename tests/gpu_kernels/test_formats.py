"""Every explicit format: kernel, twin in array operations and scipy agree; conversions go there and back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_kernels import FORMATS, Device, ExplicitMatrix, use_device
from gpu_kernels.formats import (
    CDeltaSellSorted,
    CmsrScan,
    CmsrStream,
    CSellSorted,
    CusparseCsr,
    MsrScan,
    MsrStream,
    MsrSubwarp,
)
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import COMPILER, HostDevice

PORTABLE = sorted(set(FORMATS) - {"cusparse"})
PAIRS = [
    (name, name.replace("cmsr", "msr").replace("csell", "sell")) for name in PORTABLE if FORMATS[name].compact
]
SETTINGS = settings(max_examples=25, deadline=None, print_blob=True, derandomize=True)


def random_matrix(
    rng: np.random.Generator, rows: int, columns: int, values: int = 5
) -> scipy.sparse.csr_matrix:
    """Some short rows, about a third of them empty, and one full row; few distinct values."""
    dense = rng.choice(rng.normal(size=values), (rows, columns)) * (rng.random((rows, columns)) < 0.05)
    dense[rng.integers(0, rows, rows // 3)] = 0.0
    dense[rows // 2] = rng.choice([0.5, 1.5], columns)
    return scipy.sparse.csr_matrix(dense)


def banded(rng: np.random.Generator, n: int) -> scipy.sparse.csr_matrix:
    """A matrix like those of models: entries along diagonals, near and far, with gaps."""
    shifts = [-n // 2, -3, -1, 1, 17, n // 3]
    kept = [scipy.sparse.eye_array(n, k=k) for k in shifts]
    matrix = sum(rng.choice([0.25, 2.0]) * part for part in kept).tocsr()
    matrix.data *= rng.random(matrix.nnz) < 0.8
    matrix.eliminate_zeros()
    return scipy.sparse.csr_matrix(matrix)


def convert(device: Device, name: str, matrix: scipy.sparse.csr_matrix, wide: bool = False) -> ExplicitMatrix:
    arrays = (matrix.indptr, matrix.indices, matrix.data)
    return FORMATS[name].from_csr(device, *arrays, n_columns=matrix.shape[1], wide=wide)


def assert_product(
    device: Device, form: ExplicitMatrix, matrix: scipy.sparse.csr_matrix, x: np.ndarray
) -> None:
    xp = device.xp
    out = xp.full(matrix.shape[0], np.nan)
    operand = xp.asarray(x)
    form.multiply(device, operand, out)
    # A copy: abs() would sort the rows of the matrix itself.
    scale = abs(matrix.copy()) @ abs(x)
    np.testing.assert_array_less(
        abs(to_numpy(out) - matrix @ x), 1e-14 * (1 + matrix.shape[1]) * scale + 1e-300
    )
    twin = to_numpy(form.reference_product(operand))
    np.testing.assert_array_less(abs(twin - matrix @ x), 1e-14 * (1 + matrix.shape[1]) * scale + 1e-300)


def assert_round_trip(form: ExplicitMatrix, matrix: scipy.sparse.csr_matrix) -> None:
    starts, columns, values = (to_numpy(a) for a in form.to_csr())
    np.testing.assert_array_equal(starts, matrix.indptr)
    np.testing.assert_array_equal(columns, matrix.indices)
    np.testing.assert_array_equal(values.view(np.int64), matrix.data.view(np.int64))
    assert form.entries == matrix.nnz <= form.n_elements
    assert form.shape == matrix.shape


@pytest.mark.parametrize("name", PORTABLE)
@pytest.mark.parametrize("rows", [1, 31, 32, 33, 64, 257, 300])
def test_format_matches_scipy(device: Device, rng: np.random.Generator, name: str, rows: int) -> None:
    matrix = random_matrix(rng, rows, max(1, rows - 7))
    form = convert(device, name, matrix, wide=rows == 33)
    assert_product(device, form, matrix, rng.normal(size=matrix.shape[1]))
    assert_round_trip(form, matrix)
    assert form.nbytes > 0


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


@pytest.mark.parametrize(("compact", "plain"), PAIRS)
def test_dictionary_gives_the_same_bits(
    device: Device, rng: np.random.Generator, compact: str, plain: str
) -> None:
    matrix = random_matrix(rng, 200, 150)
    matrix.data[::7] = -0.0
    x = device.xp.asarray(rng.normal(size=150))
    results = []
    for name in (compact, plain):
        form = convert(device, name, matrix)
        results.append(device.xp.full(200, np.nan))
        form.multiply(device, x, results[-1])
        assert_round_trip(form, matrix)
    np.testing.assert_array_equal(*(to_numpy(r).view(np.int64) for r in results))
    assert FORMATS[compact].compact
    assert not FORMATS[plain].compact


def test_every_plain_format_has_a_compact_twin() -> None:
    assert len(PAIRS) == 10
    assert len(PORTABLE) == 20
    assert len(set(FORMATS.values())) == len(FORMATS)


@pytest.mark.parametrize(("values", "bits"), [(1, 8), (256, 8), (257, 16), (65536, 16), (65537, 32)])
def test_dictionary_takes_the_narrowest_type(
    device: Device, rng: np.random.Generator, values: int, bits: int
) -> None:
    n = max(values, 40)
    data = np.resize(rng.permutation(np.arange(1.0, values + 1)), n)
    matrix = scipy.sparse.csr_matrix((data, np.arange(n), np.arange(n + 1)), shape=(n, n))
    for name in ("cmsr", "delta-csell"):
        form = convert(device, name, matrix)
        assert form.values.bits == bits
        assert form.values.elements.dtype == np.dtype(f"uint{bits}")
        assert len(form.values.table) == values
    assert_product(device, form, matrix, rng.normal(size=n))


@pytest.mark.parametrize("span", [255, 256, 65535, 65536, 200_000])
def test_distances_take_the_width_they_need(device: Device, rng: np.random.Generator, span: int) -> None:
    rows = 33
    columns = np.column_stack((rng.integers(0, 100, rows), rng.integers(100, span + 1, rows)))
    columns[0], columns[1], columns[2] = (0, span), (span - 1, span), (0, 1)
    data = rng.normal(size=2 * rows)
    matrix = scipy.sparse.csr_matrix(
        (data, columns.ravel(), np.arange(0, 2 * rows + 1, 2)), shape=(rows, span + 1)
    )
    form = convert(device, "delta-sell", matrix)
    width = 1 if span < 256 else 2 if span < 65536 else 4
    # The first slice: 0 to span - 1, and 1 to span. The one row of the second needs a byte an element.
    assert to_numpy(form.units).tolist() == [0, width, 2 * width, 2 * width + 1, 2 * width + 2]
    assert_product(device, form, matrix, rng.normal(size=span + 1))
    assert_round_trip(form, matrix)


def test_subwarp_follows_the_mean_length(device: Device) -> None:
    for length, lanes in ((1, 2), (2, 2), (3, 4), (9, 16), (32, 32), (100, 32)):
        starts = np.arange(0, 4 * length + 1, length)
        form = MsrSubwarp.from_csr(device, starts, np.tile(np.arange(length), 4), np.ones(4 * length), length)
        assert form.subwarp == lanes
        out = device.xp.empty(4)
        form.multiply(device, device.xp.ones(length), out)
        assert to_numpy(out).tolist() == [length] * 4


@pytest.mark.parametrize("name", ["csell", "delta-csell"])
def test_sorting_takes_padding_away(device: Device, rng: np.random.Generator, name: str) -> None:
    matrix = random_matrix(rng, 600, 300)
    plain, in_order = convert(device, name, matrix), convert(device, f"{name}-sorted", matrix)
    assert isinstance(in_order, (CSellSorted, CDeltaSellSorted))
    assert in_order.n_elements < plain.n_elements
    order = to_numpy(in_order.order)
    lengths = np.diff(matrix.indptr)[order]
    for window in (slice(0, 256), slice(256, 512), slice(512, 600)):
        assert (np.diff(lengths[window]) <= 0).all()
        assert sorted(order[window]) == list(range(600))[window]


@pytest.mark.parametrize("kind", [MsrScan, CmsrScan, MsrStream, CmsrStream])
@pytest.mark.parametrize("first", [1, 1044, 1045, 2048])
def test_rows_go_on_over_many_tiles(
    device: Device, rng: np.random.Generator, kind: type[ExplicitMatrix], first: int
) -> None:
    # Tiles have 2048 entries: rows that are longer, that end and begin at their borders, and empty ones.
    lengths = np.array([first, 0, 9000, 3, 2048, 2048, 1, 0, 0, 6100, 0, 0, 0])
    lengths[-3] = -lengths.sum() % 2048
    assert lengths[-3] > 0
    n = 9000
    columns = np.concatenate([np.arange(k) for k in lengths])
    data = rng.normal(size=lengths.sum())
    matrix = scipy.sparse.csr_matrix((data, columns, np.append(0, np.cumsum(lengths))), shape=(13, n))
    form = kind.from_csr(device, matrix.indptr, matrix.indices, matrix.data, n)
    assert_product(device, form, matrix, rng.normal(size=n))
    assert matrix.nnz % 2048 == 0


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@SETTINGS
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


def test_wrong_matrices_and_operands_are_refused(device: Device) -> None:
    kind, xp = FORMATS["cmsr-wl"], device.xp
    with pytest.raises(ValueError, match="never decrease"):
        kind.from_csr(device, [0, 2, 1, 3], [0, 1, 2], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="got first 0, last 2"):
        kind.from_csr(device, [0, 2], [0, 1, 2], [1.0, 1.0, 1.0], 3)
    with pytest.raises(ValueError, match="expected 0 to 1, got 0 to 2"):
        kind.from_csr(device, [0, 2, 2], [0, 2], [1.0, 1.0])
    with pytest.raises(ValueError, match="got -1 to 0"):
        kind.from_csr(device, [0, 2, 2], [0, -1], [1.0, 1.0])
    with pytest.raises(ValueError, match="one for each of 2 columns, got 1"):
        kind.from_csr(device, [0, 2, 2], [0, 1], [1.0])
    with pytest.raises(ValueError, match=r"shape \(n_rows \+ 1,\)"):
        kind.from_csr(device, [], [], [], 0)
    with pytest.raises(ValueError, match="fewer than 2\\*\\*31 columns"):
        kind.from_csr(device, [0, 1], [0], [1.0], 2**31)
    form = kind.from_csr(device, [0, 1, 2], [0, 1], [1.0, 1.0])
    x = xp.ones(2)
    with pytest.raises(ValueError, match="shares memory"):
        form.multiply(device, x, x)
    with pytest.raises(ValueError, match=r"x: expected shape \(2,\)"):
        form.multiply(device, xp.ones(3), xp.ones(2))
    with pytest.raises(ValueError, match=r"out: expected shape \(2,\)"):
        form.multiply(device, x, xp.ones(3))


def test_cusparse_needs_a_cuda_device() -> None:
    with pytest.raises(RuntimeError, match="CUDA device only, not on host"):
        CusparseCsr.from_csr(HostDevice(), [0, 1], [0], [1.0])


@pytest.mark.gpu
@pytest.mark.parametrize("size", [1, 33, 600])
def test_cusparse_matches_scipy(rng: np.random.Generator, size: int) -> None:
    from gpu_kernels import CudaDevice

    device = CudaDevice()
    matrix = random_matrix(rng, size, size)
    form = convert(device, "cusparse", matrix)
    for _ in range(2):
        assert_product(device, form, matrix, rng.normal(size=size))
    assert_round_trip(form, matrix)
    assert form.nbytes > matrix.data.nbytes
