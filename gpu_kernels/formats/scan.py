"""Row-compressed storage whose product is a segmented scan over all entries ([BESW10] §II, method M2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpu_kernels._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.csr import CsrArrays
from gpu_kernels.device import Device
from gpu_kernels.formats.arrays import INDEX_MARGIN
from gpu_kernels.formats.matrix import THREADS, with_dictionary
from gpu_kernels.formats.msr import Msr

Array = Any

ITEMS = 8
"""Elements that a thread scans; the number of cuda/scan.cu."""

LANES = 32

_ROW_BYTES = 17
"""A row: whether it is empty at the end, and where it begins, twice."""

_ENTRY_BYTES = 12
"""An entry: its product, its flag, and copies of flags while a level is made of the one below."""

_TILE_BYTES = 8 * THREADS * ITEMS
"""What the last tiles of all levels lack."""


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
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int) -> int:
        """Return the bytes of products and of flags on all levels, of rows' starts, and of values."""
        return _ROW_BYTES * n_rows + _ENTRY_BYTES * entries + _TILE_BYTES + cls._stored_bytes(entries)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays) -> Self:
        xp, entries = device.xp, len(csr.columns)
        flags = xp.zeros(entries, np.uint8)
        starts = csr.row_starts[:-1]
        flags[starts[starts < entries]] = 1
        values = cls._store_values(device, csr, None, entries)
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


CmsrScan = with_dictionary("CmsrScan", MsrScan)
