"""Monotone equations ``x = f(x)`` with rounding directed: what methods with bounds see of a system.

f is ``x -> (M x + b) / diagonal`` (:class:`DirectedSystem`) or, over
choices, ``x -> opt over i of (A_i x + b_i)`` (:class:`hybrid.matrix.space.choice_operator.ChoiceOperator`),
all numbers non-negative.  A chain is a decision process with one layer; the first form divides by its
diagonal in the same pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property

import numpy as np

from gpu_kernels.runtime.coded import array_module
from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import Clock, LinearOperator, RecordedState, State, Status, Vector
from hybrid.matrix.space.bounded_solution import (
    FLOOR,
    NEGLIGIBLE,
    BoundedSolution,
    guard_underflow,
    least_closure,
    middle_of,
    underflow_of,
)
from hybrid.matrix.space.direct import FactoredSystem, factored_system
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import Array, Pair, Steps, VectorSpace
from mtbdd.base.records import Record
from mtbdd.offset.states import is_all


class Outcome(Record, frozen=False):
    """Progress of a method with bounds.

    Attributes
    ----------
    status : Status
    iterations : int
    difference : float
        The last difference compared with epsilon.
    more_vectors : int
        Held at once besides those that the method counts.
    """

    status: Status = Status.MAX_ITERATIONS
    iterations: int = 0
    difference: float = float("inf")
    more_vectors: int = 0


STAGE = "stage"
"""Name of the number of a state for the stage of the accelerator that its iteration was in."""


class LowerIterationState(Record, eq=False):
    """Vectors and numbers of an iteration from below, lent to a `BoundAccelerator`.

    Attributes
    ----------
    x : array, shape (n,)
        An iterate from below, zero only where the solution is, but for an accelerator `from_anywhere`.  The
        lower bound if the accelerator succeeds, and else as it was.
    y, spare : array, shape (n,)
        Overwritten; `y` becomes the upper bound.
    total : array, shape (n,), or None
        Sum of all iterates before x, if they are added up.
    made : int
        How many.
    positive : array, shape (n,), or None
        See `hybrid.solvers.bounding.Guess.verified`.
    state : callable
        Where the iteration is, for records; of its vectors only x and `total` are left as they are.
    target : float
        Change of a step at which the next guess of an upper bound is made; less after guesses in vain.
    """

    x: Array
    y: Array
    total: Array | None
    spare: Array
    made: int
    positive: Array | None
    state: State
    target: float = math.inf


class BoundAccelerator:
    """Finds both bounds at once from an iterate, or leaves that to another accelerator.

    Parameters
    ----------
    otherwise : BoundAccelerator, optional

    Attributes
    ----------
    width : float
        Distance of the bounds that were found.
    more_vectors : int
        Held at once besides those of the iteration.
    """

    def __init__(self, otherwise: BoundAccelerator | None = None) -> None:
        self._otherwise = otherwise
        self.width, self.more_vectors = math.inf, 0
        self._is_due = False  # an own try comes next, to which the iterate does not matter

    @property
    def from_anywhere(self) -> bool:
        """Whether the next try takes iterates that are zero where the solution is not."""
        return self._is_due or (self._otherwise is not None and self._otherwise.from_anywhere)

    def begin(self, made: int) -> None:
        """Take note that an earlier run has made so many steps."""
        if self._otherwise is not None:
            self._otherwise.begin(made)

    def is_asked(self, made: int, difference: float) -> bool:
        """Return whether `budget` is to be asked after so many steps; else it is 0, and takes no notice."""
        return self._otherwise is not None and self._otherwise.is_asked(made, difference)

    def budget(self, iterate: LowerIterationState, difference: float) -> float:
        """Return the products that a try is worth now; y, the iterate before, and `spare` are overwritten."""
        return 0.0 if self._otherwise is None else self._otherwise.budget(iterate, difference)

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Try; return the products made."""
        self.width = math.inf
        if self._otherwise is None:
            return 0
        made = self._otherwise.solve(iterate, most, limit, clock, kept)
        self.width, self.more_vectors = self._otherwise.width, self._otherwise.more_vectors
        return made


