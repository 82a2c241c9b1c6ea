"""Solutions on the device: vectors, operands, differences and the stopping test stay there.

Source: [BESW10] §II; [Tealdi13] §4.4.2.2.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_kernels import (
    CodedVector,
    Device,
    Groups,
    IterationState,
    Mode,
    Step,
    add_scaled,
    coded_step,
    compare_rows,
    compress,
    finish_iteration,
    join_groups,
    product_step,
)
from hybrid.base.arrays import Array, to_host
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.gpu.cost import cards_advice
from hybrid.matrix.gpu.idr import DeviceIDR, PolynomialSystem
from hybrid.matrix.gpu.repeated_steps import RECORDED, DeviceSteps, Run
from hybrid.matrix.space.base import Criterion, Vector
from hybrid.matrix.space.vector_space import OPERANDS, Preconditioner, Recurrence, VectorSpace
from mtbdd.base.errors import option

# Products and steps of operators on the device, for vectors that lie there and for those of the host.


def multiply(product: Any, x: Array, out: Array | None) -> Array:
    """Return M x, on the device.

    Parameters
    ----------
    product : GpuProduct
        The operator's representation.
    x : cupy.ndarray, shape (n_columns,), real
        Or another library's array with the CUDA interface. Copied if it is not contiguous float64.
    out : cupy.ndarray, shape (n_rows,), float64, optional
        Where to write the result.

    Raises
    ------
    TypeError, ValueError
        If an operand has the wrong type or shape, or they overlap.

    Notes
    -----
    Synchronises: no.
    """
    xp = product.device.xp
    # Another library's array on the device, without a copy.
    x = x if isinstance(x, xp.ndarray) else xp.asarray(x)
    if x.shape != (product.matrix.n_columns,):
        raise ValueError(f"x: expected shape ({product.matrix.n_columns},), got {x.shape}")
    if x.dtype.kind not in "fiub":
        raise TypeError(f"x: expected real numbers, got dtype {x.dtype}")
    vector = xp.ascontiguousarray(x, dtype=float)
    target = xp.empty(product.matrix.n_rows) if out is None else out
    product.multiply(vector, target)
    return target


def multiply_columns(product: Any, x: Array) -> Array:
    """Return M X for the columns of a device array, shape (n_columns, k), on the device.

    Raises
    ------
    TypeError, ValueError
        If the operand has the wrong type or shape.

    Notes
    -----
    Synchronises: no. One sweep over a matrix in tiles serves several columns; others go one by one.
    """
    xp, matrix = product.device.xp, product.matrix
    columns = x if isinstance(x, xp.ndarray) else xp.asarray(x)
    if columns.ndim != 2 or columns.shape[0] != matrix.n_columns:
        raise ValueError(
            f"x: expected {matrix.n_columns} rows, one a column of the matrix, got shape {columns.shape}"
        )
    if columns.dtype.kind not in "fiub":
        raise TypeError(f"x: expected real numbers, got dtype {columns.dtype}")
    out = xp.empty((matrix.n_rows, columns.shape[1]))
    product.multiply_many(columns, out)
    return out


def relax_once(
    device: Device, run: Run, x: Array, b: Array | None, diagonal: Array, omega: float, out: Array
) -> tuple[float, float]:
    """Write ``(1 - omega) x + omega (b + M x) / diagonal`` to ``out``.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows of M.
    x, b, diagonal, out : ndarray, shape (n,), float64
        Each of them lies on the device or on the host.

    Returns
    -------
    tuple of float, float
        Greatest absolute change and greatest change relative to the new value.

    Notes
    -----
    Synchronises: yes, for the two numbers. Iterations that leave them on the device have a vector space.
    """
    xp = device.xp
    state = IterationState.create(device)
    step = coded_step(device, Mode.JACOBI, diagonal, b, omega, state)
    target = out if isinstance(out, xp.ndarray) else xp.empty(len(out))
    run(step, xp.asarray(x), target)
    finish_iteration(device, state, -1.0, False)
    if target is not out:
        out[:] = to_host(target)
    absolute, relative = to_host(state.differences).tolist()
    return absolute, relative


_STRIDE = 2 * RECORDED
"""Steps between two checks. Half would do for one in ten steps; the rest is for other checks."""

_LOOK_SECONDS = 0.05
"""Synchronisations of iterations that end on the device become rarer, up to about this interval."""

_SHORT = 1 << 22
"""Elements of a vector on the device up to which it is left as it is: the second-level cache holds it."""

_PART = 1 << 30
"""Elements of a reduction."""

_MEASURE_ONLY = -1.0
"""An epsilon with which nothing ends a sequence of steps."""


class DeviceSpace(VectorSpace):
    """The vector space of a matrix that lies on a device.

    Parameters
    ----------
    device : Device
    run : callable
        Queues a step over all rows: ``run(step, x, out)``. Once the state of the step has ended it must leave
        ``out`` as it is; :class:`hybrid.matrix.gpu.repeated_steps.UnfusedSteps` makes one from a product.
    has_single : bool
        Whether it multiplies vectors of single precision as well.

    Notes
    -----
    Synchronises: `read` and `to_host`, and the first repetition of a sweep, which is recorded; these are the
    `looks`. Everything else is queued.
    """

    stride = _STRIDE

    def __init__(self, device: Device, run: Run, has_single: bool = False) -> None:
        self.device, self._has_single = device, has_single
        self.xp: Any = device.xp
        self.synchronisations = 0
        self._run = run
        self._product = product_step()
        self._stretch = _STRIDE // 2
        self._last: float | None = None

    def reserve(self, vectors: int, size: int) -> None:
        """Refuse a solution whose vectors do not fit in what is free now."""
        required, available = 8 * vectors * size, self.device.free_bytes()
        if required > available:
            raise MemoryError(self.refusal(vectors, size, cards_advice(required, available)))

    def refusal(self, vectors: int, size: int, cards: str) -> str:
        """Return why a solution is refused, and what to do."""
        return (
            f"a solution with {vectors} vectors of {size} elements needs {8 * vectors * size} bytes on "
            f"{self.device.name}, {self.device.free_bytes()} are free; choose a method with fewer "
            f"({option('method', 'jacobi', 'jor')}, for decision processes value-iteration), "
            f"or {option('backend', 'cpu')}{cards}"
        )

    def takes_single(self, size: int) -> bool:
        """See `VectorSpace.takes_single`; short vectors lie in the second-level cache."""
        return self._has_single and size > _SHORT

    def vector(self, values: ArrayLike) -> Array:
        """Return a copy on the device; a number that stands for a whole vector is not written out before."""
        if isinstance(values, np.ndarray) and values.size and values.strides == (0,):
            return self.xp.full(values.size, float(values[0]))
        return self.xp.array(values, dtype=np.float64, order="C")

    def operand(self, values: Vector) -> Array:
        """Return a vector on the device, the same one if it lies there."""
        return values if self._has(values) else self.vector(values)

    def _has(self, values: Array) -> bool:
        """Return whether a vector lies on the device; those of an emulator are NumPy's, as the host's are."""
        if isinstance(values, CodedVector):
            return True
        return isinstance(values, self.xp.ndarray) and not isinstance(values, np.ndarray)

    def result(self, x: Array, like: Array) -> Array:
        """Return a vector, on the host unless `like` lies on the device."""
        return x if self._has(like) else self.to_host(x)

    def more(self, vectors: int, operand: Array) -> int:
        """Return how many of a method's vectors are still to be made: an operand may be held already."""
        return vectors - OPERANDS if self._has(operand) else vectors

    def plain(self, values: Array) -> Array:
        """Return an operand as a vector that array functions take; one by dictionary is written out."""
        return values.expand(self.device) if isinstance(values, CodedVector) else self.operand(values)

    def weigh(self, factor: Array, x: Array, out: Array) -> None:
        """Queue ``out = factor * x``; a factor by dictionary is written out in parts."""
        if isinstance(factor, CodedVector):
            factor.times(x, out)
        else:
            self.xp.multiply(self.operand(factor), x, out=out)

    def ones(self, size: int) -> Vector:
        """Return a vector of ones without an array for it; systems hold a byte an element."""
        return np.broadcast_to(np.float64(1.0), (size,))

    def multiply(self, x: Array, out: Array) -> None:
        """Queue a product."""
        self._run(self._product, x, out)

    def system(self, diagonal: Vector, b: Vector | None) -> DeviceSystem:
        """Return a system whose operands are put on the device, by dictionary where they have few values."""
        return DeviceSystem(self, self._run, *self._coded(diagonal, b))

    def _coded(self, *operands: Array | None) -> Iterator[CodedVector]:
        """Return operands by dictionary where they have few values; those that are short stay as they are."""
        for o in operands:
            if isinstance(o, CodedVector):
                yield o
            elif o is not None and self._has(o) and len(o) <= _SHORT:
                yield CodedVector(len(o), 64, self.xp.ascontiguousarray(o), None)
            else:
                yield compress(self.device, o)

    def add_scaled(self, weight: float, x: Array, total: Array, factor: Array | None = None) -> None:
        """Queue ``total += weight * factor * x``."""
        add_scaled(self.device, weight, x, total, None if factor is None else self.xp.asarray(factor))

    def distance(self, x: Array, y: Array) -> Array:
        """Queue the measurement; the result lies on the device, shape (2,)."""
        state = IterationState.create(self.device)
        compare_rows(self.device, state, x, y)
        return state.differences

    def extremes(self, x: Array) -> tuple[Array, Array]:
        """Queue the search for the least and the greatest element."""
        return self.least(x), self.greatest(x)

    def least(self, x: Array) -> Array:
        """Queue the search for the least element; reductions count by 32 bits."""
        if x.size <= _PART:
            return x.min()
        return self.xp.stack([x[begin : begin + _PART].min() for begin in range(0, x.size, _PART)]).min()

    def greatest(self, x: Array) -> Array:
        """Queue the search for the greatest element."""
        if x.size <= _PART:
            return x.max()
        return self.xp.stack([x[begin : begin + _PART].max() for begin in range(0, x.size, _PART)]).max()

    def all(self, mask: Array) -> Array:
        """Queue the question whether all elements are true; see `mtbdd.offset.states`."""
        return mask.view(np.uint8).min() if mask.size else self.xp.ones(())

    def any(self, mask: Array) -> Array:
        """Queue the question whether some element is true."""
        return mask.view(np.uint8).max() if mask.size else self.xp.zeros(())

    def joining(
        self, members: NDArray[np.int64], sizes: NDArray[np.int64], maximise: bool
    ) -> Callable[[Array], None]:
        """See `VectorSpace.joining`."""
        device, groups = self.device, Groups.create(self.device, members, sizes)
        return lambda values: join_groups(device, groups, maximise, values)

    def each(self, work: Callable[..., object], *vectors: Array) -> None:
        """Queue elementwise work on whole vectors."""
        work(*vectors)

    def stretch(self, most: int) -> int:
        """Return a number of steps that doubles up to a synchronisation every twentieth of a second."""
        now = time.perf_counter()
        if self._last is None or now - self._last < _LOOK_SECONDS / 2:
            self._stretch *= 2
        self._last = now
        return min(self._stretch, most)

    def read(self, *arrays: Array) -> list[float]:
        """Bring some small arrays to the host together."""
        self.synchronisations += 1
        xp = self.xp
        parts = [xp.asarray(a, np.float64).ravel() for a in arrays]
        together = parts[0] if len(parts) == 1 else xp.concatenate(parts)
        numbers: list[float] = to_host(together).tolist()
        return numbers

    def to_host(self, array: Array) -> NDArray[Any]:
        """Copy an array to the host."""
        self.synchronisations += 1
        copied: NDArray[Any] = to_host(array)
        return copied

    def steps(self, step: Step, criterion: Criterion | None, run: Run | None = None) -> DeviceSteps:
        """Return the steps of a kind; `run` queues them where they are not those of the matrix."""
        epsilon, absolute = (
            (_MEASURE_ONLY, False) if criterion is None else (criterion.epsilon, criterion.absolute)
        )
        return DeviceSteps(self.device, run or self._run, step, epsilon, absolute, self._note_look)

    def _note_look(self) -> None:
        self.synchronisations += 1


