"""Forecasts of an iteration's length, and the rule when a Krylov method is attempted.

An iteration that contracts has differences ``d(k) ~ rho^k``, and their logarithms forecast the steps that
are left. Before it contracts, values grow like a power of k, ``d(k) ~ p / k``: some rows have not reached
their end yet (a queue that fills, a file that is sent). A forecast from these logarithms is always far, and
always wrong. An attempt of a Krylov method mostly fails there, because its k products reach no further than
k steps. The reciprocals distinguish the two without a product. ``1 / d`` grows by the same amount in every
step while values grow like a power, and by more and more once the iteration contracts. Where a front has
just passed, it jumps, which is no rate either.

:class:`Rule` decides: the cost of finishing by steps against that of an attempt.
"""

from __future__ import annotations

import bisect
import math

from hybrid.matrix.space.base import Criterion, LinearOperator
from hybrid.matrix.space.bellman import BoundAccelerator, LowerIterationState
from mtbdd.base.communicator import Communicator
from mtbdd.base.records import Record

# Cost of a Krylov method's product, in steps of an iteration, by the memory traffic of both.
#
# A product reads an element of a vector for every entry of a row. The rest of a method is passes over
# vectors, each of which reads or writes an element for every row. Both are bound by memory, so that elements
# moved in a row are a measure of time, on the host and on a device. No clock is read: runs repeat.

SUMMED_STEPS = 8.0
"""Elements that a step from below moves in a row: relaxation 5, the sum of the iterates 3."""

AVERAGE_STEPS = 6.0
"""The same of a step of an average: relaxation 5, and a tenth of the measurement of its bounds."""

IDR_PRODUCT = 24.0
"""Of IDR(4): in a cycle of five products 20 for images, 10 to aim, 53 to settle, 12 for sums and the step; a
quarter more, because an attempt may fail."""

BICGSTAB_PRODUCT = 16.0
"""Of IDR(1), BiCGStab: in a cycle of two 12 for images, 4 to aim, 6 to settle, 11 for sums and the step."""

_USUAL = 8.0  # entries of a row where the matrix does not count them


def traffic_ratio(matrix: LinearOperator, communicator: Communicator, product: float, step: float) -> float:
    """Return the time of a Krylov method's product in steps of an iteration.

    Parameters
    ----------
    matrix : LinearOperator
        Its entries count if it has `nnz`, those of the own rows.
    communicator : Communicator
        All processes call this together, with the same result.
    product, step : float
        Elements moved in a row besides those of the product with the matrix.
    """
    own = getattr(matrix, "nnz", None)
    rows, entries, unknown = communicator.total([matrix.shape[0], own or 0, own is None])
    mean = _USUAL if unknown or not rows else entries / rows
    return float((mean + product) / (mean + step))


AGAIN = 4
"""Ratio of the products before an attempt to those before the failed one."""

_SLOPE = 3  # measurements over which the pace is taken
_THIRDS = (1 / 2, 2 / 3, 5 / 6, 1.0)  # of the steps: the ends of three equal stretches, the last half
_FASTER = 1.03  # times the growth of the stretch before at which 1 / d has begun to bend
_JUMP = 4.0  # times the fall of log d in the stretch before beyond which it has jumped
_THROUGHOUT = 0.125  # of the steps, for which it has to have bent
_OF_LIMIT = 0.1  # of the limit of products, after which a try is late in any case


class Rule(Record):
    """When an iteration gives way to a try: the cost of finishing by steps against that of a try.

    With k steps made and r foretold to be left, where a product of a try takes the time of p steps,

        ``finish = r + guess * (r + k)``  and  ``attempt = p * (least + more)``:

    a try is due where ``finish >= attempt``.  Where differences contract r is known, and the try may take
    r products.  Elsewhere r shows only that the end is far: an attempt is due from ``k = late`` on,
    and may take ``share * k`` products.  It may take `room` products in any case.

    Attributes
    ----------
    guess : float
        Steps that the guess of an upper bound takes, in those until values are found.
    least : float
        Products that a try takes where it is quick, with its beginning and its bounds.
    late : int
        Steps after which a try is made that no pace speaks for; at most a tenth of the limit.
    share : float
        Of the steps made, that such a try may take; all of them where the limit makes it sooner.
    room : float
        Products that any try may take.
    """

    guess: float
    least: float
    late: int
    share: float
    room: float

    def finish(self, made: int, left: float) -> float:
        """Return the steps that it takes until bounds are found."""
        return left + self.guess * (left + made) if math.isfinite(left) else math.inf


