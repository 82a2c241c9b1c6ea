"""Passes of IDR(s) over the own rows of a process (cuda/shadows.cu); sums and numbers are its caller's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL
from gpu_kernels.runtime._launch import blocks_for, index_type, loop_bits, macros
from gpu_kernels.runtime.coded import CodedVector
from gpu_kernels.runtime.device import Device

_THREADS = 256
_MOST_BLOCKS = 1024
"""Blocks leave so many partial sums at most, on every card: the same sums everywhere."""

_DIRECTIONS = 4
_SHADOW_SUMS, _STEP_SUMS = _DIRECTIONS + 1, 3

Array = Any


class ShadowKernels:
    """Launches over vectors of a size; `hybrid.matrix.space.shadows` says what each of them does.

    Parameters
    ----------
    device : Device
    size : int
        Elements of a vector, n.
    diagonal : CodedVector, optional
        Of the equations, for `write_image` and `write_residual`.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no. Time: O(n) each. Sums are added in an order that depends on n alone. Vectors lie on the
    device, float64: x, r, t, weights of shape (n,), and u, g of shape (4, n).
    """

    def __init__(
        self, device: Device, size: int, diagonal: CodedVector | None = None, wide: bool = False
    ) -> None:
        bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
        special = macros(INDEX_BITS=bits, DIAGONAL_BITS=64 if diagonal is None else diagonal.bits)
        grid = (min(blocks_for(size, _THREADS), _MOST_BLOCKS),)
        rows = index_type(bits)(size)
        self._xp: Any = device.xp
        self._meeting = self._xp.zeros(_SHADOW_SUMS * grid[0]), self._xp.zeros(1, np.uint32)
        self._divisor = () if diagonal is None else tuple(map(_or_null, (diagonal.elements, diagonal.table)))

        def launch(name: str, *arguments: Any) -> None:
            device.kernel("shadows.cu", name, special)(grid, (_THREADS,), (rows, *arguments))

        self._launch = launch

    def shadow_sums(self, x: Array, weights: Array | None) -> Array:
        """Queue the scalar products of x with the shadow vectors and itself, shape (5,) on the device."""
        found = self._xp.empty(_SHADOW_SUMS)
        self._launch("add_shadow_products", *self._meeting, _or_null(weights), x, found)
        return found

    def step_sums(self, t: Array, r: Array, weights: Array | None) -> Array:
        """Queue the scalar products ``t . r``, ``t . t`` and ``r . r``, shape (3,) on the device."""
        found = self._xp.empty(_STEP_SUMS)
        self._launch("add_products", *self._meeting, _or_null(weights), t, r, found)
        return found

    def aim(self, first: int, shares: Any, omega: float, r: Array, u: Array, g: Array) -> None:
        """Queue ``u[first] = omega r + sum over j >= first of shares[j] (u[j] - omega g[j])``."""
        own = (np.float64(share) for share in shares[:_DIRECTIONS])
        self._launch("aim_direction", np.int32(first), *own, np.float64(omega), r, u, g)

    def settle(self, last: int, shares: Any, beta: float, u: Array, g: Array, r: Array, x: Array) -> None:
        """Queue what the last direction loses to those before it, and the move along it."""
        own = (np.float64(share) for share in shares[: _DIRECTIONS - 1])
        self._launch("settle_direction", np.int32(last), *own, np.float64(beta), u, g, r, x)

    def step(self, omega: float, t: Array, r: Array, x: Array) -> None:
        """Queue ``x += omega r``, then ``r -= omega t``."""
        self._launch("step_along_residual", np.float64(omega), t, r, x)

    def write_image(self, at_anchor: float, x: Array, out: Array) -> None:
        """Queue ``out = x - (out - at_anchor) / diagonal``; `out` is ``M x`` before."""
        self._launch("write_image", np.float64(at_anchor), *self._divisor, x, out)

    def write_residual(self, at_anchor: float, x: Array, out: Array) -> None:
        """Queue ``out = out - at_anchor / diagonal - x``; `out` is ``(M x + b) / diagonal`` before."""
        self._launch("write_residual", np.float64(at_anchor), *self._divisor, x, out)


def _or_null(array: Array | None) -> Any:
    return NULL if array is None else array
