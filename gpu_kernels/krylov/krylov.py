"""The recurrence of IDR(s) on the device (cuda/idr.cu): its vectors and numbers, and the launches on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL
from gpu_kernels.runtime._launch import (
    blocks_for,
    check_vector,
    direction_macros,
    index_type,
    loop_bits,
    macros,
    real_macros,
)
from gpu_kernels.runtime.coded import CodedVector
from gpu_kernels.runtime.device import Device

_THREADS = 256
_MOST_BLOCKS = 1024
"""Blocks leave so many partial sums at most, on every card: the same sums everywhere."""

_AT_ONCE = 4
"""Rows of a turn of a loop over the grid, at most."""

_DIRECTIONS = 4
_SUMS = _DIRECTIONS + 1
_NUMBERS = 40


class IDRKernels:
    """Vectors and numbers of the recurrence for ``A x = b / diagonal`` with ``A = I - M / diagonal``.

    With an anchor s it is ``A x = x - (M x - x[s]) / diagonal``.  With one direction it is BiCGStab's.

    A cycle is: `aim`; for every direction k ``g[k] = M u[k]`` by the caller, `find_image` and `settle`; then
    ``t = M r`` by the caller, `find_omega`, `move`.

    Parameters
    ----------
    device : Device
    x : ndarray, shape (n,), float64
        The iterate, on the device; changed in place.
    diagonal : CodedVector
        Without bits where the caller divides the products by it already.
    limit : float
        Norm of the residual, weighed, below which the recurrence has arrived.
    kappa : float
        Cosine of the residual and its image below which the step along the residual is made greater.
    lost : float
        Times the norm that it began with at which the recurrence breaks down.
    weights : ndarray, shape (n,), float64, optional
        On the device: what elements are multiplied with before they are measured.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    anchor : int, optional
        Number of an element of x. The diagonal must have bits then.
    real : {numpy.float64, numpy.float32}
        Precision of all vectors but the iterate and the fresh residual.
    directions : {4, 1}
        s: with 4 the shadow vectors are signs, with 1 the only one is the residual that it began with.
    orthogonal : float
        Cosine of the residual and the only shadow vector at which the recurrence has to restart.

    Attributes
    ----------
    x : ndarray, shape (n,), float64
        Iterate.
    fresh : ndarray, shape (n,), float64
        ``(M x + b) / diagonal`` when `begin` is called; `r` itself with doubles.
    r, t : ndarray, shape (n,), of `real`
        Residual, and ``M r``.
    shadow : ndarray, shape (n,), of `real`, or None
        The shadow vector of one direction.
    u, g : ndarray, shape (s, n), of `real`
        Directions and their images; ``g[k]`` is ``M u[k]`` until `settle`.
    numbers : ndarray, shape (40,), float64
        See cuda/idr.cu; `NORM`, `GREATEST` are places in it.
    status : ndarray, shape (2,), int64
        How the recurrence ended (0 not yet, 1 arrived, 2 broken down, 3 has to restart), and all cycles
        done. It is made ended, so that launches do nothing before `begin`.

    Raises
    ------
    TypeError, ValueError
        If x, the weights or the diagonal cannot be read by the kernels; see :func:`gpu_kernels.check_vector`.

    Notes
    -----
    Synchronises: no. Launches allocate nothing and always have the same arguments, so that they can be
    recorded. Time: O(n) each; memory besides x: ten vectors, with single precision as much as six, and five
    with one direction. Sums are added in an order that depends on n alone.
    Source: [vGS11]; one direction: van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992; [CB12] §5.2.
    """

    NORM = 9
    """Place of the norm of the residual in `numbers`."""
    GREATEST = 10
    """Place of the greatest norm since the last fresh residual."""
    BROKEN, ORTHOGONAL = 2, 3
    """Values of the first number of `status`: broken down, or due for a restart."""

    def __init__(
        self,
        device: Device,
        x: Any,
        diagonal: CodedVector,
        limit: float,
        kappa: float,
        lost: float,
        weights: Any | None = None,
        wide: bool = False,
        anchor: int | None = None,
        real: type[np.floating[Any]] = np.float64,
        directions: int = _DIRECTIONS,
        orthogonal: float = 0.0,
    ) -> None:
        size = len(x)
        check_vector(device, x, size, "x")
        if weights is not None:
            check_vector(device, weights, size, "weights")
        if diagonal.bits and diagonal.size != size:
            raise ValueError(f"diagonal: expected {size} elements, got {diagonal.size}")
        if anchor is not None and not (diagonal.bits and 0 <= anchor < size):
            raise ValueError(f"anchor: expected a row below {size} and a diagonal that is held, got {anchor}")
        xp = device.xp
        self.x, self.r, self.t = x, xp.zeros(size, real), xp.zeros(size, real)
        self.u, self.g = xp.zeros((directions, size), real), xp.zeros((directions, size), real)
        self.shadow = xp.zeros(size, real) if directions == 1 else None
        self.fresh = self.r if real is np.float64 else xp.zeros(size)
        self.numbers = xp.zeros(_NUMBERS)
        self.status = xp.array([1, 0], dtype=np.int64)
        bits = loop_bits(size, _AT_ONCE * _MOST_BLOCKS, _THREADS, wide)
        special = macros(
            INDEX_BITS=bits,
            DIAGONAL_BITS=diagonal.bits,
            ANCHORED=int(anchor is not None),
            **real_macros(self.r),
            **direction_macros(directions),
        )
        grid, block = (min(blocks_for(size, _THREADS), _MOST_BLOCKS),), (_THREADS,)
        rows = index_type(bits)(size)

        def launch(name: str, *arguments: Any) -> None:
            device.kernel("idr.cu", name, special)(grid, block, (rows, *arguments))

        self._launch = launch
        state = self.numbers, self.status
        sums = xp.zeros(_SUMS * grid[0]), xp.zeros(1, np.uint32), *state
        measure = NULL if weights is None else weights
        # A table of reciprocals: rows are multiplied by them, and not divided.
        table = None if diagonal.table is None else xp.reciprocal(diagonal.table)
        divisor = tuple(NULL if part is None else part for part in (diagonal.elements, table))
        place = index_type(bits)(anchor or 0)
        shadow = NULL if self.shadow is None else self.shadow
        end, ends = np.float64(limit), (np.float64(lost), np.float64(orthogonal))
        self._begin = (*sums, end, measure, place, *divisor, self.x, self.fresh, self.r, shadow)
        self._aim = (*state, self.r, self.u, self.g)
        self._image = (*sums, measure, place, *divisor, shadow)
        self._settle = (*state, *divisor)
        self._omega = (*sums, end, measure, place, *divisor, np.float64(kappa), self.r, self.t)
        self._move = (*sums, end, *ends, measure, *divisor, shadow, self.t, self.r, self.x)

    def begin(self, is_new: bool) -> None:
        """Queue a beginning from ``fresh = (M x + b) / diagonal``, of which the residual is made.

        Parameters
        ----------
        is_new : bool
            Whether directions are none yet: u and g are zero then. Else they and the step are kept.
        """
        if is_new:
            self.u.fill(0.0)
            self.g.fill(0.0)
        self._launch("begin_idr", *self._begin, np.int32(is_new))

    def aim(self) -> None:
        """Queue the first direction of a cycle."""
        self._launch("aim", *self._aim)

    def find_image(self, k: int) -> None:
        """Queue what follows from ``g[k] = M u[k]``: the shares of the image, and the step along it."""
        self._launch("image_sums", *self._image, np.int32(k), self.u, self.g)

    def settle(self, k: int) -> None:
        """Queue the image of direction k, both without their shares of those before, and the next direction.

        The last direction moves x and r, along all of the cycle.
        """
        self._launch("settle", *self._settle, np.int32(k), self.u, self.g, self.r, self.x)

    def find_omega(self) -> None:
        """Queue the step length along r, once ``t = M r`` is there."""
        self._launch("step_sums", *self._omega)

    def move(self) -> None:
        """Queue the step along r, and the decision whether to go on; it counts the cycle."""
        self._launch("move_rows", *self._move)
