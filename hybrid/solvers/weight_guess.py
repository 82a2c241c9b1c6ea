"""Guesses of upper bounds in the shape of what a step adds up to, over choices.

Let v > 0 and ``w >= v + A_i w`` for the choices i that matter: all of them for a maximum, those of a best
policy at x for a minimum.  With ``f(x) - x <= c v`` then ``f(x + c w) <= f(x) + c max_i A_i w <= x + c w``,
so that x + c w is an upper bound, and c w its distance from x.  For v = x it is relative to x.  Such a w
comes from iterates ``w_{k+1} = v + opt A_i w_k`` from v: as soon as they grow by v / 2 at most, 2 w_k is
one.
"""

from __future__ import annotations

import math

from hybrid.matrix.space.base import Criterion
from hybrid.matrix.space.bellman import Outcome
from hybrid.matrix.space.bounded_solution import width_of
from hybrid.matrix.space.choosing import Choosing
from hybrid.matrix.space.workspace import Array, Pair

_GUESSES = 4  # tries with a doubled c before more iterations are made
_LAST_GUESSES = 40  # the same where more iterations would change nothing
_INTERRUPTED_GUESSES = 8  # the same where somebody waits for the end
_CHECK_EVERY = 8  # steps between measurements that cost passes of their own


class WeightGuess:
    """See `hybrid.matrix.space.bellman.Guess`; the weights w serve until choices or precision change."""

    total: None = None

    def __init__(self, system: Choosing, criterion: Criterion) -> None:
        self._system, self._criterion = system, criterion
        self._guess = system.space.xp.empty(system.size)
        self._weights: Array | None = None
        self._policy: Array | None = None
        # What a search has come to that was given up: v, and the last iterate.
        self._begun: tuple[Array, Array] | None = None

    def difference(self, absolute: float, relative: float) -> float:
        """See `Guess.difference`."""
        return self._criterion.difference(absolute, relative)

    def restart(self) -> None:
        """See `Guess.restart`: weights do not depend on where iterates began."""

    @property
    def scratch(self) -> Array:
        """See `Guess.scratch`."""
        return self._guess

    def spare(self) -> Pair:
        """See `Guess.spare`."""
        self._weights = self._policy = self._begun = None
        return self._guess, self._system.space.xp.empty(self._system.size)

    def verified(
        self, x: Array, y: Array, made: int, outcome: Outcome, positive: Array | None, last: bool = False
    ) -> float | None:
        """See `Guess.verified`; the last time no new weights are looked for, which takes long."""
        system, space, xp = self._system, self._system.space, self._system.space.xp
        epsilon, difference = self._criterion.epsilon, outcome.difference
        size = 1.0
        if self._criterion.absolute:
            (size,) = (0.0,) if space.is_empty(system.size) else space.read(space.greatest(x))
        floor = 8.0 * system.slack * size
        exhausted = difference == 0.0 or difference <= floor or last
        weights = self._weights if last else self._guess_vector(x, outcome, exhausted)
        if weights is None:
            return difference / 16.0
        (reach,) = space.read(width_of(self._criterion, weights, x, space))
        if not math.isfinite(reach):
            # Some value was still zero when the weights were found, or begun.
            self._weights = None
            return difference / 16.0
        wanted = max(0.5 * epsilon / reach - floor, floor) if reach > 0 else epsilon
        c = 1.01 * (difference + floor) / max(1.0 - 8.0 * system.slack * reach, 0.5)
        if c * reach > epsilon and not exhausted:
            return wanted
        for _ in range(_INTERRUPTED_GUESSES if last else _LAST_GUESSES if exhausted else _GUESSES):
            xp.multiply(weights, c, out=self._guess)
            self._guess += x
            outcome.iterations += 1
            if system.verifies(self._guess, x, y, positive):  # lemma: park
                return None
            c *= 2.0
        self._weights = None
        return 0.25 * difference

    def _guess_vector(self, x: Array, outcome: Outcome, exhausted: bool) -> Array | None:
        """Return w for this x, or None if its iterates have not settled.

        Choices best so far may lead nowhere, and those of a maximum far: while x changes, no more steps are
        made at a time than have been made so far, about.  The search for a maximum goes on the next time.
        """
        system, space, xp = self._system, self._system.space, self._system.space.xp
        policy = None
        if not system.maximise:
            policy = system.choose(x)
            system.products += 1
            if self._policy is not None and not space.read(space.all(policy == self._policy))[0]:
                self._weights = None
            self._policy = policy
        if self._weights is not None:
            return self._weights
        if self._begun is None:
            v = xp.ones(system.size) if self._criterion.absolute else x.copy()
            w = v.copy()
        else:
            v, w = self._begun
        pair: Pair = w, xp.empty(system.size)
        self._begun = None
        rest, steps = self._criterion.max_iterations - outcome.iterations, outcome.iterations + 1000
        if exhausted:
            steps = rest if system.maximise else 4 * outcome.iterations + 1000
        limit = min(rest, steps)
        made, rising = 0, system.added_up(v, policy)
        while made < limit:
            if rising is not None:
                rising.sweep(pair, made, _CHECK_EVERY - 1)
                made += _CHECK_EVERY - 1
            for _ in range(_CHECK_EVERY if rising is None else 1):
                system.improve(pair[made % 2], pair[1 - made % 2], shape=v, policy=policy)
                made += 1
            system.products += _CHECK_EVERY
            w, before = pair[made % 2], pair[1 - made % 2]
            xp.subtract(w, before, out=before)
            (growth,) = space.read(width_of(self._criterion, before, v, space))
            if growth <= 0.5:
                outcome.iterations += made
                w *= 2.0
                self._weights = w
                return w
            if not math.isfinite(growth):
                break
        else:
            if system.maximise:
                self._begun = v, pair[made % 2]
        outcome.iterations += made
        return None
