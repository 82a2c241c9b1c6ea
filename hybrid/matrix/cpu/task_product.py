"""Products and steps of a matrix in tasks on the CPU: its arrays joined to the compiled kernels."""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu.arguments import SharedArguments
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.staged_product import (
    NO_STEP,
    GhostColumns,
    StagedProduct,
    Stages,
    Vector,
    find_ghost_columns,
    is_stage,
)
from hybrid.matrix.cpu.threads import threads_for
from hybrid.matrix.cpu.vector_code import fetch_add, relax_rows, sum_up
from hybrid.matrix.injection.injected import TaskList
from mtbdd.base.compiled import njit

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]


# Compiled products over tasks: the CPU's twin of the block kernel ([Tealdi13] §4.4.2.1).
#
# A task is a unit of work. Every thread takes the next one from a shared counter until none is left, writes
# the task's 256 rows alone, and adds the instances in their order: there are no atomic additions, and the
# result does not depend on the number of threads.


@njit(cache=True, nogil=True, boundscheck=False)
def _multiply_task(  # type: ignore[no-untyped-def]
    begin, end, first, last, row, column, submatrix, offset_begin, offset_end,
    entry_ptr, entry_row, entry_column, entry_value, x, out,
):  # fmt: skip
    """Write the products of the rows begin .. end, which the instances first .. last make."""
    for i in range(begin, end):
        out[i] = 0.0
    for k in range(first, last):
        corner_row, corner_column = row[k], column[k]
        start = entry_ptr[submatrix[k]]
        for e in range(start + offset_begin[k], start + offset_end[k]):
            out[corner_row + entry_row[e]] += entry_value[e] * x[corner_column + entry_column[e]]


@njit(cache=True, nogil=True, boundscheck=False)
def step_tasks(  # type: ignore[no-untyped-def]
    counter, order, task_rows, task_ptr, row, column, submatrix, offset_begin, offset_end,
    entry_ptr, entry_row, entry_column, entry_value,
    x, step, b, has_b, diagonal, omega, out_changes, out,
):  # fmt: skip
    """Multiply or relax, taking tasks until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter : ndarray, shape (1,), int64
        Zero before the first call; the place in `order` that comes next.
    order : ndarray, shape (tasks to do,), int64
    task_rows : int
        Rows of a task.
    task_ptr : ndarray, shape (tasks + 1,), int64
        Instances of every task.
    row, column, submatrix, offset_begin, offset_end : ndarray, shape (instances,), integers
        As in :class:`hybrid.matrix.injection.injected.Task`.
    entry_ptr, entry_row, entry_column, entry_value
        The submatrices, as in :class:`hybrid.matrix.injection.submatrices.CooBlocks`.
    x, step, b, has_b, diagonal, omega, out_changes, out
        As for :func:`hybrid.matrix.cpu.kernels.block_spmv`; the third of ``out_changes`` is written by steps
        alone.
    """
    largest = np.zeros(24)
    while True:
        at = fetch_add(counter, 1)
        if at >= len(order):
            break
        task = order[at]
        begin = task * task_rows
        end = min(begin + task_rows, len(out))
        _multiply_task(begin, end, task_ptr[task], task_ptr[task + 1], row, column, submatrix, offset_begin,
                       offset_end, entry_ptr, entry_row, entry_column, entry_value, x, out)  # fmt: skip
        if step:
            relax_rows(begin, end, x, b, has_b, diagonal, omega, largest, out)
    sum_up(largest, out_changes)


@njit(cache=True, nogil=True, boundscheck=False)
def sweep_tasks(  # type: ignore[no-untyped-def]
    task_rows, task_ptr, row, column, submatrix, offset_begin, offset_end,
    entry_ptr, entry_row, entry_column, entry_value,
    x, b, has_b, diagonal, omega, out, out_changes,
):  # fmt: skip
    """Relax x in place, the rows of a task at once and from the newest values of the tasks before it.

    Parameters are those of `step_tasks`; ``out`` holds a task's new values for the while.
    """
    largest = np.zeros(24)
    for task in range(len(task_ptr) - 1):
        begin = task * task_rows
        end = min(begin + task_rows, len(out))
        _multiply_task(begin, end, task_ptr[task], task_ptr[task + 1], row, column, submatrix, offset_begin,
                       offset_end, entry_ptr, entry_row, entry_column, entry_value, x, out)  # fmt: skip
        relax_rows(begin, end, x, b, has_b, diagonal, omega, largest, out)
        for i in range(begin, end):
            x[i] = out[i]
    sum_up(largest, out_changes)


@njit(cache=True, nogil=True, boundscheck=False)
def multiply_tasks(  # type: ignore[no-untyped-def]
    counter, task_rows, task_ptr, row, column, submatrix, offset_begin, offset_end,
    entry_ptr, entry_row, entry_column, entry_value, x, out,
):  # fmt: skip
    """Write M X to ``out``, taking tasks until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter ... entry_value
        As for `step_tasks`, whose order of additions this one keeps.
    x, out : ndarray, shape (n_columns, k) and (n_rows, k), float64
    """
    n_tasks, count = len(task_ptr) - 1, x.shape[1]
    while True:
        task = fetch_add(counter, 1)
        if task >= n_tasks:
            break
        begin = task * task_rows
        out[begin : min(begin + task_rows, len(out))] = 0.0
        for i in range(task_ptr[task], task_ptr[task + 1]):
            corner_row, corner_column = row[i], column[i]
            start = entry_ptr[submatrix[i]]
            for e in range(start + offset_begin[i], start + offset_end[i]):
                target, source = corner_row + entry_row[e], corner_column + entry_column[e]
                value = entry_value[e]
                for j in range(count):
                    out[target, j] += value * x[source, j]


