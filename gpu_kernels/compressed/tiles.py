"""Row types in tiles: the arrays that kernels read, and the launch for a single matrix (cuda/tiles.cu)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from gpu_kernels.compressed.steps import NULL, Mode, Step
from gpu_kernels.runtime._launch import (
    blocks_for,
    check_vector,
    element_type,
    index_type,
    macros,
    real_macros,
)
from gpu_kernels.runtime.device import Device, Place

LANES = 32
"""Rows of a slice: the lanes of a warp."""

PAD = {1: 255, 2: 65535}
"""Number that stands for no entry, by bytes of a number."""

Array = Any

Part = Literal["all", "early", "late"] | int
"""Rows of a launch: all, those of the early items and of no item, the rest; or those of a block row."""


@dataclass(frozen=True)
class Tuning:
    """Launch shape of the tile kernel; any choice gives the same result.

    Attributes
    ----------
    threads : int
        Threads of a block, a multiple of 32.
    min_blocks : int
        Blocks for which registers must be left on a multiprocessor.
    members : int
        Groups of a type that a thread serves at once: 1, 2 or 4.
    """

    threads: int = 128
    min_blocks: int = 8
    members: int = 4


@dataclass(frozen=True, eq=False)
class TileMatrix:
    """A matrix, or the matrices of all layers, in tiles; the records are those of cuda/tile_types.cuh.

    docs/design/tiles.md has a drawing with the words. A matrix without marks is for :func:`run_tiles`, one
    with marks for :func:`gpu_kernels.run_choices`. Index arrays have 32 or 64 bits, see `index_bits`.

    Attributes
    ----------
    n_rows, n_columns : int
        Shape, of every layer.
    index_bits, code_bits, term_bits : int
        Widths of indices (32, 64), term numbers (8, 16), and slots and value numbers of terms (16, 32).
    unit : int
        Term numbers that a lane reads at once: 1, 2 or 4.
    items : ndarray, shape (items, 12 or 16), int32
        Packed by :func:`pack_items`.
    term_ptr, round_cell : ndarray, shape (rounds + 1,), int32
        First term and first cell of every round.
    cells : ndarray, shape (cells, 2), int32
        First unit and units of every cell; cells with equal contents share their units.
    codes : ndarray, shape (units * 32 * unit,), uint8 or uint16
        Numbers of terms within their layer segment, [unit][lane][unit]; the largest number stands for no
        entry. With marks one unit more than there are is at the end, because units are read ahead.
    terms : ndarray, shape (terms, 2 to 4), int32
        Packed by :func:`pack_terms`.
    values : ndarray, shape (values,), float64
        The distinct values.
    group_row : ndarray, shape (groups,), index
        First row of every group; the groups of an item lie side by side.
    base : ndarray, shape (slots,), index
        Column at which the submatrix of every slot begins, within its layer.
    scale : ndarray, shape (slots,), float64, or None
        Factor of every slot.
    gap_begin : ndarray, shape (gaps,), index
        First row of every range of rows without a group.
    gap_ptr : ndarray, shape (gaps + 1,), index
        Rows in the gaps before each.
    gap_rows : int
        Rows in all gaps.
    place_words, weight_words : int
        Doubles of shared memory that the largest item needs for the addresses of its terms and for their
        weights; ``place_words`` is even.
    tuning : Tuning
        Launch shape; its ``members`` decide ``place_words``.
    marks : ndarray, shape (units + 1,), uint32, or None
        What goes with every unit: the first term of its layer segment in the round; plus 2**15 in the last
        unit of a cell; plus 2**16 times the layer plus one in the last unit of a layer segment in a cell.
        None for a single matrix: one layer segment a round.
    layers : int
        Layers L, numbered 0 .. L - 1.
    look_ups : int
        Terms that a thread of the kernel for layers looks up at once: 1 or 4.
    many_rounds : bool
        Whether some tile may have several rounds; read by the kernel for layers alone.
    early : int or None
        So many items at the beginning have entries in own columns alone; None where that is not known.
    block_row_ptr : tuple of int
        Where the rows are divided into block rows, items of block row i are
        ``block_row_ptr[i] .. block_row_ptr[i + 1]``.
    """

    n_rows: int
    n_columns: int
    index_bits: int
    code_bits: int
    term_bits: int
    unit: int
    items: Array
    term_ptr: Array
    round_cell: Array
    cells: Array
    codes: Array
    terms: Array
    values: Array
    group_row: Array
    base: Array
    scale: Array | None
    gap_begin: Array
    gap_ptr: Array
    gap_rows: int
    place_words: int
    weight_words: int
    tuning: Tuning
    marks: Array | None = None
    layers: int = 1
    look_ups: int = 1
    many_rounds: bool = True
    early: int | None = None
    block_row_ptr: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that a product reads (MemR)."""
        arrays = (getattr(self, f.name) for f in fields(self))
        return sum(int(a.nbytes) for a in arrays if isinstance(a, type(self.codes)))

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        return 8 * (self.place_words + self.weight_words)

    def part(self, part: Part) -> tuple[int, int]:
        """Return the range of the items that a launch takes."""
        if isinstance(part, int):
            return self.block_row_ptr[part], self.block_row_ptr[part + 1]
        cut = self.early or 0
        return {"all": (0, len(self.items)), "early": (0, cut), "late": (cut, len(self.items))}[part]

    def macros(self) -> dict[str, int]:
        """Return the macros of the records."""
        return {
            "INDEX_BITS": self.index_bits,
            "CODE_BITS": self.code_bits,
            "TERM_BITS": self.term_bits,
            "UNIT": self.unit,
        }

    def arguments(self) -> tuple[Any, ...]:
        """Return the kernel arguments that stand for a single matrix.

        Raises
        ------
        ValueError
            If the tiles have marks: kernels for single matrices do not know layers.
        """
        if self.marks is not None:
            raise ValueError(f"matrix: expected tiles of a single matrix, got those of {self.layers} layers")
        return (
            self.items, self.term_ptr, self.round_cell, self.cells, self.codes, self.terms, self.values,
            self.group_row, self.base, NULL if self.scale is None else self.scale,
        )  # fmt: skip


