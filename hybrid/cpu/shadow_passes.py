"""Passes of IDR(s) over vectors on all cores of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.core.operands import PIECE
from hybrid.core.shadow_signs import DIRECTIONS
from hybrid.cpu.arguments import Each
from hybrid.cpu.pool import run_kernel, run_rows
from hybrid.cpu.threads import threads_for

Vector = NDArray[np.float64]

_NOTHING = np.zeros(0)


class CpuShadows:
    """See `hybrid.solvers.shadows.ShadowPasses`; sums are those of pieces, whatever the number of threads."""

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors, and of x with itself."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.shadow_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, x.size, DIRECTIONS + 1, x, scale, weighed)

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write the next direction."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.aim_rows
        run_rows(kernel, r.size, first, shares, omega, r, u, g)

    def settle(
        self, last: int, shares: Vector, beta: float, u: Vector, g: Vector, r: Vector, x: Vector
    ) -> None:
        """Take shares of the vectors before from the last ones, and move along them."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.settle_rows
        run_rows(kernel, r.size, last, shares, beta, u, g, r, x)

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return ``t . r``, ``t . t`` and ``r . r``."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.step_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, r.size, 3, t, r, scale, weighed)

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move along the residual."""
        from hybrid.cpu import shadow_kernels

        kernel: Any = shadow_kernels.step_rows
        run_rows(kernel, r.size, omega, t, r, x)


def _sums(kernel: Any, size: int, count: int, *arguments: Any) -> Vector:
    """Add up what a kernel finds in each piece of so many rows."""
    found = np.zeros((-(-size // PIECE), count))
    cuts = [*range(0, size, PIECE), size]
    begins, ends = Each(cuts[:-1]), Each(cuts[1:])
    run_kernel(kernel, threads_for(size), begins, ends, *arguments, Each(found), parts=len(found))
    total: Vector = found.sum(axis=0)
    return total
