"""Solutions on the host: NumPy vectors, and a matrix's own products and fused relaxation steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.operands import as_vector
from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import Criterion, LinearOperator, Vector, true_residual
from hybrid.matrix.space.passes import NumPyPasses, Passes
from hybrid.matrix.space.vector_space import Pair, Steps, VectorSpace
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory

if TYPE_CHECKING:
    from hybrid.matrix.space.idr import IDR, HostImages
    from hybrid.matrix.space.repeated import RepeatedSystem
    from hybrid.matrix.space.swept import RowSweeps, SweptSystem

# Several steps of a uniformised chain on the host, as one.


class UniformisedRepetition:
    """See `hybrid.matrix.space.repeated.Repetition`; steps of the uniformised chain: one rate for all rows.

    Parameters
    ----------
    multiply : callable
        Writes ``M x``: ``multiply(x, out)``.
    passes : Passes
    diagonal, b : ndarray of float64, shape (n,)
        b None is zero.
    weight : float
        `OMEGA` over the greatest element of the diagonal.
    """

    def __init__(
        self,
        multiply: Callable[[Vector, Vector], object],
        passes: Passes,
        diagonal: Vector,
        b: Vector | None,
        weight: float,
    ) -> None:
        self._multiply, self._passes, self._diagonal, self._b = multiply, passes, diagonal, b
        self._weight, self._between = weight, np.empty(diagonal.size)

    def with_right(self, x: Vector, out: Vector) -> None:
        """See `Repetition.with_right`."""
        self._repeat(x, self._b, out)

    def without(self, x: Vector, out: Vector) -> None:
        """See `Repetition.without`."""
        self._repeat(x, None, out)

    def of_ones(self, out: Vector) -> Vector:
        """See `Repetition.of_ones`."""
        found, out[...] = np.empty(out.size), 0.0
        self._repeat(out, np.ones(out.size), found)
        return found

    def _repeat(self, x: Vector, b: Vector | None, out: Vector) -> None:
        from hybrid.matrix.space.repeated import repeat

        def step(x: Vector, out: Vector) -> None:
            self._multiply(x, out)
            self._passes.uniformise(x, b, self._diagonal, self._weight, out)

        with np.errstate(over="ignore", invalid="ignore"):
            repeat(step, x, self._between, out)


Changes = tuple[float, float]
"""Greatest absolute and relative change of a step."""


class HostSteps(Steps):
    """Steps of one kind on the host, one after the other.

    Parameters
    ----------
    passes : Passes
    step : callable
        Makes a step, ``step(x, out)``; returns its changes, or None where these are measured on request.
    """

    def __init__(self, passes: Passes, step: Callable[[Vector, Vector], Changes | None]) -> None:
        self._passes, self._step = passes, step
        self._made, self._found = 0, (float("inf"), float("inf"))
        self._last: tuple[Vector, Vector] | None = None  # of a step whose changes are still to be measured

    def sweep(self, pair: Pair, done: int, count: int, total: Vector | None = None) -> None:
        """Make the steps."""
        self._make(pair, done, count, None, total)

    def sweep_until(
        self,
        pair: Pair,
        done: int,
        most: int,
        is_over: Callable[[float, float], bool],
        total: Vector | None = None,
    ) -> int:
        """See `Steps.sweep_until`."""
        self._make(pair, done, most, is_over, total)
        return self._made - done

    def _make(
        self,
        pair: Pair,
        done: int,
        count: int,
        is_over: Callable[[float, float], bool] | None,
        total: Vector | None,
    ) -> None:
        end = done + count
        with np.errstate(over="ignore", invalid="ignore"):
            for k in range(done, end):
                x, out = pair[k % 2], pair[1 - k % 2]
                if total is not None:
                    self._passes.add_scaled(1.0, x, total)
                found = self._step(x, out)
                if found is None:
                    self._last = x, out
                else:
                    self._found = found
                if is_over is not None and k + 1 < end and is_over(*(found or self.changes.tolist())):
                    end = k + 1
                    break
        self._made = end

    @property
    def changes(self) -> Vector:
        """Changes of the last step."""
        if self._last is None:
            return self._passes.agreed(np.array(self._found))
        x, out = self._last
        return self._passes.greatest_changes(out, x)

    @property
    def course(self) -> Vector:
        """Steps made and the changes of the last one."""
        return np.append(float(self._made), self.changes)


_OPERANDS = 2
"""Of a method's vectors, those that it is called with: diagonal and right-hand side."""


