"""Bounds around the guess of a Krylov method, for ``x = f(x)`` with ``f(x) = A x + b`` and A, b not negative.

Let x be an iterate from below.  IDR(s) (:mod:`hybrid.matrix.space.idr`) computes two vectors.  The
supersolution w satisfies ``(1 - s) x <= w - A w`` with s below one half.  It takes few products, since half a
digit suffices.  The guess z satisfies ``|b + A z - z| <= eta x``.  For c above ``eta / (1 - s)`` then
``f(z + c w) <= z + c w`` and ``f(z - c w) >= z - c w``.  One step of each with directed rounding verifies
both, so that the bounds do not rest on w and z (:func:`hybrid.solvers.bounding.verify_enclosure`).

Scalar products are weighted with 1 / x, so that residuals become small relative to x in every row. Values of
different magnitudes then have the same digits. Where z has left the shape of x, z takes the place of x, and w
is computed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion, Numbers, RecordedState, State
from hybrid.matrix.space.bellman import STAGE, BellmanOperator, DirectedSystem, LowerIterationState
from hybrid.matrix.space.bounded_solution import WIDEST, width_of
from hybrid.matrix.space.idr import IDR_VECTORS
from hybrid.matrix.space.vector_space import OPERANDS, Array, Preconditioner, Recurrence, VectorSpace
from hybrid.solvers.bounding import DOUBLINGS, verify_enclosure
from hybrid.solvers.forecast import AGAIN, ForetoldLeap

# Driver of a recurrence: it runs until a measure of the caller's is small, or stagnates.

_LOOK = 10  # products between two measurements
_HELPED = 0.9  # of the measure may be left for a beginning to have helped


def follow(
    operator: BellmanOperator,
    recurrence: Recurrence,
    measure: Callable[[], float],
    close: Callable[[float], bool],
    tell: Callable[[float], float],
    most: float,
    clock: Clock,
    state: State,
) -> float | None:
    """Iterate until a measure of a fresh residual is close; None if it does not become so.

    Parameters
    ----------
    operator : BellmanOperator
        Whose products are counted.
    recurrence : Recurrence
        Not begun.
    measure : callable
        A look at the recurrence.
    close : callable
        Of what was measured.
    tell : callable
        Returns the difference, compared with epsilon, of a measurement.
    most : float
        Products after which it gives up.
    state : callable
        Where the iteration is, for records.
    """
    before = math.inf
    counted, stride = 0, max(max(_LOOK, 2 * operator.space.stride) // recurrence.cost, 1)
    recurrence.restart()
    best, found_at, fresh = math.inf, 0, True
    while True:
        now = measure()
        # The measurement may have taken a product as well.
        operator.products += recurrence.products - counted
        counted = recurrence.products
        if not math.isfinite(now):
            return None
        if close(now):
            if fresh:
                return now
            recurrence.refresh()
            fresh = True
            continue
        if now < best:
            best, found_at = now, counted
        stale = counted - found_at >= recurrence.patience
        if counted >= most or stale:
            return None
        clock.offer(state)
        if clock.tick(operator.products, tell(now)):
            clock.keep(state)
            return None
        standing = recurrence.advance(stride)
        fresh = False
        if standing.ended:
            if best > _HELPED * before or not math.isfinite(recurrence.restart()):
                operator.products += recurrence.products - counted
                return None
            before = best


# Stagnation test: an iteration from below that has grown in every row at a constant rate from its beginning.
#
# A chain that is left very rarely gains the same in every step, in all steps so far: its differences
# fall like ``1 / k``, and their curve does not show that k has to reach the mean time of leaving.  There a
# Krylov method is at its best: all that is left is one direction.  Where a row has met what ends it while
# others have not, its change has dropped from what it was, and a Krylov method has to wait for the others as
# well (:mod:`hybrid.solvers.forecast`).

_UNLIKE = 0.25  # of the greatest change: in a front that passes row after row some change is off by half


def is_steady(space: VectorSpace, iterate: LowerIterationState, difference: float) -> bool:
    """Return whether the last change of every row is that of all steps, beside the greatest of them.

    Rows that changed by d in all k steps have ``sum over j < k of (x_k - x_j) = d k (k + 1) / 2``, and rows
    that stand still for long have little of either.

    Parameters
    ----------
    space : VectorSpace
    iterate : LowerIterationState
        Its `spare` and `y` are overwritten; y is the iterate before.
    difference : float
        Greatest relative change of the last step.

    Notes
    -----
    One synchronisation, and nine passes over vectors.
    """
    xp, x, y, spare, made = space.xp, iterate.x, iterate.y, iterate.spare, float(iterate.made)
    assert iterate.total is not None
    xp.multiply(iterate.total, -1.0, out=spare)
    space.add_scaled(made, x, spare)
    spare *= 2.0 / (made * (made + 1.0))
    spare += y
    spare -= x
    xp.absolute(spare, out=spare)
    xp.multiply(x, _UNLIKE * difference, out=y)
    (alike,) = space.read(space.all(spare <= y))
    return bool(alike)


# Progress of an attempt to find bounds by a Krylov method, for its budget and for checkpoints.

SUPERSOLUTION, APPROACH = 1, 2
"""Stages of an attempt: the supersolution w, then the guess z; see `hybrid.solvers.krylov_bounds`."""


SWEPT = "swept"
"""Number of a checkpoint that marks preconditioned recurrences."""


class Attempt:
    """Progress of an attempt, for its budget and for checkpoints.

    Parameters
    ----------
    operator : BellmanOperator
        Which counts the products.
    iterate : LowerIterationState
    most : float
        Products after which the try is given up.

    Attributes
    ----------
    turn : int
        How often the shape has been changed.
    shape : array, shape (n,)
    preconditioner : Preconditioner, or None
        None while products do.
    """

    def __init__(self, operator: BellmanOperator, iterate: LowerIterationState, most: float) -> None:
        self._operator, self._iterate, self._most = operator, iterate, most
        self._begun, self.turn, self.shape = operator.products, 0, iterate.x
        self.preconditioner: Preconditioner | None = None

    def leave_out(self, products: int) -> None:
        """Leave products made out of the budget."""
        self._most += products

    @property
    def left(self) -> float:
        """Products that may still be made."""
        return self._most - (self._operator.products - self._begun)

    def state(self, found: Mapping[str, Recurrence], stage: int, loose: float = 0.0) -> State:
        """Return the state of a recurrence, for records; w is in its place but for its own recurrence."""
        iterate = self._iterate

        def now() -> tuple[Mapping[str, Array], Numbers]:
            vectors, numbers = iterate.state()
            own = {"w": iterate.spare} | {name: recurrence.x for name, recurrence in found.items()}
            shape = {"shape": self.shape} if self.turn else {}
            made = numbers["iterations"] + self._operator.products - self._begun
            told = {STAGE: stage, "turn": self.turn, "loose": loose, "most": self.left, "iterations": made}
            swept = {} if self.preconditioner is None else {SWEPT: 1.0}
            return {**vectors, **own, **shape}, {**numbers, **told, **swept}

        return now


# Supersolution: w with ``(1 - s) x <= w - A w``, by a few products or sweeps.
#
# See :mod:`hybrid.solvers.krylov_bounds`, whose bounds are ``z + c w`` and ``z - c w``.

LOOSE = 0.5
"""Share of its right-hand side by which w may be off."""

_BRIEF = 20  # products after which a preconditioner is tried
_LONGER = 2.0  # times as many products with it


class Supersolution:
    """Computes the supersolution w of an iterate.

    Parameters
    ----------
    operator : DirectedSystem
    change : float
        Change of the last step of the iteration, reported as the difference meanwhile.
    """

    def __init__(self, operator: DirectedSystem, change: float) -> None:
        self._operator, self._change = operator, change

    def preconditioner(self, shape: Array, course: Attempt) -> Preconditioner | None:
        """Return the matrix's preconditioner for solutions of a shape; None where it does not pay."""
        found = self._operator.system.preconditioner(shape)
        room = IDR_VECTORS + OPERANDS
        if found is None or not self._operator.space.has_room(found.more_vectors + room, self._operator.size):
            return None
        self._operator.products += found.probes
        course.leave_out(found.probes)
        return found if found.is_worth_it else None

    def at_first(
        self, iterate: LowerIterationState, y: Array, course: Attempt, most: float, clock: Clock
    ) -> float | None:
        """Compute w for the image x: by products at first, then preconditioned if these do not converge.

        Of some matrices Krylov methods need far fewer products than sweeps (few eigenvalues, which sweeps
        spread); a few products decide it.
        """
        x, w, space = iterate.x, iterate.spare, self._operator.space
        preconditioner = self.preconditioner(x, course)
        if preconditioner is None:
            return self.found(x, y, w, course, most, clock)
        loose = self.found(x, y, w, course, min(most, _BRIEF), clock)
        if loose is None and most > _BRIEF and not clock.is_ended:
            start_supersolution(space, iterate)
            course.preconditioner = preconditioner
            # Sweeps take longer than products where these are quick, and lead to z the sooner where not.
            loose = self.found(x, y, w, course, min(_LONGER * most, course.left), clock)
        return loose

    def found(
        self, shape: Array, y: Array, w: Array, course: Attempt, most: float, clock: Clock
    ) -> float | None:
        """Compute w with an image close to `shape` in place; return the greatest relative error of the image.

        Returns
        -------
        float or None
            None if that cannot be done.
        """
        space, xp = self._operator.space, self._operator.space.xp
        recurrence = recurrence_of(self._operator, course, w, w, y)
        # The start has been copied, and its vector is that of the right-hand side.
        xp.multiply(space.operand(self._operator.diagonal), shape, out=w)

        def share() -> float:
            xp.multiply(recurrence.plain_residual(), y, out=recurrence.spare)
            return space.read(space.extremes(recurrence.spare)[1])[0]

        def close(now: float) -> bool:
            return now <= LOOSE

        def tell(now: float) -> float:
            return self._change

        found = follow(
            self._operator,
            recurrence,
            share,
            close,
            tell,
            most,
            clock,
            course.state({"w": recurrence}, SUPERSOLUTION),
        )
        if found is None:
            return None
        w[...] = recurrence.x
        (least,) = space.read(space.extremes(w)[0])
        return max(found, 0.0) if least >= 0.0 else None


