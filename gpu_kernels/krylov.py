"""Kernels over vectors alone (cuda/vector.cu): the relaxation that follows a product, differences, sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL, IterationState, Mode, Step, finish_iteration
from gpu_kernels.runtime._launch import (
    blocks_for,
    check_vector,
    direction_macros,
    index_type,
    loop_bits,
    macros,
    real_macros,
)
from gpu_kernels.runtime._loader import Kernel, Macros
from gpu_kernels.runtime.coded import CodedVector
from gpu_kernels.runtime.device import Device

# Vectors assembled from blocks (cuda/blocks.cu): equal blocks are sent to the device once.

_THREADS = 256
_SPAN = 4096
"""Elements that a block of threads writes: 512 a warp, as the kernel has it."""


def copy_blocks(device: Device, flat: Any, starts: Any, ends: Any, out: Any) -> None:
    """Queue writing blocks one after the other.

    Parameters
    ----------
    device : Device
    flat : ndarray, shape (k,), float64 or bool
        Distinct blocks.
    starts : ndarray, shape (count,), int64
        Where in `flat` every block of the result begins.
    ends : ndarray, shape (count,), int64
        Where in the result every block ends, ascending; the last is the size of the result.
    out : ndarray, shape (n,), of the type of `flat`

    Raises
    ------
    TypeError
        If an array does not lie on the device, or has another type.
    ValueError
        If a shape is wrong.

    Notes
    -----
    Synchronises: no.
    """
    size, count = len(out), len(ends)
    if flat.dtype not in (np.float64, np.bool_):
        raise TypeError(f"flat: expected float64 or bool, got {flat.dtype}")
    check_vector(device, flat, len(flat), "flat", flat.dtype)
    check_vector(device, out, size, "out", flat.dtype)
    check_vector(device, starts, count, "starts", np.int64)
    check_vector(device, ends, count, "ends", np.int64)
    if size == 0:
        return
    kernel = device.kernel("blocks.cu", "copy_blocks", macros(ELEMENT_BYTES=flat.dtype.itemsize))
    arguments = (np.int64(size), np.int64(count), flat, starts, ends, out)
    kernel((blocks_for(size, _SPAN),), (_THREADS,), arguments)


# Passes of IDR(s) over the own rows of a process (cuda/shadows.cu); sums and numbers are its caller's.

_MOST_BLOCKS = 1024
"""Most partial sums of blocks, the same on every card, so that sums agree everywhere."""

_DIRECTIONS = 4
_SHADOW_SUMS, _STEP_SUMS = _DIRECTIONS + 1, 3

Array = Any


class ShadowKernels:
    """Launches over vectors of a size; `hybrid.matrix.space.passes` describes each of them.

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
    device, float64: x, r, t, weights of shape (n,), and u, g of shape (4, n) or (1, n).
    """

    def __init__(
        self, device: Device, size: int, diagonal: CodedVector | None = None, wide: bool = False
    ) -> None:
        bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
        special = dict(INDEX_BITS=bits, DIAGONAL_BITS=64 if diagonal is None else diagonal.bits)
        grid = (min(blocks_for(size, _THREADS), _MOST_BLOCKS),)
        rows = index_type(bits)(size)
        self._xp: Any = device.xp
        self._meeting = self._xp.zeros(_SHADOW_SUMS * grid[0]), self._xp.zeros(1, np.uint32)
        self._divisor = () if diagonal is None else tuple(map(_or_null, (diagonal.elements, diagonal.table)))

        def launch(name: str, *arguments: Any, directions: int = _DIRECTIONS) -> None:
            kernel = device.kernel("shadows.cu", name, macros(**special, **direction_macros(directions)))
            kernel(grid, (_THREADS,), (rows, *arguments))

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
        own = _numbers(shares, _DIRECTIONS)
        self._launch("aim_direction", np.int32(first), *own, np.float64(omega), r, u, g, directions=len(u))

    def settle(self, last: int, shares: Any, beta: float, u: Array, g: Array, r: Array, x: Array) -> None:
        """Queue what the last direction loses to those before it, and the move along it."""
        own = _numbers(shares, _DIRECTIONS - 1)
        self._launch(
            "settle_direction", np.int32(last), *own, np.float64(beta), u, g, r, x, directions=len(u)
        )

    def step(self, omega: float, t: Array, r: Array, x: Array) -> None:
        """Queue ``x += omega r``, then ``r -= omega t``."""
        self._launch("step_along_residual", np.float64(omega), t, r, x)

    def write_image(self, at_anchor: float, x: Array, out: Array) -> None:
        """Queue ``out = x - (out - at_anchor) / diagonal``; `out` is ``M x`` before."""
        self._launch("write_image", np.float64(at_anchor), *self._divisor, x, out)

    def write_residual(self, at_anchor: float, x: Array, out: Array) -> None:
        """Queue ``out = out - at_anchor / diagonal - x``; `out` is ``(M x + b) / diagonal`` before."""
        self._launch("write_residual", np.float64(at_anchor), *self._divisor, x, out)


def _numbers(given: Any, count: int) -> list[np.float64]:
    """Return so many numbers: those given first, and zeros."""
    return [np.float64(given[k] if k < len(given) else 0.0) for k in range(count)]


def _or_null(array: Array | None) -> Any:
    return NULL if array is None else array


_MOST_GRID_BLOCKS = 1 << 16

_NO_STEP = {"MODE": int(Mode.JACOBI), "DIAGONAL_BITS": 64, "RIGHT_BITS": 0}
"""The specialisation of kernels that have no step."""


def relax_rows(
    device: Device, step: Step, x: Any, out: Any, wide: bool = False, product: Any | None = None
) -> None:
    """Queue the relaxation that follows a product.

    Parameters
    ----------
    device : Device
    step : Step
        Any mode but PRODUCT.
    x : ndarray, shape (n,), float64
        The iterate that was multiplied.
    out : ndarray, shape (n,), float64
        The next iterate afterwards.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    product : ndarray, shape (n,), float64, optional
        M x; left out, it lies in ``out``. Held apart, ``out`` stays as it is once the iteration has ended.

    Notes
    -----
    Synchronises: no.
    """
    size = len(out)
    step.check(device, size, x, out)
    if product is not None:
        check_vector(device, product, size, "product")
    if step.mode == Mode.PRODUCT or size == 0:
        return
    arguments = (*step.arguments(), x, out if product is None else product, out)
    _launch(device, "relax_rows", step.macros(), size, wide, arguments)


def compare_rows(device: Device, state: IterationState, x: Any, y: Any, wide: bool = False) -> None:
    """Queue the measurement of how far apart two vectors are.

    Parameters
    ----------
    device : Device
    state : IterationState
        Its differences become the greatest ``|x - y|`` and the greatest ``|x - y| / |x|``; elements that are
        equal count as zero, others where x is zero as infinite.
    x, y : ndarray, shape (n,), float64
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(x)
    check_vector(device, x, size, "x")
    check_vector(device, y, size, "y")
    if size:
        _launch(device, "compare_rows", _NO_STEP, size, wide, (x, y, state.changes))
    finish_iteration(device, state, -1.0, False)