def pack_columns(place: Place, columns: list[tuple[Array, int]]) -> Array:
    """Return records as rows of int32 words.

    Parameters
    ----------
    place : Place
    columns : list of (ndarray, shape (n,), int64; int)
        Members of the records with their widths, 32 or 64 bits.

    Returns
    -------
    ndarray, shape (n, words), int32
    """
    xp = place.xp
    words = []
    for column, bits in columns:
        wide = xp.ascontiguousarray(column.astype(np.int64)).view(np.int32).reshape(-1, 2)
        words += [wide[:, 0]] if bits == 32 else [wide[:, 0], wide[:, 1]]
    return xp.ascontiguousarray(xp.stack(words, axis=1))


def pack_terms(place: Place, shift: Array, slot: Array, value: Array, index_bits: int) -> tuple[Array, int]:
    """Return the packed terms and the width of their slots and value numbers.

    Parameters
    ----------
    place : Place
    shift, slot, value : ndarray, shape (terms,), int64
        Local column minus local row, slot, number of the value.
    index_bits : int
        Width of a shift.

    Notes
    -----
    Synchronises: yes.
    """
    largest = max((int(a.max()) for a in (slot, value) if len(a)), default=0)
    if largest >= 2**16:
        return pack_columns(place, [(shift, index_bits), (slot, 32), (value, 32)]), 32
    both = slot + place.xp.left_shift(value, 16)
    padding = [(place.xp.zeros_like(slot), 32)] if index_bits == 64 else []
    return pack_columns(place, [(shift, index_bits), (both, 32), *padding]), 16


def pack_items(place: Place, index_bits: int, **members: Array) -> Array:
    """Return the packed items.

    Parameters
    ----------
    place : Place
    index_bits : int
        Width of indices.
    **members
        ``begin``, ``first_slot``, ``first_group``, ``count``, ``slots``, ``rows``, ``first_round``,
        ``rounds``, ``first_term``, ``terms``, ``first_cell``: int64 arrays, shape (items,), each; see
        cuda/tile_types.cuh.
    """
    names = (
        "first_group", "count", "slots", "rows", "first_round", "rounds", "first_term", "terms", "first_cell",
    )  # fmt: skip
    wide = [(members["begin"], index_bits), (members["first_slot"], index_bits)]
    unused = place.xp.zeros_like(members["begin"])
    padding = [(unused, 32)] * (1 if index_bits == 32 else 3)
    return pack_columns(place, [*wide, *((members[n], 32) for n in names), *padding])


