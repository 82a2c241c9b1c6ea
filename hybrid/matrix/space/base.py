"""Foundations of iterative methods: stopping criterion, solution, status, progress, checkpoints.

The methods solve ``diagonal * x = M x + b`` for a matrix M with non-negative entries and no diagonal, by
repeated products with M. The matrix may be held in any form that offers the `LinearOperator` protocol.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import seconds_loading
from hybrid.base.errors import OptionError
from hybrid.base.operands import ArrivingVector
from mtbdd.base.budget import seconds_compiling
from mtbdd.base.communicator import communicator_of
from mtbdd.base.errors import option
from mtbdd.base.records import Record

# Vectors worked on part by part: operands and temporary results stay in the first-level cache.

PART = 1 << 14
"""Elements of a part."""


def parts(size: int) -> Iterator[slice]:
    """Cut a vector into parts."""
    return (slice(begin, min(begin + PART, size)) for begin in range(0, size, PART))


# Checkpoint of an iteration while it runs, from which another run can continue.

Array = Any
"""An array of a vector space."""

Numbers = Mapping[str, float]
"""Data of a method besides its vectors."""

State = Callable[[], tuple[Mapping[str, Array], Numbers]]
"""Returns the vectors, shape (n,), float64, and the numbers from which a method can go on; called at once."""


class RecordedState(Record, eq=False):
    """The recorded state of an earlier run's iteration.

    Attributes
    ----------
    vectors : dict of str to array, shape (n,)
        Arrays of the requested module; they belong to the caller.
    numbers : dict of str to float
    is_finished : bool
        Whether the iteration had arrived.
    """

    vectors: dict[str, Array]
    numbers: dict[str, float]
    is_finished: bool


class IterationRecord:
    """The record of one solution, which processes that share the states call together; keeps nothing."""

    def resume(self, xp: Any, name: str, size: int, target: float | None) -> RecordedState | None:
        """Return what has been kept, if anything; to be called first.

        Parameters
        ----------
        xp : module
            Whose arrays the vectors shall be, NumPy or CuPy.
        name : str
            Of the method: what another one has left is of no use.
        size : int
            Elements of the vectors.
        target : float, optional
            The difference that ends the iteration.

        Raises
        ------
        CheckpointError
            What is there is damaged.
        """
        return None

    def offer(self, state: State) -> None:
        """Keep a state if it is time to."""

    def keep(self, state: State, is_finished: bool = False, seconds: float = 0.0) -> None:
        """Keep a state now.

        Parameters
        ----------
        is_finished : bool
            It is the solution, which took so many seconds; one that is found again as quickly as it would be
            read is not kept.
        """

    def rescue(self, state: State) -> None:
        """Keep a state now, unless other processes would have to."""


# Steps to queue before the next measurement of an iteration that ends below a target difference.

_MOST = 200  # steps between two measurements: for progress, and against a wrong forecast


class CheckInterval:
    """Forecasts from geometric decay; half of what is forecast is queued, so that little is done in vain.

    Parameters
    ----------
    stride : int
        Steps to queue at least; with 1, every step is measured.
    """

    def __init__(self, stride: int) -> None:
        self._stride = stride
        self._before: tuple[int, float] | None = None
        self._forecast = 0

    def steps(self, most: int) -> int:
        """Return how many steps to queue now, `most` at most."""
        if self._stride == 1:
            return min(1, most)
        wanted = min(max(self._stride, self._forecast // 2), _MOST)
        return min(wanted - wanted % 2, most)

    def observe(self, iteration: int, difference: float, target: float) -> None:
        """Take note of a difference, and of the one that would end the iteration."""
        if self._stride == 1:
            return
        before, self._before = self._before, (iteration, difference)
        self._forecast = 0
        if before is None or not 0.0 < target < difference < before[1] < math.inf:
            return
        fall = math.log(before[1] / difference) / (iteration - before[0])
        self._forecast = int(min(math.log(difference / target) / fall, 2 * _MOST)) if fall > 0 else 0


# Progress monitor of iterations; it may end them with the bounds reached.


class ProgressMonitor:
    """Called with (iteration, difference) as any progress callback, with further methods.

    Where a plain callable raises, an iteration is lost.  A watch may set `stopped` instead while a method
    with bounds iterates (`cancellable`): the method ends after the step that it is at, and returns its bounds
    with `Status.INTERRUPTED`.  No other iteration begins after that: `begin` raises what stopped the last.

    Attributes
    ----------
    stopped : BaseException or None
        Why an iteration was ended.
    is_pressing : bool
        Whether to call at the end of this step, and not only about twice a second.
    record : IterationRecord or None
        Of the one solution that it follows.
    """

    stopped: BaseException | None = None
    is_pressing: bool = False
    record: IterationRecord | None = None

    def __call__(self, iteration: int, difference: float) -> None:
        """Hear that so many steps are done, and their difference: what is compared with epsilon."""

    def observe(self, iteration: int, difference: float) -> None:
        """Receive every measurement of the difference, also those between two calls."""

    @property
    def unrecorded(self) -> Callable[[int, float], None] | None:
        """Progress callback for parts of the solution, which have no record of their own."""
        return self

    def begin(self, target: float | None, steps: int | None) -> None:
        """Hear that an iteration begins; raise `stopped` if one was ended.

        Parameters
        ----------
        target : float, optional
            The difference that ends it; None where it is ended otherwise.
        steps : int, optional
            How many steps it takes at most; None where that is not known.
        """
        if self.stopped is not None:
            raise self.stopped

    def cancellable(self) -> AbstractContextManager[None]:
        """Return a context in which calls set `stopped` in place of raising, and signals wait for them."""
        return nullcontext()


Vector = NDArray[np.float64]
Progress = Callable[[int, float], None]


LEAST_VECTORS = 4
"""Vectors of the method that keeps fewest of them; see `vectors` of the methods."""

DEFAULT_VECTORS = 9
"""Vectors of the methods that are chosen where none is named, at most: of bounds on long-run averages."""


_PART = 1 << 14  # elements whose temporary results stay in the cache


class Status(Enum):
    """Status of a solution; the value says what it means, its text what to do as well."""

    CONVERGED = "the difference between two iterations fell below epsilon"
    MAX_ITERATIONS = "the iteration limit was reached before two iterations were close enough"
    DIVERGED = "the iterates are no longer finite numbers"
    BREAKDOWN = "the method broke down: a number to divide by became zero, again after starting anew"
    STAGNATED = "the method no longer comes closer to a solution, wherever it starts anew"
    NO_BOUND = "no upper bound could be verified in double precision"
    INTERRUPTED = "the iteration was ended before the bounds were close enough"

    def __str__(self) -> str:
        advice = self.advice()
        return f"{self.value}: {advice}" if advice else str(self.value)

    def advice(self) -> str:
        """Return what to do about it; nothing where nothing is to be done."""
        epsilon, method, certain = option("epsilon"), option("method"), ("optimistic", "jacobi")
        found = {
            Status.MAX_ITERATIONS: (
                f"raise {option('max-iters')}, choose another {method}, or a larger {epsilon}"
            ),
            Status.DIVERGED: f"choose another {method} or a smaller {option('omega')}",
            Status.BREAKDOWN: f"choose {option('method', *certain)}",
            Status.STAGNATED: f"choose {option('method', *certain)}, or a larger {epsilon}",
            Status.NO_BOUND: f"choose {option('method', 'jacobi')} for an estimate without bounds",
        }
        return found.get(self, "")


class Criterion(Record):
    """When an iteration stops ([Tealdi13] §2.4.1).

    Attributes
    ----------
    epsilon : float
        Bound on the greatest difference between two successive iterates.
    absolute : bool
        Compare differences as they are; otherwise relative to the new values.
    max_iterations : int
        Iterations after which the method gives up.
    """

    epsilon: float = 1e-8
    absolute: bool = False
    max_iterations: int = 100_000

    def __post_init__(self) -> None:
        """Refuse senseless limits."""
        if not 0 < self.epsilon < 1:
            raise OptionError(f"epsilon must lie between 0 and 1, got {self.epsilon}")
        if self.max_iterations < 1:
            raise OptionError(f"the iteration limit must be at least 1, got {self.max_iterations}")

    def difference(self, max_absolute: float, max_relative: float) -> float:
        """Return the difference that counts."""
        return max_absolute if self.absolute else max_relative


class Solution(Record):
    """The last iterate and how it came about.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
    status : Status
        Only `Status.CONVERGED` makes the values an answer.
    iterations : int
    seconds : float
        Wall time of the iterations.
    difference : float
        The last difference compared with epsilon.
    residual : float
        ``max |M x + b - diagonal x|`` of `values`, from a fresh product.
    synchronisations : int
        How often the host waited for a device while iterating; 0 where there is none.
    products : int
        With the matrix, that of the residual included; of choices, sweeps over all of them.
    more_vectors : int
        Held at once besides those that the method counts, where another one took over.
    """

    values: Vector
    status: Status
    iterations: int
    seconds: float
    difference: float
    residual: float
    synchronisations: int = field(default=0, kw_only=True)
    products: int = field(default=0, kw_only=True)
    more_vectors: int = field(default=0, kw_only=True)

    @property
    def seconds_per_iteration(self) -> float | None:
        """Mean wall time of one iteration; None if there was none."""
        return self.seconds / self.iterations if self.iterations else None


class LinearOperator(Protocol):
    """The interface of a matrix that methods iterate with.

    A matrix whose vectors had better live elsewhere offers ``vector_space()`` besides, see
    :mod:`hybrid.matrix.space.vector_space`.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return ``M x``, written to `out` if given."""
        ...

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write ``(1 - omega) x + omega (M x + b) / diagonal`` to `out`; return greatest differences."""
        ...


