"""Bounds by policy iteration: IDR(s) solves the equations of best choices, one step over all certifies.

A policy that is best at z has the equations ``z = A z + b``, which IDR(s) (:mod:`hybrid.matrix.space.idr`)
brings some digits nearer to their solution than value iteration does in as many steps.  Then choices are
looked at again, after a few steps over all of them, in which better ones spread: equations need not be solved
further than choices are known (M. Puterman and M. Shin, Modified policy iteration algorithms for discounted
Markov decision problems, Management Science 24(11), 1978).

What is certified is z, and not how it was found.  Let ``|f(z) - z| <= eta z``, and let w be so that
``opt A_i w + (1 - s) z <= w``, for a minimum with the rows of the last policy alone.  Then z + c w goes down
in a step, and z - c w goes up, for c above ``eta / (1 - s)``; for a minimum if no choice that is nearly as
good as the policy's leads further.  One step of each, with rounding directed, tells whether that is so
(:func:`hybrid.solvers.around.verified_around`).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion
from hybrid.matrix.space.bellman import Held
from hybrid.matrix.space.bounded_solution import width_of
from hybrid.matrix.space.choosing import Choosing
from hybrid.matrix.space.idr import IDR_VECTORS
from hybrid.matrix.space.record import Kept
from hybrid.matrix.space.workspace import Array
from hybrid.solvers.around import verified_around
from hybrid.solvers.forecast import AGAIN, Forecast
from hybrid.solvers.policy_course import OWN_VECTORS, PolicyCourse

MORE_VECTORS = IDR_VECTORS + OWN_VECTORS + 2
"""Vectors held besides those of the iteration: the recurrence's, those of a course, a shape and a bound."""

_LOOK = 10  # steps between two looks at the pace
_SETTLED = 0.1  # relative change of a step beyond which no policy is worth solving for
_PRICE = 2.0  # of a product of IDR(s) in steps over choices
_REST = 2000  # steps that have to be left for a try, those of the guess included
_LEFT = 0.25  # of the steps made, that have to be left until values are found
_BLIND = 0.5  # of the steps made, for a try that no pace speaks for
_ROUGH = 1e-3  # residual of z from which w is looked for
_MARGIN = 0.4  # of epsilon that half of the width may take
_GUESSES = 5  # tries with a doubled c
_TIED = 4.0  # times c, within which choices count as the best ones for another w
_ROUNDING = 3.0  # slacks: two for a step rounded in one direction, and what the residual is off by


class PolicyBounds:
    """Finds both bounds at once; see :class:`hybrid.matrix.space.bellman.Leap`.

    Parameters
    ----------
    operator : Choosing
        With `of_policy`.
    criterion : Criterion
    always : bool
        Whether to begin as soon as that is possible.
    """

    from_anywhere: ClassVar[bool] = False

    def __init__(self, operator: Choosing, criterion: Criterion, always: bool) -> None:
        self._operator, self._criterion, self._always = operator, criterion, always
        self._forecast = Forecast(criterion.epsilon, _PRICE, criterion.max_iterations)
        self._looked = self._not_before = 0
        self._change = math.inf
        self.width, self.more_vectors = math.inf, 0
        self._by_steps = False

    def begin(self, made: int) -> None:
        """See `Leap.begin`."""
        self._forecast.begun = made

    def budget(self, held: Held, difference: float) -> float:
        """Return the products that a try is worth now, 0 if none; a forecast in ten steps.

        Once values are found the guess of an upper bound takes about as many steps again.
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
        if not self._forecast.contracts:
            budget = self._forecast.budget(left)
            # The equations of a policy take a while, also where no pace speaks for them.
            return max(budget, _BLIND * made) if budget > 0.0 else 0.0
        rest = 2.0 * left + made
        is_long = rest >= _REST and left >= _LEFT * made
        return rest / _PRICE if is_long and math.isfinite(rest) else 0.0

    def solve(self, held: Held, most: float, limit: int, clock: Clock, kept: Kept | None = None) -> int:
        """Try to find bounds; return the products made; see `Leap.solve`.

        Notes
        -----
        A run that goes on where another one was in a try begins the try again.
        """
        operator, self.width = self._operator, math.inf
        self._not_before = AGAIN * held.made
        if not operator.space.has_room(MORE_VECTORS, operator.size):
            return 0
        course = PolicyCourse(operator, held, min(most, limit), clock, self._change, self._by_steps)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._enclose(held, course)
        self._by_steps, self.more_vectors = course.by_steps, MORE_VECTORS + course.more_vectors
        return course.made

    def _enclose(self, held: Held, course: PolicyCourse) -> None:
        """Find z and w, and verify bounds around it; `width` is finite if they are close enough."""
        operator, criterion, w = self._operator, self._criterion, held.spare
        xp = operator.space.xp
        if course.approach(_ROUGH) is None:
            return
        shape = xp.maximum(course.z, held.x)
        loose = course.spread(shape, w)
        if loose is None:
            return
        (reach,) = operator.space.read(width_of(criterion, w, course.z, operator.space))
        noise = _ROUNDING * operator.slack
        wanted = _MARGIN * criterion.epsilon * (1.0 - loose) / reach - noise if reach > 0.0 else noise
        eta = course.approach(max(wanted, noise))
        if eta is None:
            return
        c, bound = (eta + noise) / (1.0 - loose), xp.empty_like(shape)
        width = self._verified(held, course, w, c, bound, shape)
        if width is None or width > criterion.epsilon:
            again: float | None = loose
            if width is None:
                # Choices that are worth about as much as the best ones lead further than w.
                xp.maximum(course.z, held.x, out=shape)
                again = course.spread_around(shape, w, _TIED * c)
            eta = None if again is None else course.approach(max(wanted / _TIED, noise))
            if again is None or eta is None:
                return
            width = self._verified(held, course, w, 2.0 * (eta + noise) / (1.0 - again), bound, shape)
        if width is not None and width <= criterion.epsilon:
            held.x[...], self.width = bound, width

    def _verified(
        self, held: Held, course: PolicyCourse, w: Array, c: float, bound: Array, scratch: Array
    ) -> float | None:
        """Verify bounds around z, with c or more; return their distance, the lower one in `bound`."""
        for _ in range(_GUESSES):
            if not course.has_left(2):
                return None
            width = verified_around(
                self._operator, self._criterion, held.x, held.y, course.z, w, c, held.positive, bound, scratch
            )
            if width is not None:
                return width
            c *= 2.0
        return None