def run_tiles(
    device: Device,
    matrix: TileMatrix,
    step: Step,
    x: Array,
    out: Array,
    others: Array | None = None,
    part: Part = "all",
) -> None:
    """Queue a product or a relaxation step over all rows.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
    step : Step
        What becomes of the products.
    x : ndarray, shape (n_columns,) or, with `others`, (own columns,), float64
        On the device. A product may have float32, in which its rows are added up then.
    out : ndarray, shape (n_rows,), as x
        Overwritten; must not overlap x.
    others : ndarray, shape (n_columns - own columns,), as x, optional
        The elements of the columns behind those of x; not read for the early rows.
    part : {"all", "early", "late"} or int
        Which rows: all, those of the early items and of no item, or the rest; or those of a block row. Rows
        of no item go with the first block row. Of a step that measures changes these are the greatest of all
        its parts.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere, or the tiles have marks.

    Notes
    -----
    Synchronises: no. One launch, and a second one if some rows belong to no group.
    """
    behind = 0 if others is None else len(others)
    real = element_type(x) if step.mode == Mode.PRODUCT else np.float64
    check_vector(device, x, matrix.n_columns - behind, "x", real)
    step.check(device, matrix.n_rows, x, out)
    tuning = matrix.tuning
    halo: tuple[Any, ...] = ()
    options = dict(
        THREADS=tuning.threads,
        MIN_BLOCKS=tuning.min_blocks,
        MEMBERS=tuning.members,
        SCALED=int(matrix.scale is not None),
        **matrix.macros(),
        **step.macros(),
        **real_macros(x),
    )
    if others is not None:
        check_vector(device, others, behind, "others", real)
    if others is not None and part != "early":
        options["HALO"] = 1
        halo = others, index_type(matrix.index_bits)(len(x))
    begin, end = matrix.part(part)
    if begin < end:
        kernel = device.kernel("tiles.cu", "step_tiles", macros(**options))
        items, *arrays = matrix.arguments()
        arguments = (
            items[begin:end], *arrays, np.int32(matrix.place_words), *step.arguments(), x, out, *halo,
        )  # fmt: skip
        kernel((end - begin,), (tuning.threads,), arguments, shared_mem=matrix.shared_bytes)
    if matrix.gap_rows and part in ("all", "early", 0):
        kernel = device.kernel("tiles.cu", "step_gaps", macros(**options))
        gaps = index_type(matrix.index_bits)(len(matrix.gap_begin))
        arguments = (matrix.gap_begin, matrix.gap_ptr, gaps, *step.arguments(), x, out)
        kernel((blocks_for(matrix.gap_rows, tuning.threads),), (tuning.threads,), arguments)


# Products of a matrix in tiles with several vectors at once: the launches of cuda/tiles_many.cu.

_THREADS = 512
_MIN_BLOCKS = 2
_MEMBERS = 2
"""The fastest of the shapes of blocks that were timed on an H200, or within 2 % of it (docs/gpu.md)."""

_PAIR_BYTES = 16
"""Operands begin at multiples of two elements, which a lane reads at once."""