CHAINS = Rule(guess=0.0, least=100.0, late=10_000, share=0.125, room=0.0)
"""Of affine equations: the sum of the iterates guesses a bound, and no try is quick before a pace is seen."""

POLICIES = Rule(guess=1.0, least=1000.0, late=500, share=4.0, room=2000.0)
"""Of equations over choices: most of what a try takes are its first policies, wherever it begins."""


class Forecast:
    """Predicts, from numbers that shrink geometrically, how many more products an iteration takes.

    Parameters
    ----------
    epsilon : float
        The number that ends it.
    traffic_ratio : float
        Time of a product of the Krylov method in products of the iteration, with all that goes with either.
    most : int
        Products that end the iteration in any case.
    begun : int
        Products made before the first that is followed: by an earlier run, whose measurements are not known.
    rule : Rule
        Of the tries.

    Attributes
    ----------
    begun : int

    Notes
    -----
    Nothing is multiplied, and no clock is read: the same numbers give the same answers.
    """

    def __init__(
        self,
        epsilon: float,
        traffic_ratio: float = 1.0,
        most: int = 100_000,
        begun: int = 0,
        rule: Rule = CHAINS,
    ) -> None:
        self._target, self._price, self._rule = math.log(epsilon), traffic_ratio, rule
        self._late = min(rule.late, int(_OF_LIMIT * most))
        self.begun = begun
        self._seen: list[tuple[int, float]] = []
        self._least = math.inf
        self._since = math.inf  # products since which every measurement shows a contraction

    def left(self, products: int, difference: float, target: float = math.inf) -> float:
        """Note a measurement; return the products left, 0 while there is no forecast.

        Infinite where the numbers do not shrink.  `target` ends the iteration where it is below `epsilon`.
        """
        if not 0.0 < difference < math.inf:
            return 0.0
        self._seen.append((products, math.log(difference)))
        self._least = min(self._least, self._seen[-1][1])
        self._since = min(self._since, products) if self._bends() else math.inf
        if len(self._seen) <= _SLOPE:
            return 0.0
        (begin, before), (end, now) = self._seen[-1 - _SLOPE], self._seen[-1]
        if before <= now:
            return math.inf
        wanted = min(self._target, math.log(target)) if target > 0.0 else -math.inf
        return max(now - wanted, 0.0) * (end - begin) / (before - now)

    def is_long(self, left: float, more: float = 0.0) -> bool:
        """Return whether finishing by steps takes longer than a quick attempt; see `Rule`.

        Parameters
        ----------
        left : float
            The forecast of the last measurement.
        more : float
            Products that the method makes beforehand.
        """
        made = self._seen[-1][0] if self._seen else 0
        return left > 0.0 and self._rule.finish(made, left) >= (self._rule.least + more) * self._price

    def budget(self, left: float, more: float = 0.0) -> float:
        """Return the products that a try may make now, 0 if none is to be made; see `Rule`.

        Parameters
        ----------
        left, more : float
            As for `is_long`.
        """
        if not self.is_long(left, more):
            return 0.0
        rule, made = self._rule, self._seen[-1][0]
        if self.contracts:
            return max(left, rule.room)
        if made < self._late:
            return 0.0
        return max(made * (rule.share if self._late == rule.late else max(rule.share, 1.0)), rule.room)

    @property
    def contracts(self) -> bool:
        """Whether the last eighth of the steps agrees throughout; a period bends them now and then."""
        return bool(self._seen) and self._since <= self._after(1.0 - _THROUGHOUT)

    def _bends(self) -> bool:
        """Whether reciprocals grow faster in each third of the last half of the steps, without a jump."""
        if self._seen[0][0] > self._after(0.5):
            return False
        ends = [self._reciprocal(self._after(share)) for share in _THIRDS]
        if not min(ends) > 0.0:  # differences so far apart fell in a jump
            return False
        grown = [after - before for before, after in zip(ends, ends[1:], strict=False)]
        fallen = [math.log(after / before) for before, after in zip(ends, ends[1:], strict=False)]
        bends = all(0.0 < _FASTER * before <= after for before, after in zip(grown, grown[1:], strict=False))
        return bends and all(now <= _JUMP * before for before, now in zip(fallen, fallen[1:], strict=False))

    def _after(self, share: float) -> float:
        """Return the products after a share of those that were followed."""
        return self.begun + share * (self._seen[-1][0] - self.begun)

    def _reciprocal(self, products: float) -> float:
        """Return ``1 / d`` after so many products, between two measurements by a straight line.

        In units of the greatest one: doubles hold the reciprocals of not all doubles.
        """
        place = bisect.bisect_left(self._seen, (products,))
        if place == 0:
            return math.exp(self._least - self._seen[0][1])
        (begin, before), (end, now) = self._seen[place - 1], self._seen[min(place, len(self._seen) - 1)]
        low, high = math.exp(self._least - before), math.exp(self._least - now)
        return low + (high - low) * (products - begin) / (end - begin)


