"""Products in two stages, for matrices with long rows: the arrays, and their launches (cuda/pairs.cu)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL, Step, product_step
from gpu_kernels.compressed.tiles import pack_columns
from gpu_kernels.runtime._launch import check_vector, index_bits, index_type, macros
from gpu_kernels.runtime.coded import CodedVector
from gpu_kernels.runtime.device import Device, Place

PAIR_THREADS = 128
"""Threads of a block that multiplies pairs."""

Array = Any


@dataclass(frozen=True)
class PairTuning:
    """Launch shape of the two kernels; results differ by rounding alone. All are powers of two.

    Attributes
    ----------
    entry_lanes : int
        Lanes that share a row of a submatrix, 1 to 32.
    members : int
        Pairs with the same submatrix that a lane serves at once: 1, 2 or 4.
    rows : int
        Rows of the result of a block, 1 to 128.
    parts : int
        Threads that share the slots of a row; ``rows * parts`` is 32 to 1024.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """

    entry_lanes: int = 8
    members: int = 4
    rows: int = 32
    parts: int = 8

    def __post_init__(self) -> None:
        for name, low, high in (("entry_lanes", 1, 32), ("members", 1, 4), ("rows", 1, 128)):
            _check_power(name, getattr(self, name), low, high)
        _check_power("rows * parts", self.threads, 32, 1024)

    @property
    def threads(self) -> int:
        """Threads of a block that adds up products."""
        return self.rows * self.parts


def _check_power(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high or value & (value - 1):
        raise ValueError(f"{name}: expected a power of two from {low} to {high}, got {value}")


@dataclass(frozen=True, eq=False)
class PairMatrix:
    """A matrix as pairs, ready for :func:`run_pairs`.

    A *pair* is a distinct submatrix with the column at which it begins; a *slot* is a pair that a group of
    rows meets. Index arrays have 32 or 64 bits, see `index_bits`.

    Attributes
    ----------
    n_rows, n_columns : int
        Shape.
    index_bits : int
        Width of indices, 32 or 64.
    row_ptr : ndarray, shape (rows of all submatrices + 1,), index
        Where the entries of every row of every submatrix begin.
    columns : ndarray, shape (entries,), index
        Column within the submatrix.
    values : CodedVector, size entries
    base : ndarray, shape (pairs,), index
        Column at which every pair begins; pairs with the same submatrix lie side by side.
    pair_items : ndarray, shape (items, 8 or 12), int32
        Packed by :func:`pack_pair_items`.
    slot_product : ndarray, shape (slots,), index
        Where the product of every slot's pair begins.
    scale : CodedVector, size slots, or size 0 without scales
        Factor of every slot.
    row_items : ndarray, shape (items, 8), int32
        Packed by :func:`pack_row_items`; together they cover all rows.
    products : ndarray, shape (rows of all pairs,), float64
        Scratch: the products of the pairs.
    tuning : PairTuning
    """

    n_rows: int
    n_columns: int
    index_bits: int
    row_ptr: Array
    columns: Array
    values: CodedVector
    base: Array
    pair_items: Array
    slot_product: Array
    scale: CodedVector
    row_items: Array
    products: Array
    tuning: PairTuning

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays that a product reads or writes besides its operands (MemR)."""
        arrays = (
            self.row_ptr, self.columns, self.values, self.base, self.pair_items, self.slot_product,
            self.scale, self.row_items, self.products,
        )  # fmt: skip
        return sum(int(a.nbytes) for a in arrays)

    def macros(self) -> dict[str, int]:
        """Return the macros of the arrays and of the launch."""
        tuning = self.tuning
        return {
            "INDEX_BITS": self.index_bits, "VALUE_BITS": self.values.bits, "SCALE_BITS": self.scale.bits,
            "PAIR_THREADS": PAIR_THREADS, "ENTRY_LANES": tuning.entry_lanes, "MEMBERS": tuning.members,
            "ROWS": tuning.rows, "PARTS": tuning.parts,
        }  # fmt: skip


