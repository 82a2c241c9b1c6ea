"""The transition matrix of a model from its events: identities, overlaps, normalisation, deadlocks."""

from __future__ import annotations

from collections.abc import Sequence

from mtbdd.encoding import Encoding
from mtbdd.events import Event
from mtbdd.manager import Node
from mtbdd.matrix import SymbolicMatrix
from mtbdd.partition import Partition

__all__ = ["assemble", "enabled_choices"]


def enabled_choices(events: Sequence[Event], states: Node) -> Partition:
    """Return the number of command combinations enabled in each of the given states."""
    total: Partition | None = None
    for event in events:
        choices = event.choices.only(states)
        total = choices if total is None else total.plus(choices)
    return total if total is not None else Partition(events[0].rates.manager)


def assemble(
    encoding: Encoding, events: Sequence[Event], reachable: Node, loops: Node, choices: Partition | None
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
    choices : Partition or None
        What to divide every row by (the number of enabled choices of a DTMC), if anything.

    Notes
    -----
    Where two events share an entry their rates add up; such entries are found by one
    conjunction an event and compared value by value only there.
    """
    manager = encoding.manager
    everything = range(encoding.n_bits)
    total = _Sum(encoding)
    for event in events:
        touched = set(encoding.bits_of(event.touched))
        frame = reachable & manager.equal_bits(i for i in everything if i not in touched)
        total.add(event.rates.only(frame))
    partition = total.partition()
    if choices is not None and any(count != 1 for count, _ in choices):
        partition = partition.combine(choices, lambda rate, count: rate / count)
    if loops != manager.false:
        partition = partition.plus(Partition(manager, {1.0: loops & manager.equal_bits(everything)}))
    return SymbolicMatrix.from_partition(partition)


class _Sum:
    """A running sum that keeps the pieces of each value apart until the end."""

    def __init__(self, encoding: Encoding) -> None:
        self.manager = encoding.manager
        self.support = self.manager.false
        self.pieces: dict[float, list[Node]] = {}

    def add(self, part: Partition) -> None:
        """Add a function; entries that are new are only filed."""
        false = self.manager.false
        support = part.support
        overlap = self.support & support
        self.support = self.support | support
        if overlap != false:
            part = self._take(overlap).plus(part)
        for value, piece in part:
            self.pieces.setdefault(float(value), []).append(piece)

    def _take(self, entries: Node) -> Partition:
        """Remove and return what the sum holds on a set of entries."""
        taken: dict[float, list[Node]] = {}
        for value, pieces in self.pieces.items():
            hits = [piece & entries for piece in pieces]
            if any(hit != self.manager.false for hit in hits):
                taken[value] = hits
                self.pieces[value] = [piece & ~entries for piece in pieces]
        return Partition(self.manager, {v: self.manager.disjunction(h) for v, h in taken.items()})

    def partition(self) -> Partition:
        """Return the sum."""
        return Partition(self.manager, {v: self.manager.disjunction(p) for v, p in self.pieces.items()})
