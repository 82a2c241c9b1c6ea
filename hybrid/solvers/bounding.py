"""Base of methods with bounds, and bounds around a guess, verified by one step of each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from hybrid.matrix.space.base import (
    Clock,
    Criterion,
    LinearOperator,
    Numbers,
    Progress,
    RecordedState,
    Status,
    Vector,
)
from hybrid.matrix.space.bellman import BellmanOperator, Outcome
from hybrid.matrix.space.bounded_solution import BoundedSolution, width_of
from hybrid.matrix.space.vector_space import Array, Pair
from mtbdd.base.records import Record


class BoundingMethod(ABC):
    """A method whose solutions have bounds.

    Attributes
    ----------
    name : str
        On the command line.
    vectors : int
        Vectors of the system's size that it holds at once, its operands among them.
    """

    name: ClassVar[str]
    vectors: ClassVar[int]

    def solve(
        self,
        matrix: LinearOperator,
        diagonal: Vector,
        b: Vector,
        slack: float,
        upper_bound: float | None,
        progress: Progress | None = None,
    ) -> BoundedSolution:
        """Solve ``diagonal * x = M x + b`` for non-negative M and b, x the least solution.

        Parameters
        ----------
        matrix : LinearOperator
            M, shape (n, n), without diagonal.
        diagonal, b : ndarray of float64, shape (n,)
            `diagonal` positive.
        slack : float
            Bound on the relative error of evaluating ``(M x + b) / diagonal``, including that of the
            operands.
        upper_bound : float, optional
            A bound on x known beforehand, such as 1 for probabilities.
        progress : callable, optional
            Called with (iteration, difference) about twice a second.
        """
        from hybrid.matrix.space.bellman import DirectedSystem

        operator = DirectedSystem(matrix, diagonal, b, slack, self.vectors)
        return self.enclosed(operator, upper_bound, progress)

    def bounds(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Do as `solve` does for any monotone operator.

        Raises
        ------
        MemoryError
            There is no room for the method's vectors.
        """
        operator.reserve(self.vectors)
        return self.enclosed(operator, upper_bound, progress)

    @abstractmethod
    def enclosed(
        self, operator: BellmanOperator, upper_bound: float | None, progress: Progress | None = None
    ) -> BoundedSolution:
        """Do as `bounds` does after room has been reserved."""


# Bounds of all values as vectors of a space, and in the record of a solution.


class BoundVectors(Record, eq=False):
    """Bounds in the vector space.

    Attributes
    ----------
    outcome : Outcome
    lower : array, shape (n,)
    upper : array, shape (n,), or None
        None if no bound was verified.
    spare : tuple of two arrays, shape (n,)
        Free for other uses.
    """

    outcome: Outcome
    lower: Array
    upper: Array | None
    spare: Pair


def record_bounds(clock: Clock, found: BoundVectors) -> None:
    """Have bounds kept that are the solution, for runs to come."""
    if found.upper is None or found.outcome.status is not Status.CONVERGED:
        return
    lower, upper, outcome = found.lower, found.upper, found.outcome

    def state() -> tuple[Mapping[str, Array], Numbers]:
        numbers = {"iterations": outcome.iterations, "difference": outcome.difference}
        return {"lower": lower, "upper": upper}, numbers

    clock.keep(state, is_finished=True)


def recorded_bounds(operator: BellmanOperator, kept: RecordedState) -> BoundVectors:
    """Return the bounds that an earlier run has left."""
    numbers = kept.numbers
    outcome = Outcome(Status.CONVERGED, int(numbers["iterations"]), numbers["difference"])
    spare = operator.zeros(), operator.zeros()
    return BoundVectors(outcome, kept.vectors["lower"], kept.vectors["upper"], spare)


DOUBLINGS = 5
"""Tries of a method that doubles c, see `verify_enclosure`."""


def stands_below(operator: BellmanOperator, bound: Array, x: Array | float, out: Array) -> bool:
    """Verify that a guess is a lower bound, by a step from it; x is one, and `out` is overwritten.

    Notes
    -----
    Let T be the rows in which the guess l is above x, and ``l <= f(l)`` in these.  Then e, the positive part
    of ``l - x*``, satisfies ``e <= A e``: in T because ``l - x* <= A (l - x*)``, with the rows A of the
    choices best at l for a maximum, and at x* for a minimum; elsewhere e is zero.  Where every state is left
    for good the powers of A vanish, so that e is zero.

    Lemma: around-a-guess (docs/bounds.md).
    """
    space = operator.space
    operator.down.sweep((bound, out), 0, 1)
    operator.products += 1
    # lemma: underflow
    out -= operator.underflow
    (holds,) = space.read(space.all((out >= bound) | (bound <= x)))  # lemma: around-a-guess
    return bool(holds)


