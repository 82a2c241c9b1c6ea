"""Matrices for the contract of the explicit formats, and what is checked of a format's matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from gpu_kernels import FORMATS, Device, ExplicitMatrix
from gpu_kernels.runtime.coded import array_module
from tests.gpu_kernels.devices import to_numpy

__all__ = ["PORTABLE", "assert_product", "assert_round_trip", "banded", "convert", "random_matrix"]

PORTABLE = sorted(set(FORMATS) - {"cusparse"})


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


def n_entries(form: ExplicitMatrix) -> int:
    """Elements without padding."""
    return int((form.element_columns() >= 0).sum())


def array_product(form: ExplicitMatrix, x: np.ndarray) -> np.ndarray:
    """Return M x from the format's own arrays, where they lie."""
    rows, columns = form.element_rows(), form.element_columns()
    live = columns >= 0
    products = form.plain_values()[live] * x[columns[live]]
    return array_module(x).bincount(rows[live], weights=products, minlength=form.shape[0]).astype(np.float64)


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
    twin = to_numpy(array_product(form, operand))
    np.testing.assert_array_less(abs(twin - matrix @ x), 1e-14 * (1 + matrix.shape[1]) * scale + 1e-300)


def assert_round_trip(form: ExplicitMatrix, matrix: scipy.sparse.csr_matrix) -> None:
    starts, columns, values = (to_numpy(a) for a in form.to_csr())
    np.testing.assert_array_equal(starts, matrix.indptr)
    np.testing.assert_array_equal(columns, matrix.indices)
    np.testing.assert_array_equal(values.view(np.int64), matrix.data.view(np.int64))
    assert n_entries(form) == matrix.nnz <= form.n_elements
    assert form.shape == matrix.shape
