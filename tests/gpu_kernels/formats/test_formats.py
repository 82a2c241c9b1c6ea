"""What single formats promise besides: dictionaries, widths, sorting, rows over many tiles, cuSPARSE."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from gpu_kernels import FORMATS, Device, ExplicitMatrix
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
from tests.contracts.formats import PORTABLE, assert_product, assert_round_trip, convert, random_matrix
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice

PAIRS = [
    (name, name.replace("cmsr", "msr").replace("csell", "sell")) for name in PORTABLE if FORMATS[name].compact
]


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
