"""The vectors of IDR(s) on the device (cuda/shadows.cu): images, sums with shadow vectors, moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels._launch import blocks_for, check_vector, index_type, loop_bits, macros
from gpu_kernels.coded import CodedVector
from gpu_kernels.device import Device
from gpu_kernels.steps import NULL

_THREADS = 256
_MOST_BLOCKS = 1024
"""Blocks leave so many partial sums at most, on every card: the same sums everywhere."""

_DIRECTIONS = 4
_SUMS = _DIRECTIONS + 1


class ShadowKernels:
    """Launches on vectors of n elements, for ``A x = b / diagonal`` with ``A = I - M / diagonal``.

    With an anchor s it is ``A x = x - (M x - x[s]) / diagonal``.

    Parameters
    ----------
    device : Device
    diagonal : CodedVector
        With bits.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    anchor : int, optional
        Number of an element of x.

    Attributes
    ----------
    numbers : ndarray, shape (5,), float64
        Where sums are left.

    Raises
    ------
    ValueError
        If the diagonal is not held, or the anchor is no row of it.

    Notes
    -----
    Synchronises: no. Launches allocate nothing. Time: O(n) each. Sums are added in an order that depends on n
    alone. `weights` are what elements are multiplied with before they are measured, or None for ones; `u` and
    `g` have shape (4, n). Vectors are float64 and contiguous; those of `residual` and `image` are checked.
    Source: [vGS11].
    """

    def __init__(
        self, device: Device, diagonal: CodedVector, wide: bool = False, anchor: int | None = None
    ) -> None:
        size = diagonal.size
        if not diagonal.bits:
            raise ValueError("diagonal: expected one that is held, got ones that are left out")
        if anchor is not None and not 0 <= anchor < size:
            raise ValueError(f"anchor: expected a row below {size}, got {anchor}")
        xp = device.xp
        self.numbers = xp.zeros(_SUMS)
        bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
        special = macros(INDEX_BITS=bits, DIAGONAL_BITS=diagonal.bits, ANCHORED=int(anchor is not None))
        grid, block = (min(blocks_for(size, _THREADS), _MOST_BLOCKS),), (_THREADS,)
        rows = index_type(bits)(size)

        def launch(name: str, *arguments: Any) -> None:
            device.kernel("shadows.cu", name, special)(grid, block, (rows, *arguments))

        self._device, self._size, self._launch = device, size, launch
        self._meeting = xp.zeros(_SUMS * grid[0]), xp.zeros(1, np.uint32), self.numbers
        divisor = (NULL if part is None else part for part in (diagonal.elements, diagonal.table))
        self._divisor = (index_type(bits)(anchor or 0), *divisor)

    def residual(self, x: Any, r: Any) -> None:
        """Queue ``r -= x``, and with an anchor ``r -= x[s] / diagonal``: from a step the residual."""
        self._check(x, r)
        self._launch("residual_rows", *self._divisor, x, r)

    def image(self, x: Any, out: Any) -> None:
        """Queue ``out = A x``, where `out` is ``M x`` before."""
        self._check(x, out)
        self._launch("image_rows", *self._divisor, x, out)

    def shadow_sums(self, x: Any, weights: Any | None) -> None:
        """Queue the products of x with the shadow vectors and with itself: all of `numbers`."""
        self._launch("shadow_sums", *self._meeting, x, NULL if weights is None else weights)

    def aim(self, first: int, shares: Any, omega: float, r: Any, u: Any, g: Any) -> None:
        """Queue ``u[first] = omega r + sum over j >= first of shares[j] (u[j] - omega g[j])``."""
        given = (np.float64(share) for share in shares)
        self._launch("aim", np.int32(first), *given, np.float64(omega), r, u, g)

    def settle(self, last: int, shares: Any, beta: float, u: Any, g: Any, r: Any, x: Any) -> None:
        """Queue: number `last` loses its shares; ``x += beta u[last]`` and ``r -= beta g[last]``."""
        given = (np.float64(share) for share in shares[: _DIRECTIONS - 1])
        self._launch("settle", np.int32(last), *given, np.float64(beta), u, g, r, x)

    def step_sums(self, t: Any, r: Any, weights: Any | None) -> None:
        """Queue ``t . r``, ``t . t`` and ``r . r``: the first three of `numbers`."""
        self._launch("step_sums", *self._meeting, t, r, NULL if weights is None else weights)

    def step(self, omega: float, t: Any, r: Any, x: Any) -> None:
        """Queue ``x += omega r``, then ``r -= omega t``."""
        self._launch("step_rows", np.float64(omega), t, r, x)

    def _check(self, x: Any, out: Any) -> None:
        check_vector(self._device, x, self._size, "x")
        check_vector(self._device, out, self._size, "out")
