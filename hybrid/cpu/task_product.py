"""Products and steps of a matrix in tasks on the CPU: its arrays joined to the compiled kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.cpu import task_kernels
from hybrid.cpu.threads import run_together, threads_for
from hybrid.injection.tasks import TaskList
from hybrid.reference import relax_in_place

Float64Array = NDArray[np.float64]

_INSTANCE_TERMS = 4
"""What starting an instance costs, in entries."""


class CpuTaskProduct:
    """Multiplies vectors by a matrix in tasks.

    Parameters
    ----------
    tasks : TaskList
        The matrix ([Tealdi13] §4.4.1.2).
    """

    def __init__(self, tasks: TaskList) -> None:
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
        self._nothing = np.zeros(0)
        # A product of no tasks, so that no compilation hides in the time of the iterations.
        self._run(np.zeros(0), False, None, self._nothing, 1.0, np.zeros(0), tasks.task_ptr[:1])

    @property
    def nbytes(self) -> int:
        """Bytes of submatrices, cut instances and task pointers (MemR)."""
        return self._nbytes

    def multiply(self, x: Float64Array, out: Float64Array) -> None:
        """Write M x to ``out``; both contiguous float64 vectors that do not overlap."""
        self._run(x, False, None, self._nothing, 1.0, out)

    def multiply_many(self, x: Float64Array, out: Float64Array) -> None:
        """Write M X to ``out``; both contiguous in rows, shapes (n_columns, k) and (n_rows, k).

        One sweep over the tasks serves all columns; each has the bits of its own `multiply`.
        """
        from hybrid.cpu.many_task_kernels import multiply_tasks

        threads, counter = threads_for(self._cost), np.zeros(1, np.int64)
        kernel: Any = multiply_tasks
        run_together(lambda _: kernel(counter, *self._matrix, x, out), threads)

    def relax(
        self, x: Float64Array, b: Float64Array | None, diagonal: Float64Array, omega: float, out: Float64Array
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

        Returns
        -------
        tuple of float, float
            Greatest absolute change and greatest change relative to the new value.
        """
        changes = self._run(x, True, b, diagonal, omega, out)
        if math.isfinite(changes[:, 2].sum()):
            return float(changes[:, 0].max()), float(changes[:, 1].max())
        # The compiled step multiplies the old iterate by 1 - omega also where that is zero.
        self.multiply(x, out)
        return relax_in_place(x, b, diagonal, omega, out)

    def sweep(self) -> CpuTaskSweep:
        """Return sweeps of this matrix, which is square and has no diagonal."""
        return CpuTaskSweep(self._matrix, self._shape[0])

    def _run(
        self,
        x: Float64Array,
        step: bool,
        b: Float64Array | None,
        diagonal: Float64Array,
        omega: float,
        out: Float64Array,
        task_ptr: NDArray[np.int64] | None = None,
    ) -> Float64Array:
        threads = threads_for(self._cost)
        counter, changes = np.zeros(1, np.int64), np.zeros((threads, 3))
        task_rows, own_ptr, *arrays = self._matrix
        pointers = own_ptr if task_ptr is None else task_ptr
        right_side = self._nothing if b is None else b
        kernel: Any = task_kernels.step_tasks

        def work(number: int) -> None:
            kernel(counter, task_rows, pointers, *arrays, x, step, right_side, b is not None, diagonal, omega,
                   changes[number], out)  # fmt: skip

        run_together(work, threads)
        return changes


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
