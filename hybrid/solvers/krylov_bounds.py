"""Bounds around the guess of a Krylov method, for ``x = f(x)`` with ``f(x) = A x + b`` and A, b not negative.

Let x be an iterate from below.  IDR(s) (:mod:`hybrid.matrix.space.idr`) finds w with
``(1 - s) x <= w - A w``, s below one half, which takes few products, for w is known to half a digit only; and
z with ``|b + A z - z| <= eta x``.  Then z + c w goes down in a step, and z - c w goes up, for c above
``eta / (1 - s)``.  One step of each, with rounding directed, tells whether that is so; nothing is believed of
w and z.

Why such bounds hold tells :func:`hybrid.solvers.around.verified_around`.

Scalar products are weighed with 1 / x, so that residuals become small beside x in every row: values that are
far apart have the same digits.  Where z has left the shape of x, z takes the place of x, and w is found anew.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion
from hybrid.matrix.space.bellman import STAGE, BellmanOperator, Held
from hybrid.matrix.space.bounded_solution import WIDEST, width_of
from hybrid.matrix.space.idr import IDR_VECTORS
from hybrid.matrix.space.preconditioner import plain_residual
from hybrid.matrix.space.record import Kept
from hybrid.matrix.space.recurrence import Recurrence
from hybrid.matrix.space.workspace import Array
from hybrid.solvers.around import verified_around
from hybrid.solvers.forecast import AGAIN, Forecast
from hybrid.solvers.krylov_run import follow
from hybrid.solvers.krylov_spread import LOOSE, Affine, Spread, begin_spread, recurrence_of
from hybrid.solvers.krylov_try import APPROACH, SWEPT, Try
from hybrid.solvers.steady import is_steady

MORE_VECTORS = IDR_VECTORS + 2
"""Vectors held besides those of the iteration: the recurrence's, the diagonal in the workspace, a shape."""

_OPERANDS = 2
_LOOK = 10  # steps between two looks at the pace
_LEAST = 40  # products that the first w may take at least
_FIRST = 60.0  # products that a w takes where the iterates do not tell one, and more of z that is further off
_SETTLED = 0.5  # relative change of a step beyond which the iterate has not the solution's shape
_SHAPES = 3  # the iterate's, and those that z has where the iterate's are far from it
_OUTGROWN = 2.0  # times the shape that z may be
_SHARE = 0.125  # of the steps made that the first w may take
_GUESSES = 5  # tries with a doubled c
_ROUNDING = 3.0  # slacks: two for a step rounded in one direction, and what the residual is off by


