"""Row-compressed storage cut into equal parts of its entries, whatever the rows' lengths are.

A block makes the products of a tile of consecutive entries in shared memory and adds up the rows there. Rows
that go on into later tiles get the sums of those in a second launch. So it is [BESW10]'s M2 without the
products' way to memory and back.

Sources of the ideas: J. Greathouse, M. Daga, "Efficient sparse matrix-vector multiplication on GPUs using the
CSR storage format", SC 2014 (sums in shared memory); D. Merrill, M. Garland, "Merge-based parallel sparse
matrix-vector multiplication", SC 2016 (equal parts).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from gpu_kernels._launch import blocks_for
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.matrix import THREADS, with_dictionary
from gpu_kernels.formats.msr import Msr

Array = Any

STREAM_TILE = 2048
"""Entries of a tile; the number of cuda/stream.cu."""

_LANES = 32

_TILE_BYTES = 48
"""A tile: its first row and its lead, and on the way its first entry and the row found for it."""


@dataclass(frozen=True, eq=False)
class MsrStream(Msr):
    """Row-compressed storage in tiles of entries.

    Attributes
    ----------
    tile_rows : ndarray, shape (tiles + 1,), int32 or int64
        First row that begins in every tile or later; the last tile has all rows that are left.
    leads : ndarray, shape (tiles,), float64
        Scratch: what every tile adds to the row that began before it. One product at a time.
    """

    tile_rows: Array
    leads: Array

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the bytes of tiles and of a dictionary."""
        return _TILE_BYTES * (entries // STREAM_TILE + 2) + cls._stored_bytes(entries)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        xp, entries = device.xp, len(csr.columns)
        tiles = max(1, -(-entries // STREAM_TILE))
        index = csr.row_starts.dtype
        tile_rows = xp.full(tiles + 1, csr.shape[0], index)
        begins = xp.arange(tiles, dtype=index) * STREAM_TILE
        tile_rows[:-1] = xp.searchsorted(csr.row_starts[:-1], begins, side="left")
        values = cls._store_values(device, csr, None, entries)
        return cls(csr.shape, values, csr.row_starts, csr.columns, tile_rows, xp.empty(tiles))

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index, tiles = self.row_starts.dtype, len(self.leads)
        kernel = device.kernel("stream.cu", "multiply_tiles", self._macros(index))
        arguments = (
            index.type(self.n_elements), self.tile_rows, self.row_starts, self.columns,
            *self._value_arguments(), x, out, self.leads,
        )  # fmt: skip
        kernel((tiles,), (THREADS,), arguments)
        if tiles > 1:
            kernel = device.kernel("stream.cu", "add_leads", self._macros(index))
            blocks = blocks_for(tiles * _LANES, THREADS)
            kernel(
                (blocks,), (THREADS,), (index.type(tiles), self.tile_rows, self.row_starts, self.leads, out)
            )


CmsrStream = with_dictionary("CmsrStream", MsrStream)
