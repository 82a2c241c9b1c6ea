"""Vector spaces, which hold the vectors of a solution: a method is written once, for host and device.

A method asks the matrix for a vector space, puts its vectors there, queues steps, and reads numbers now and
then. Only `VectorSpace.read` waits: on a device the host may run ahead by as many steps as a method can do
without a result. Arrays of a space belong to its array module `xp`, which is NumPy on the host. A method
uses of it what NumPy and CuPy have in common, and writes to existing arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import Criterion, Numbers, Vector
from mtbdd.base.communicator import ALONE, Communicator

# The interface of Krylov recurrences, which restart and advance where their vectors lie.
#
# They solve ``A x = b / diagonal`` with ``A = I - M / diagonal`` (:mod:`hybrid.matrix.space.idr`). With an
# *anchor*, the number s of an element of x, it is ``A x = x - (M x - x[s]) / diagonal``. Where M is a closed
# class and its row sums are the diagonal, I - M / diagonal is singular, but this A is not
# (:mod:`hybrid.solvers.average_krylov`).
#
# A recurrence has *arrived* once ``|r|`` is below a limit. It *breaks down* when a number to divide by is
# zero or not finite, or the residual has grown beyond all digits. In both cases it has ended: x stays as it
# is until the recurrence restarts.


class RecurrenceStatus(NamedTuple):
    """Status of a recurrence.

    Attributes
    ----------
    iterations : int
        All iterations done, over all beginnings; the one in which it ends counts.
    norm : float
        Norm of the residual that the recurrence keeps.
    ended, broken : bool
        Whether it has ended, and whether by breaking down.
    """

    iterations: int
    norm: float
    ended: bool
    broken: bool


class Recurrence(Protocol):
    """The recurrence for one system, with its vectors and numbers where the matrix is.

    Attributes
    ----------
    cost : int
        Products of an iteration.
    patience : int
        Products without any gain after which a residual falls no more.
    is_preconditioned : bool
        Whether r is the residual of another system with the same solution.
    """

    cost: int
    patience: int
    is_preconditioned: bool

    @property
    def products(self) -> int:
        """Products made, those of beginnings included."""

    @property
    def x(self) -> Any:
        """The iterate, shape (n,), float64."""

    @property
    def r(self) -> Any:
        """The residual that the recurrence keeps, shape (n,), float64."""

    @property
    def spare(self) -> Any:
        """A vector that is free between two calls, shape (n,), float64."""

    def plain_residual(self) -> Any:
        """Return the residual of the system over its diagonal: r, recomputed in `spare` if preconditioned."""

    def restart(self) -> float:
        """Begin with the residual of x, from a fresh product, and return its norm. A look."""

    def refresh(self) -> float:
        """Go on with the residual of x, from a fresh product, and return its norm; a look."""

    def advance(self, most: int) -> RecurrenceStatus:
        """Make some iterations, as many as the space makes between two looks but at most `most`; a look.

        To be called of a recurrence that has begun, with `most` at least 1. Less are made if it ends.
        """


# Recurrences of systems that have the solution of another one and are solved sooner.
#
# Their residual is not that of the given system: bounds need that one, from a fresh product.

Array = Any
"""An array of the vector space's module `xp`."""


class Preconditioner(Protocol):
    """Makes recurrences for a system ``diagonal * x = M x + b``, and for others that differ from it by b.

    Attributes
    ----------
    probes : int
        Products made to know what it is worth.
    more_vectors : int
        Vectors of its recurrences besides those that a method has.
    """

    @property
    def probes(self) -> int:
        """See above."""

    @property
    def more_vectors(self) -> int:
        """See above."""

    @property
    def is_worth_it(self) -> bool:
        """Whether its images lead further than products, or sooner as far."""

    def idr(
        self,
        b: Array | None,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        directions: int = DIRECTIONS,
    ) -> Recurrence:
        """Return the recurrence of IDR(s) from a copy of `start`, as `System.idr` of a vector space does.

        Parameters
        ----------
        b : array, shape (n,), or None
            In the vector space, not copied; None for that of the system.
        """


OPERANDS = 2
"""Vectors that a method counts for the operands of a system: diagonal and right-hand side."""

Pair = tuple[Array, Array]
"""Two vectors that take turns: the iterate after k steps lies in number ``k % 2``."""


