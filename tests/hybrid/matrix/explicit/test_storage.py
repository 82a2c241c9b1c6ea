"""The choice of a format by row lengths, values and room; operators that keep one form of their matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from gpu_kernels import Device
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator, explicit_sizes
from hybrid.matrix.explicit.operators import choose_storage, least_device_bytes
from tests.builders.matrices import from_dense
from tests.gpu_kernels.devices import to_numpy

ROOM = 1 << 40


def rows_of(lengths: list[int], n_values: int = 3) -> CsrArrays:
    """Return a matrix with rows of given lengths, from column 0, and about so many values."""
    starts = np.concatenate(([0], np.cumsum(lengths)))
    columns = np.concatenate([np.arange(n) for n in lengths] or [np.zeros(0, np.int64)])
    values = 1.0 + np.arange(len(columns)) % n_values
    width = max(lengths, default=1)
    return CsrArrays((len(lengths), width), starts.astype(np.int32), columns.astype(np.int32), values)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([5] * 96, "csell"),
        ([8, 6] * 48, "csell"),
        ([2] * 31 + [30] + [2] * 64, "cmsr"),
        ([3] * 95 + [257], "cmsr-stream"),
        ([65] * 96, "cmsr-stream"),
        ([64] * 96, "csell"),
        ([0, 0, 0], "cmsr"),
        ([], "cmsr"),
    ],
)
def test_lengths_decide(device: Device, lengths: list[int], expected: str) -> None:
    matrix = rows_of(lengths)
    assert choose_storage(matrix, ROOM) == expected
    assert choose_storage(matrix.to_device(device), ROOM, 3) == expected


def test_sliced_ell_needs_room(rng: np.random.Generator) -> None:
    assert choose_storage(rows_of([5] * 96), 20_000) == "cmsr"


def test_many_values_have_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = rows_of([7] * 9_600, n_values=65_537)
    assert choose_storage(matrix, ROOM) == "sell"
    assert choose_storage(matrix, ROOM, n_values=100_000) == "sell"
    assert choose_storage(rows_of([7] * 9_600, n_values=65_536), ROOM) == "csell"
    # Part by part: as many values are found.
    monkeypatch.setattr("hybrid.matrix.explicit.operators._CHUNK", 1000)
    assert choose_storage(matrix, ROOM) == "sell"


def test_operators_multiply_and_give_their_matrix_back(device: Device, rng: np.random.Generator) -> None:
    scipy_matrix = csr_matrix(random_array((90, 70), density=0.1, rng=rng))
    matrix = CsrArrays.from_scipy(scipy_matrix)
    for storage in ("auto", "msr-stream", "csell"):
        operator = ExplicitOperator(matrix.to_device(device), device, storage)
        assert operator.storage == (storage if storage != "auto" else choose_storage(matrix, ROOM))
        assert (operator.backend, operator.shape, operator.nnz) == ("gpu", (90, 70), matrix.nnz)
        x = rng.random(70)
        product = to_numpy(operator @ device.xp.asarray(x))
        np.testing.assert_allclose(product, scipy_matrix @ x, rtol=1e-13)
        again = operator.matrix
        for mine, own in (
            (again.row_starts, matrix.row_starts),
            (again.columns, matrix.columns),
            (again.values, matrix.values),
        ):
            np.testing.assert_array_equal(to_numpy(mine), own)
    host = ExplicitOperator(matrix)
    assert (host.backend, host.storage, host.shape) == ("cpu", "csr", (90, 70))
    assert all(
        np.shares_memory(getattr(host.matrix, name), getattr(matrix, name))
        for name in ("row_starts", "columns", "values")
    )


def test_bytes_grow_with_what_the_dictionary_needs() -> None:
    sizes = explicit_sizes(from_dense(np.eye(8)), "gpu")
    few, more, many = (least_device_bytes(sizes, n) for n in (3, 300, 70_000))
    assert sizes.matrix_bytes < many <= few <= more


@pytest.mark.parametrize("name", ["StreamedOperator", "RowPartition", "PartTimes"])
def test_names_that_were_taken_out_say_what_to_use(name: str) -> None:
    import hybrid.matrix.explicit

    with pytest.raises(ImportError, match=rf"hybrid.matrix.explicit.{name} was taken out: \w+"):
        getattr(hybrid.matrix.explicit, name)


def test_formats_that_were_taken_out_say_what_to_choose(device: Device) -> None:
    with pytest.raises(ValueError, match="'csell-sorted' was taken out, choose 'csell' in its place"):
        ExplicitOperator(rows_of([5] * 96).to_device(device), device, "csell-sorted")
