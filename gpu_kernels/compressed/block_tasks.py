"""Products and steps over tasks of 256 rows: the block kernel of [Tealdi13] §4.4.2.1 (cuda/block_spmv.cu)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import Step, product_step
from gpu_kernels.runtime._launch import check_vector, index_bits, index_type, macros
from gpu_kernels.runtime.device import Device

TASK_ROWS = 256
"""Rows of a task."""

_TASK_THREADS = 192

Array = Any


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
