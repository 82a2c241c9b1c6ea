"""The transition matrix of a model from its events: identities, overlaps, normalisation, deadlocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mtbdd.base.budget import check_budget
from mtbdd.diagrams.encoding import Encoding
from mtbdd.build.events import Event
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition

# lemma: entry-units
_NEAR = 2.0**-50  # of 1: probabilities that add up so closely only have rounding errors
_NEAR_UNITS = 9.0  # the same in units of 2^-53, its own computation included


def enabled_choices(events: Sequence[Event], states: Node) -> Partition:
    """Return the number of command combinations enabled in each of the given states."""
    return Partition.total(events[0].rates.manager, (event.choices.only(states) for event in events))


def row_divisors(events: Sequence[Event], states: Node) -> Partition:
    """Return what every row of a DTMC is divided by, so that its probabilities add up to 1.

    This is the number of enabled choices, or, where their probabilities add up to 1 only roughly, what they
    add up to.
    """
    choices = enabled_choices(events, states)
    totals = Partition(choices.manager)
    for event in events:
        totals = totals.plus(event.exits.only(states))
    pairs = choices.combine(totals, lambda count, total: (count, total))
    exact = totals.units == 0 and all(count == total for (count, total), _ in pairs)
    units = 0.0 if exact else totals.units + _NEAR_UNITS  # lemma: entry-units
    return pairs.map(lambda pair: pair[0] if abs(pair[1] / pair[0] - 1) <= _NEAR else pair[1], units)


def assemble(
    encoding: Encoding, events: Sequence[Event], reachable: Node, loops: Node, divisors: Partition | None
) -> SymbolicMatrix:
    """Return the matrix of all events over reachable states.

    Parameters
    ----------
    encoding : Encoding
    events : sequence of Event
    reachable : Node
        The reachable states; all rows outside are zero.
    loops : Node
        States without an event that get a self-loop of weight 1.
    divisors : Partition or None
        What to divide every row by (see `row_divisors`), if anything.

    Notes
    -----
    Everything is put together over all potential states, where the diagrams are small, and cut
    to the reachable ones once at the end.  Where two events share an entry their rates add
    up; such events are found by one conjunction a pair of events.
    """
    manager = encoding.manager
    parts = _disjoint([_Part.of(encoding, event) for event in events])
    if divisors is not None and any(divisor != 1 for divisor, _ in divisors):
        parts = [_Part(p.rates.divided(divisors), p.frame) for p in parts]
    if loops != manager.false:
        parts.append(_Part(Partition(manager, {1.0: loops}), manager.equal_bits(range(encoding.n_bits))))
    return SymbolicMatrix.from_disjoint(manager, [(p.rates, p.frame) for p in parts]).only(reachable)


@dataclass(frozen=True)
class _Part:
    """Rates and the frame that keeps the variables they do not touch."""

    rates: Partition
    frame: Node

    @classmethod
    def of(cls, encoding: Encoding, event: Event) -> _Part:
        """Return an event's part."""
        return cls(event.rates, encoding.manager.equal_but(encoding.bits_of(event.touched)))

    @cached_property
    def support(self) -> Node:
        """The non-zero entries."""
        return self.rates.support & self.frame

    def plus(self, other: _Part) -> _Part:
        """Return the sum of two parts, frames worked in."""
        rates = self.rates.only(self.frame).plus(other.rates.only(other.frame))
        return _Part(rates, self.rates.manager.true)


def _disjoint(parts: Sequence[_Part]) -> list[_Part]:
    """Add up the parts whose supports meet, so that all that are left are pairwise disjoint."""
    result: list[_Part] = []
    union: Node | None = None
    for part in parts:
        check_budget()
        false = part.rates.manager.false
        meets = union is not None and union & part.support != false
        union = part.support if union is None else union | part.support
        if not meets:
            result.append(part)
            continue
        apart: list[_Part] = []
        meeting: list[_Part] = []
        for other in result:
            (apart if other.support & part.support == false else meeting).append(other)
        for other in meeting:
            part = part.plus(other)
        result = [*apart, part]
    return result
