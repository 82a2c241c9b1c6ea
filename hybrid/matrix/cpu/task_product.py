"""Products and steps of a matrix in tasks on the CPU: its arrays joined to the compiled kernels."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.halo import ArrivingVector
from hybrid.matrix.cpu import task_kernels
from hybrid.matrix.cpu.arguments import Fixed
from hybrid.matrix.cpu.pool import run_kernel
from hybrid.matrix.cpu.staged_product import (
    NO_STEP,
    LateColumns,
    StagedProduct,
    Stages,
    Vector,
    find_late_columns,
    is_stage,
)
from hybrid.matrix.cpu.threads import threads_for
from hybrid.matrix.injection.tasks import TaskList

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]


_INSTANCE_TERMS = 4
"""What starting an instance costs, in entries."""


class CpuTaskProduct(StagedProduct):
    """Multiplies vectors by a matrix in tasks.

    Parameters
    ----------
    tasks : TaskList
        The matrix ([Tealdi13] §4.4.1.2).
    early : int, optional
        Number of early columns, which are the first ones; tasks that read no others are multiplied first.
    """

    def __init__(self, tasks: TaskList, early: int | None = None) -> None:
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
        found = _late_columns(tasks, early)
        super().__init__(task_kernels.step_tasks, _stages(tasks, found, self._matrix))
        self._stretches = found.stretches if self._stages.early is not None else found.stretches[:0]
        # A product of no tasks, so that no compilation hides in the time of the iterations.
        self._run(NO_STEP, np.zeros(0), np.zeros(0), Fixed((np.zeros(0, np.int64), *self._matrix)))

    @property
    def nbytes(self) -> int:
        """Bytes of submatrices, cut instances and task pointers (MemR)."""
        return self._nbytes

    @property
    def stretches(self) -> Int64Array:
        """Ranges of own elements that have to be in the whole vector, shape (stretches, 2)."""
        return self._stretches

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``; both contiguous float64 vectors that do not overlap."""
        self._run(NO_STEP, out, x, self._stages.all)

    def multiply_meanwhile(self, x: ArrivingVector, out: Float64Array) -> None:
        """Write M x to ``out``, tasks without late columns first; every row has the bits of `multiply`."""
        self._stages.run(partial(self._run, NO_STEP, out), x)

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        One sweep over the tasks serves all columns; each has the bits of its own `multiply`.
        """
        from hybrid.matrix.cpu.many_kernels import multiply_tasks

        threads, counter = threads_for(self._cost), np.zeros(1, np.int64)
        kernel: Any = multiply_tasks
        run_kernel(kernel, threads, counter, *self._matrix, x, out)

    def _threads(self, x: Vector) -> int:
        return threads_for(self._cost)

    def _multiply_exactly(self, x: Float64Array, out: Float64Array) -> None:
        self.multiply(x, out)

    def sweep(self) -> CpuTaskSweep:
        """Return sweeps of this matrix, which is square and has no diagonal."""
        return CpuTaskSweep(self._matrix, self._shape[0])


def _late_columns(tasks: TaskList, early: int | None) -> LateColumns:
    """Tell tasks that read late columns from others."""
    first = np.arange(len(tasks)) * tasks.task_rows
    rows = np.stack((first, np.minimum(first + tasks.task_rows, tasks.shape[0])), axis=1)
    column = tasks.instances["column"].astype(np.int64)
    width = tasks.blocks.n_columns[tasks.instances["submatrix"]].astype(np.int64)
    return find_late_columns(tasks.task_ptr, rows, np.stack((column, column + width), axis=1), early)


def _stages(tasks: TaskList, late: LateColumns, matrix: tuple[Any, ...]) -> Stages:
    """Return the tasks in stages: of every stage the numbers of its tasks, ascending, and the matrix."""
    early_tasks, late_tasks = np.flatnonzero(~late.is_late), np.flatnonzero(late.is_late)
    cut = tasks.instances
    entries = np.append(0, np.cumsum(cut["offset_end"] - cut["offset_begin"], dtype=np.int64))
    terms = int(np.diff(entries[tasks.task_ptr])[early_tasks].sum()) if len(late_tasks) else 0
    both = Fixed((np.arange(len(tasks)), *matrix))
    if not is_stage(terms):
        return Stages(both)
    return Stages(both, Fixed((early_tasks, *matrix)), Fixed((late_tasks, *matrix)))


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
        kernel: Any = task_kernels.sweep_tasks
        changes = np.zeros(3)
        kernel(*matrix, x, *operands, self._out, changes)
        return changes
