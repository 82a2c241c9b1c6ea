"""Explicit matrices written out from diagrams, against dense arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from gpu_kernels.runtime.csr import index_types
from hybrid.matrix.explicit import CsrArrays, explicit_matrix, explicit_sizes
from hybrid.matrix.explicit import extract as extraction
from mtbdd.offset.offset import OffsetMTBDD, zero_matrix
from tests.builders.matrices import from_dense, random_codes, random_sparse


def random_case(
    rng: np.random.Generator, n_bits: int, n_rows: int, n_columns: int, density: float
) -> tuple[np.ndarray, OffsetMTBDD]:
    dense = random_sparse(rng, n_rows, n_columns, density)
    return dense, from_dense(
        dense, random_codes(rng, n_bits, n_rows), random_codes(rng, n_bits, n_columns), n_bits
    )


def assert_same(found: CsrArrays, dense: np.ndarray) -> None:
    from scipy.sparse import csr_matrix

    host, expected = found.to_host(), csr_matrix(dense)
    assert host.shape == dense.shape
    np.testing.assert_array_equal(host.row_starts, expected.indptr)
    np.testing.assert_array_equal(host.columns, expected.indices)
    np.testing.assert_array_equal(host.values, expected.data)
    assert host.row_starts.dtype == host.columns.dtype == np.int32
    assert host.nnz == len(expected.data)


@pytest.mark.parametrize(
    ("n_bits", "n_rows", "n_columns", "density"),
    [
        (1, 2, 2, 0.5),
        (4, 9, 16, 0.3),
        (6, 40, 33, 0.1),
        (7, 128, 100, 0.02),
        (8, 130, 200, 0.6),
        (5, 20, 20, 0.0),
    ],
)
def test_extraction_equals_the_dense_matrix(
    rng: np.random.Generator, n_bits: int, n_rows: int, n_columns: int, density: float
) -> None:
    dense, matrix = random_case(rng, n_bits, n_rows, n_columns, density)
    assert_same(explicit_matrix(matrix), dense)


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_chunks_of_any_size_give_the_same(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    dense, matrix = random_case(rng, 6, 50, 60, 0.2)
    monkeypatch.setattr(extraction, "_CHUNK_HOST", chunk)
    assert_same(explicit_matrix(matrix), dense)


@pytest.mark.parametrize("level", range(9))
def test_every_level_to_cut_at_gives_the_same(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    dense, matrix = random_case(rng, 4, 11, 14, 0.3)
    monkeypatch.setattr(extraction, "_cut", lambda matrix: (level, 100, 100))
    assert_same(explicit_matrix(matrix), dense)


def test_extraction_fills_the_arrays_on_the_device(device: Device, rng: np.random.Generator) -> None:
    dense, matrix = random_case(rng, 7, 90, 110, 0.1)
    found = explicit_matrix(matrix, "gpu")
    assert found.xp is device.xp
    assert_same(found, dense)


def test_extraction_of_borders() -> None:
    for matrix, shape in ((zero_matrix(3, 5, 4), (5, 4)), (zero_matrix(0, 1, 1), (1, 1))):
        assert_same(explicit_matrix(matrix), np.zeros(shape))
    assert_same(explicit_matrix(from_dense(np.array([[4.0]]), n_bits=0)), np.array([[4.0]]))
    one_row = np.zeros((33, 64))
    one_row[17] = 2.0
    assert_same(explicit_matrix(from_dense(one_row)), one_row)


def test_extraction_of_a_model_sorts_columns(examples_folder: Path) -> None:
    model = hybrid.load(examples_folder / "kanban.prism", {"t": 2})
    found = hybrid.explicit_matrix(model.transitions)
    assert found.shape == (model.n_states, model.n_states)
    assert found.nnz == model.n_transitions
    row = np.repeat(np.arange(found.shape[0]), np.diff(found.row_starts))
    assert bool((np.diff(row * found.shape[1] + found.columns) > 0).all())
    np.testing.assert_allclose(
        found.to_scipy() @ np.ones(model.n_states), model.exit_rates(model.index), rtol=1e-12
    )


def test_sizes_are_those_of_the_arrays(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "fms.prism", {"n": 3}).transitions
    sizes = explicit_sizes(matrix)
    found = explicit_matrix(matrix)
    assert (sizes.entries, sizes.matrix_bytes) == (found.nnz, found.nbytes)
    assert sizes.peak_bytes > sizes.matrix_bytes


def test_a_matrix_too_large_is_refused_before_anything_is_allocated(examples_folder: Path) -> None:
    matrix = hybrid.load(examples_folder / "kanban.prism", {"t": 10}).transitions
    with pytest.raises(
        MemoryError, match=r"12032229352 entries and needs \d+ bytes .* 1000000 are available"
    ):
        explicit_matrix(matrix, memory_budget=1_000_000)


def test_wrong_arguments_are_refused() -> None:
    matrix = from_dense(np.eye(4))
    with pytest.raises(ValueError, match="expected cpu or gpu, got 'tpu'"):
        explicit_matrix(matrix, "tpu")
    with pytest.raises(TypeError, match="expected an OffsetMTBDD"):
        explicit_matrix(np.eye(4))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 3 elements for 2 rows, got 2"):
        CsrArrays((2, 2), np.zeros(2, np.int32), np.zeros(0, np.int32), np.zeros(0))
    with pytest.raises(ValueError, match="equal lengths, got 1 and 2"):
        CsrArrays((1, 2), np.zeros(2, np.int32), np.zeros(1, np.int32), np.zeros(2))
    with pytest.raises(ValueError, match=r"within 0\.\.4"):
        explicit_matrix(matrix).rows(3, 5)


def test_index_types_widen_at_their_border() -> None:
    assert index_types(2**31 - 1, 2**31 - 1) == (np.int32, np.int32)
    assert index_types(2**31, 2**31) == (np.int64, np.int64)


def test_scipy_matrices_are_cleaned_up() -> None:
    from scipy.sparse import coo_matrix

    doubled = coo_matrix(([1.0, 2.0, 5.0, 0.0], ([1, 1, 0, 0], [2, 2, 1, 0])), shape=(2, 3))
    assert_same(CsrArrays.from_scipy(doubled), np.array([[0.0, 5.0, 0.0], [0.0, 0.0, 3.0]]))
    assert doubled.nnz == 4


def test_rows_are_cut_out(rng: np.random.Generator) -> None:
    dense, matrix = random_case(rng, 5, 30, 25, 0.3)
    whole = explicit_matrix(matrix)
    for begin, end in ((0, 30), (3, 3), (7, 21)):
        assert_same(whole.rows(begin, end), dense[begin:end])