def verify_enclosure(
    operator: BellmanOperator,
    criterion: Criterion,
    x: Array,
    y: Array,
    z: Array,
    w: Array,
    c: float,
    positive: Array | None,
    bound: Array,
    out: Array,
    tries: int = 1,
    end: float = math.inf,
) -> float | None:
    """Verify the bounds z + c w, then left in y, and z - c w, in `bound`.

    Parameters
    ----------
    operator : BellmanOperator
    criterion : Criterion
        How distances are measured.
    x : array, shape (n,)
        A lower bound, below which nothing has to be verified.
    y, bound, out : array, shape (n,)
        Overwritten.
    z, w : array, shape (n,)
        The guess, and a supersolution.
    c : float
    positive : array, shape (n,), or None
        See `Guess.verified`.
    tries : int
        How often, with c doubled each time they do not hold.
    end : float
        Products of the operator after which none is made any more.

    Returns
    -------
    float or None
        Their distance; None if they do not hold.

    Notes
    -----
    Above is Park induction; for below see `stands_below`.

    Lemma: around-a-guess (docs/bounds.md).
    """
    space, xp = operator.space, operator.space.xp
    for _ in range(tries):
        if operator.products + 2 > end:
            break
        xp.multiply(w, c, out=bound)
        bound += z
        xp.maximum(bound, x, out=bound)
        # lemma: park
        if operator.verifies(bound, x, y, positive):
            xp.multiply(w, -c, out=bound)
            bound += z
            xp.maximum(bound, x, out=bound)
            # lemma: around-a-guess
            if stands_below(operator, bound, x, out):
                xp.subtract(y, bound, out=out)
                (width, least) = space.read(width_of(criterion, out, y, space), space.least(out))
                if math.isfinite(width) and least >= 0.0:
                    return width
        c *= 2.0
    return None


# Guesses of upper bounds beside iterates from below, which steps of an iteration lead to.

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing
_INTERRUPTED_GUESSES = 8  # the same where somebody waits for the end


class Guess:
    """Finds upper bounds close to iterates from below, and verifies them; a subclass finds weights w.

    Parameters
    ----------
    system : BellmanOperator
    criterion : Criterion

    Attributes
    ----------
    total : array, shape (n,), or None
        Every iterate that a step starts from is added to it.
    scratch : array, shape (n,)
        Free between two calls.
    """

    total: Array | None = None

    def __init__(self, system: BellmanOperator, criterion: Criterion) -> None:
        self._system, self._criterion = system, criterion
        self.scratch: Array = system.space.xp.empty(system.size)

    def difference(self, absolute: float, relative: float) -> float:
        """Return the change of a step that is compared with the target."""
        return self._criterion.difference(absolute, relative)

    def verified(
        self, x: Array, y: Array, made: int, outcome: Outcome, positive: Array | None, last: bool = False
    ) -> float | None:
        """Leave a verified upper bound close to x in y and return None, or the difference to go on to.

        Parameters
        ----------
        made : int
            Steps behind x.
        outcome : Outcome
            Its difference is that of the last step; steps of its own are added to its iterations.
        positive : array, shape (n,), or None
            Where underflow counts, ones where the solution is positive.
        last : bool
            The iteration ends here: any upper bound will do that a few steps find, however far it is from x.
        """
        raise NotImplementedError

    def restart(self) -> None:
        """Forget the iterates; the next ones begin at 0."""

    def spare(self) -> Pair:
        """Return two vectors that are free from now on."""
        return self.scratch, self._system.space.xp.empty(self._system.size)

    def _doubled(
        self,
        x: Array,
        y: Array,
        w: Array,
        c: float,
        positive: Array | None,
        last: bool,
        exhausted: bool,
        reach: float = 0.0,
    ) -> tuple[bool, int]:
        """Try ``x + c w``, c doubled while ``c * reach`` is within epsilon; return whether it holds, tries.

        Lemma: park (docs/bounds.md).
        """
        system, guess, made = self._system, self.scratch, 0
        most = math.inf if exhausted else self._criterion.epsilon
        for made in range(
            1, (_INTERRUPTED_GUESSES if last else _LAST_GUESSES if exhausted else _GUESSES) + 1
        ):
            system.space.xp.multiply(w, c, out=guess)
            guess += x
            if system.verifies(guess, x, y, positive):  # lemma: park
                return True, made
            c *= 2.0
            if c * reach > most:
                break  # such a bound would be too far off
        return False, made
