"""Passes over the vectors of a solution on all cores of the host."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import PIECE
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.cpu.pool import measure_rows, run_in_parts, run_rows
from hybrid.matrix.cpu.threads import thread_count
from hybrid.matrix.space.passes import Passes

Vector = NDArray[np.float64]

_NOTHING = np.zeros(0)


@functools.cache
def _vector_kernels() -> Any:
    """Return the compiled passes over vectors, loaded on first use."""
    from hybrid.matrix.cpu import vector_kernels

    return vector_kernels


@functools.cache
def _shadow_kernels() -> Any:
    """Return the compiled passes of IDR(s), loaded on first use."""
    from hybrid.matrix.cpu import shadow_kernels

    return shadow_kernels


def _sums(kernel: Any, size: int, count: int, *arguments: Any) -> Vector:
    """Add up what a kernel finds in each piece of so many rows."""
    found = np.zeros((-(-size // PIECE), count))
    run_rows(kernel, size, *arguments, found, piece=PIECE)
    total: Vector = found[0] if len(found) == 1 else found.sum(axis=0)
    return total


_PART = 1 << 15
"""Elements of a part of elementwise work in NumPy: enough to do without the interpreter for a while."""


class CpuPasses(Passes):
    """See `hybrid.matrix.space.passes.Passes`; compiled loops, the same bits with any number of threads."""

    def add_scaled(self, weight: float, x: Vector, total: Vector) -> None:
        """Add ``weight * x`` to `total`."""
        run_rows(_vector_kernels().add_scaled_rows, total.size, weight, x, total)

    def uniformise(self, x: Vector, b: Vector | None, diagonal: Vector, weight: float, out: Vector) -> None:
        """Turn ``out = M x`` into ``(1 - weight * diagonal) x + weight (M x + b)``."""
        right, kernel = _NOTHING if b is None else b, _vector_kernels().uniformise_rows
        run_rows(kernel, out.size, x, right, b is not None, diagonal, weight, out)

    def greatest_changes(self, new: Vector, old: Vector) -> Vector:
        """Return the greatest ``|new - old|`` and ``|new - old| / |new|``, shape (2,)."""
        found = measure_rows(_vector_kernels().change_rows, new.size, 2, new, old)
        greatest: Vector = found[0] if len(found) == 1 else found.max(axis=0)
        return greatest

    def extremes(self, x: Vector) -> tuple[np.float64, np.float64]:
        """Return the least and the greatest element."""
        found = np.full((thread_count(), 2), x[0])

        def measure(begin: int, end: int, k: int) -> None:
            if begin < end:
                found[k] = x[begin:end].min(), x[begin:end].max()

        run_in_parts(x.size, measure)
        return np.float64(found[:, 0].min()), np.float64(found[:, 1].max())

    def each(self, work: Callable[..., object], *vectors: Vector) -> None:
        """Call `work` with the same part of every vector, for all parts."""

        def some(begin: int, end: int, _: int) -> None:
            # Every thread has its own settings, and what overflows shows in the numbers.
            with np.errstate(all="ignore"):
                for first in range(begin, end, _PART):
                    part = slice(first, min(first + _PART, end))
                    work(*(vector[part] for vector in vectors))

        run_in_parts(vectors[0].size, some)

    def image(self, x: Vector, diagonal: Vector, at_anchor: float, out: Vector) -> None:
        """Turn ``out = M x`` into ``x - (M x - at_anchor) / diagonal``."""
        run_rows(_vector_kernels().image_rows, x.size, x, diagonal, at_anchor, out)

    def subtract_from(self, x: Vector, out: Vector) -> None:
        """Turn `out` into ``x - out``."""
        run_rows(_vector_kernels().difference_rows, x.size, x, out)

    # ------------------------------------------------------------------ of IDR(s)

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors, and of x with itself."""
        kernel = _shadow_kernels().shadow_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, x.size, DIRECTIONS + 1, x, scale, weighed)

    def clear(self, u: Vector, g: Vector) -> None:
        """Write zeros."""

        def fill(begin: int, end: int, _: int) -> None:
            u[:, begin:end] = 0.0
            g[:, begin:end] = 0.0

        run_in_parts(u.shape[1], fill, 2 * len(u))

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write the next direction."""
        kernel = _shadow_kernels().turn_rows
        run_rows(kernel, r.size, first - 1, False, _NOTHING, _NOTHING, shares, omega, u, g, r, _NOTHING)

    def settle(
        self,
        last: int,
        taken: Vector,
        betas: Vector,
        shares: Vector,
        omega: float,
        u: Vector,
        g: Vector,
        r: Vector,
        x: Vector,
    ) -> None:
        """Take shares of the vectors before from the last ones, move along them, and aim again."""
        kernel = _shadow_kernels().turn_rows
        run_rows(kernel, r.size, last, True, taken, betas, shares, omega, u, g, r, x)

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return ``t . r``, ``t . t`` and ``r . r``."""
        kernel = _shadow_kernels().step_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, r.size, 3, t, r, scale, weighed)

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move along the residual."""
        kernel = _shadow_kernels().step_rows
        run_rows(kernel, r.size, omega, t, r, x)
