"""Row-compressed storage: row starts, columns, values ([WB13] §4.1, [CB12] §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from gpu_kernels._launch import blocks_for
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.matrix import THREADS, ExplicitMatrix, with_dictionary
from gpu_kernels.ragged import array_module, owners

Array = Any


@dataclass(frozen=True, eq=False)
class Msr(ExplicitMatrix):
    """Entries row after row; the product takes a thread a row ([WB13] Algorithm 1, [BESW10]'s method M1).

    Arrays that already lie on the device with the right types are shared with the caller.

    Attributes
    ----------
    row_starts : ndarray, shape (n_rows + 1,), int32 or int64
    columns : ndarray, shape (entries,), int32
    """

    row_starts: Array
    columns: Array

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the bytes of a dictionary; nothing else is made."""
        return cls._stored_bytes(entries)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        values = cls._store_values(device, csr, None, len(csr.values))
        return cls(csr.shape, values, csr.row_starts, csr.columns)

    def element_rows(self) -> Array:
        """Return the row of every entry."""
        return owners(array_module(self.row_starts), self.row_starts, self.n_elements)

    def element_columns(self) -> Array:
        """Return the columns as they are."""
        return self.columns

    def _places(self, csr: CsrArrays) -> Array:
        return array_module(self.columns).arange(self.n_elements)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.row_starts.dtype
        kernel = device.kernel("msr.cu", "multiply_rows", self._macros(index, SUBWARP=1))
        arguments = (
            index.type(self.shape[0]),
            self.row_starts,
            self.columns,
            *self._value_arguments(),
            x,
            out,
        )
        kernel((blocks_for(self.shape[0], THREADS),), (THREADS,), arguments)


Cmsr = with_dictionary("Cmsr", Msr)


@dataclass(frozen=True, eq=False)
class MsrSubwarp(Msr):
    """Row-compressed storage whose product takes 2 to 32 lanes of a warp for a row."""

    @property
    def subwarp(self) -> int:
        """Lanes a row: the least power of two that is not below the mean length, 2 to 32."""
        lanes = 2
        while lanes < 32 and lanes * self.shape[0] < self.n_elements:
            lanes *= 2
        return lanes

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index, lanes = self.row_starts.dtype, self.subwarp
        kernel = device.kernel("msr.cu", "multiply_rows_by_subwarps", self._macros(index, SUBWARP=lanes))
        arguments = (
            index.type(self.shape[0]),
            self.row_starts,
            self.columns,
            *self._value_arguments(),
            x,
            out,
        )
        kernel((blocks_for(self.shape[0], THREADS // lanes),), (THREADS,), arguments)


CmsrSubwarp = with_dictionary("CmsrSubwarp", MsrSubwarp)