_LOOK = 10  # steps between two measurements of the rate


class ForetoldLeap(BoundAccelerator):
    """An accelerator that a forecast of the steps left speaks for.

    Parameters
    ----------
    criterion : Criterion
    always : bool
        Whether to begin as soon as that is possible.
    price, rule
        As for `Forecast`.
    settled : float
        Relative change of a step beyond which no try is worth it.
    """

    def __init__(
        self, criterion: Criterion, always: bool, traffic_ratio: float, settled: float, rule: Rule = CHAINS
    ) -> None:
        super().__init__()
        self._criterion, self._always, self._settled = criterion, always, settled
        self._forecast = Forecast(criterion.epsilon, traffic_ratio, criterion.max_iterations, rule=rule)
        self._looked = self._not_before = 0
        self._change = math.inf  # of the last step before

    def begin(self, made: int) -> None:
        """See `BoundAccelerator.begin`."""
        self._forecast.begun = made

    def is_asked(self, made: int, difference: float) -> bool:
        """See `BoundAccelerator.is_asked`."""
        return made - self._looked >= _LOOK and difference < self._settled

    def budget(self, held: LowerIterationState, difference: float) -> float:
        """Return the products that a try is worth now, 0 if none; a forecast in ten steps.

        Parameters
        ----------
        held : LowerIterationState
            Its `spare` and `y` are overwritten; y is the iterate before.
        difference : float
            Greatest relative change of the last step.
        """
        made = held.made
        if not self.is_asked(made, difference):
            return 0.0
        self._looked, self._change = made, difference
        left = self._forecast.left(made, difference, held.target)
        if made < self._not_before:
            return 0.0
        return math.inf if self._always else self._worth(held, difference, left)

    def _worth(self, held: LowerIterationState, difference: float, left: float) -> float:
        """Return the products that a try is worth where so many steps are left."""
        return self._forecast.budget(left)


# Measurements of an average's bounds.

_CHECK_EVERY = 10
"""Even number of iterations between measurements of rho, which cost some passes over vectors."""

_RARER = 320
"""Products from which, and from each multiple of which, so many more lie between two of them."""

_RAREST = 20
"""Times as many at most."""


def steps_to_check(products: int, most: int) -> int:
    """Return how many steps to make before rho is measured again, an even number.

    A thirty-second of the products made, about: an iteration that is long ends so much later at most, and its
    measurements take a small share of its time.
    """
    wanted = _CHECK_EVERY * min(max(1, products // _RARER), _RAREST)
    return min(wanted, max(_CHECK_EVERY, 2 * ((most - products) // 4)))


def relative_width(width: float, middle: float) -> float:
    """Return a width relative to a value."""
    return width / abs(middle) if middle else (0.0 if width == 0 else float("inf"))