class Product(Protocol):
    """A matrix as a backend holds it.

    Attributes
    ----------
    stretches : ndarray of int64, shape (stretches, 2)
        Ranges of own elements that have to be in the whole vector before `multiply_overlapped`.
    """

    stretches: NDArray[np.int64] = np.zeros((0, 2), np.int64)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the representation (MemR)."""

    @abstractmethod
    def multiply(self, x: Vector, out: Vector) -> None:
        """Write M x to ``out``."""

    @abstractmethod
    def multiply_many(self, x: Vector, out: Vector) -> None:
        """Write M X to ``out``, contiguous in rows; shapes (n_columns, k) and (n_rows, k)."""

    @abstractmethod
    def relax(
        self, x: Vector, b: Vector | None, diagonal: Vector, omega: float, out: Vector
    ) -> tuple[float, float]:
        """Write a relaxation step to ``out`` and return the greatest absolute and relative change."""

    def multiply_overlapped(self, x: ArrivingVector, out: Vector) -> None:
        """Do what `multiply` does, rows that need no elements of others first where that is possible."""
        self.multiply(x.received(), out)

    def relax_overlapped(
        self, x: ArrivingVector, b: Vector | None, diagonal: Vector, omega: float, out: Vector
    ) -> tuple[float, float]:
        """Do what `relax` does, in the order of `multiply_overlapped`."""
        return self.relax(x.received(), b, diagonal, omega, out)


class Clock:
    """Counts wall time without compiling and loading of kernels, and reports progress at most twice a second.

    Parameters
    ----------
    progress : callable, optional
        A `ProgressMonitor` receives more, and may end the iteration; see
        :class:`hybrid.matrix.space.base.ProgressMonitor`.
    target, steps
        See `ProgressMonitor.begin`.
    """

    def __init__(
        self, progress: Progress | None, target: float | None = None, steps: int | None = None
    ) -> None:
        self._progress = progress
        self._monitor = progress if isinstance(progress, ProgressMonitor) else None
        self._record: IterationRecord | None = None if self._monitor is None else self._monitor.record
        self._target = target
        self._state: State | None = None
        self._is_kept = False
        if self._monitor is not None:
            self._monitor.begin(target, steps)
        self._start = self._last = time.perf_counter()
        self._loading = seconds_loading() + seconds_compiling()

    @property
    def seconds(self) -> float:
        """Seconds since the start in which no kernel was compiled or loaded."""
        loading = seconds_loading() + seconds_compiling() - self._loading
        return time.perf_counter() - self._start - loading

    def tick(self, iteration: int, difference: float) -> bool:
        """Report progress if half a second has gone by; return whether to end, for `cancellable` alone."""
        if self._progress is None:
            return False
        now, monitor = time.perf_counter(), self._monitor
        if monitor is not None:
            monitor.observe(iteration, difference)
        if now - self._last > 0.5 or (monitor is not None and monitor.is_pressing):
            self._last = now
            try:
                self._progress(iteration, difference)
            except BaseException:
                if self._record is not None and self._state is not None:
                    self._record.rescue(self._state)
                raise
        return self.is_ended

    @property
    def is_ended(self) -> bool:
        """Whether `tick` has returned that the iteration is to be ended."""
        return self._monitor is not None and self._monitor.stopped is not None

    @property
    def unrecorded(self) -> Progress | None:
        """Progress callback for the parts of a solution, which have no record of their own."""
        return self._progress if self._monitor is None else self._monitor.unrecorded

    def resumed(self, xp: Any, name: str, size: int) -> RecordedState | None:
        """Return what an earlier run has left of this iteration; see `IterationRecord.resume`."""
        if self._record is None:
            return None
        with self._apart():
            return self._record.resume(xp, name, size, self._target)

    def offer(self, state: State) -> None:
        """Offer the state after a measurement to the checkpoint."""
        if self._record is not None:
            self._state = state
            with self._apart():
                self._record.offer(state)

    def keep(self, state: State, is_finished: bool = False) -> None:
        """Have the state kept in which the iteration ends, or that of its first part that was ended."""
        if self._record is not None and not self._is_kept:
            self._state, self._is_kept = None, True
            with self._apart():
                self._record.keep(state, is_finished, self.seconds)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Leave out of the iterations' time what files take."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._start += time.perf_counter() - begin

    def cancellable(self) -> AbstractContextManager[None]:
        """Return a context for iterations that heed `tick`; see `ProgressMonitor.cancellable`."""
        return nullcontext() if self._monitor is None else self._monitor.cancellable()


def true_residual(
    matrix: LinearOperator, x: Vector, b: Vector | None, diagonal: Vector, scratch: Vector
) -> float:
    """Return ``max |M x + b - diagonal x|`` from a fresh product; `scratch` is overwritten."""
    communicator = communicator_of(matrix)
    if x.size == 0 and communicator.size == 1:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        product = matrix.multiply(x, scratch)
        if b is not None:
            product += b
        for begin in range(0, x.size, _PART):
            part = slice(begin, begin + _PART)
            product[part] -= diagonal[part] * x[part]
        return communicator.greatest(float(np.abs(product, out=product).max(initial=0.0)))
