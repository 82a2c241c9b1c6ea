"""Work on host vectors that steps over choices share: the end of a step, and steps state by state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PART_ROWS = 1 << 13
"""States, at least, of a part that is improved state by state."""

MOST_PARTS = 8
"""Parts that are improved at the same time."""


def finish_on_host(x: Vector, out: Vector, factor: float, shape: Vector | None) -> Vector:
    """Scale, add and measure with the compiled kernel; return the greatest changes, shape (2,)."""
    from hybrid.matrix.cpu import choice_kernels as kernels
    from hybrid.matrix.cpu.arguments import Each
    from hybrid.matrix.cpu.pool import run_rows
    from hybrid.matrix.cpu.threads import threads_for

    changes = np.zeros((threads_for(out.size), 3))
    added = np.zeros(0) if shape is None else shape
    kernel: Any = kernels.finish_rows
    run_rows(kernel, out.size, x, factor, added, shape is not None, out, Each(changes))
    return _greatest(changes)


def run_state_by_state(size: int, run: Callable[[int, int, int, Vector], None]) -> Vector:
    """Call ``run(begin, end, thread, changes)`` for parts of the states; return the greatest changes.

    Within a part states are improved one after another; of other parts they take the values from before the
    step.  Parts depend on the number of states alone, so that results do not on that of threads.

    Parameters
    ----------
    size : int
    run : callable
        Writes to `changes`, shape (3,), what `hybrid.matrix.cpu.choice_kernels.finish_rows` does.

    Returns
    -------
    ndarray, shape (2,), float64
        As `ChoiceOperator.changes`.
    """
    from hybrid.matrix.cpu.pool import run_together
    from hybrid.matrix.cpu.threads import threads_for

    parts = min(max(size // PART_ROWS, 1), MOST_PARTS)
    cuts = [size * k // parts for k in range(parts + 1)]
    changes = np.zeros((parts, 3))
    threads = min(threads_for(size), parts)

    def work(number: int) -> None:
        for part in range(number, parts, threads):
            run(cuts[part], cuts[part + 1], number, changes[part])

    run_together(work, threads)
    return _greatest(changes)


def _greatest(changes: Vector) -> Vector:
    """Return the greatest changes of all parts, infinite where values are no finite numbers."""
    if not math.isfinite(float(changes[:, 2].sum())):
        return np.full(2, np.inf)
    greatest: Vector = changes[:, :2].max(axis=0, initial=0.0)
    return greatest


class NoMatrix:
    """Stands for the matrix of a system in which every choice leaves the unknown states for certain."""

    def __init__(self, size: int) -> None:
        self.shape = (size, size)

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return zeros."""
        result = np.zeros(self.shape[0]) if out is None else out
        result[:] = 0.0
        return result

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Refuse: steps over choices are no relaxation steps."""
        raise NotImplementedError("a system without transitions has no relaxation steps")