class DeviceSystem:
    """``diagonal * x = M x + b``, the operands on the device."""

    def __init__(self, space: DeviceSpace, run: Run, diagonal: CodedVector, right: CodedVector) -> None:
        self._space, self._run, self._diagonal, self._right = space, run, diagonal, right

    def relaxation(
        self, omega: float = 1.0, factor: float = 1.0, criterion: Criterion | None = None
    ) -> DeviceSteps:
        """Return relaxation steps; a diagonal by dictionary is not copied for another factor."""
        diagonal = self._diagonal if factor == 1.0 else self._diagonal.scaled(factor)
        return self._steps(Mode.JACOBI, diagonal, omega, criterion)

    def uniformised(self, rate: float, criterion: Criterion | None = None) -> DeviceSteps:
        """Return steps of the uniformised chain."""
        return self._steps(Mode.POWER, self._diagonal, 1.0 / rate, criterion)

    def idr(
        self,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
        directions: int = DIRECTIONS,
    ) -> Recurrence:
        """Return IDR(s)'s recurrence, whose cycles are recorded."""
        space, operands = self._space, (self._diagonal, self._right)
        return DeviceIDR(
            space.device, space, self._run, *operands, start, limit, anchor, weights, is_single, directions
        )

    def preconditioner(self, shape: Array | None = None) -> Preconditioner | None:
        """See `System.preconditioner`: several steps for every shape."""
        return self.repeated()

    def repeated(self) -> Preconditioner:
        """See `System.repeated`."""
        space = self._space
        return PolynomialSystem(space.device, space, self._run, self._diagonal, self._right)

    def sharing(self, b: Array) -> DeviceSystem:
        """Return the system with another right-hand side, a vector on the device that is not copied."""
        right = CodedVector(len(b), 64, b, None)
        return DeviceSystem(self._space, self._run, self._diagonal, right)

    def residual(self, x: Array, scratch: Array) -> Array:
        """Queue the measurement of the residual."""
        device = self._space.device
        state = IterationState.create(device)
        if len(x):
            self._run(Step(Mode.RESIDUAL, self._diagonal, self._right, 1.0, state), x, scratch)
            finish_iteration(device, state, _MEASURE_ONLY, False)
        return state.differences[:1]

    def _steps(
        self, mode: Mode, diagonal: CodedVector, weight: float, criterion: Criterion | None
    ) -> DeviceSteps:
        state = IterationState.create(self._space.device)
        return self._space.steps(Step(mode, diagonal, self._right, weight, state), criterion)