class Steps(ABC):
    """Steps of one kind, ``x <- f(x)``, with their changes measured."""

    @abstractmethod
    def sweep(self, pair: Pair, done: int, count: int, total: Array | None = None) -> None:
        """Queue steps number ``done + 1 .. done + count``; waits for nothing.

        Parameters
        ----------
        pair : tuple of two arrays, shape (n,), float64
            The iterate after `done` steps lies in number ``done % 2``.
        total : array, shape (n,), float64, optional
            Every iterate that a step starts from is added to it.
        """

    def sweep_until(
        self,
        pair: Pair,
        done: int,
        most: int,
        is_over: Callable[[float, float], bool],
        total: Array | None = None,
    ) -> int:
        """Make steps up to the first one that ends them, `most` at most; return how many.

        Where looks cost nothing; parameters besides are those of `sweep`.

        Parameters
        ----------
        is_over : callable
            Called with the greatest absolute and relative change of each step but the last one.
        """
        for made in range(1, most):
            self.sweep(pair, done + made - 1, 1, total)
            if is_over(*self.changes.tolist()):
                return made
        self.sweep(pair, done + most - 1, 1, total)
        return most

    @property
    @abstractmethod
    def changes(self) -> Array:
        """Greatest absolute and relative change of the last step, shape (2,).

        An element that does not change counts as zero, one that becomes zero as infinite relative to itself.
        To be read before the vectors of the last step are overwritten.
        """

    @property
    def course(self) -> Array:
        """Steps made until the criterion ended them, then `changes`; shape (3,)."""
        raise NotImplementedError("these steps do not end by themselves")

    def told(self) -> Numbers:
        """Return the numbers that runs to come need: of steps that are not all alike."""
        return {}

    def take(self, numbers: Numbers) -> None:
        """Continue an earlier run from its checkpoint."""
        return


class System(Protocol):
    """The equation ``diagonal * x = M x + b`` with its operands where the vectors are."""

    def relaxation(
        self, omega: float = 1.0, factor: float = 1.0, criterion: Criterion | None = None
    ) -> Steps:
        """Return the steps ``(1 - omega) x + omega (M x + b) / (factor * diagonal)``.

        Parameters
        ----------
        criterion : Criterion, optional
            Steps queued after convergence or divergence leave all vectors as they are.
        """

    def uniformised(self, rate: float, criterion: Criterion | None = None) -> Steps:
        """Return the steps ``x + (M x + b - diagonal * x) / rate``."""

    def idr(
        self,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        is_single: bool = False,
        directions: int = DIRECTIONS,
    ) -> Recurrence:
        """Return the recurrence of IDR(s) from a copy of `start`; it has not begun yet.

        Parameters
        ----------
        limit : float
            Norm of the residual of the system divided by its diagonal, weighed, below which it has arrived.
        anchor : int, optional
            Number of an element s of x: solve ``diagonal * x = M x - x[s] + b`` instead.
        weights : array, shape (n,), optional
            In the vector space; what elements are multiplied with before they are measured.
        is_single : bool
            Whether its vectors besides the iterate have single precision; see `VectorSpace.takes_single`.
        directions : {4, 1}
            s; with 1 it is BiCGStab, in the fewest vectors.
        """

    def preconditioner(self, shape: Array | None = None) -> Preconditioner | None:
        """Return what solves the system sooner than products do; None where there is none.

        Parameters
        ----------
        shape : array, shape (n,), optional
            What the solution is measured by, see :mod:`hybrid.matrix.space.swept`.

        Notes
        -----
        Time: that of its probes; the first time also that of putting the work in order.
        """

    def repeated(self) -> Preconditioner:
        """Return what has several steps for a product; see :mod:`hybrid.matrix.space.repeated`."""

    def sharing(self, b: Array) -> System:
        """Return the system with another right-hand side, a vector of the space.

        It is not copied, so that steps see its later changes.
        """

    def residual(self, x: Array, scratch: Array) -> Array:
        """Return ``max |M x + b - diagonal * x|``, shape (1,), from a fresh product written to `scratch`."""


_MOST_STEPS = 16
_MOST_ELEMENTS = 1 << 17
"""Of the iterates of so many steps together: these take as long as some calls of Python."""


