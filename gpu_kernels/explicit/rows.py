"""Row-compressed storage: row starts, columns, values ([WB13] §4.1, [CB12] §4), and its products.

`Msr` takes a thread a row, `MsrScan` a segmented scan over all entries, `MsrStream` equal parts of them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from gpu_kernels.explicit.matrix import (
    INDEX_MARGIN,
    THREADS,
    ExplicitMatrix,
    index_for,
    longest_of,
    require_memory,
)
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_bits, index_type, macros
from gpu_kernels.runtime.coded import array_module, owners, pointers
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.device import CudaDevice, Device

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


# Rows in segments whose entries lie side by side for the threads of a warp.
#
# `MsrWarp` and `MsrHalfWarp` are the segments of [WB13] §§4.2 and 4.3; `Sell` is sliced ELL, whose kernel has
# several elements of a row under way.


_ROW_BYTES = 40
"""A row: its length, twice, and what is known of its segment, which may have two rows only."""

_PLACE_BYTES, _PLACING_BYTES = 8, 32
"""An entry's place, and what finding it takes: row, rank, lane, and one step of the way."""


@dataclass(frozen=True, eq=False)
class MsrWarp(ExplicitMatrix):
    """Segments of as many rows as a warp has threads; the product takes a thread a row ([WB13] Algorithm 2).

    Within a segment come the first entries of all rows, then the second ones, and so on; shorter rows are
    padded. The last segment has ``remainder`` rows and no padding for rows that do not exist.

    Attributes
    ----------
    segment_starts : ndarray, shape (segments + 1,), int32 or int64
    columns : ndarray, shape (elements,), int32
        -1 for padding.
    """

    warp: ClassVar[int] = 32
    """Threads of a warp, a power of two up to 32; the worked examples have 4."""
    threads_a_row: ClassVar[int] = 1
    kernel_name: ClassVar[str] = "multiply_warp_segments"

    segment_starts: Array
    columns: Array

    @classmethod
    def segment_rows(cls) -> int:
        """Return the rows of a segment that is not the last."""
        return cls.warp // cls.threads_a_row

    @property
    def remainder(self) -> int:
        """Rows of the last segment (n_rem)."""
        rows = self.segment_rows()
        return (self.shape[0] - 1) % rows + 1 if self.shape[0] else 0

    @classmethod
    def conversion_bytes(cls, n_rows: int, entries: int, elements: int, compact: bool) -> int:
        """Return the bytes of lengths and segments, of places while they are found, or of all elements."""
        storing = _PLACE_BYTES * entries + 4 * elements + cls._stored_bytes(entries, elements, compact)
        return _ROW_BYTES * n_rows + max(_PLACING_BYTES * entries, storing)

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        rounds = -(-longest_of(csr.lengths(), cls.segment_rows()) // cls.threads_a_row)
        starts = pointers(device.xp, rounds * cls._skips(device.xp, csr.shape[0]))
        elements = int(starts[-1])
        cls._require(device, csr, elements, compact)
        places = cls._places_from(csr, starts)
        columns = device.xp.full(elements, -1, np.int32)
        columns[places] = csr.columns
        values = cls._store_values(device, csr, places, elements, compact)
        return cls(csr.shape, values, starts.astype(index_for(csr, elements)), columns)

    @classmethod
    def _skips(cls, xp: Any, n_rows: int) -> Array:
        """Return the threads of every segment: the distance between elements of one thread."""
        rows = cls.segment_rows()
        segments = -(-n_rows // rows)
        skips = xp.full(segments, cls.warp, np.int64)
        skips[segments - 1 :] = (n_rows - (segments - 1) * rows) * cls.threads_a_row
        return skips

    @classmethod
    def _places_from(cls, csr: CsrArrays, starts: Array) -> Array:
        # In place: a temporary array takes as much room as two thirds of the matrix.
        segments, places = csr.ranks()
        lanes = segments % cls.segment_rows()
        lanes *= cls.threads_a_row
        lanes += places % cls.threads_a_row
        segments //= cls.segment_rows()
        places //= cls.threads_a_row
        places *= cls._skips(array_module(starts), csr.shape[0])[segments]
        places += starts[segments]
        places += lanes
        return places

    def _places(self, csr: CsrArrays) -> Array:
        return self._places_from(csr, self.segment_starts.astype(np.int64))

    def element_rows(self) -> Array:
        """Return the row of every element, padding included."""
        xp = array_module(self.columns)
        starts = self.segment_starts.astype(np.int64)
        segments = owners(xp, starts, self.n_elements)
        lanes = (xp.arange(self.n_elements) - starts[segments]) % self._skips(xp, self.shape[0])[segments]
        return segments * self.segment_rows() + lanes // self.threads_a_row

    def element_columns(self) -> Array:
        """Return the columns as they are."""
        return self.columns

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.segment_starts.dtype
        kernel = device.kernel("segments.cu", self.kernel_name, self._macros(index, WARP=self.warp))
        scalars = (index.type(len(self.segment_starts) - 1), index.type(self.remainder))
        arguments = (*scalars, self.segment_starts, self.columns, *self._value_arguments(), x, out)
        kernel((blocks_for(self.shape[0] * self.threads_a_row, THREADS),), (THREADS,), arguments)


@dataclass(frozen=True, eq=False)
class MsrHalfWarp(MsrWarp):
    """Segments of half as many rows; the product takes two threads a row ([WB13] Algorithm 3).

    Within a segment come the first two entries of all rows, then the next two, and so on.
    """

    threads_a_row: ClassVar[int] = 2
    kernel_name: ClassVar[str] = "multiply_half_warp_segments"


@dataclass(frozen=True, eq=False)
class Sell(MsrWarp):
    """Sliced ELL: the segments of a full warp, the last one padded as well, and a loop with loads under way.

    Source of the format: M. Kreutzer et al., "A unified sparse matrix data format for efficient general
    sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput.
    36(5), 2014 (SELL-C-sigma).  Here C is a warp, and no rows are sorted.
    """

    @classmethod
    def _skips(cls, xp: Any, n_rows: int) -> Array:
        return xp.full(-(-n_rows // cls.warp), cls.warp, np.int64)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        index = self.segment_starts.dtype
        kernel = device.kernel("sell.cu", "multiply_slices", self._macros(index))
        arguments = (
            index.type(self.shape[0]), self.segment_starts, self.columns, *self._value_arguments(), x, out,
        )  # fmt: skip
        kernel((blocks_for(self.shape[0], THREADS),), (THREADS,), arguments)


# cuSPARSE's product with a matrix in compressed sparse rows, by its own call; the plan is made once.


CSR_ALGORITHMS = {"default": 0, "csr-1": 2, "csr-2": 3}
"""cuSPARSE's numbers of its algorithms for CSR; the second gives the same bits in every run."""

_DOUBLE = 1
"""CUDA_R_64F."""


@functools.cache
def preprocess_call(maps: Path = Path("/proc/self/maps")) -> Callable[..., int] | None:
    """Return `cusparseSpMV_preprocess` of the library that this process has loaded; None if it has none.

    CuPy binds `cusparseSpMV` without it. The library has it from CUDA 12.4 on.

    Parameters
    ----------
    maps : Path
        Where the system lists the files that are mapped into this process.
    """
    try:
        paths = {
            line.split(maxsplit=5)[-1] for line in maps.read_text().splitlines() if "cusparse.so" in line
        }
        found = ctypes.CDLL(min(paths)).cusparseSpMV_preprocess
    except (AttributeError, OSError, ValueError):
        return None
    pointer, number = ctypes.c_void_p, ctypes.c_int
    found.argtypes = (pointer, number, pointer, pointer, pointer, pointer, pointer, number, number, pointer)
    found.restype = number
    return found


@dataclass(eq=False)
class CusparsePlan:
    """A matrix described to cuSPARSE, and work space of an algorithm, kept from product to product.

    Every algorithm has a descriptor of its own, because only one work space of a descriptor can hold what
    preprocessing has found.

    Attributes
    ----------
    matrix : cupyx.scipy.sparse.csr_matrix
        Keeps the arrays alive.
    prepared : dict
        Descriptor and work space of every algorithm that has been used, by its number.
    preprocessed : bool
        Whether cuSPARSE has preprocessed the matrix for all of them.
    """

    matrix: Any
    prepared: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    preprocessed: bool = True

    @classmethod
    def create(cls, shape: tuple[int, int], row_starts: Array, columns: Array, values: Array) -> CusparsePlan:
        """Describe a matrix on the device to cuSPARSE."""
        import cupyx.scipy.sparse

        return cls(cupyx.scipy.sparse.csr_matrix((values, columns, row_starts), shape=shape))

    @property
    def nbytes(self) -> int:
        """Bytes of the work space."""
        return sum(int(space.nbytes) for _, space in self.prepared.values())

    def run(self, x: Array, out: Array, algorithm: int = 0) -> None:
        """Queue ``out = M x`` with an algorithm of `CSR_ALGORITHMS`; its first call prepares it.

        Raises
        ------
        MemoryError
            If there is no room for the work space.
        """
        import cupy
        from cupyx.cusparse import DnVecDescriptor, SpMatDescriptor

        cusparse = importlib.import_module("cupy_backends.cuda.libs.cusparse")
        handle = cupy.cuda.device.get_cusparse_handle()
        one, zero = np.array(1.0), np.array(0.0)
        vectors = DnVecDescriptor.create(x), DnVecDescriptor.create(out)
        known = self.prepared.get(algorithm)
        descriptor = SpMatDescriptor.create(self.matrix) if known is None else known[0]
        arguments = (
            handle, cusparse.CUSPARSE_OPERATION_NON_TRANSPOSE, one.ctypes.data, descriptor.desc,
            vectors[0].desc, zero.ctypes.data, vectors[1].desc, _DOUBLE, algorithm,
        )  # fmt: skip
        if known is None:
            size = int(cusparse.spMV_bufferSize(*arguments))
            require_memory(CudaDevice(), size, "the work space of cuSPARSE")
            known = descriptor, cupy.empty(max(size, 1), np.int8)
            self.prepared[algorithm] = known
            preprocess = preprocess_call()
            cusparse.setStream(handle, cupy.cuda.get_current_stream().ptr)
            done = preprocess is not None and preprocess(*arguments, known[1].data.ptr) == 0
            self.preprocessed = self.preprocessed and done
        cusparse.spMV(*arguments, known[1].data.ptr)


@dataclass(frozen=True, eq=False)
class CusparseCsr(Msr):
    """Row-compressed storage multiplied by cuSPARSE; on a CUDA device only.

    Attributes
    ----------
    plan : CusparsePlan
    """

    plan: CusparsePlan

    @classmethod
    def _convert(cls, device: Device, csr: CsrArrays, compact: bool) -> Self:
        if compact:
            raise ValueError("cuSPARSE reads plain values; use another of FORMATS for a dictionary")
        if device.xp.__name__ != "cupy":
            raise RuntimeError(
                f"cuSPARSE runs on a CUDA device only, not on {device.name}; use another of FORMATS"
            )
        if csr.row_starts.dtype != np.int32:
            raise ValueError(
                f"cuSPARSE is called with 32-bit row starts, and the matrix has {len(csr.columns)} entries; "
                "use another of FORMATS, or parts of the matrix"
            )
        values = cls._store_values(device, csr, None, len(csr.values), False)
        plan = CusparsePlan.create(csr.shape, csr.row_starts, csr.columns, csr.values)
        return cls(csr.shape, values, csr.row_starts, csr.columns, plan)

    def _launch(self, device: Device, x: Array, out: Array) -> None:
        self.plan.run(x, out)
