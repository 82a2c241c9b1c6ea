"""Compiled products over tasks: the CPU's twin of the block kernel ([Tealdi13] §4.4.2.1).

A task is a unit of work. Every thread takes the next one from a shared counter until none is left, writes
the task's 256 rows alone, and adds the instances in their order: there are no atomic additions, and the
result does not depend on the number of threads.
"""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

import numpy as np

from hybrid.matrix.cpu.relaxation import relax_rows, sum_up
from hybrid.matrix.cpu.vector_code import fetch_add
from mtbdd.base.compiled import njit


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
        As in :class:`hybrid.matrix.injection.tasks.Task`.
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