class VectorSpace(Protocol):
    """Memory, array module and operations where the vectors of a solution live.

    Attributes
    ----------
    xp : module
        NumPy or CuPy.
    stride : int
        Steps to queue between two synchronisations, at least: 1 where these cost nothing.
    looks : int
        How often the host has waited for a device; 0 where there is none.
    communicator : Communicator
        Communicator of the processes that share the states: vectors have the own elements, and whatever is
        measured or read is so over all processes, which ask in the same order.
    """

    xp: Any
    stride: int
    synchronisations: int
    communicator: Communicator = ALONE

    def reserve(self, vectors: int, size: int) -> None:
        """Refuse a solution that there is no room for, before its vectors are made.

        Parameters
        ----------
        vectors : int
            Vectors that a method keeps, its operands among them.
        size : int
            Their elements.

        Raises
        ------
        MemoryError
            With required and available bytes, and what to do; of a device alone, and on devices of several
            processes in all of them.
        """

    def has_room(self, vectors: int, size: int) -> bool:
        """Whether there is room, in every process that shares the states: all of them choose alike."""
        try:
            self.reserve(vectors, size)
            has = True
        except MemoryError:
            has = False
        return self.communicator.all(has)

    def steps_ahead(self, size: int) -> int:
        """Return how many steps of short vectors to make, at most, before more than their changes is read.

        For `Steps.sweep_until`, where looks cost nothing.
        """
        if self.communicator.size > 1:
            return 1
        return max(min(_MOST_ELEMENTS // max(size, 1), _MOST_STEPS), 1)

    def takes_single(self, size: int) -> bool:
        """Whether `System.idr` has vectors of single precision, and takes less time so."""
        return False

    def vector(self, values: ArrayLike) -> Array:
        """Return a copy of a vector, float64, contiguous."""

    def operand(self, values: Vector) -> Array:
        """Return a vector in the vector space that nobody will write to; on the host the same one."""

    def plain(self, values: Array) -> Array:
        """Return an operand as a vector that array functions take; nobody will write to it."""
        return self.operand(values)

    def weigh(self, factor: Array, x: Array, out: Array) -> None:
        """Queue ``out = factor * x``; the factor is an operand."""

        def multiply(factor: Array, x: Array, out: Array) -> None:
            self.xp.multiply(factor, x, out=out)

        self.each(multiply, factor, x, out)

    def ones(self, size: int) -> Vector:
        """Return a vector of ones as an operand of a system."""

    def multiply(self, x: Array, out: Array) -> None:
        """Queue ``out = M x``."""

    def system(self, diagonal: Vector, b: Vector | None) -> System:
        """Return a system of equations; b None is zero."""

    def add_scaled(self, weight: float, x: Array, total: Array, factor: Array | None = None) -> None:
        """Queue ``total += weight * factor * x``; the factor, shape (), lies in the vector space, or is 1."""

    def distance(self, x: Array, y: Array) -> Array:
        """Return the greatest ``|x - y|`` and ``|x - y| / |x|``, shape (2,), as `Steps.changes` counts."""

    def extremes(self, x: Array) -> tuple[Any, Any]:
        """Return the least and the greatest element of a vector, shape (); NaN if some element is."""

    def all(self, mask: Array) -> Array:
        """Return whether all elements are true, shape ()."""
        return mask.all()

    def any(self, mask: Array) -> Array:
        """Return whether some element is true, shape ()."""
        return mask.any()

    def least(self, x: Array) -> Array:
        """Return the least element, shape ()."""
        return x.min()

    def greatest(self, x: Array) -> Array:
        """Return the greatest element, shape ()."""
        return x.max()

    def joining(
        self, members: NDArray[np.int64], sizes: NDArray[np.int64], maximise: bool
    ) -> Callable[[Array], None]:
        """Return what gives all members of groups of elements the best value of any of them, in place.

        Parameters
        ----------
        members : ndarray, shape (m,), int64
            Places, group by group; on the host.
        sizes : ndarray, shape (groups,), int64
            Positive.
        maximise : bool
            Whether the greatest value is best; one that is not a number is better than all others.

        Notes
        -----
        Time: O(m).  On a device it allocates nothing, so that it can be recorded.
        """

    def agreed(self, changes: Array) -> Array:
        """Return the greatest of every number that processes have measured, shape as `changes`."""
        return changes

    def element(self, x: Array, place: int) -> Array:
        """Return one element, shape (1,); the place is negative where another process has it."""
        return x[place : place + 1]

    def is_empty(self, size: int) -> bool:
        """Whether vectors of `size` elements have none; processes that share the states never tell."""
        return size == 0 and self.communicator.size == 1

    def each(self, work: Callable[..., object], *vectors: Array) -> None:
        """Do elementwise work, in place.

        Parameters
        ----------
        work : callable
            Called with the same part of every vector, for all parts; on the host on several threads at once,
            on a device once with whole vectors.  Writes to its arguments and allocates nothing.
        *vectors : array, shape (n,)
        """

    def stretch(self, most: int) -> int:
        """Return how many steps of a kind that ends by itself to queue before the next look."""

    def read(self, *arrays: Array) -> list[float]:
        """Return all elements of some small arrays; one look, however many they are."""

    def result(self, x: Array, like: Array) -> Array:
        """Return a vector of the space where another one lies: NumPy's for NumPy's operands."""
        return self.to_host(x)

    def more(self, vectors: int, operand: Array) -> int:
        """Return how many of a method's vectors are still to be made, given one of its operands."""
        return vectors

    def to_host(self, array: Array) -> NDArray[Any]:
        """Return a whole array as a NumPy array."""
