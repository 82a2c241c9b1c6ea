"""Row partitions, and products of matrices streamed to the device part by part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from gpu_kernels import Device
from hybrid.explicit import CsrArrays, RowPartition, StreamedOperator
from hybrid.solvers import Criterion, Jacobi, Status
from tests.builders.matrices import random_sparse
from tests.gpu_kernels.devices import to_numpy
from tests.gpu_kernels.host_device import HostDevice


def arrays(dense: np.ndarray) -> CsrArrays:
    return CsrArrays.from_scipy(csr_matrix(dense))


@given(st.integers(0, 200), st.integers(1, 30))
def test_parts_by_rows_differ_by_one_row_at_most(n_rows: int, parts: int) -> None:
    cut = RowPartition.by_rows(n_rows, parts)
    sizes = np.diff(cut.starts)
    assert len(cut) == parts
    assert cut.n_rows == n_rows == sizes.sum()
    assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(1, 8))
def test_parts_by_entries_exceed_their_share_by_one_row_at_most(counts: list[int], parts: int) -> None:
    starts = np.concatenate(([0], np.cumsum(counts)))
    cut = RowPartition.by_entries(starts, parts)
    assert len(cut) == parts
    assert cut.n_rows == len(counts)
    sizes = np.diff(starts[cut.starts])
    assert sizes.sum() == sum(counts)
    assert sizes.max() <= sum(counts) / parts + max(counts) + 1


@given(st.lists(st.integers(0, 9), min_size=0, max_size=40), st.integers(120, 500))
def test_parts_by_bytes_keep_their_budget_and_are_as_few_as_can_be(counts: list[int], budget: int) -> None:
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    matrix = CsrArrays((len(counts), 9), starts, np.zeros(starts[-1], np.int32), np.ones(starts[-1]))
    cut = RowPartition.by_bytes(matrix, budget)
    assert cut.n_rows == len(counts)
    parts = cut.split(matrix)
    assert all(part.nbytes <= budget for part in parts)
    for part, (_, end) in zip(parts[:-1], cut, strict=False):
        assert part.nbytes + 4 + 12 * counts[end] > budget


def test_parts_know_their_rows() -> None:
    cut = RowPartition(np.array([0, 4, 4, 9]))
    assert list(cut) == [(0, 4), (4, 4), (4, 9)]
    assert cut.part_of([0, 3, 4, 8]).tolist() == [0, 0, 2, 2]


def test_wrong_partitions_are_refused(rng: np.random.Generator) -> None:
    for starts in ([0], [1, 3], [0, 5, 3], [[0, 1]]):
        with pytest.raises(ValueError, match="ascending row numbers"):
            RowPartition(np.array(starts))
    with pytest.raises(ValueError, match="at least 1, got 0"):
        RowPartition.by_rows(10, 0)
    matrix = arrays(np.ones((3, 8)))
    with pytest.raises(ValueError, match="row 0 alone takes 104 bytes, expected at most 50"):
        RowPartition.by_bytes(matrix, 50)
    with pytest.raises(ValueError, match="expected 5 rows, got 3"):
        RowPartition.by_rows(5, 2).split(matrix)


@pytest.mark.parametrize("parts", [1, 2, 3, 5, 40])
def test_streamed_product_equals_the_whole(rng: np.random.Generator, device: Device, parts: int) -> None:
    dense = random_sparse(rng, 150, 90, 0.1)
    dense[100] = 1.0
    matrix = arrays(dense)
    x = rng.random(90)
    for on in (None, device):
        for cut in (RowPartition.by_rows(150, parts), RowPartition.by_entries(matrix.row_starts, parts)):
            operator = StreamedOperator(matrix, cut, on)
            assert operator.shape == (150, 90)
            vector = operator.xp.asarray(x)
            for _ in range(2):
                np.testing.assert_allclose(to_numpy(operator.multiply(vector)), dense @ x, rtol=1e-12)
            largest = max(part.nbytes for part in cut.split(matrix))
            assert operator.buffer_bytes == 0 if on is None else operator.buffer_bytes >= 2 * largest


def test_parts_take_turns_in_two_buffers(rng: np.random.Generator) -> None:
    matrix = arrays(random_sparse(rng, 60, 60, 0.2))
    operator = StreamedOperator(matrix, RowPartition.by_rows(60, 6), HostDevice())
    used: list[int] = []
    for number, lane in enumerate(operator._streams):
        run = lane.run
        lane.run = lambda *a, n=number, run=run: (used.append(n), run(*a))  # type: ignore[method-assign]
    operator.multiply(np.ones(60))
    assert used == [0, 1, 0, 1, 0, 1]
    assert operator.buffer_bytes < matrix.nbytes


def test_trace_tells_when_each_part_was_copied_and_multiplied(
    rng: np.random.Generator, device: Device
) -> None:
    dense = random_sparse(rng, 60, 50, 0.2)
    matrix = arrays(dense)
    # The second part has no rows: nothing is copied for it.
    operator = StreamedOperator(matrix, RowPartition(np.array([0, 20, 20, 45, 60])), device)
    x, out = operator.xp.asarray(rng.random(50)), operator.xp.empty(60)
    operator.copy_parts()
    times = operator.trace(x, out)
    np.testing.assert_allclose(to_numpy(out), dense @ to_numpy(x), rtol=1e-12)
    assert len(times) == 3
    for part in times:
        assert 0.0 <= part.copy_begin <= part.copy_end <= part.product_end
    if operator.xp is np:
        # The host does one thing after the other.
        assert all(a.product_end <= b.copy_begin for a, b in zip(times[:-1], times[1:], strict=True))
    with pytest.raises(ValueError, match=r"x: expected shape \(50,\)"):
        operator.trace(operator.xp.ones(3), out)
    on_host = StreamedOperator(matrix, RowPartition.by_rows(60, 2))
    on_host.copy_parts()
    with pytest.raises(ValueError, match="none to copy parts to; make the operator with device="):
        on_host.trace(np.ones(50), np.empty(60))


def test_copies_alone_multiply_nothing(rng: np.random.Generator) -> None:
    device = HostDevice()
    operator = StreamedOperator(arrays(random_sparse(rng, 60, 60, 0.2)), RowPartition.by_rows(60, 4), device)
    operator.copy_parts()
    assert device.launches == []
    operator.multiply(np.ones(60))
    assert len(device.launches) == 4


def test_parts_are_chosen_by_the_memory_that_is_free(rng: np.random.Generator) -> None:
    matrix = arrays(random_sparse(rng, 200, 200, 0.2))
    operator = StreamedOperator(matrix, device=HostDevice(free=matrix.nbytes))
    assert len(operator.partition) >= 4
    assert operator.buffer_bytes <= matrix.nbytes / 2
    with pytest.raises(MemoryError, match="two buffers of the largest part need .* cut the matrix into more"):
        StreamedOperator(matrix, RowPartition.by_rows(200, 2), HostDevice(free=1000))
    with pytest.raises(ValueError, match=r"x: expected shape \(200,\)"):
        operator.multiply(np.ones(3))


def test_buffers_are_as_large_as_the_largest_part_though_others_have_more_rows(device: Device) -> None:
    n = 2000
    counts = np.where(np.arange(n) < 3 * n // 4, 0, 12)
    starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    columns = np.tile(np.arange(0, n, n // 12, dtype=np.int32)[:12], n // 4)
    matrix = CsrArrays((n, n), starts, columns, np.arange(1.0, len(columns) + 1.0))
    cut = RowPartition.by_bytes(matrix, matrix.nbytes // 4)
    parts = cut.split(matrix)
    assert max(part.shape[0] for part in parts[1:]) < parts[0].shape[0]
    operator = StreamedOperator(matrix, cut, device)
    assert operator.buffer_bytes == 2 * max(part.nbytes for part in parts)
    x = operator.xp.arange(1.0, n + 1.0)
    np.testing.assert_allclose(
        to_numpy(operator.multiply(x)), matrix.to_scipy() @ np.arange(1.0, n + 1.0), rtol=1e-12
    )


def test_streamed_matrix_is_solved_with(rng: np.random.Generator, device: Device) -> None:
    dense = random_sparse(rng, 80, 80, 0.1)
    np.fill_diagonal(dense, 0.0)
    diagonal = dense.sum(axis=1) + 1.0
    expected = np.linalg.solve(np.diag(diagonal) - dense, np.ones(80))
    for on in (None, device):
        operator = StreamedOperator(arrays(dense), RowPartition.by_rows(80, 3), on)
        found = Jacobi(Criterion(1e-12)).solve(operator, diagonal, np.ones(80), np.zeros(80))
        assert found.status is Status.CONVERGED
        np.testing.assert_allclose(found.values, expected, rtol=1e-9)


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
    expected = matrix.to_scipy() @ x
    operator = StreamedOperator(matrix, RowPartition.by_rows(n, 7), CudaDevice())
    for _ in range(3):
        found = operator.multiply(cupy.asarray(x))
    np.testing.assert_allclose(cupy.asnumpy(found), expected, rtol=1e-12)
