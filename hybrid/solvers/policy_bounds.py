"""Bounds by policy iteration: IDR(s) solves the equations of best choices, one step over all certifies.

A policy that is best at z has the equations ``z = A z + b``, which IDR(s) (:mod:`hybrid.matrix.space.idr`)
brings some digits nearer to their solution than value iteration does in as many steps.  Then choices are
improved again, after a few steps over all of them, in which better ones spread: equations need not be solved
further than choices are known (M. Puterman and M. Shin, Modified policy iteration algorithms for discounted
Markov decision problems, Management Science 24(11), 1978).

What is certified is z, and not how it was found.  Let ``|f(z) - z| <= eta z``, and let w be so that
``opt A_i w + (1 - s) z <= w``, for a minimum with the rows of the last policy alone.  For c above ``eta / (1
- s)`` then ``f(z + c w) <= z + c w`` and ``f(z - c w) >= z - c w``; for a minimum if no choice that is
nearly as good as the policy's leads further.  One step of each with directed rounding verifies both
(:func:`hybrid.solvers.bounding.verify_enclosure`).
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from hybrid.base.shadow_signs import DIRECTIONS
from hybrid.matrix.space.base import Clock, Criterion, RecordedState
from hybrid.matrix.space.bellman import LowerIterationState, Outcome
from hybrid.matrix.space.bounded_solution import width_of
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.matrix.space.idr import IDR_VECTORS
from hybrid.matrix.space.repeated import STEPS
from hybrid.matrix.space.vector_space import Array, Pair, Preconditioner, Recurrence, System
from hybrid.solvers.bounding import DOUBLINGS, Guess, verify_enclosure
from hybrid.solvers.forecast import AGAIN, POLICIES, ForetoldLeap

# Guesses of upper bounds in the shape of what a step adds up to, over choices.
#
# Let v > 0 and ``w >= v + A_i w`` for the choices i that matter: all of them for a maximum, those of a best
# policy at x for a minimum.  With ``f(x) - x <= c v`` then ``f(x + c w) <= f(x) + c max_i A_i w <= x + c w``,
# so that x + c w is an upper bound, and c w its distance from x.  For v = x it is relative to x.  Such a w
# comes from iterates ``w_{k+1} = v + opt A_i w_k`` from v: as soon as they grow by v / 2 at most, 2 w_k is
# one.

_CHECK_EVERY = 8  # steps between measurements that cost passes of their own


class WeightGuess(Guess):
    """See `Guess`; the weights w serve until choices or precision change."""

    _system: ChoiceOperator

    def __init__(self, system: ChoiceOperator, criterion: Criterion) -> None:
        super().__init__(system, criterion)
        self._weights: Array | None = None
        self._policy: Array | None = None
        # State of a search that was given up: v, and the last iterate.
        self._begun: tuple[Array, Array] | None = None

    def spare(self) -> Pair:
        """See `Guess.spare`."""
        self._weights = self._policy = self._begun = None
        return super().spare()

    def verified(
        self, x: Array, y: Array, made: int, outcome: Outcome, positive: Array | None, last: bool = False
    ) -> float | None:
        """See `Guess.verified`; the last time no new weights are looked for, which takes long."""
        system, space = self._system, self._system.space
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
        # lemma: park
        is_verified, tries = self._doubled(x, y, weights, c, positive, last, exhausted)
        outcome.iterations += tries
        if is_verified:
            return None
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


# Policy iteration with equations that IDR(s) solves as far as choices are known.

OWN_VECTORS = 6
"""z, gains of a policy, ones, zeros, weights, and a policy with the one before."""

_SWEEPS = 10  # steps over all choices between two policies
_PATIENCE = 300  # products, or the share of one policy, without half of the residual gained
_DIGITS = 1e-2  # share of the residual that is left of the equations of one policy
_SOLUTIONS = 4  # that all products have to do for
_LOOSE = 0.5  # share of its right-hand side by which w may be off, for the policy that it is solved for
_OFF = 0.75  # and over all choices
_SPREADS = 4  # policies of w
_TURN = (DIRECTIONS + 2) * STEPS + 1  # products of a beginning and a cycle by steps
_PLAIN = 1e8  # times w, beside which no gain counts


class PolicyIteration:
    """Policy iteration from an iterate from below.

    Parameters
    ----------
    operator : ChoiceOperator
    iterate : LowerIterationState
        Its x is a lower bound; its state is told to records meanwhile.
    most : float
        Products after which it gives up; a quarter of them for one policy.
    clock : Clock
    change : float
        Difference that is reported meanwhile.
    by_steps : bool
        Whether to begin with several steps for a product.

    Attributes
    ----------
    z : array, shape (n,)
        Where it is; never below the iterate.
    by_steps : bool
        Whether recurrences have several steps for a product.
    more_vectors : int
        Held at once besides those of IDR(s).
    end : float
        What the operator may count of products.
    """

    def __init__(
        self,
        operator: ChoiceOperator,
        iterate: LowerIterationState,
        most: float,
        clock: Clock,
        change: float,
        by_steps: bool = False,
    ) -> None:
        self._operator, self._iterate, self._most, self._clock = operator, iterate, most, clock
        self._change, self._begun, self.end = change, operator.products, operator.products + most
        self.z: Array = iterate.x.copy()
        self._ones, self._zeros = operator.space.ones(operator.size), operator.zeros()
        self._gains, self._weights = operator.zeros(), operator.zeros()
        self._policy: Array | None = None
        self.by_steps, self._has_turned, self.more_vectors = by_steps, False, 0

    @property
    def made(self) -> int:
        """Products made."""
        return self._operator.products - self._begun

    def has_left(self, products: int) -> bool:
        """Tell whether so many products may still be made."""
        return self.made + products <= self._most

    def approach(self, target: float) -> float | None:
        """Solve for best policies until ``|f(z) - z| <= target * z``; return the residual, relative to z.

        Returns
        -------
        float or None
            None if it does not become so.
        """
        best, since, patience = math.inf, self.made, max(_PATIENCE, self._most / _SOLUTIONS)
        before, share = math.inf, 0.5
        while self.has_left(_SWEEPS + 2):
            eta = self._swept(target)
            if not math.isfinite(eta):
                return None
            if eta <= target:
                return eta
            if eta < 0.5 * best:
                best, since = eta, self.made
            elif self.made - since > patience:
                break
            is_same = self._choose()
            if is_same and eta > 0.5 * before:
                # Its equations seem solved, and yet a step over all choices changes as much as before.
                share *= _DIGITS
            # Rounding lets no residual become smaller than a slack, about.
            before, goal = eta, max(share * target, min(0.5 * target, self._operator.slack))
            if not is_same:
                goal = max(_DIGITS * eta, goal)
            self._operator.improve(self._zeros, self._gains, policy=self._policy)
            self._operator.products += 1
            found = self._solved(self._gains, self.z, self.z, goal)
            if found is None:
                return None
            self._operator.space.xp.maximum(found, self._iterate.x, out=self.z)
        return None

    def _swept(self, target: float) -> float:
        """Let better choices spread for some steps; return the last change of z, relative to it."""
        operator, eta = self._operator, math.inf
        for made in range(1, _SWEEPS + 1):
            operator.improve(self.z, self._gains)
            operator.products += 1
            if made % operator.space.stride == 0 or made == _SWEEPS:
                absolute, eta = operator.space.read(operator.changes)
                if not math.isfinite(absolute):
                    return math.inf
                if eta <= target:
                    break
            self.z, self._gains = self._gains, self.z
        return eta

    def _choose(self, values: Array | None = None) -> bool:
        """Take the policy that is best at z, or at other values; return whether it is the one before."""
        before, space = self._policy, self._operator.space
        self._policy = self._operator.choose(self.z if values is None else values)
        self._operator.products += 1
        return before is not None and space.read(space.all(before == self._policy)) == [1.0]

    def spread(self, shape: Array, w: Array) -> float | None:
        """Leave w with ``opt A_i w + (1 - s) shape <= w`` in its place; return s.

        Returns
        -------
        float or None
            None if none is found.

        Notes
        -----
        For a maximum w has a policy of its own, which takes all choices as far as they can go: the best at w
        times a number beside which no gain counts.
        """
        operator, xp = self._operator, self._operator.space.xp
        w[...] = shape
        if self._policy is None:
            self._choose()
        for _ in range(_SPREADS):
            off = self._improved(shape, w, None if operator.maximise else self._policy)
            if off is None or off <= _OFF:
                return off
            xp.maximum(w, self._gains, out=w)
            xp.multiply(w, _PLAIN, out=self._gains)
            self._choose(self._gains)
        return None

    def spread_around(self, shape: Array, w: Array, c: float) -> float | None:
        """Put another w in its place: of the policy that is best at ``z + c w``, for a minimum ``z - c w``.

        Where choices are worth about the same at z, that is the one of them which is worst for the bound: a
        step from there takes it.  Returns as `spread` does, for that policy.
        """
        off = None
        self._choose_beside(w, c)
        for _ in range(_SPREADS):
            off = self._improved(shape, w, self._policy)
            if off is None or not off <= _OFF:
                return None
            if self._choose_beside(w, c):
                break
        return off

    def _improved(self, shape: Array, w: Array, steps: Array | None) -> float | None:
        """Solve for w of the policy, and return by which share of `shape` it is off in a step.

        Parameters
        ----------
        steps : array, shape (n,), or None
            The policy of that step, whose result is left in `_gains`; None for all choices.

        Returns
        -------
        float or None
            Not negative; None if nothing is found.
        """
        operator, space = self._operator, self._operator.space
        found = self._solved(shape, w, shape, _LOOSE)
        if found is None or not space.read(space.least(found))[0] >= 0.0 or not self.has_left(2):
            return None
        w[...] = found
        operator.improve(w, self._gains, shape=shape, policy=steps)
        operator.products += 1
        space.xp.subtract(self._gains, w, out=found)
        found *= self._weights
        return max(space.read(space.greatest(found))[0], 0.0)

    def _choose_beside(self, w: Array, c: float) -> bool:
        """Take the policy that is best at ``z + c w``, for a minimum ``z - c w``; see `_choose`."""
        beside = self._gains
        self._operator.space.xp.multiply(w, c if self._operator.maximise else -c, out=beside)
        beside += self.z
        return self._choose(beside)

    def _solved(self, b: Array, start: Array, shape: Array, goal: float) -> Array | None:
        """Return what ``x = A x + b`` leads to, a residual of the shape times `goal` but for rounding.

        Returns
        -------
        array, shape (n,), or None
            None if that takes too long.
        """
        assert self._policy is not None
        operator, weights, space = self._operator, self._weights, self._operator.space
        space.xp.divide(1.0, shape, out=weights)
        space.xp.copyto(weights, 0.0, where=shape == 0.0)
        system = operator.of_policy(self._policy).system(self._ones, None)
        while True:
            recurrence = self._recurrence(system, b, start)
            if self._followed(recurrence, goal) is not None:
                return recurrence.x
            if self._has_turned or self._clock.is_ended or not self.has_left(_TURN):
                return None
            # Of a walk that takes long to its end the residual goes up and down by products, and falls by
            # several steps each. What has failed is not tried again.
            self.by_steps, self._has_turned = not self.by_steps, True
            del recurrence

    def _recurrence(self, system: System, b: Array, start: Array) -> Recurrence:
        """Return the recurrence, which has several steps for a product where products have failed."""
        if self.by_steps:
            steps = system.repeated()
            if self._has_room(steps):
                # Free memory may be fragmented.
                with contextlib.suppress(MemoryError):
                    found = steps.idr(b, start, 0.0, None, self._weights)
                    self.more_vectors = steps.more_vectors
                    return found
            self.by_steps, self._has_turned = False, True
        return system.sharing(b).idr(start, 0.0, None, self._weights)

    def _has_room(self, preconditioner: Preconditioner) -> bool:
        operator = self._operator
        return operator.space.has_room(IDR_VECTORS + preconditioner.more_vectors, operator.size)

    def _followed(self, recurrence: Recurrence, goal: float) -> float | None:
        """Iterate until the residual, weighed, is at most `goal`; see `follow`."""
        from hybrid.solvers.krylov_bounds import follow

        space, weights = self._operator.space, self._weights

        def share() -> float:
            space.xp.multiply(recurrence.plain_residual(), weights, out=recurrence.spare)
            return max(map(abs, space.read(*space.extremes(recurrence.spare))))

        return follow(
            self._operator,
            recurrence,
            share,
            lambda now: now <= goal,
            lambda now: self._change,
            min(self._most / _SOLUTIONS, self._most - self.made),
            self._clock,
            self._iterate.state,
        )


MORE_VECTORS = IDR_VECTORS + OWN_VECTORS + 2
"""Vectors held besides those of the iteration: the recurrence's, those of a course, a shape and a bound."""