class KrylovBounds:
    """Finds both bounds at once, where the pace of an iteration tells that many of its steps are left.

    See :class:`hybrid.matrix.space.bellman.Leap`.

    Parameters
    ----------
    operator : BellmanOperator
    equation : Affine
        Of the same system.
    criterion : Criterion
    always : bool
        Whether to begin as soon as that is possible.
    price : float
        Time of a product of IDR(s) in steps of the iteration.
    """

    from_anywhere: ClassVar[bool] = False

    def __init__(
        self,
        operator: BellmanOperator,
        equation: Affine,
        criterion: Criterion,
        always: bool,
        price: float = 1.0,
    ) -> None:
        self._operator, self._equation, self._criterion = operator, equation, criterion
        self._always = always
        self._forecast = Forecast(criterion.epsilon, price, criterion.max_iterations)
        self._looked = self._examined = self._not_before = 0
        self._reach = self._stretch = math.inf
        self._change = math.inf  # of the last step before
        self.width, self.more_vectors = math.inf, 0

    def begin(self, made: int) -> None:
        """See `Leap.begin`."""
        self._forecast.begun = made

    def budget(self, held: Held, difference: float) -> float:
        """Return the products that a try is worth now, 0 if none.

        Parameters
        ----------
        held : Held
            Its `spare` and `y` are overwritten; y is the iterate before.
        difference : float
            Greatest relative change of the last step.

        Notes
        -----
        Besides a forecast in ten steps, some passes over vectors whenever the steps have doubled.
        """
        made = held.made
        if made - self._looked < _LOOK or not difference < _SETTLED:
            return 0.0
        self._looked, self._change = made, difference
        left = self._forecast.left(made, difference, held.target)
        if made < self._not_before:
            return 0.0
        if self._always:
            return math.inf
        # Where it is that small the sum of the iterates is a w.
        more = 0.0 if made * difference <= LOOSE else _FIRST
        budget = self._forecast.budget(left, more)
        if budget > 0.0 or not self._forecast.is_long(left, more) or made < 2 * self._examined:
            return budget
        self._examined = made
        return left if is_steady(self._operator.space, held, difference) else 0.0

    def solve(self, held: Held, most: float, limit: int, clock: Clock, kept: Kept | None = None) -> int:
        """Try to find bounds; return the products made.

        Parameters
        ----------
        held : Held
            What the iteration lends.
        most : float
            Products after which it gives up.
        limit : int
            Products that may be made in any case.
        clock : Clock
        kept : Kept, optional
            Where an earlier process was in such a try.

        Notes
        -----
        It has succeeded if `width` is finite.  A look in ten products or more.
        """
        operator, self.width = self._operator, math.inf
        made, w = held.made, held.spare
        self._not_before = AGAIN * made
        if not operator.space.has_room(MORE_VECTORS + _OPERANDS, operator.size):
            return 0
        self.more_vectors = MORE_VECTORS
        before = operator.products
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if kept is None:
                begin_spread(operator.space, held)
            else:
                w[...] = kept.vectors["w"]
            course = Try(operator, held, min(most, limit))
            # Products that the first w may take: how long it takes tells what z will.
            self._enclose(held, course, max(_SHARE * made, _LEAST), clock, kept)
        if course.preconditioner is not None:
            self.more_vectors += course.preconditioner.more_vectors
        return operator.products - before

    def _enclose(self, held: Held, course: Try, soon: float, clock: Clock, kept: Kept | None) -> None:
        """Find w and z, and verify bounds around it; `width` is finite if they are."""
        x, y, w = held.x, held.y, held.spare
        xp, shape = self._operator.space.xp, x
        spread = Spread(self._operator, self._equation, self._change)
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
                loose = spread.at_first(held, y, course, min(course.left, soon), clock)
            elif loose is None:
                loose = spread.found(shape, y, w, course, course.left, clock)
            kept = None
            if loose is None:
                return
            recurrence = recurrence_of(self._equation, course, None, start, y)
            eta = self._approach(recurrence, y, w, loose, course, clock)
            if eta is None:
                return
            # Rounding errors are those of z, and large beside a shape that z has outgrown.
            if self._width(eta, loose) <= self._criterion.epsilon or self._stretch <= _OUTGROWN:
                self._accept(recurrence, x, y, w, eta, loose, held.positive)
                return
            shape = xp.maximum(recurrence.x, x)
            del recurrence

    def _approach(
        self, recurrence: Recurrence, y: Array, w: Array, loose: float, course: Try, clock: Clock
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
            xp.multiply(plain_residual(recurrence), y, out=spare)
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
        exhausted = eta <= self._noise()
        c = (eta + self._noise()) / (1.0 - loose)
        for _ in range(_GUESSES):
            width = verified_around(
                self._operator,
                self._criterion,
                x,
                y,
                recurrence.x,
                w,
                c,
                positive,
                recurrence.r,
                recurrence.spare,
            )
            if width is not None:
                if width <= (max(WIDEST, self._criterion.epsilon) if exhausted else self._criterion.epsilon):
                    x[...] = recurrence.r
                    self.width = width
                return
            c *= 2.0

    def _width(self, eta: float, loose: float) -> float:
        """Return how far bounds are apart for a residual."""
        return 2.0 * self._reach * (eta + self._noise()) / (1.0 - loose)

    def _noise(self) -> float:
        """Return the residual, beside the shape, that rounding alone may make."""
        return _ROUNDING * self._operator.slack * max(self._stretch, 1.0)