class BellmanOperator(ABC):
    """``x -> f(x)`` where its matrix has its vector space, rounded down and rounded up.

    Parameters
    ----------
    space : VectorSpace
    size : int
        n
    slack : float
        Bound on the relative error of one step, operands included.
    underflow : float
        Bound on the absolute error that underflow adds to an element in one step.
    is_far : bool
        Whether all iterates are known to be far from underflow.

    Attributes
    ----------
    negligible : float
        Elements above it are so far from underflow that it counts as one more relative error of rounding.
    floor : float
        Elements below it are so near to it that no guess of a bound leaves room for it.
    products : int
        Made so far: steps, those of zeros and ones and of guesses among them.
    """

    def __init__(
        self, space: VectorSpace, size: int, slack: float, underflow: float, is_far: bool = False
    ) -> None:
        self.space, self.size, self.slack, self.underflow, self.is_far = space, size, slack, underflow, is_far
        self.negligible, self.floor = NEGLIGIBLE * underflow, FLOOR * underflow  # lemma: next-to-underflow
        self.products = 0

    @property
    @abstractmethod
    def down(self) -> Steps:
        """Steps whose results are never too great, but for `underflow`."""

    @property
    def rising(self) -> Steps | None:
        """Steps by which iterates from below rise, where these exceed `down`; rounded down as well.

        Values rise at least as fast as by those of `down`; changes do not tell how far values are from a step
        of all states at once.
        """
        return None

    def constant_below(self) -> float:
        """Return a number, 0 or more, that a step rounded down is likely not to lower in any state."""
        return 0.0

    @property
    def depth(self) -> int:
        """Roundings that may follow one another in a step of `rising`, or `down`."""
        return 1

    @property
    def stride(self) -> int:
        """Steps to make at least between two looks at their changes: they take no longer than a look."""
        return self.space.stride

    @property
    @abstractmethod
    def up(self) -> Steps:
        """Steps whose results are never too small, but for `underflow`."""

    @abstractmethod
    def positive(self, is_over: Callable[[], bool] | None = None) -> Array:
        """Return where the solution is positive, as zeros and ones, shape (n,), float64.

        Parameters
        ----------
        is_over : callable, optional
            Asked every round whether to end.

        Raises
        ------
        SearchEndedError
            It said so.

        Notes
        -----
        Steps of zeros and ones alone, which never underflow.  Time: a step and a look a round, for as many
        rounds as the graph is deep.
        """

    def are_zeros(self, positive: Array) -> bool:
        """Whether the solution is surely zero where `positive`, of zeros and ones, is zero."""
        return False

    @abstractmethod
    def raised(self, positive: Array) -> Steps:
        """Return steps `down` whose solution is no less, and above the floor where it is positive."""

    @abstractmethod
    def residual(self, x: Array, scratch: Array) -> float:
        """Return how far x is from solving the equation, from a fresh step written to `scratch`."""

    @property
    def solves_policies(self) -> bool:
        """Whether equations of a policy are solved in less time than a few dozen steps take."""
        return False

    @property
    def entries(self) -> int | None:
        """Entries of the matrix, of all choices, where `written` is there; else None."""
        return None

    def written(self, policy: Array | None = None) -> FactoredSystem:
        """Return the equations written out on the host, over choices those of a policy.

        Parameters
        ----------
        policy : array, shape (size,), uint16, optional
            Of `ChoiceOperator.choose`.

        Notes
        -----
        Time: O(entries log(entries)).
        """
        raise NotImplementedError

    def reserve(self, vectors: int) -> None:
        """Ask for the room that a method with so many vectors takes; see `VectorSpace.reserve`."""
        self.space.reserve(vectors, self.size)

    def zeros(self) -> Array:
        """Return a vector of zeros."""
        return self.space.xp.zeros(self.size)

    def is_near_underflow(self, x: Array) -> bool:
        """Whether some element is zero, or so small that underflow is more than one error of rounding."""
        if self.is_far or self.space.is_empty(self.size):
            return False
        return not self.space.read(self.space.extremes(x)[0])[0] > self.negligible

    def verifies(self, guess: Array, x: Array, y: Array, positive: Array | None) -> bool:
        """Whether a guess is inductive; if so, leave one more step from it, no less than x, in y.

        Parameters
        ----------
        guess, x, y : array, shape (n,)
            x is a lower bound; y is overwritten in any case.
        positive : array, shape (n,), or None
            See `hybrid.solvers.bounding.Guess.verified`.

        Lemma: park (docs/bounds.md).
        """
        space = self.space
        self.up.sweep((guess, y), 0, 1)
        self.products += 1
        if positive is not None:
            space.add_scaled(self.underflow, positive, y)
        (inductive,) = space.read(space.all(y <= guess))  # lemma: park
        if inductive:
            # One more step from an inductive bound is a better bound.
            space.xp.maximum(y, x, out=y)
        return bool(inductive)

    def lowered(self, lower: Array, steps: int) -> None:
        """Take from a lower bound what underflow may have added to it in some steps, in place.

        Lemma: from-below (docs/bounds.md).
        """
        lower -= steps * self.depth * self.underflow  # lemma: from-below, underflow
        self.space.xp.maximum(lower, 0.0, out=lower)

    def result(self, x: Array) -> Array:
        """Return a vector of the space as results are given; it may be the same one."""
        return self.space.to_host(x)

    def enclosure(
        self, outcome: Outcome, clock: Clock, lower: Array, upper: Array | None, spare: Pair
    ) -> BoundedSolution:
        """Return what has been found as results are given; both vectors of `spare` are overwritten."""
        seconds, looks = clock.seconds, self.space.synchronisations
        middle, scratch = spare
        if upper is None:
            middle = lower
        else:
            middle_of(lower, upper, middle)
        residual = self.residual(middle, scratch)
        self.products += 1
        if upper is None:
            values = low = self.result(lower)
            high = np.full_like(low, np.inf)
        else:
            if guard_underflow(lower, upper):
                middle_of(lower, upper, middle)
            values, low, high = (self.result(x) for x in (middle, lower, upper))
        return BoundedSolution(
            values, outcome.status, outcome.iterations, seconds, outcome.difference, residual, low, high,
            synchronisations=looks, products=self.products, more_vectors=outcome.more_vectors,
        )  # fmt: skip


