"""Until within bounds on several rewards, or from a lower bound on: the until of a product with counters.

A counter counts what has been earned of one reward, in units that all its values are multiples of.  It stays
where no bound distinguishes greater numbers any more.  Target states count where all counters are within
their bounds, so that a run may pass target states before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from hybrid.analysis.operator_values import OperatorQuery, until_form
from hybrid.analysis.reward_bounded import units_of
from hybrid.analysis.until import TimeWindow, until_probabilities
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.properties.tree import RewardBound, RewardBounds, TimeBound
from mtbdd.base.errors import option
from mtbdd.base.records import Record
from mtbdd.build.automaton_product import CountedParts, counter_product
from mtbdd.build.reward_split import split_by_rewards


class _Range(Record):
    """Numbers that a counter may have, in units: at least `least`, and at most `most` unless that is None."""

    least: int
    most: int | None

    @classmethod
    def of(cls, bound: RewardBound, unit: Fraction) -> _Range:
        """Return the range of a bound."""
        most = None if bound.most is None else units_of(bound.most, unit, bound.is_strict)
        # The least number of units is one more than the greatest that is too little.
        least = 0 if bound.least is None else units_of(bound.least, unit, not bound.is_open) + 1
        return cls(max(least, 0), most)

    @property
    def end(self) -> int:
        """The number from which on all numbers are alike."""
        return self.least if self.most is None else self.most + 1


def rewards_bounded_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a path operator whose bounds on rewards hold together where it is decided.

    Those of a window of steps, too, for a scheduler, which remembers what has been counted.

    Time and memory: those of an until over the states times the units of every bound, as many pairs as are
    reachable; refused where the units' product is beyond the iterations that are allowed.
    """
    model, bound = a.model, a.path.bound
    if model.communicator.size > 1:
        raise UnsupportedError(
            "several bounds on rewards, and lower ones, are not found in parts by this version: choose one "
            "process without parts"
        )
    safe, target, complement = until_form(model, a.path, a.states)
    parts: CountedParts = {(1,): [layer.matrix for layer in model.layers]}
    if isinstance(bound, TimeBound):
        window = TimeWindow.of(bound, False)
        upper = None if window.upper is None else int(window.upper)
        ranges, units = [_Range(int(window.lower), upper)], [Fraction(1)]
    else:
        bounds: Sequence[RewardBound] = bound.bounds if isinstance(bound, RewardBounds) else (bound,)
        split = split_by_rewards(model, [own.index or 0 for own in bounds])
        parts, units = split.parts, list(split.units)
        ranges = [_Range.of(own, unit) for own, unit in zip(bounds, units, strict=True)]
    ends = [own.end for own in ranges]
    cells, most = math.prod(end + 1 for end in ends), a.options.criterion.max_iterations
    if cells > most:
        told = " by ".join(str(end + 1) for end in ends)
        raise UnsupportedError(
            f"bounds on rewards or steps in units of {', '.join(map(str, units))} take counters with {told} "
            f"numbers, {cells} for every state, and {most} are allowed: raise {option('max-iters')}, or "
            "count the rewards in greater units"
        )
    counting = None
    if a.maker is not None:
        from hybrid.analysis.memory_scheduler import Counting

        counting = Counting(model, parts, ends)
    product = counter_product(model, parts, ends) if counting is None else counting.product
    pairs = product.model
    safe, target = product.lifted(safe) & pairs.reachable, product.lifted(target) & pairs.reachable
    for counter, own in enumerate(ranges):
        if own.most is not None:
            # Nothing is gained beyond an upper bound.
            safe &= product.at_most(counter, own.most)
            target &= product.at_most(counter, own.most)
        if own.least:
            target &= ~product.at_most(counter, own.least - 1)
    maker = None if counting is None else counting.maker
    found = until_probabilities(pairs, safe, target, a.maximise != complement, a.options, a.work, maker)
    if a.maker is not None and counting is not None:
        a.maker.remember(counting.finish())
    found = a.scope.of_values(found.at(pairs.indicator(product.first)))
    return found.complement() if complement else found
