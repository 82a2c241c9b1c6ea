"""Passes of IDR(s) over vectors on all cores of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.core.operands import PIECE
from hybrid.core.shadow_signs import DIRECTIONS
from hybrid.cpu.threads import run_in_parts, run_together, threads_for

Vector = NDArray[np.float64]

_NOTHING = np.zeros(0)


class CpuShadows:
    """See `hybrid.solvers.shadows.ShadowPasses`; sums are those of pieces, whatever the number of threads."""

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors, and of x with itself."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.shadow_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(
            x.size, DIRECTIONS + 1, lambda begin, end, found: kernel(begin, end, x, scale, weighed, found)
        )

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write the next direction."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.aim_rows
        run_in_parts(r.size, lambda begin, end, _: kernel(begin, end, first, shares, omega, r, u, g))

    def settle(
        self, last: int, shares: Vector, beta: float, u: Vector, g: Vector, r: Vector, x: Vector
    ) -> None:
        """Take shares of the vectors before from the last ones, and move along them."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.settle_rows
        run_in_parts(r.size, lambda begin, end, _: kernel(begin, end, last, shares, beta, u, g, r, x))

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return ``t . r``, ``t . t`` and ``r . r``."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.step_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(r.size, 3, lambda begin, end, found: kernel(begin, end, t, r, scale, weighed, found))

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move along the residual."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.step_rows
        run_in_parts(r.size, lambda begin, end, _: kernel(begin, end, omega, t, r, x))


def _sums(size: int, count: int, kernel: Callable[[int, int, Vector], object]) -> Vector:
    """Add up what a kernel finds in each piece of so many rows."""
    found = np.zeros((-(-size // PIECE), count))

    threads = threads_for(size)

    def some(number: int) -> None:
        for k in range(len(found) * number // threads, len(found) * (number + 1) // threads):
            kernel(k * PIECE, min((k + 1) * PIECE, size), found[k])

    run_together(some, threads)
    total: Vector = found.sum(axis=0)
    return total