def recurrence_of(
    operator: DirectedSystem, course: Attempt, b: Array | None, start: Array, weights: Array
) -> Recurrence:
    """Return the recurrence for a right-hand side, that of the equation by default."""
    if course.preconditioner is not None:
        return course.preconditioner.idr(b, start, 0.0, None, weights)
    system = operator.system if b is None else operator.system.sharing(b)
    return system.idr(start, 0.0, None, weights)


def start_supersolution(space: VectorSpace, iterate: LowerIterationState) -> None:
    """Write the start of w: the sum of ``x - x_j`` over all iterates x_j before.

    Its image is x but for a change.
    """
    w = iterate.spare
    assert iterate.total is not None
    space.xp.multiply(iterate.total, -1.0, out=w)
    space.add_scaled(float(iterate.made), iterate.x, w)
    space.xp.maximum(w, 0.0, out=w)


MORE_VECTORS = IDR_VECTORS + 2
"""Vectors held besides those of the iteration: the recurrence's, the diagonal in the space, a shape."""

_OPERANDS = 2
_LEAST = 40  # products that the first w may take at least
_FIRST = 60.0  # products that a w takes where the iterates do not tell one, and more of z that is further off
_SETTLED = 0.5  # relative change of a step beyond which the iterate has not the solution's shape
_SHAPES = 3  # the iterate's, and those that z has where the iterate's are far from it
_OUTGROWN = 2.0  # times the shape that z may be
_SHARE = 0.125  # of the steps made that the first w may take
_ROUNDING = 3.0  # slacks: two for a step rounded in one direction, and what the residual is off by