class HostSpace(VectorSpace):
    """The vector space of a matrix whose vectors are NumPy arrays.

    Parameters
    ----------
    matrix : LinearOperator
    passes : Passes, optional
        How vectors are worked on; by default in plain NumPy.
    sweeps : callable, optional
        Returns sweeps over the rows of the matrix in their order.
    """

    xp: Any = np
    stride = 1
    synchronisations = 0

    def __init__(
        self,
        matrix: LinearOperator,
        passes: Passes | None = None,
        sweeps: Callable[[], RowSweeps | None] | None = None,
    ) -> None:
        self._matrix, self._sweeps = matrix, sweeps
        self._ordered: RowSweeps | None = None
        self._passes: Passes = NumPyPasses() if passes is None else passes

    @property
    def passes(self) -> Passes:
        """Passes over vectors."""
        return self._passes

    def over(self, matrix: LinearOperator) -> HostSpace:
        """Return the vector space of another matrix over the same vectors, without sweeps."""
        return HostSpace(matrix, self._passes)

    def reserve(self, vectors: int, size: int) -> None:
        """Refuse a solution whose vectors do not fit in what is free now; the operands are there already."""
        require_memory(
            8 * max(vectors - _OPERANDS, 0) * size,
            f"a solution with {vectors} vectors of {size} elements",
            "choose smaller constants, a method with fewer "
            f"({option('method', 'jacobi', 'jor')}), {option('backend', 'gpu')}, or "
            f"{option('spill', 'DIR')}, which has them on a disk",
        )

    def vector(self, values: ArrayLike) -> Vector:
        """Return a copy."""
        return _copy(values)

    def operand(self, values: Vector) -> Vector:
        """Return the vector itself."""
        return values

    def ones(self, size: int) -> Vector:
        """See `VectorSpace.ones`."""
        return np.ones(size)

    def multiply(self, x: Vector, out: Vector) -> None:
        """Write ``M x`` to `out`."""
        self._matrix.multiply(x, out)

    def system(self, diagonal: Vector, b: Vector | None) -> HostSystem:
        """Return a system of equations."""
        agreed = self.communicator.all
        return HostSystem(self._matrix, self._passes, diagonal, b, lambda: self.sweeps, agreed)

    @property
    def sweeps(self) -> RowSweeps | None:
        """Sweeps over the rows of the matrix, put in order once; None where it has none."""
        if self._ordered is None and self._sweeps is not None:
            self._ordered = self._sweeps()
        return self._ordered

    def add_scaled(self, weight: float, x: Vector, total: Vector, factor: Any | None = None) -> None:
        """Add ``weight * factor * x`` to `total`."""
        self._passes.add_scaled(weight if factor is None else weight * float(factor), x, total)

    def distance(self, x: Vector, y: Vector) -> Vector:
        """Return the greatest ``|x - y|`` and ``|x - y| / |x|``."""
        return self._passes.greatest_changes(x, y)

    def extremes(self, x: Vector) -> tuple[np.float64, np.float64]:
        """Return the least and the greatest element."""
        return self._passes.extremes(x)

    def joining(
        self, members: NDArray[np.int64], sizes: NDArray[np.int64], maximise: bool
    ) -> Callable[[Vector], None]:
        """See `VectorSpace.joining`."""
        starts, reduce = np.cumsum(sizes) - sizes, np.maximum if maximise else np.minimum

        def join(values: Vector) -> None:
            values[members] = np.repeat(reduce.reduceat(values[members], starts), sizes)

        return join

    def each(self, work: Callable[..., object], *vectors: Vector) -> None:
        """Call `work` with parts of the vectors."""
        self._passes.each(work, *vectors)

    def stretch(self, most: int) -> int:
        """Return 1: every step's changes are known when it is done."""
        return min(1, most)

    def read(self, *arrays: Any) -> list[float]:
        """Return the elements."""
        return [float(number) for array in arrays for number in np.ravel(array).tolist()]

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return the array itself."""
        own: NDArray[Any] = array
        return own


class HostSystem:
    """``diagonal * x = M x + b``."""

    def __init__(
        self,
        matrix: LinearOperator,
        passes: Passes,
        diagonal: Vector,
        b: Vector | None,
        sweeps: Callable[[], RowSweeps | None] = lambda: None,
        agreed: Callable[[bool], bool] = bool,
    ) -> None:
        self._matrix, self._passes = matrix, passes
        self._diagonal = as_vector(diagonal, matrix.shape[0], "diagonal")
        self._b = None if b is None else as_vector(b, matrix.shape[0], "b")
        self._sweeps, self._agreed = sweeps, agreed

    def relaxation(
        self, omega: float = 1.0, factor: float = 1.0, criterion: Criterion | None = None
    ) -> Steps:
        """Return the fused relaxation steps of the matrix."""
        matrix, b = self._matrix, self._b
        diagonal = self._diagonal if factor == 1.0 else self._diagonal * factor
        return HostSteps(self._passes, partial(matrix.jacobi_step, b=b, diagonal=diagonal, omega=omega))

    def uniformised(self, rate: float, criterion: Criterion | None = None) -> Steps:
        """Return steps of a product and a pass over the vectors each."""
        matrix, passes, diagonal, b = self._matrix, self._passes, self._diagonal, self._b

        def step(x: Vector, out: Vector) -> None:
            matrix.multiply(x, out)
            passes.uniformise(x, b, diagonal, 1.0 / rate, out)

        return HostSteps(passes, step)

    def idr(
        self,
        start: Vector,
        limit: float,
        anchor: int | None = None,
        weights: Vector | None = None,
        is_single: bool = False,
        directions: int = DIRECTIONS,
    ) -> IDR:
        """Return IDR(s)'s recurrence; the host has double precision alone."""
        from hybrid.matrix.space.idr import IDR

        return IDR(
            self._passes, self.images(anchor), _copy(start), limit, weights, directions=directions
        )  # fmt: skip

    def images(self, anchor: int | None) -> HostImages:
        """Return what recurrences multiply with."""
        from hybrid.matrix.space.idr import HostImages

        return HostImages(self._passes, self._matrix.multiply, self._diagonal, self.relaxation(), anchor)

    def preconditioner(self, shape: Vector | None = None) -> SweptSystem | None:
        """See `System.preconditioner`: sweeps."""
        from hybrid.matrix.space.swept import SweptSystem

        sweeps = self._sweeps()
        if sweeps is None:
            return None

        def plain(b: Vector | None, anchor: int | None) -> HostImages:
            return self.sharing(b).images(anchor)

        return SweptSystem(sweeps, self._passes, self._diagonal, self._b, plain, shape)

    def repeated(self) -> RepeatedSystem:
        """See `System.repeated`: steps of the uniformised chain."""
        from hybrid.matrix.space.repeated import OMEGA, RepeatedSystem

        passes = self._passes
        weight = OMEGA / float(passes.extremes(self._diagonal)[1])

        def of(b: Vector | None) -> HostSystem:
            return self if b is None else self.sharing(b)

        def steps(b: Vector | None, _: bool) -> UniformisedRepetition:
            return UniformisedRepetition(self._matrix.multiply, passes, self._diagonal, of(b)._b, weight)

        return RepeatedSystem(passes, steps, _copy, lambda b, anchor: of(b).images(anchor), self._agreed)

    def sharing(self, b: Vector | None) -> HostSystem:
        """Return the system with another right-hand side."""
        return HostSystem(self._matrix, self._passes, self._diagonal, b, self._sweeps, self._agreed)

    def residual(self, x: Vector, scratch: Vector) -> Vector:
        """Return the residual, shape (1,)."""
        return np.array([true_residual(self._matrix, x, self._b, self._diagonal, scratch)])


def _copy(values: ArrayLike) -> Vector:
    return np.array(values, dtype=np.float64, order="C")


def space_of(matrix: LinearOperator) -> VectorSpace:
    """Return the vector space that a matrix offers by a method of this name, or else one on the host."""
    own = getattr(matrix, "vector_space", None)
    if own is not None:
        offered: VectorSpace = own()
        return offered
    return HostSpace(matrix, sweeps=getattr(matrix, "sweeps", None))
