"""Memory is asked for before a format is made: refusals say how much, and it is as much as is taken."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse

from gpu_kernels import FORMATS
from gpu_kernels.explicit import matrix as formats
from tests.contracts.formats import PORTABLE
from tests.exploring import each
from tests.gpu_kernels.host_device import HostDevice
from tests.gpu_kernels.metered import assert_room_is_asked_for


@functools.cache
def matrix_of(n: int, width: int) -> scipy.sparse.csr_matrix:
    """Rows of up to so many entries, a few of them long, with some values."""
    rng = np.random.default_rng(4711)
    lengths = rng.integers(0, width, n)
    lengths[:: n // 5] = 4 * width
    starts = np.append(0, np.cumsum(lengths))
    columns = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths) + np.repeat(np.arange(n) // 2, lengths)
    columns %= n
    data = rng.choice(np.arange(1.0, 300.0), len(columns))
    return scipy.sparse.csr_matrix((data, columns, starts), shape=(n, n))


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("wide", [False, True])
def test_formats_that_do_not_fit_say_so(name: str, wide: bool) -> None:
    ones = scipy.sparse.csr_matrix(np.ones((40, 40)))
    # Of other types than the kernels read, so that every format copies them.
    arrays = ones.indptr.astype(np.int16), ones.indices.astype(np.int64), ones.data.astype(np.float32)
    with pytest.raises(
        MemoryError, match=r"of 1600 entries needs \d+ bytes and 5000 are free on host; use a"
    ):
        FORMATS[name].from_csr(HostDevice(free=5000), *arrays, 40, wide=wide)


@pytest.mark.parametrize(("name", "rows", "entries"), each(PORTABLE, [(12_000, 8), (2000, 60)]))
def test_what_is_asked_for_covers_the_peak(name: str, rows: int, entries: int) -> None:
    matrix = matrix_of(rows, entries)
    columns = matrix.indices.astype(np.int64)

    def convert(device: HostDevice) -> object:
        return FORMATS[name].from_csr(device, matrix.indptr, columns, matrix.data)

    # NumPy takes less than CuPy to sort and to look up rows, which is asked for.
    assert_room_is_asked_for(convert, slack=12.0 if FORMATS[name].compact else 4.0)


def test_arrays_that_are_there_take_no_room() -> None:
    matrix = matrix_of(500, 4)
    form = FORMATS["msr"].from_csr(HostDevice(free=500), matrix.indptr, matrix.indices, matrix.data)
    assert form.columns is matrix.indices or np.may_share_memory(form.columns, matrix.indices)
    with pytest.raises(MemoryError, match="needs 500 bytes and 499 are free"):
        FORMATS["msr"].from_csr(HostDevice(free=499), matrix.indptr, matrix.indices, matrix.data)


def test_padding_is_asked_for_once_it_is_known() -> None:
    # One long row in each slice: sliced ELL has 20 times as many elements as the matrix has entries.
    lengths = np.where(np.arange(640) % 32 == 0, 60, 1)
    columns = np.concatenate([np.arange(k) for k in lengths])
    starts = np.append(0, np.cumsum(lengths))
    entries = int(starts[-1])
    for name in ("sell", "msr-wl"):
        kind = FORMATS[name]
        room = kind.conversion_bytes(640, entries, entries) + 20 * entries + 3000
        with pytest.raises(MemoryError, match=rf"{kind.kind.__name__} with {32 * 60 * 20} elements needs"):
            kind.from_csr(HostDevice(free=room), starts, columns, np.ones(entries), 60)


def test_dictionaries_of_many_values_are_refused(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_CHUNK", 100)
    few, many = np.resize([1.0, 2.0], 1000), rng.random(1000)
    free = formats.dictionary_bytes(1000) + 4000
    assert formats.encode_values(HostDevice(free=free), few).bits == 8
    with pytest.raises(MemoryError, match=r"a dictionary of up to \d+ values needs"):
        formats.encode_values(HostDevice(free=free), many)
