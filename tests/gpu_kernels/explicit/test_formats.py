"""What single formats promise besides: dictionaries, rows over many tiles, names of before, cuSPARSE."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import gpu_kernels.explicit
from gpu_kernels import FORMATS, Device
from gpu_kernels.explicit import CusparseCsr
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
    assert len(PAIRS) == len(PORTABLE) / 2
    assert len(set(FORMATS.values())) == len(FORMATS)


@pytest.mark.parametrize(("values", "bits"), [(1, 8), (256, 8), (257, 16), (65536, 16), (65537, 32)])
def test_dictionary_takes_the_narrowest_type(
    device: Device, rng: np.random.Generator, values: int, bits: int
) -> None:
    n = max(values, 40)
    data = np.resize(rng.permutation(np.arange(1.0, values + 1)), n)
    matrix = scipy.sparse.csr_matrix((data, np.arange(n), np.arange(n + 1)), shape=(n, n))
    for name in ("cmsr", "csell"):
        form = convert(device, name, matrix)
        assert form.values.bits == bits
        assert form.values.elements.dtype == np.dtype(f"uint{bits}")
        assert len(form.values.table) == values
    assert_product(device, form, matrix, rng.normal(size=n))


@pytest.mark.parametrize("name", ["msr-scan", "cmsr-scan", "msr-stream", "cmsr-stream"])
@pytest.mark.parametrize("first", [1, 1044, 1045, 2048])
def test_rows_go_on_over_many_tiles(device: Device, rng: np.random.Generator, name: str, first: int) -> None:
    # Tiles have 2048 entries: rows that are longer, that end and begin at their borders, and empty ones.
    lengths = np.array([first, 0, 9000, 3, 2048, 2048, 1, 0, 0, 6100, 0, 0, 0])
    lengths[-3] = -lengths.sum() % 2048
    assert lengths[-3] > 0
    n = 9000
    columns = np.concatenate([np.arange(k) for k in lengths])
    data = rng.normal(size=lengths.sum())
    matrix = scipy.sparse.csr_matrix((data, columns, np.append(0, np.cumsum(lengths))), shape=(13, n))
    form = convert(device, name, matrix)
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
    with pytest.raises(ValueError, match="plain values"):
        CusparseCsr.from_csr(HostDevice(), [0, 1], [0], [1.0], compact=True)


@pytest.mark.parametrize(
    ("name", "format_name"), [("Cmsr", "cmsr"), ("MsrSubwarp", "msr"), ("CDeltaSell", "csell")]
)
def test_names_of_before_are_formats_with_a_warning(device: Device, name: str, format_name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf'{name} goes .*: use FORMATS\["{format_name}"\]'):
        found = getattr(gpu_kernels.explicit, name)
    assert found is FORMATS[format_name]
    out = device.xp.empty(1)
    found.from_csr(device, [0, 1], [0], [2.0]).multiply(device, device.xp.ones(1), out)
    assert to_numpy(out).tolist() == [2.0]
    with pytest.raises(AttributeError, match="no attribute 'Dense'"):
        gpu_kernels.explicit.Dense  # noqa: B018