def add_scaled(
    device: Device, weight: float, x: Any, total: Any, factor: Any | None = None, wide: bool = False
) -> None:
    """Queue ``total += weight * factor * x``.

    Parameters
    ----------
    device : Device
    weight : float
    x, total : ndarray, shape (n,), float64
        They must not overlap.
    factor : ndarray, shape (), float64, optional
        A number on the device, read when the kernel runs; 1 if left out.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(total)
    check_vector(device, x, size, "x")
    check_vector(device, total, size, "total")
    if device.xp.may_share_memory(x, total):
        raise ValueError("total: shares memory with x, which is added to it; pass another array")
    if factor is not None:
        if not isinstance(factor, device.xp.ndarray):
            raise TypeError(f"factor: expected an array on the device, got {type(factor).__name__}")
        if factor.shape != () or factor.dtype != np.float64:
            raise ValueError(f"factor: expected one float64 number, got {factor.dtype} {factor.shape}")
    if size:
        number = NULL if factor is None else factor
        _launch(device, "add_scaled", _NO_STEP, size, wide, (np.float64(weight), number, x, total))


def _launch(
    device: Device, name: str, values: dict[str, int], size: int, wide: bool, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel with a thread a row, up to a number of blocks that fills every card."""
    bits = loop_bits(size, _MOST_GRID_BLOCKS, _THREADS, wide)
    special: Macros = macros(INDEX_BITS=bits, **values)
    kernel: Kernel = device.kernel("vector.cu", name, special)
    blocks = min(blocks_for(size, _THREADS), _MOST_GRID_BLOCKS)
    kernel((blocks,), (_THREADS,), (index_type(bits)(size), *arguments))


# The recurrence of IDR(s) on the device (cuda/idr.cu): its vectors and numbers, and the launches on them.

"""Blocks leave so many partial sums at most, on every card: the same sums everywhere."""

_AT_ONCE = 4
"""Rows of a turn of a loop over the grid, at most."""

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