# ``x = (M x + b) / diagonal``, rounded down and rounded up.

_PART = 1 << 20  # elements compared together: bounds the temporary memory


class DirectedSystem(BellmanOperator):
    """The Bellman operator of a chain; divides by the diagonal, rounded in one direction.

    Lemma: directed-steps (docs/bounds.md).

    Parameters
    ----------
    matrix, diagonal, b, slack
        As for :class:`hybrid.solvers.bounding.BoundingMethod`.
    vectors : int
        Of the method, for which room is asked before anything is copied.

    Attributes
    ----------
    matrix, diagonal, b
        As they were given.
    system : System
        The equation, not rounded in any direction.
    """

    def __init__(
        self, matrix: LinearOperator, diagonal: Vector, b: Vector, slack: float, vectors: int
    ) -> None:
        space = space_of(matrix)
        space.reserve(space.more(vectors, b), b.size)
        super().__init__(space, b.size, slack, underflow_of(diagonal, slack, space.communicator))
        alike = space.communicator
        # lemma: underflow
        far = 2.0 * NEGLIGIBLE * self.underflow * alike.greatest(max(extremes(diagonal)[1], 0.0))
        self.is_far = alike.all(_exceeds(b, far))
        self.matrix, self.diagonal, self.b = matrix, diagonal, b
        self.system = space.system(diagonal, b)

    @cached_property
    def down(self) -> Steps:
        """See `BellmanOperator.down`."""
        return self.system.relaxation(factor=1.0 + self.slack)  # lemma: directed-steps

    @cached_property
    def up(self) -> Steps:
        """See `BellmanOperator.up`."""
        return self.system.relaxation(factor=1.0 - self.slack)  # lemma: directed-steps

    @property
    def entries(self) -> int | None:
        """See `BellmanOperator.entries`."""
        from hybrid.matrix.explicit.operators import entries_on_host

        return entries_on_host(self.matrix)

    def written(self, policy: Array | None = None) -> FactoredSystem:
        """See `BellmanOperator.written`."""
        from hybrid.matrix.explicit.operators import rows_on_host

        return factored_system(rows_on_host(self.matrix), self.diagonal, self.b)

    def result(self, x: Array) -> Array:
        """See `BellmanOperator.result`: where the operands were given."""
        return self.space.result(x, self.b)

    def positive(self, is_over: Callable[[], bool] | None = None) -> Array:
        """See `BellmanOperator.positive`: rows from which M leads to a positive element of b."""
        inside = self.space.vector(self.b > 0.0)
        found, steps = least_closure(self.space, inside, self.space.multiply, is_over)
        self.products += steps
        return found

    def are_zeros(self, positive: Array) -> bool:
        """See `BellmanOperator.are_zeros`: such rows have no right-hand side, and lead to no other.

        Time: a product, in which nothing underflows.
        """
        space, out = self.space, self.zeros()
        space.multiply(positive, out)
        self.products += 1
        out += space.vector(self.b > 0.0)
        (holds,) = space.read(space.all((out == 0.0) | (positive > 0.0)))
        return bool(holds)

    def raised(self, positive: Array) -> Steps:
        """See `BellmanOperator.raised`: b is raised above the floor in the rows that are positive."""
        space, xp = self.space, self.space.xp
        b = space.vector(self.diagonal)
        with np.errstate(over="ignore"):  # an infinite solution is no bound, and is reported as such
            b *= 4.0 * self.floor
        xp.maximum(b, space.operand(self.b), out=b)
        # Not a product: infinity times zero is no number.
        xp.copyto(b, 0.0, where=positive == 0.0)
        return self.system.sharing(b).relaxation(factor=1.0 + self.slack)

    def residual(self, x: Array, scratch: Array) -> float:
        """See `BellmanOperator.residual`: the greatest ``|M x + b - diagonal * x|``."""
        return self.space.read(self.system.residual(x, scratch))[0]


def _exceeds(x: Vector, limit: float) -> bool:
    """Whether all elements are greater; most vectors have a small one among the first."""
    parts = (x[i : i + _PART] for i in range(0, x.size, _PART))
    return all(is_all(array_module(part).greater(part, limit)) for part in parts)
