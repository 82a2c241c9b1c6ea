"""The recurrences of BiCGStab and IDR(s) on the device (cuda/krylov.cu, cuda/idr.cu): vectors, launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_type, loop_bits, macros, real_macros
from gpu_kernels.runtime.coded import CodedVector
from gpu_kernels.runtime.device import Device

# IDR(s)'s recurrence on the device (cuda/idr.cu): its vectors and numbers, and the launches on them.

_THREADS = 256
_MOST_BLOCKS = 1024
"""Blocks leave so many partial sums at most, on every card: the same sums everywhere."""

_AT_ONCE = 4
"""Rows of a turn of a loop over the grid, at most."""

_DIRECTIONS = 4
_SUMS = _DIRECTIONS + 1
_NUMBERS = 40


class IDRKernels:
    """Vectors and numbers of the recurrence for ``A x = b / diagonal`` with ``A = I - M / diagonal``, s = 4.

    With an anchor s it is ``A x = x - (M x - x[s]) / diagonal``.

    A cycle is: `aim`; for k from 0 to 3 ``g[k] = M u[k]`` by the caller, `find_image` and `settle`; then
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

    Attributes
    ----------
    x : ndarray, shape (n,), float64
        Iterate.
    fresh : ndarray, shape (n,), float64
        ``(M x + b) / diagonal`` when `begin` is called; `r` itself with doubles.
    r, t : ndarray, shape (n,), of `real`
        Residual, and ``M r``.
    u, g : ndarray, shape (4, n), of `real`
        Directions and their images; ``g[k]`` is ``M u[k]`` until `settle`.
    numbers : ndarray, shape (40,), float64
        See cuda/idr.cu; `NORM`, `GREATEST` are places in it.
    status : ndarray, shape (2,), int64
        How the recurrence ended (0 not yet, 1 arrived, 2 broken down), and all cycles done. It is made ended,
        so that launches do nothing before `begin`.

    Raises
    ------
    TypeError, ValueError
        If x, the weights or the diagonal cannot be read by the kernels; see :func:`gpu_kernels.check_vector`.

    Notes
    -----
    Synchronises: no. Launches allocate nothing and always have the same arguments, so that they can be
    recorded. Time: O(n) each; memory: ten vectors, with single precision as much as six. Sums are added in an
    order that depends on n alone.
    Source: [vGS11].
    """

    NORM = 9
    """Place of the norm of the residual in `numbers`."""
    GREATEST = 10
    """Place of the greatest norm since the last fresh residual."""

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
        self.u, self.g = xp.zeros((_DIRECTIONS, size), real), xp.zeros((_DIRECTIONS, size), real)
        self.fresh = self.r if real is np.float64 else xp.zeros(size)
        self.numbers = xp.zeros(_NUMBERS)
        self.status = xp.array([1, 0], dtype=np.int64)
        bits = loop_bits(size, _AT_ONCE * _MOST_BLOCKS, _THREADS, wide)
        special = macros(
            INDEX_BITS=bits,
            DIAGONAL_BITS=diagonal.bits,
            ANCHORED=int(anchor is not None),
            **real_macros(self.r),
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
        end = np.float64(limit)
        self._begin = (*sums, end, measure, place, *divisor, self.x, self.fresh, self.r)
        self._aim = (*state, self.r, self.u, self.g)
        self._image = (*sums, measure, place, *divisor)
        self._settle = (*state, *divisor)
        self._omega = (*sums, measure, place, *divisor, np.float64(kappa), self.r, self.t)
        self._move = (*sums, end, np.float64(lost), measure, *divisor, self.t, self.r, self.x)

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


_BICGSTAB_NUMBERS = 8
_BICGSTAB_SUMS = 2


class BiCGStabKernels:
    """Vectors and numbers of the recurrence for ``A x = b / diagonal`` with ``A = I - M / diagonal``.

    With an anchor s it is ``A x = x - (M x - x[s]) / diagonal``, see :mod:`hybrid.matrix.space.recurrence`.

    An iteration is: ``product_p = M p`` by the caller, `find_alpha`, `shorten_residual`, ``product_r = M r``
    by the caller, `find_omega`, `move_iterate`, `turn_direction`.

    Parameters
    ----------
    device : Device
    x : ndarray, shape (n,), float64
        The iterate, on the device; changed in place.
    diagonal : CodedVector
        Without bits where the caller divides the products by it already.
    limit : float
        Norm of the residual below which the recurrence has arrived.
    orthogonal : float
        Cosine of the residual and the one it began with at which it breaks down.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    anchor : int, optional
        Number of an element of x. The diagonal must have bits then.

    Attributes
    ----------
    x, r, shadow, p, product_p, product_r : ndarray, shape (n,), float64
        Iterate, residual, the residual that it began with, direction, and the two products. `r` is the fresh
        ``(M x + b) / diagonal`` when `begin` is called.
    numbers : ndarray, shape (8,), float64
        ``shadow . r``, ``|shadow|``, ``|r|``, alpha, omega, beta, and the last p and r at the anchor.
    status : ndarray, shape (2,), int64
        How the recurrence ended (0 not yet, 1 arrived, 2 broken down), and all iterations done. It is made
        ended, so that launches do nothing before `begin`.

    Raises
    ------
    TypeError, ValueError
        If x or the diagonal cannot be read by the kernels; see :func:`gpu_kernels.check_vector`.

    Notes
    -----
    Synchronises: no. Launches allocate nothing and always have the same arguments, so that they can be
    recorded. Time: O(n) each; memory: five vectors. Sums are added in an order that depends on n alone.
    Source: van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992; [CB12] §5.2.
    """

    NORM = 2
    """Place of ``|r|`` in `numbers`."""

    def __init__(
        self,
        device: Device,
        x: Any,
        diagonal: CodedVector,
        limit: float,
        orthogonal: float,
        wide: bool = False,
        anchor: int | None = None,
    ) -> None:
        size = len(x)
        check_vector(device, x, size, "x")
        if diagonal.bits and diagonal.size != size:
            raise ValueError(f"diagonal: expected {size} elements, got {diagonal.size}")
        if anchor is not None and not (diagonal.bits and 0 <= anchor < size):
            raise ValueError(f"anchor: expected a row below {size} and a diagonal that is held, got {anchor}")
        xp = device.xp
        self.x = x
        self.r, self.shadow, self.p, self.product_p, self.product_r = (xp.empty(size) for _ in range(5))
        self.numbers = xp.zeros(_BICGSTAB_NUMBERS)
        self.status = xp.array([1, 0], dtype=np.int64)
        bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
        special = macros(INDEX_BITS=bits, DIAGONAL_BITS=diagonal.bits, ANCHORED=int(anchor is not None))
        grid, block = (min(blocks_for(size, _THREADS), _MOST_BLOCKS),), (_THREADS,)
        meeting = xp.zeros(_BICGSTAB_SUMS * grid[0]), xp.zeros(1, np.uint32)
        rows, place = (index_type(bits)(size),), (index_type(bits)(anchor or 0),)
        divisor = tuple(NULL if part is None else part for part in (diagonal.elements, diagonal.table))
        end, least = np.float64(limit), np.float64(orthogonal)

        def launch(name: str, *arguments: Any) -> None:
            device.kernel("krylov.cu", name, special)(grid, block, (*rows, *arguments))

        self._launch = launch
        state = self.numbers, self.status
        self._begin = (*meeting, *state, end, *place, *divisor, self.x, self.r, self.shadow, self.p)
        self._alpha = (*meeting, *state, *place, *divisor, self.shadow, self.p, self.product_p)
        self._shorten = (*state, *divisor, self.p, self.product_p, self.r)
        self._omega = (*meeting, *state, *place, *divisor, self.r, self.product_r)
        self._move = (
            *meeting, *state, end, least, *divisor, self.shadow, self.p, self.product_r, self.x, self.r,
        )  # fmt: skip
        self._turn = (*state, *divisor, self.r, self.product_p, self.p)

    def begin(self) -> None:
        """Queue a new beginning from ``r = (M x + b) / diagonal``, which becomes the residual."""
        self._launch("begin_recurrence", *self._begin)

    def find_alpha(self) -> None:
        """Queue the step length along p, once `product_p` is there; it counts the iteration."""
        self._launch("find_alpha", *self._alpha)

    def shorten_residual(self) -> None:
        """Queue ``r -= alpha A p``."""
        self._launch("shorten_residual", *self._shorten)

    def find_omega(self) -> None:
        """Queue the step length along r, once `product_r` is there."""
        self._launch("find_omega", *self._omega)

    def move_iterate(self) -> None:
        """Queue ``x += alpha p + omega r`` and ``r -= omega A r``, and the decision whether to go on."""
        self._launch("move_iterate", *self._move)

    def turn_direction(self) -> None:
        """Queue ``p = r + beta (p - omega A p)``."""
        self._launch("turn_direction", *self._turn)
