"""Compiled products over tasks with several vectors at once; compiled on first use."""

# mypy: disable-error-code="call-arg, unreachable, var-annotated"
# An intrinsic takes one argument less than its definition and returns what its signature says.

from __future__ import annotations

from hybrid.matrix.cpu.vector_code import fetch_add
from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True, boundscheck=False)
def multiply_tasks(  # type: ignore[no-untyped-def]
    counter, task_rows, task_ptr, row, column, submatrix, offset_begin, offset_end,
    entry_ptr, entry_row, entry_column, entry_value, x, out,
):  # fmt: skip
    """Write M X to ``out``, taking tasks until none is left; call it on every thread with the same arguments.

    Parameters
    ----------
    counter ... entry_value
        As for :func:`hybrid.matrix.cpu.task_kernels.step_tasks`, whose order of additions this one keeps.
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
