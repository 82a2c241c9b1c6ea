"""Row-compressed storage: row starts, columns, values ([WB13] §4.1, [CB12] §4), and its products.

`Msr` takes a thread a row, `MsrScan` a segmented scan over all entries, `MsrStream` equal parts of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpu_kernels.explicit.matrix import INDEX_MARGIN, THREADS, ExplicitMatrix
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.runtime.coded import array_module, owners
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.device import Device

Array = Any

ITEMS = 8
"""Elements that a thread scans; the number of cuda/scan.cu."""

LANES = 32

_SCAN_ROW_BYTES = 17
"""A row: whether it is empty at the end, and where it begins, twice."""

_SCAN_ENTRY_BYTES = 12
"""An entry: its product, its flag, and copies of flags while a level is made of the one below."""

_SCAN_TILE_BYTES = 8 * THREADS * ITEMS
"""Rows that the last tiles of all levels lack."""

STREAM_TILE = 2048
"""Entries of a tile; the number of cuda/stream.cu."""

_STREAM_TILE_BYTES = 48
"""A tile: its first row and its lead, and on the way its first entry and the row found for it."""


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
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int, compact: bool) -> int:
        """Return the bytes of a dictionary; nothing else is made."""
        return cls._stored_bytes(entries, None, compact)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        values = cls._store_values(device, csr, None, len(csr.values), compact)
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
        kernel = device.kernel("msr.cu", "multiply_rows", self._macros(index))
        arguments = (
            index.type(self.shape[0]),
            self.row_starts,
            self.columns,
            *self._value_arguments(),
            x,
            out,
        )
        kernel((blocks_for(self.shape[0], THREADS),), (THREADS,), arguments)


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """Flags and scratch of backward inclusive segmented scans over one array, made once.

    Level 0 is the array itself. An element of the next level is the result at a tile's first element; the
    levels end with one tile.

    Attributes
    ----------
    flags : tuple of ndarray, uint8
        One array a level: 1 where a segment begins.
    sums : tuple of ndarray, float64
        One array a level from level 1 on, scratch of the scan.
    threads : int
        Threads of a block that scans a tile of `ITEMS` elements for each of them.
    """

    flags: tuple[Array, ...]
    sums: tuple[Array, ...]
    threads: int = THREADS

    @classmethod
    def create(cls, device: Device, flags: Array, threads: int = THREADS) -> ScanPlan:
        """Return the plan for an array with these flags, shape (n,), uint8.

        Threads are a multiple of 32. Time: O(n). Synchronises: no.
        """
        xp, tile = device.xp, threads * ITEMS
        levels, sums = [flags], []
        while len(flags) > tile:
            tiles = -(-len(flags) // tile)
            padded = xp.zeros(tiles * tile, np.uint8)
            padded[: len(flags)] = flags
            heads = padded.reshape(tiles, tile)
            # The sum from a tile's first element on stops within the tile, or at its right border.
            upper = xp.ones(tiles, np.uint8)
            upper[1:] = (heads[:-1, 1:].max(axis=1) > 0) | (heads[1:, 0] > 0)
            flags = upper
            levels.append(flags)
            sums.append(xp.empty(tiles))
        return cls(tuple(levels), tuple(sums), threads)

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(array.nbytes) for array in (*self.flags, *self.sums))

    def run(self, device: Device, values: Array, wide: bool = False) -> None:
        """Queue the scan in place: every element becomes the sum from itself to the end of its segment.

        Parameters
        ----------
        device : Device
        values : ndarray, shape (n,), float64
        wide : bool
            Use 64-bit indices.

        Notes
        -----
        Reads and writes every element once, and once more those of segments that go on into the next tile.
        No block waits for another. Deterministic. Synchronises: no.
        """
        check_vector(device, values, len(self.flags[0]), "values")
        if not len(values):
            return
        bits = index_bits(len(values) + INDEX_MARGIN, wide)
        special, index = macros(INDEX_BITS=bits, VALUE_BITS=64, SCAN_THREADS=self.threads), index_type(bits)
        scan = device.kernel("scan.cu", "scan_tiles", special)
        carry = device.kernel("scan.cu", "add_carries", special)
        levels = (values, *self.sums)
        null = np.uint64(0)
        for level, (flags, array) in enumerate(zip(self.flags, levels, strict=True)):
            above = levels[level + 1] if level + 1 < len(levels) else null
            scan(
                (blocks_for(len(array), self.threads * ITEMS),),
                (self.threads,),
                (index(len(array)), flags, array, above),
            )
        for level in reversed(range(len(self.sums))):
            flags, array, above = self.flags[level], levels[level], levels[level + 1]
            arguments = (index(len(array)), flags, above, array)
            carry((blocks_for((len(above) - 1) * LANES, self.threads),), (self.threads,), arguments)


@dataclass(frozen=True, eq=False)
class MsrScan(Msr):
    """Row-compressed storage; all products, a segmented scan, and the first element of every row.

    Attributes
    ----------
    plan : ScanPlan
        Flags where rows begin.
    products : ndarray, shape (entries,), float64
        Scratch: one product at a time.
    """

    plan: ScanPlan
    products: Array

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int, compact: bool) -> int:
        """Return the bytes of products and of flags on all levels, of rows' starts, and of values."""
        return (
            _SCAN_ROW_BYTES * n_rows
            + _SCAN_ENTRY_BYTES * entries
            + _SCAN_TILE_BYTES
            + cls._stored_bytes(entries, None, compact)
        )

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        xp, entries = device.xp, len(csr.columns)
        flags = xp.zeros(entries, np.uint8)
        starts = csr.row_starts[:-1]
        flags[starts[starts < entries]] = 1
        values = cls._store_values(device, csr, None, entries, compact)
        plan = ScanPlan.create(device, flags)
        return cls(csr.shape, values, csr.row_starts, csr.columns, plan, xp.empty(entries))

    @property
    def traffic_bytes(self) -> int:
        """Bytes that a product moves at least; all products are written, read and written again."""
        return super().traffic_bytes + 2 * int(self.products.nbytes) + 8 * self.shape[0]

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.row_starts.dtype
        wide = bool(index == np.int64)
        n_rows, entries = index.type(self.shape[0]), index.type(self.n_elements)
        special = self._macros(index, SCAN_THREADS=self.plan.threads)
        if self.n_elements:
            kernel = device.kernel("scan.cu", "multiply_entries", special)
            arguments = (entries, self.columns, *self._value_arguments(), x, self.products)
            kernel((blocks_for(self.n_elements, THREADS),), (THREADS,), arguments)
            self.plan.run(device, self.products, wide)
        kernel = device.kernel("scan.cu", "take_rows", special)
        kernel(
            (blocks_for(self.shape[0], THREADS),), (THREADS,), (n_rows, self.row_starts, self.products, out)
        )


