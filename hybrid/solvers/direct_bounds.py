"""Bounds around the solution of equations written out and factorised: long walks in narrow models.

A chain that walks up and down without drift takes as many steps as it has states, squared, and a Krylov
method does not help where its residual does not fall; the equations have factors with little fill all the
same.  These are made as soon as iterating has taken as long as they are foretold to take: as far as that is
right, an answer takes at most twice the time of the quicker of the two.  Few equations may be solved first.

Let ``|f(z) - z| <= eta v`` and ``v + A_i w <= w + s v`` for the choices i that matter.  For c above ``eta /
(1 - s)`` then ``f(z + c w) <= z + c w`` and ``f(z - c w) >= z - c w``.  One step of each with directed
rounding verifies both (:func:`hybrid.solvers.bounding.verify_enclosure`); the bounds do not rest on the
factors.

Over choices z comes from policy iteration (R. Howard, Dynamic Programming and Markov Processes, 1960).  w is
that of the last policy for a minimum, and for a maximum of the one that goes furthest.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from hybrid.matrix.space.base import Clock, Criterion, RecordedState
from hybrid.matrix.space.bellman import BellmanOperator, BoundAccelerator, LowerIterationState
from hybrid.matrix.space.bounded_solution import WIDEST
from hybrid.matrix.space.choice_operator import NO_CHOICE, ChoiceOperator
from hybrid.matrix.space.direct import FEW, FactoredSystem, nanoseconds_to_write
from hybrid.matrix.space.vector_space import Array
from hybrid.solvers.bounding import DOUBLINGS, verify_enclosure
from mtbdd.base.memory import free_memory_bytes

_STEP = 5e4  # nanoseconds of a step, whatever its size; one more for every entry
_VECTORS = 8  # of a step, whose elements take as long as entries
_SHARE = 0.25  # of the steps' time, that it may take to write equations out
_ROOM = 0.25  # of the free memory, for factors
_POLICIES = 200  # of an iteration, at most
_BEFORE = 50  # steps from which a first policy comes that takes few others to follow
_SOON = 1000  # steps, for policies' equations that come after no more no other try is made
_SPREAD = 16  # steps in which better choices spread before one policy follows another
_SAME = 1e-6  # of epsilon, relative gain for which no choice is taken in the place of another
_LOOSE = 0.75  # share of its right-hand side by which w may be off
_PLAIN = 1e8  # times w, beside which no gain counts
_TIED = 4.0  # times c, within which choices count as the best ones for another w
_ROUNDING = 3.0  # slacks: two for a step rounded in one direction, and what the residual is off by
_EXHAUSTED = 4.0  # times what rounding may make of a residual, below which it falls no more
_DEARER = 8.0  # times the first policy's factors that those of a later one may take


class DirectBounds(BoundAccelerator):
    """Both bounds from factors, where these pay; see :class:`hybrid.matrix.space.bellman.BoundAccelerator`.

    Parameters
    ----------
    operator : BellmanOperator
        Its equations can be written out: see `BellmanOperator.written`.
    criterion : Criterion
    otherwise : BoundAccelerator, optional
        What may take over besides.
    first : bool
        Whether few equations are solved before steps have been made.
    """

    def __init__(
        self,
        operator: BellmanOperator,
        criterion: Criterion,
        otherwise: BoundAccelerator | None,
        first: bool = False,
    ) -> None:
        super().__init__(otherwise)
        self._operator, self._criterion = operator, criterion
        self._not_before = 0.0
        self._are_few = first and (operator.size <= FEW or operator.solves_policies)
        self._equations: FactoredSystem | None = None
        self._policy: Array | None = None  # that of the equations, over choices

    def is_asked(self, made: int, difference: float) -> bool:
        """See `BoundAccelerator.is_asked`."""
        is_own = self._are_few or self._is_due or made >= self._not_before
        return is_own or super().is_asked(made, difference)

    def budget(self, iterate: LowerIterationState, difference: float) -> float:
        """See `BoundAccelerator.budget`."""
        if self._are_few and (self._operator.size <= FEW or iterate.made >= _BEFORE):
            # Once more after some steps where it fails: another policy may do.
            self._are_few, self._equations = False, self._written(iterate)
            self._is_due = self._equations is not None
        elif iterate.made >= self._not_before and self._pays(iterate):
            self._not_before, self._is_due = math.inf, True
        if self._is_due:
            return math.inf
        # Measured in any case, for its forecasts.
        others = super().budget(iterate, difference)
        is_awaited = isinstance(self._operator, ChoiceOperator) and self._not_before < _SOON
        return 0.0 if is_awaited else others

    def _pays(self, iterate: LowerIterationState) -> bool:
        """Whether the steps made have taken as long as factors will; until then, when to ask again."""
        operator, made, entries = self._operator, iterate.made, self._operator.entries
        assert entries is not None
        step = _STEP + entries + _VECTORS * operator.size
        if self._equations is None:
            self._not_before = nanoseconds_to_write(operator.size, entries) / (step * _SHARE)
            if made < self._not_before:
                return False
            self._equations = self._written(iterate)
        if self._equations is None or self._equations.nbytes > _ROOM * free_memory_bytes():
            self._not_before = math.inf
            return False
        self._not_before = self._equations.nanoseconds / step
        return made >= self._not_before

    def _written(self, iterate: LowerIterationState) -> FactoredSystem | None:
        """Return the equations, over choices those of the best at the iterate; None without room."""
        operator = self._operator
        with contextlib.suppress(MemoryError):
            if isinstance(operator, ChoiceOperator):
                self._policy = operator.choose(iterate.x)
                operator.products += 1
            return operator.written(self._policy)
        return None

    def solve(
        self,
        iterate: LowerIterationState,
        most: float,
        limit: int,
        clock: Clock,
        kept: RecordedState | None = None,
    ) -> int:
        """Try to find bounds; return the products made; see `BoundAccelerator.solve`."""
        operator, self.width = self._operator, math.inf
        if not self._is_due or kept is not None:
            return super().solve(iterate, most, limit, clock, kept)
        (equations, self._equations), self._is_due = (self._equations, None), False
        assert equations is not None
        before = operator.products
        criterion, end = self._criterion, before + limit
        solution = _Solution(operator, criterion, iterate, equations, self._policy, end, clock)
        x, y = iterate.x, iterate.y
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for z, w, c, positive in solution.guesses():
                bound, out = np.empty_like(z), np.empty_like(z)
                # lemma: around-a-guess, next-to-underflow
                width = verify_enclosure(
                    operator, criterion, x, y, z, w, c, positive, bound, out, DOUBLINGS, end
                )
                if width is not None and width <= solution.closest:
                    iterate.x[...] = bound  # lemma: around-a-guess
                    self.width = width
                    break
        self.more_vectors = solution.vectors
        return min(operator.products - before, limit)


class _Solution:
    """One solution by factors; over choices by those of one policy after another.

    Parameters
    ----------
    operator, criterion, held, clock
        As for `DirectBounds`.
    equations : FactoredSystem
    policy : array, shape (n,), uint16, or None
        Whose equations they are; None of a chain.
    end : int
        What the operator may count of products.
    """

    def __init__(
        self,
        operator: BellmanOperator,
        criterion: Criterion,
        iterate: LowerIterationState,
        equations: FactoredSystem,
        policy: Array | None,
        end: int,
        clock: Clock,
    ) -> None:
        self._operator, self._criterion, self._iterate, self._clock = operator, criterion, iterate, clock
        self._equations, self._policy, self._end = equations, policy, end
        self._dearest = _DEARER * max(equations.nanoseconds, nanoseconds_to_write(operator.size, 0))
        self.closest = criterion.epsilon
        self._same = max(_ROUNDING * operator.slack, _SAME * criterion.epsilon)
        self._choices = operator if isinstance(operator, ChoiceOperator) else None
        self.vectors = _VECTORS + math.ceil(equations.nbytes / (8 * max(operator.size, 1)))

    def guesses(self) -> Iterator[tuple[Array, Array, float, Array | None]]:
        """Yield z, w, the least c, and where values are positive if that matters; see `verify_enclosure`.

        Sets `closest`. The first guess may do, and the next one is made if it does not: on long ways choices
        matter that are hardly better.
        """
        iterate, operator, noise = self._iterate, self._operator, _ROUNDING * self._operator.slack
        once = self._choices is None or self._same <= noise
        for same in (self._same,) if once else (self._same, noise):
            self._same = same
            z = self._values()
            if z is None:
                continue
            positive = self._positive(z)
            if positive is None and operator.is_near_underflow(z):  # lemma: next-to-underflow
                continue
            shape = np.maximum(z, iterate.x)
            eta = self._change(z, shape)
            if eta <= _EXHAUSTED * noise:
                # Rounding keeps bounds from being closer.
                self.closest = max(WIDEST, self.closest)
            found = self._weights(shape)
            if found is None:
                continue
            w, loose = found
            c = (eta + noise) / (1.0 - loose)
            yield z, w, c, positive
            if self._choices is not None:
                # Choices that are worth about as much as the best ones lead further than w.
                found = self._weights_beside(z, shape, w, _TIED * c)
                if found is not None:
                    w, loose = found
                    yield z, w, 2.0 * (eta + noise) / (1.0 - loose), positive

    def _values(self) -> Array | None:
        """Return z; None where it cannot be had."""
        values = self._solved(self._equations.b)
        if self._choices is None:
            return values
        for _ in range(_POLICIES):
            if values is None or self._is_over() or self._choose(self._spread(values)):
                return values
            before, values = values, self._solved(self._equations.b)
            if values is not None and self._changes_little(before, values):
                return values
        return None

    def _spread(self, values: Array, beside: Array | None = None) -> Array:
        """Return values after some steps over all choices, fewer where these change little.

        Each step adds what is `beside`.
        """
        operator, pair = self._choices, (values, np.empty_like(values))
        assert operator is not None
        for _ in range(_SPREAD):
            operator.improve(*pair)
            operator.products += 1
            pair = pair[1], pair[0] if pair[0] is not values else np.empty_like(values)
            if beside is not None:
                np.maximum(pair[0] + beside, 0.0, out=pair[0])
            elif operator.changes[1] <= self._same:
                break
        return pair[0]

    def _changes_little(self, before: Array, values: Array) -> bool:
        """Whether a policy is worth no more than the one before, but for rounding: they may go in circles."""
        gained = values - before if self._is_maximum else before - values
        return bool((gained <= _ROUNDING * self._operator.slack * values).all())

    def _choose(self, values: Array) -> bool:
        """Take the equations of the policy that is best at some values; return whether they are the same.

        Choices of the one before that are hardly worse stay: of equal ones rounding would take another.
        """
        operator, before = self._choices, self._policy
        assert operator is not None
        policy = operator.choose(values)
        operator.products += 1
        if before is not None:
            best, own = np.empty_like(values), np.empty_like(values)
            operator.improve(values, best)
            operator.improve(values, own, policy=before)
            operator.products += 2
            policy = np.where(np.abs(best - own) <= self._same * best, before, policy)
            if np.array_equal(before, policy):
                return True
        self._policy, self._equations = policy, operator.written(policy)
        return False

    def _solved(self, b: Array) -> Array | None:
        """Return the solution for a right-hand side; None where elements are negative or not finite.

        None as well where factors take far more than was foretold for the first policy.
        """
        if self._equations.nanoseconds > self._dearest:
            return None
        if self._policy is not None:
            b = np.where(self._policy == NO_CHOICE, 0.0, b)
        found = self._equations.solve(b)
        self._operator.products += 1
        if found is not None and self._choices is not None:
            self._choices.join(found)
        return found if found is not None and bool(((found >= 0.0) & (found < np.inf)).all()) else None

    def _change(self, z: Array, shape: Array) -> float:
        """Return the greatest change of z in a step, beside the shape."""
        out = np.empty_like(z)
        self._operator.down.sweep((z, out), 0, 1)
        self._operator.products += 1
        out -= z
        return _greatest(np.abs(out), shape)

    def _weights(self, shape: Array) -> tuple[Array, float] | None:
        """Return w, and by which share of the shape it is off; None if none is found."""
        furthest = self._choices if self._is_maximum else None
        for _ in range(_POLICIES):
            right = self._equations.diagonal * shape
            w = self._solved(right)
            if w is None:
                return None
            if furthest is None:
                loose = _greatest(np.abs(self._equations.residual(w, right)), right)
                return (w, loose) if loose <= _LOOSE else None
            out = np.empty_like(w)
            furthest.improve(w, out, shape=shape)
            furthest.products += 1
            loose = _greatest(out - w, shape)
            if loose <= _LOOSE:
                return w, max(loose, 0.0)
            if self._is_over() or self._choose(_PLAIN * w):
                return None
        return None

    def _weights_beside(self, z: Array, shape: Array, w: Array, c: float) -> tuple[Array, float] | None:
        """Return w of the policy best at ``z + c w``, for a minimum ``z - c w``; as `_weights` does."""
        beside = (c if self._is_maximum else -c) * shape
        for _ in range(_POLICIES):
            if self._choose(self._spread(np.maximum(z + (c if self._is_maximum else -c) * w, 0.0), beside)):
                return w, 0.0
            found = self._solved(self._equations.diagonal * shape)
            if found is None or self._is_over():
                return None
            w = found
        return None

    def _is_over(self) -> bool:
        """Whether the iteration is to be ended, or has no products left."""
        products = self._operator.products
        return self._clock.tick(products, math.inf) or products >= self._end

    def _positive(self, z: Array) -> Array | None:
        """Return where values are positive if some are near to underflow; None if one is too near.

        Lemma: next-to-underflow (docs/bounds.md).
        """
        operator, clock, positive = self._operator, self._clock, self._iterate.positive
        if positive is not None or not operator.is_near_underflow(z):
            return positive
        positive = operator.positive(lambda: clock.tick(operator.products, math.inf))
        return positive if np.min(z, where=positive > 0.0, initial=math.inf) > operator.floor else None

    @property
    def _is_maximum(self) -> bool:
        return self._choices is not None and self._choices.maximise


def _greatest(change: Array, shape: Array) -> float:
    """Return the greatest of a change relative to a shape, where that is not zero."""
    relative = np.divide(change, shape, out=np.zeros_like(change), where=shape > 0.0)
    return float(relative.max()) if relative.size else 0.0