def pack_pair_items(place: Place, index_bits: int, **members: Array) -> Array:
    """Return packed items of the first stage.

    Parameters
    ----------
    place : Place
    index_bits : int
        Width of indices.
    **members
        ``first_row``, ``first_base``, ``product``, ``stride``, ``rows``, ``count``: int64 arrays, shape
        (items,), each; see cuda/pairs.cu.
    """
    wide = [(members[n], index_bits) for n in ("first_row", "first_base", "product", "stride")]
    return pack_columns(place, [*wide, (members["rows"], 32), (members["count"], 32), *_unused(members, 2)])


def pack_row_items(place: Place, index_bits: int, **members: Array) -> Array:
    """Return packed items of the second stage.

    Parameters
    ----------
    place : Place
    index_bits : int
        Width of indices.
    **members
        ``row``, ``first_slot``, ``local``, ``slots``, ``rows``: int64 arrays, shape (items,), each; see
        cuda/pairs.cu.
    """
    wide = [(members[n], index_bits) for n in ("row", "first_slot", "local")]
    padding = _unused(members, 3 if index_bits == 32 else 0)
    return pack_columns(place, [*wide, (members["slots"], 32), (members["rows"], 32), *padding])


def _unused(members: dict[str, Array], words: int) -> list[tuple[Array, int]]:
    return [(members["rows"] * 0, 32)] * words


def run_pairs(device: Device, matrix: PairMatrix, step: Step, x: Array, out: Array) -> None:
    """Queue a product or a relaxation step over all rows.

    Parameters
    ----------
    device : Device
    matrix : PairMatrix
        Its scratch memory serves one step at a time; steps of one stream come one after the other.
    step : Step
        What becomes of the products.
    x : ndarray, shape (n_columns,), float64
        On the device.
    out : ndarray, shape (n_rows,), float64
        Overwritten; must not overlap x.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere.

    Notes
    -----
    Synchronises: no. Two launches. Time: O(entries of all pairs + rows of all slots).
    """
    check_vector(device, x, matrix.n_columns, "x")
    step.check(device, matrix.n_rows, x, out)
    options = macros(**matrix.macros(), **step.macros())
    if len(matrix.pair_items):
        kernel = device.kernel("pairs.cu", "multiply_pairs", options)
        arguments = (
            matrix.pair_items, matrix.row_ptr, matrix.columns, *_coded(matrix.values), matrix.base,
            *step.arguments(), x, matrix.products,
        )  # fmt: skip
        kernel((len(matrix.pair_items),), (PAIR_THREADS,), arguments)
    if len(matrix.row_items):
        kernel = device.kernel("pairs.cu", "add_pairs", options)
        arguments = (
            matrix.row_items, matrix.slot_product, *_coded(matrix.scale), matrix.products, *step.arguments(),
            x, out,
        )  # fmt: skip
        threads = matrix.tuning.threads
        kernel((len(matrix.row_items),), (threads,), arguments, shared_mem=8 * threads)


def _coded(vector: CodedVector) -> tuple[Any, Any]:
    return tuple(NULL if array is None else array for array in (vector.elements, vector.table))  # type: ignore[return-value]


# Products and steps over tasks of 256 rows: the block kernel of [Tealdi13] §4.4.2.1 (cuda/block_spmv.cu).

TASK_ROWS = 256
"""Rows of a task."""

_TASK_THREADS = 192