@dataclass(frozen=True, eq=False)
class MsrStream(Msr):
    """Row-compressed storage cut into equal parts of its entries, for rows of any lengths.

    A block makes the products of a tile of consecutive entries in shared memory and adds up the rows there.
    Rows that go on into later tiles get the sums of those in a second launch.  So it is [BESW10]'s M2 without
    the products' way to memory and back.

    Sources of the ideas: J. Greathouse, M. Daga, "Efficient sparse matrix-vector multiplication on GPUs using
    the CSR storage format", SC 2014 (sums in shared memory); D. Merrill, M. Garland, "Merge-based parallel
    sparse matrix-vector multiplication", SC 2016 (equal parts).

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
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int, compact: bool) -> int:
        """Return the bytes of tiles and of a dictionary."""
        return _STREAM_TILE_BYTES * (entries // STREAM_TILE + 2) + cls._stored_bytes(entries, None, compact)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        xp, entries = device.xp, len(csr.columns)
        tiles = max(1, -(-entries // STREAM_TILE))
        index = csr.row_starts.dtype
        tile_rows = xp.full(tiles + 1, csr.shape[0], index)
        begins = xp.arange(tiles, dtype=index) * STREAM_TILE
        tile_rows[:-1] = xp.searchsorted(csr.row_starts[:-1], begins, side="left")
        values = cls._store_values(device, csr, None, entries, compact)
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
            blocks = blocks_for(tiles * LANES, THREADS)
            kernel(
                (blocks,), (THREADS,), (index.type(tiles), self.tile_rows, self.row_starts, self.leads, out)
            )