def run_tiles_many(device: Device, matrix: TileMatrix, x: Array, out: Array) -> None:
    """Queue the products with the columns of an array.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        Without marks.
    x : ndarray, shape (n_columns, k), float64
        On the device, contiguous in rows.
    out : ndarray, shape (n_rows, k), float64
        Overwritten; must not overlap x.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere, or the tiles have marks.

    Notes
    -----
    Synchronises: no. One launch for eight columns, and for four or two at the end; one that writes zeros if
    some rows belong to no group. Memory: copies of x and out where k is odd or an operand does not begin at a
    multiple of 16 bytes.
    """
    count = int(x.shape[1]) if x.ndim == 2 else 0
    for array, rows, name in ((x, matrix.n_columns, "x"), (out, matrix.n_rows, "out")):
        if not isinstance(array, device.xp.ndarray) or array.dtype != np.float64:
            raise TypeError(
                f"{name}: expected float64 on the device, got {type(array).__name__}, {array.dtype}"
            )
        if array.shape != (rows, count) or not array.flags.c_contiguous:
            raise ValueError(
                f"{name}: expected shape ({rows}, {count}), contiguous in rows, got {tuple(array.shape)}"
            )
    if count % 2 or _address(x) % _PAIR_BYTES or _address(out) % _PAIR_BYTES:
        xp = device.xp
        even = count + count % 2
        wide, result = xp.zeros((matrix.n_columns, even)), xp.empty((matrix.n_rows, even))
        wide[:, :count] = x
        _run(device, matrix, wide, result)
        out[...] = result[:, :count]
    else:
        _run(device, matrix, x, out)


def _address(array: Array) -> int:
    """Return where an array begins, on a device or on the host that stands for one."""
    return int(array.data.ptr if hasattr(array.data, "ptr") else array.ctypes.data)


def _run(device: Device, matrix: TileMatrix, x: Array, out: Array) -> None:
    """Queue the launches for an even number of vectors."""
    if matrix.gap_rows:
        out.fill(0.0)
    if not len(matrix.items):
        return
    count = int(x.shape[1])
    column = 0
    while column < count:
        share = next(lanes for lanes in (4, 2, 1) if 2 * lanes <= count - column)
        options = macros(
            THREADS=_THREADS,
            MIN_BLOCKS=_MIN_BLOCKS,
            MEMBERS=min(_MEMBERS, matrix.tuning.members),
            SCALED=int(matrix.scale is not None),
            SHARE=share,
            **matrix.macros(),
        )
        kernel = device.kernel("tiles_many.cu", "tiles_times_vectors", options)
        scalars = np.int32(matrix.place_words), np.int32(count), np.int32(column)
        arguments = (*matrix.arguments(), *scalars, x, out)
        kernel((len(matrix.items),), (_THREADS,), arguments, shared_mem=matrix.shared_bytes)
        column += 2 * share


# The explicit matrix of a matrix in tiles, made on the device (cuda/explicit.cu).

_WRITING_THREADS = 256


def explicit_csr(device: Device, matrix: TileMatrix) -> tuple[Any, Any, Any]:
    """Return a matrix in compressed sparse rows, sorted by column within each row.

    Parameters
    ----------
    device : Device
    matrix : TileMatrix
        With fewer than 2**31 columns.

    Returns
    -------
    indptr : ndarray, shape (n_rows + 1,), int64 (int32 where that is enough)
    indices : ndarray, shape (entries,), int32
    data : ndarray, shape (entries,), float64

    Raises
    ------
    ValueError
        If the matrix is too wide.
    MemoryError
        If the matrix does not fit in the free memory; the message says what is needed and what is there.

    Notes
    -----
    Synchronises: yes, for the number of entries.
    """
    if matrix.n_columns >= 2**31:
        raise ValueError(f"an explicit matrix has fewer than 2**31 columns, this one has {matrix.n_columns}")
    xp = device.xp
    indptr = xp.zeros(matrix.n_rows + 1, np.int64)
    kernel = device.kernel("explicit.cu", "expand_rows", macros(**matrix.macros()))
    null = np.uint64(0)
    launch = ((len(matrix.items),), (_WRITING_THREADS,)) if len(matrix.items) else None
    if launch is not None:
        kernel(*launch, (*matrix.arguments(), indptr, null, null, null))
    indptr = xp.cumsum(indptr)
    entries = int(indptr[-1])
    if 12 * entries > device.free_bytes():
        raise MemoryError(
            f"the explicit matrix needs {12 * entries} bytes for {entries} entries and "
            f"{device.free_bytes()} are free on {device.name}; use the compressed matrix"
        )
    indices, data = xp.empty(entries, np.int32), xp.empty(entries)
    if launch is not None:
        kernel(*launch, (*matrix.arguments(), null, indptr, indices, data))
    return (indptr.astype(np.int32) if entries < 2**31 else indptr), indices, data