_INSTANCE_TERMS = 4
"""Cost of starting an instance, in entries."""


class CpuTaskProduct(StagedProduct):
    """Multiplies vectors by a matrix in tasks.

    Parameters
    ----------
    tasks : TaskList
        The matrix ([Tealdi13] §4.4.1.2).
    n_own : int, optional
        Number of own columns, which are the first ones; tasks that read no others are multiplied first.
    """

    def __init__(self, tasks: TaskList, n_own: int | None = None) -> None:
        self._shape, self._nbytes = tasks.shape, tasks.nbytes
        cut, blocks = tasks.instances, tasks.blocks
        self._matrix: tuple[Any, ...] = (
            tasks.task_rows,
            tasks.task_ptr,
            *(cut[name] for name in ("row", "column", "submatrix", "offset_begin", "offset_end")),
            blocks.ptr,
            blocks.row,
            blocks.column,
            blocks.value,
        )
        entries = int(cut["offset_end"].sum(dtype=np.int64) - cut["offset_begin"].sum(dtype=np.int64))
        self._cost = entries + _INSTANCE_TERMS * len(cut) + tasks.shape[0] // 4
        found = _ghost_columns(tasks, n_own)
        super().__init__(step_tasks, _stages(tasks, found, self._matrix), found.stretches)
        # A product of no tasks, so that no compilation hides in the time of the iterations.
        self._run(NO_STEP, np.zeros(0), np.zeros(0), SharedArguments((np.zeros(0, np.int64), *self._matrix)))

    @property
    def nbytes(self) -> int:
        """Bytes of submatrices, cut instances and task pointers (MemR)."""
        return self._nbytes

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        One sweep over the tasks serves all columns; each has the bits of its own `multiply`.
        """
        threads, counter = threads_for(self._cost), np.zeros(1, np.int64)
        kernel: Any = multiply_tasks
        run_kernel(kernel, threads, counter, *self._matrix, x, out)

    def _threads(self, x: Vector) -> int:
        return threads_for(self._cost)

    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        # The kernel multiplies stored entries alone.
        self._run(NO_STEP, out, x, self._stages.all)

    def sweep(self) -> CpuTaskSweep:
        """Return sweeps of this matrix, which is square and has no diagonal."""
        return CpuTaskSweep(self._matrix, self._shape[0])


def _ghost_columns(tasks: TaskList, n_own: int | None) -> GhostColumns:
    """Separate tasks that read ghost columns from others."""
    first = np.arange(len(tasks)) * tasks.task_rows
    rows = np.stack((first, np.minimum(first + tasks.task_rows, tasks.shape[0])), axis=1)
    column = tasks.instances["column"].astype(np.int64)
    width = tasks.blocks.n_columns[tasks.instances["submatrix"]].astype(np.int64)
    return find_ghost_columns(tasks.task_ptr, rows, np.stack((column, column + width), axis=1), n_own)


def _stages(tasks: TaskList, boundary: GhostColumns, matrix: tuple[Any, ...]) -> Stages:
    """Return the tasks in stages: of every stage the numbers of its tasks, ascending, and the matrix."""
    interior_tasks, boundary_tasks = (
        np.flatnonzero(~boundary.is_boundary),
        np.flatnonzero(boundary.is_boundary),
    )
    cut = tasks.instances
    entries = np.append(0, np.cumsum(cut["offset_end"] - cut["offset_begin"], dtype=np.int64))
    terms = int(np.diff(entries[tasks.task_ptr])[interior_tasks].sum()) if len(boundary_tasks) else 0
    both = SharedArguments((np.arange(len(tasks)), *matrix))
    if not is_stage(terms):
        return Stages(both)
    return Stages(
        both, SharedArguments((interior_tasks, *matrix)), SharedArguments((boundary_tasks, *matrix))
    )


class CpuTaskSweep:
    """Gauss-Seidel task by task: the rows of a task from the newest values of the tasks before it.

    Parameters
    ----------
    matrix : tuple
        The arguments of the kernels that stand for the matrix.
    n_rows : int
    """

    def __init__(self, matrix: tuple[Any, ...], n_rows: int) -> None:
        self._matrix = matrix
        self._out = np.empty(n_rows)
        self._nothing = np.zeros(0)
        # A sweep over no tasks, so that no compilation hides in the time of the iterations.
        task_rows, task_ptr, *arrays = matrix
        self._sweep(
            (task_rows, task_ptr[:1], *arrays), self._nothing, (self._nothing, False, self._nothing, 1.0)
        )

    def gauss_seidel_step(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float
    ) -> tuple[float, float]:
        """Relax x in place, ``(1 - omega) x + omega (b + M x) / diagonal``, on one thread.

        Returns
        -------
        tuple of float, float
            Greatest absolute change, infinite once values are no finite numbers, and greatest change relative
            to the new value.
        """
        right = self._nothing if b is None else b
        changes = self._sweep(self._matrix, x, (right, b is not None, diagonal, omega))
        if not math.isfinite(float(changes[2])):
            return math.inf, math.inf
        return float(changes[0]), float(changes[1])

    def _sweep(self, matrix: tuple[Any, ...], x: Float64Array, operands: tuple[Any, ...]) -> Float64Array:
        kernel: Any = sweep_tasks
        changes = np.zeros(3)
        kernel(*matrix, x, *operands, self._out, changes)
        return changes