@dataclass(frozen=True, eq=False)
class BlockTasks:
    """Injected submatrices and tasks on the device ([Tealdi13] §§4.2.1 and 4.4.1.2).

    Attributes
    ----------
    n_rows, n_columns : int
        Shape of the matrix.
    task_ptr : ndarray, shape (tasks + 1,), index
        Instances of every task.
    row, column : ndarray, shape (instances,), index
        Corner of every instance.
    submatrix : ndarray, shape (instances,), int32
        Its submatrix.
    offset_begin, offset_end : ndarray, shape (instances,), index
        Its entries, counted from the first entry of the submatrix.
    entry_ptr : ndarray, shape (submatrices + 1,), index
        Entries of every submatrix.
    entry_row, entry_column : ndarray, shape (entries,), index
        Local indices.
    entry_value : ndarray, shape (entries,), float64
        Values.
    """

    n_rows: int
    n_columns: int
    task_ptr: Array
    row: Array
    column: Array
    submatrix: Array
    offset_begin: Array
    offset_end: Array
    entry_ptr: Array
    entry_row: Array
    entry_column: Array
    entry_value: Array

    @classmethod
    def on_device(
        cls, device: Device, shape: tuple[int, int], wide: bool = False, **arrays: Array
    ) -> BlockTasks:
        """Copy arrays of any integer types to the device, as wide as their number needs.

        Parameters
        ----------
        device : Device
        shape : tuple of int
            Shape of the matrix.
        wide : bool
            Use 64-bit indices although 32 bits would do.
        **arrays
            The array attributes by name, on the host or on the device.

        Raises
        ------
        MemoryError
            If the arrays do not fit, before any is copied; the message says what is needed and what is there.
        """
        largest = max(*shape, *(len(a) for a in arrays.values()))
        index = index_type(index_bits(largest, wide))
        kinds = {"submatrix": "int32", "entry_value": "float64"}
        xp = device.xp
        kept = sum(len(a) * np.dtype(kinds.get(n, index)).itemsize for n, a in arrays.items())
        # Each is copied as it is, and then becomes what the kernel reads.
        needed = kept + max((np.asarray(a).nbytes for a in arrays.values() if _is_on_host(a)), default=0)
        free = device.free_bytes()
        if needed > free:
            raise MemoryError(
                f"{len(arrays['task_ptr']) - 1} tasks of {len(arrays['row'])} instances need {needed} bytes "
                f"and {free} are free on {device.name}; choose another level, or the representation row-types"
            )
        copies = {
            n: xp.ascontiguousarray(xp.asarray(a).astype(kinds.get(n, index), copy=False))
            for n, a in arrays.items()
        }
        return cls(*shape, **copies)

    @property
    def nbytes(self) -> int:
        """Bytes on the device (MemR)."""
        return sum(int(getattr(self, f.name).nbytes) for f in fields(self)[2:])


def _is_on_host(array: Array) -> bool:
    """Return whether an array has yet to be copied to a card."""
    return not hasattr(array, "get")


def block_spmv(device: Device, tasks: BlockTasks, x: Array, out: Array) -> None:
    """Queue ``out = M x``.

    Parameters
    ----------
    device : Device
    tasks : BlockTasks
    x : ndarray, shape (n_columns,), float64
    out : ndarray, shape (n_rows,), float64
        Overwritten; must not overlap x.

    Notes
    -----
    Synchronises: no. Atomic additions: the last bits of a sum may differ from run to run.
    """
    run_block_tasks(device, tasks, product_step(), x, out)


def run_block_tasks(device: Device, tasks: BlockTasks, step: Step, x: Array, out: Array) -> None:
    """Queue a product or a relaxation step over all rows, one launch.

    Parameters
    ----------
    device : Device
    tasks : BlockTasks
    step : Step
        What becomes of the products.
    x : ndarray, shape (n_columns,), float64
        On the device.
    out : ndarray, shape (n_rows,), float64
        Overwritten; must not overlap x.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape or lies elsewhere.

    Notes
    -----
    Synchronises: no. Atomic additions, as for `block_spmv`.
    """
    check_vector(device, x, tasks.n_columns, "x")
    step.check(device, tasks.n_rows, x, out)
    if tasks.n_rows == 0:
        return
    bits = 8 * int(tasks.task_ptr.dtype.itemsize)
    kernel = device.kernel("block_spmv.cu", "block_spmv", macros(INDEX_BITS=bits, **step.macros()))
    arrays = tuple(getattr(tasks, f.name) for f in fields(tasks)[2:])
    grid = (len(tasks.task_ptr) - 1,)
    arguments = (index_type(bits)(tasks.n_rows), *arrays, *step.arguments(), x, out)
    kernel(grid, (_TASK_THREADS,), arguments)
