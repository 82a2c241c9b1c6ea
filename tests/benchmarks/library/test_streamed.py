"""Matrices cut by bytes, and their products streamed to a device part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from benchmarks.library.streamed import StreamedMatrix, parts_by_bytes
from gpu_kernels import Device
from hybrid.matrix.explicit import CsrArrays
from tests.builders.matrices import random_sparse
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice


def arrays(dense: np.ndarray) -> CsrArrays:
    return CsrArrays.from_scipy(csr_matrix(dense))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(120, 500))
def test_parts_by_bytes_keep_their_budget_and_are_as_few_as_can_be(counts: list[int], budget: int) -> None:
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    matrix = CsrArrays((len(counts), 9), starts, np.zeros(starts[-1], np.int32), np.ones(starts[-1]))
    cuts = parts_by_bytes(matrix, budget)
    assert (cuts[0], cuts[-1]) == (0, len(counts))
    parts = [matrix.rows(begin, end) for begin, end in zip(cuts[:-1], cuts[1:], strict=True)]
    assert all(part.nbytes <= budget for part in parts)
    for part, end in zip(parts[:-1], cuts[1:], strict=False):
        assert part.nbytes + 4 + 12 * counts[end] > budget


def test_a_row_larger_than_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="row 0 alone takes 104 bytes, expected at most 50"):
        parts_by_bytes(arrays(np.ones((3, 8))), 50)


@pytest.mark.parametrize("cuts", [[0, 150], [0, 50, 100, 150], [0, 20, 20, 105, 150]])
@pytest.mark.parametrize("wide", [False, True])
def test_streamed_product_equals_the_whole(
    rng: np.random.Generator, device: Device, cuts: list[int], wide: bool
) -> None:
    dense = random_sparse(rng, 150, 90, 0.1)
    dense[100] = 1.0
    narrow = csr_matrix(dense)
    starts = narrow.indptr.astype(np.int64 if wide else np.int32)
    matrix = CsrArrays((150, 90), starts, narrow.indices, narrow.data)
    x = rng.random(90)
    streamed, out = StreamedMatrix(matrix, cuts, device), device.xp.empty(150)
    for _ in range(2):
        streamed.multiply(device.xp.asarray(x), out)
        np.testing.assert_allclose(to_numpy(out), dense @ x, rtol=1e-12)
    largest = max(matrix.rows(begin, end).nbytes for begin, end in zip(cuts[:-1], cuts[1:], strict=True))
    assert streamed.buffer_bytes == 2 * largest


def test_parts_take_turns_in_two_buffers(rng: np.random.Generator) -> None:
    matrix = arrays(random_sparse(rng, 60, 60, 0.2))
    streamed = StreamedMatrix(matrix, [*range(0, 61, 10)], HostDevice())
    used: list[int] = []
    for number, lane in enumerate(streamed._streams):
        run = lane.run
        lane.run = lambda *a, n=number, run=run: (used.append(n), run(*a))  # type: ignore[method-assign]
    streamed.multiply(np.ones(60), np.empty(60))
    assert used == [0, 1, 0, 1, 0, 1]
    assert streamed.buffer_bytes < matrix.nbytes


def test_trace_tells_when_each_part_was_copied_and_multiplied(
    rng: np.random.Generator, device: Device
) -> None:
    dense = random_sparse(rng, 60, 50, 0.2)
    # The second part has no rows: nothing is copied for it.
    streamed = StreamedMatrix(arrays(dense), [0, 20, 20, 45, 60], device)
    x, out = streamed.xp.asarray(rng.random(50)), streamed.xp.empty(60)
    times = streamed.trace(x, out)
    np.testing.assert_allclose(to_numpy(out), dense @ to_numpy(x), rtol=1e-12)
    assert len(times) == 3
    for part in times:
        assert 0.0 <= part.copy_begin <= part.copy_end <= part.product_end
    if streamed.xp is np:
        # The host does one thing after the other.
        assert all(a.product_end <= b.copy_begin for a, b in zip(times[:-1], times[1:], strict=True))


def test_copies_alone_multiply_nothing(rng: np.random.Generator) -> None:
    device = HostDevice()
    streamed = StreamedMatrix(arrays(random_sparse(rng, 60, 60, 0.2)), [0, 15, 30, 45, 60], device)
    streamed.copy_parts()
    assert device.launches == []
    streamed.multiply(np.ones(60), np.empty(60))
    assert len(device.launches) == 4


def test_buffers_without_room_are_refused(rng: np.random.Generator) -> None:
    matrix = arrays(random_sparse(rng, 200, 200, 0.2))
    with pytest.raises(MemoryError, match="two buffers of the largest part need .* cut the matrix into more"):
        StreamedMatrix(matrix, [0, 100, 200], HostDevice(free=1000))


def test_buffers_are_as_large_as_the_largest_part_though_others_have_more_rows(device: Device) -> None:
    n = 2000
    counts = np.where(np.arange(n) < 3 * n // 4, 0, 12)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    columns = np.tile(np.arange(0, n, n // 12, dtype=np.int32)[:12], n // 4)
    matrix = CsrArrays((n, n), starts, columns, np.arange(1.0, len(columns) + 1.0))
    cuts = parts_by_bytes(matrix, matrix.nbytes // 4)
    parts = [matrix.rows(begin, end) for begin, end in zip(cuts[:-1], cuts[1:], strict=True)]
    assert max(part.shape[0] for part in parts[1:]) < parts[0].shape[0]
    streamed = StreamedMatrix(matrix, cuts, device)
    assert streamed.buffer_bytes == 2 * max(part.nbytes for part in parts)
    x, out = streamed.xp.arange(1.0, n + 1.0), streamed.xp.empty(n)
    streamed.multiply(x, out)
    np.testing.assert_allclose(to_numpy(out), matrix.to_scipy() @ np.arange(1.0, n + 1.0), rtol=1e-12)


@pytest.mark.gpu
def test_streamed_copies_overlap_products(rng: np.random.Generator) -> None:
    import cupy

    from gpu_kernels import CudaDevice

    n, width = 400_000, 24
    columns = ((np.arange(n)[:, None] + np.arange(width)) % n).astype(np.int32)
    columns.sort(axis=1)
    starts = np.arange(n + 1, dtype=np.int32) * width
    matrix = CsrArrays((n, n), starts, columns.ravel(), rng.random(n * width))
    x = rng.random(n)
    streamed = StreamedMatrix(matrix, [n * k // 7 for k in range(8)], CudaDevice())
    out = cupy.empty(n)
    for _ in range(3):
        streamed.multiply(cupy.asarray(x), out)
    np.testing.assert_allclose(cupy.asnumpy(out), matrix.to_scipy() @ x, rtol=1e-12)
