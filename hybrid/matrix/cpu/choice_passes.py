"""Passes over the states of a system over choices on all cores of the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.cpu import choice_kernels
from hybrid.matrix.cpu.pool import measure_rows, run_rows, run_together
from hybrid.matrix.cpu.threads import threads_for

Vector = NDArray[np.float64]

PART_ROWS = 1 << 13
"""States, at least, of a part that is improved state by state."""

MOST_PARTS = 8
"""Parts that are improved at the same time."""

_NOTHING = np.zeros(0)


def take(rows: int, place: NDArray[Any] | None, *operands: Any) -> None:
    """Take the choices of a layer into account, whose row j is the state ``place[j]``, if it is not j.

    Operands are those of `hybrid.matrix.cpu.choice_kernels.take_better`, or `take_better_at`.
    """
    if place is None:
        run_rows(choice_kernels.take_better, rows, *operands)
    else:
        run_rows(choice_kernels.take_better_at, rows, place, *operands)


def finish_on_host(x: Vector, out: Vector, factor: float, shape: Vector | None) -> Vector:
    """Turn `out` into ``factor * out + shape``; return the greatest changes from x, shape (2,)."""
    added = _NOTHING if shape is None else shape
    kernel = choice_kernels.finish_rows
    return changes_of_parts(measure_rows(kernel, out.size, 3, x, factor, added, shape is not None, out))


def parts_of(size: int) -> int:
    """Return the parts in which so many states are improved state by state."""
    return min(max(size // PART_ROWS, 1), MOST_PARTS)


# Choices written out: steps of all states at once, of one after another, and several of a call.


def step_at_once(size: int, *operands: Any) -> Vector:
    """Make a step of all states at once; return the greatest changes, shape (2,).

    Operands are those of `hybrid.matrix.cpu.choice_kernels.explicit_step` up to `out`.
    """
    return changes_of_parts(measure_rows(choice_kernels.explicit_step, size, 3, *operands))


def steps_at_once(count: int, *operands: Any) -> Vector:
    """Do so several times on the calling thread, from x to `out` and back; return the last changes."""
    changes = np.zeros((1, 3))
    choice_kernels.explicit_steps(count, *operands, changes[0])
    return changes_of_parts(changes)


def state_by_state(size: int, *operands: Any) -> Vector:
    """Make a step of the states, one after another within each part; return the greatest changes, shape (2,).

    Of other parts they take the values from before the step.  Parts depend on the number of states alone, so
    that results do not on that of threads.
    """
    parts = parts_of(size)
    cuts = [size * k // parts for k in range(parts + 1)]
    changes = np.zeros((parts, 3))
    threads = min(threads_for(size), parts)

    def work(number: int) -> None:
        for part in range(number, parts, threads):
            choice_kernels.explicit_step(cuts[part], cuts[part + 1], *operands, changes[part])

    run_together(work, threads)
    return changes_of_parts(changes)


def changes_of_parts(changes: Vector) -> Vector:
    """Return the greatest changes of all parts, infinite where values are no finite numbers."""
    greatest: Vector = changes[0] if len(changes) == 1 else changes.max(axis=0)
    return greatest[:2] if math.isfinite(greatest[2]) else np.full(2, np.inf)