_SETTLED = 0.1  # relative change of a step beyond which no policy is worth solving for
_PRICE = 2.0  # of a product of IDR(s) in steps over choices
_ROUGH = 1e-3  # residual of z from which w is looked for
_MARGIN = 0.4  # of epsilon that half of the width may take
_TIED = 4.0  # times c, within which choices count as the best ones for another w
_ROUNDING = 3.0  # slacks: two for a step rounded in one direction, and what the residual is off by


class PolicyBounds(ForetoldLeap):
    """Finds both bounds at once; see :class:`hybrid.matrix.space.bellman.BoundAccelerator`.

    Parameters
    ----------
    operator : ChoiceOperator
        With `of_policy`.
    criterion : Criterion
    always : bool
        Whether to begin as soon as that is possible.
    """

    def __init__(self, operator: ChoiceOperator, criterion: Criterion, always: bool) -> None:
        super().__init__(criterion, always, _PRICE, _SETTLED, POLICIES)
        self._operator, self._by_steps = operator, False

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Try to find bounds; return the products made; see `BoundAccelerator.solve`.

        Notes
        -----
        A run that goes on where another one was in a try begins the try again.
        """
        operator, self.width = self._operator, math.inf
        self._not_before = AGAIN * iterate.made
        if not operator.space.has_room(MORE_VECTORS, operator.size):
            return 0
        course = PolicyIteration(operator, iterate, min(most, limit), clock, self._change, self._by_steps)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            self._enclose(iterate, course)
        self._by_steps, self.more_vectors = course.by_steps, MORE_VECTORS + course.more_vectors
        return course.made

    def _enclose(self, iterate: LowerIterationState, course: PolicyIteration) -> None:
        """Find z and w, and verify bounds around it; `width` is finite if they are close enough."""
        operator, criterion, w = self._operator, self._criterion, iterate.spare
        xp = operator.space.xp
        if course.approach(_ROUGH) is None:
            return
        shape = xp.maximum(course.z, iterate.x)
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
        width = self._verified(iterate, course, w, c, bound, shape)
        if width is None or width > criterion.epsilon:
            again: float | None = loose
            if width is None:
                # Choices that are worth about as much as the best ones lead further than w.
                xp.maximum(course.z, iterate.x, out=shape)
                again = course.spread_around(shape, w, _TIED * c)
            eta = None if again is None else course.approach(max(wanted / _TIED, noise))
            if again is None or eta is None:
                return
            width = self._verified(iterate, course, w, 2.0 * (eta + noise) / (1.0 - again), bound, shape)
        if width is not None and width <= criterion.epsilon:
            iterate.x[...], self.width = bound, width

    def _verified(
        self,
        iterate: LowerIterationState,
        course: PolicyIteration,
        w: Array,
        c: float,
        bound: Array,
        scratch: Array,
    ) -> float | None:
        """Verify bounds around z, with c or more; return their distance, the lower one in `bound`."""
        x, y, z, positive = iterate.x, iterate.y, course.z, iterate.positive
        return verify_enclosure(
            self._operator, self._criterion, x, y, z, w, c, positive, bound, scratch, DOUBLINGS, course.end
        )