class KrylovBounds(ForetoldLeap):
    """Computes both bounds at once, where the convergence of an iteration forecasts many more steps.

    See :class:`hybrid.matrix.space.bellman.BoundAccelerator`.

    Parameters
    ----------
    operator : DirectedSystem
    criterion : Criterion
    always : bool
        Whether to begin as soon as that is possible.
    traffic_ratio : float
        Time of a product of IDR(s) in steps of the iteration.
    """

    def __init__(
        self, operator: DirectedSystem, criterion: Criterion, always: bool, traffic_ratio: float = 1.0
    ) -> None:
        super().__init__(criterion, always, traffic_ratio, _SETTLED)
        self._operator, self._examined = operator, 0
        self._reach = self._stretch = math.inf

    def _worth(self, iterate: LowerIterationState, difference: float, left: float) -> float:
        """See `ForetoldLeap`; some passes over vectors whenever the steps have doubled."""
        made = iterate.made
        # With so small a change the sum of the iterates is a w.
        more = 0.0 if made * difference <= LOOSE else _FIRST
        budget = self._forecast.budget(left, more)
        if budget > 0.0 or not self._forecast.is_long(left, more) or made < 2 * self._examined:
            return budget
        self._examined = made
        return left if is_steady(self._operator.space, iterate, difference) else 0.0

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Attempt to find bounds; return the products made.

        Parameters
        ----------
        iterate : LowerIterationState
            What the iteration lends.
        most : float
            Products after which it gives up.
        limit : int
            Products that may be made in any case.
        clock : Clock
        kept : RecordedState, optional
            Where an earlier process was in such a try.

        Notes
        -----
        It has succeeded if `width` is finite. One measurement every ten products or more.
        """
        operator, self.width = self._operator, math.inf
        made, w = iterate.made, iterate.spare
        self._not_before = AGAIN * made
        if not operator.space.has_room(MORE_VECTORS + _OPERANDS, operator.size):
            return 0
        self.more_vectors = MORE_VECTORS
        before = operator.products
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if kept is None:
                start_supersolution(operator.space, iterate)
            else:
                w[...] = kept.vectors["w"]
            course = Attempt(operator, iterate, min(most, limit))
            # Products that the first w may take: z will take about as long.
            self._enclose(iterate, course, max(_SHARE * made, _LEAST), clock, kept)
        if course.preconditioner is not None:
            self.more_vectors += course.preconditioner.more_vectors
        return operator.products - before

    def _enclose(
        self,
        iterate: LowerIterationState,
        course: Attempt,
        soon: float,
        clock: Clock,
        kept: RecordedState | None,
    ) -> None:
        """Find w and z, and verify bounds around it; `width` is finite if they are."""
        x, y, w = iterate.x, iterate.y, iterate.spare
        xp, shape = self._operator.space.xp, x
        spread = Supersolution(self._operator, self._change)
        if kept is not None:
            course.turn, shape = int(kept.numbers["turn"]), kept.vectors.get("shape", x)
        for turn in range(course.turn, _SHAPES):
            course.turn, course.shape = turn, shape
            if course.preconditioner is not None or (kept is not None and SWEPT in kept.numbers):
                course.preconditioner = spread.preconditioner(shape, course)
            xp.divide(1.0, shape, out=y)
            xp.copyto(y, 0.0, where=xp.equal(shape, 0.0))
            start, loose = shape, None
            if kept is not None and kept.numbers[STAGE] == APPROACH:
                start, loose = kept.vectors["z"], kept.numbers["loose"]
            if loose is None and turn == 0 and kept is None:
                loose = spread.at_first(iterate, y, course, min(course.left, soon), clock)
            elif loose is None:
                loose = spread.found(shape, y, w, course, course.left, clock)
            kept = None
            if loose is None:
                return
            recurrence = recurrence_of(self._operator, course, None, start, y)
            eta = self._approach(recurrence, y, w, loose, course, clock)
            if eta is None:
                return
            # Rounding errors are those of z, and large beside a shape that z has outgrown.
            if self._width(eta, loose) <= self._criterion.epsilon or self._stretch <= _OUTGROWN:
                self._accept(recurrence, x, y, w, eta, loose, iterate.positive)
                return
            shape = xp.maximum(recurrence.x, x)
            del recurrence

    def _approach(
        self, recurrence: Recurrence, y: Array, w: Array, loose: float, course: Attempt, clock: Clock
    ) -> float | None:
        """Iterate until z is close enough, or as close as rounding lets it come; return eta."""
        criterion, space, xp = self._criterion, self._operator.space, self._operator.space.xp

        def share() -> float:
            """Return eta; keep how far w leads, and how far z is above the shape."""
            spare = recurrence.spare
            reach = width_of(criterion, w, recurrence.x, space)
            xp.multiply(recurrence.x, y, out=spare)
            self._reach, least, most = space.read(reach, *space.extremes(spare))
            self._stretch = max(most, -least)
            if least < 0.0:
                # Relative to what is negative nothing is near, however small its residual is.
                self._reach = math.inf
            xp.multiply(recurrence.plain_residual(), y, out=spare)
            return max(map(abs, space.read(*space.extremes(spare))))

        def close(eta: float) -> bool:
            return eta <= self._noise() or self._width(eta, loose) <= criterion.epsilon

        def tell(eta: float) -> float:
            width = self._width(eta, loose)
            return min(width, self._change) if width >= 0.0 else self._change

        state = course.state({"z": recurrence}, APPROACH, loose)
        return follow(self._operator, recurrence, share, close, tell, course.left, clock, state)

    def _accept(
        self,
        recurrence: Recurrence,
        x: Array,
        y: Array,
        w: Array,
        eta: float,
        loose: float,
        positive: Array | None,
    ) -> None:
        """Verify bounds around z, and take them if they are close, or as close as rounding lets them come."""
        operator, criterion = self._operator, self._criterion
        closest = max(WIDEST, criterion.epsilon) if eta <= self._noise() else criterion.epsilon
        c, z, bound = (eta + self._noise()) / (1.0 - loose), recurrence.x, recurrence.r
        width = verify_enclosure(
            operator, criterion, x, y, z, w, c, positive, bound, recurrence.spare, DOUBLINGS
        )
        if width is not None and width <= closest:
            x[...] = bound
            self.width = width

    def _width(self, eta: float, loose: float) -> float:
        """Return how far bounds are apart for a residual."""
        return 2.0 * self._reach * (eta + self._noise()) / (1.0 - loose)

    def _noise(self) -> float:
        """Return the residual, beside the shape, that rounding alone may make."""
        return _ROUNDING * self._operator.slack * max(self._stretch, 1.0)
