"""An explicit matrix in compressed sparse rows, on the host or on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import index_bits, index_type
from gpu_kernels.runtime.coded import array_module, owners
from gpu_kernels.runtime.device import Device

Array = Any
"""A NumPy or CuPy array."""


def index_types(n_columns: int, entries: int) -> tuple[Any, Any]:
    """Return the types of row starts and of columns: int32, or int64 where the counts need it."""
    return index_type(index_bits(entries)), index_type(index_bits(n_columns))


@dataclass(frozen=True, eq=False)
class CsrArrays:
    """A matrix in compressed sparse rows; the columns of a row ascend.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    row_starts : ndarray, shape (n_rows + 1,), int32 or int64
        Entries of row r are ``row_starts[r] .. row_starts[r + 1]``.
    columns : ndarray, shape (entries,), int32 or int64
    values : ndarray, shape (entries,), float64
        All three arrays lie on the host or all three on the device.

    Raises
    ------
    ValueError
        If the lengths do not fit each other.
    """

    shape: tuple[int, int]
    row_starts: Array
    columns: Array
    values: Array

    def __post_init__(self) -> None:
        """Compare the lengths; the last row start is the caller's promise, for it may lie on the device."""
        if len(self.row_starts) != self.shape[0] + 1:
            raise ValueError(
                f"row_starts: expected {self.shape[0] + 1} elements for {self.shape[0]} rows, "
                f"got {len(self.row_starts)}"
            )
        if len(self.columns) != len(self.values):
            raise ValueError(
                f"columns and values: expected equal lengths, got {len(self.columns)} and {len(self.values)}"
            )

    @classmethod
    def from_scipy(cls, matrix: Any) -> CsrArrays:
        """Return a SciPy or CuPy sparse matrix in this form: sorted, without zeros, duplicates added up."""
        csr = matrix.tocsr().copy()
        csr.sum_duplicates()
        csr.sort_indices()
        row_starts, columns, values = csr.indptr, csr.indices, csr.data
        # CuPy's eliminate_zeros has been seen to drop negative entries, too.
        kept = values != 0.0
        before = array_module(values).zeros(len(values) + 1, np.int64)
        before[1:] = kept.cumsum()
        row_starts = before[row_starts]
        starts, index = index_types(csr.shape[1], int(before[-1]))
        return cls(
            (int(csr.shape[0]), int(csr.shape[1])),
            row_starts.astype(starts),
            columns[kept].astype(index),
            values[kept].astype(np.float64),
        )

    @property
    def xp(self) -> Any:
        """Array module of the three arrays."""
        return array_module(self.values)

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return int(self.row_starts.nbytes + self.columns.nbytes + self.values.nbytes)

    def lengths(self) -> Array:
        """Return the entries of every row, shape (n_rows,), int64."""
        return (self.row_starts[1:] - self.row_starts[:-1]).astype(np.int64)

    def ranks(self) -> tuple[Array, Array]:
        """Return row and position within the row of every entry, shape (entries,), int64."""
        rows = owners(self.xp, self.row_starts, self.nnz)
        ranks = self.xp.arange(self.nnz, dtype=np.int64)
        ranks -= self.row_starts[rows]
        return rows, ranks

    def to_scipy(self) -> Any:
        """Return a ``csr_matrix`` of SciPy, or of CuPy on the device; it shares the arrays where it can."""
        if self.xp is np:
            from scipy.sparse import csr_matrix
        else:
            from cupyx.scipy.sparse import csr_matrix
        return csr_matrix((self.values, self.columns, self.row_starts), shape=self.shape)

    def to_host(self) -> CsrArrays:
        """Return the matrix on the host, itself if it is there already."""
        if self.xp is np:
            return self
        return CsrArrays(self.shape, self.row_starts.get(), self.columns.get(), self.values.get())

    def to_device(self, device: Device) -> CsrArrays:
        """Return the matrix copied to a device."""
        xp = device.xp
        arrays = (xp.asarray(a) for a in (self.row_starts, self.columns, self.values))
        return CsrArrays(self.shape, *arrays)

    def rows(self, begin: int, end: int) -> CsrArrays:
        """Return the rows begin .. end; columns and values are views. Synchronises: yes, for two numbers."""
        if not 0 <= begin <= end <= self.shape[0]:
            raise ValueError(f"rows: expected a range within 0..{self.shape[0]}, got {begin}..{end}")
        first, last = int(self.row_starts[begin]), int(self.row_starts[end])
        starts = self.row_starts[begin : end + 1] - first
        shape = (end - begin, self.shape[1])
        return CsrArrays(shape, starts, self.columns[first:last], self.values[first:last])
