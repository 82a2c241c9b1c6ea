"""Passes of IDR(s) over vectors on all cores of the host."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.operands import PIECE
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.cpu.arguments import Each
from hybrid.matrix.cpu.pool import run_in_parts, run_kernel, run_rows
from hybrid.matrix.cpu.threads import threads_for

Vector = NDArray[np.float64]

_NOTHING = np.zeros(0)


class CpuShadows:
    """See `hybrid.matrix.space.shadows.ShadowPasses`; sums do not depend on the number of threads."""

    def shadow_sums(self, x: Vector, weights: Vector | None) -> Vector:
        """Return the scalar products with the shadow vectors, and of x with itself."""
        kernel = _kernels_for(x).shadow_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, x.size, DIRECTIONS + 1, x, scale, weighed)

    def clear(self, u: Vector, g: Vector) -> None:
        """Write zeros."""

        def fill(begin: int, end: int, _: int) -> None:
            u[:, begin:end] = 0.0
            g[:, begin:end] = 0.0

        run_in_parts(u.shape[1], fill, 2 * DIRECTIONS)

    def aim(self, first: int, shares: Vector, omega: float, r: Vector, u: Vector, g: Vector) -> None:
        """Write the next direction."""
        kernel = _kernels_for(r).turn_rows
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
        """Take shares of the vectors before from the last ones, move along them, and aim anew."""
        kernel = _kernels_for(r).turn_rows
        run_rows(kernel, r.size, last, True, taken, betas, shares, omega, u, g, r, x)

    def step_sums(self, t: Vector, r: Vector, weights: Vector | None) -> Vector:
        """Return ``t . r``, ``t . t`` and ``r . r``."""
        kernel = _kernels_for(r).step_sums_rows
        scale, weighed = (_NOTHING, False) if weights is None else (weights, True)
        return _sums(kernel, r.size, 3, t, r, scale, weighed)

    def step(self, omega: float, t: Vector, r: Vector, x: Vector) -> None:
        """Move along the residual."""
        kernel = _kernels_for(r).step_rows
        run_rows(kernel, r.size, omega, t, r, x)


def _kernels_for(x: Vector) -> Any:
    """Return the compiled passes over vectors with the precision of one."""
    if x.dtype == np.float64:
        from hybrid.matrix.cpu import shadow_kernels

        return shadow_kernels
    from hybrid.matrix.cpu import single_kernels

    return single_kernels


def _sums(kernel: Any, size: int, count: int, *arguments: Any) -> Vector:
    """Add up what a kernel finds in each piece of so many rows."""
    found = np.zeros((-(-size // PIECE), count))
    threads = threads_for(size)
    if threads == 1:
        kernel(0, size, *arguments, found)
    else:
        run_kernel(kernel, threads, *_pieces_of_parts(size, threads), *arguments, found)
    total: Vector = found.sum(axis=0)
    return total


@functools.lru_cache(maxsize=64)
def _pieces_of_parts(size: int, parts: int) -> tuple[Each, Each]:
    """Return the first rows of all parts, and the ends, at pieces; the same objects again."""
    pieces = -(-size // PIECE)
    cuts = [min(PIECE * (pieces * k // parts), size) for k in range(parts + 1)]
    return Each(cuts[:-1]), Each(cuts[1:])
