"""Shrinking graphs: states are taken away, and with them all that has no way to stay.

What is left after peeling has a way on for every state: a transition (in graphs), or a choice all of
whose successors are left (in decision processes).  A state without one is strongly connected to no other
state, so that peeling finds trivial components in bulk: one relational product serves all of them
that a step lays open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mtbdd.manager import Manager, Node

__all__ = ["ChoicePeeling", "Peeling", "TransitionPeeling", "without_loops"]


class Peeling(ABC):
    """States that are left, and what they offer: for every relation the states with a way on in it.

    Parameters
    ----------
    manager : Manager
    relations : sequence of Node
        Over row and column bits, without transitions from a state to itself.
    states : Node
        The states to begin with, over row bits.

    Attributes
    ----------
    left : Node
        The states that are left, over row bits.
    offers : list of Node
        For every relation those of them that have a way on in it.
    """

    def __init__(self, manager: Manager, relations: Sequence[Node], states: Node) -> None:
        self.manager = manager
        self.left = states
        self._left_columns = manager.to_columns(states)
        self._relations = tuple(relations)
        self.offers = [self._offered(relation) for relation in relations]
        self.remove(states & ~manager.disjunction(self.offers))

    def forward(self, start: Node, region: Node) -> tuple[Node, Node]:
        """Return what can be reached from a set inside a region, and what the last round found.

        Time: one relational product a relation and round.
        """
        manager = self.manager
        found = frontier = last = start
        while frontier != manager.false:
            last = seen = frontier
            for relation, offer in zip(self._relations, self.offers, strict=True):
                sources = seen & offer
                if sources != manager.false:
                    moved = manager.and_exists(sources, relation, manager.rows)
                    seen = seen | (manager.to_rows(moved) & region)
            frontier = seen & ~found
            found = found | seen
        return found, last

    def backward(self, target: Node, region: Node) -> Node:
        """Return the states of a region that can reach a set inside it, the set included.

        Time: one relational product a relation and round.
        """
        found = frontier = target
        while frontier != self.manager.false:
            seen = frontier
            for number in range(len(self._relations)):
                seen = seen | self._before(number, self.manager.to_columns(seen), region)
            frontier = seen & ~found
            found = found | seen
        return found

    def before(self, states: Node, region: Node) -> Node:
        """Return the states of a region with a transition that stays and may lead into a set."""
        target = self.manager.to_columns(states)
        found = (self._before(number, target, region) for number in range(len(self._relations)))
        return self.manager.disjunction(found)

    def remove(self, states: Node) -> None:
        """Take states away, and then whatever has no way on any more.

        Notes
        -----
        The relations take turns; each deals at once with all that was removed since its last one.
        Time: one or three relational products a turn.
        """
        false = self.manager.false
        if states == false:
            return
        waiting = [self._take(states)] * len(self._relations)
        while any(removed != false for removed in waiting):
            for number in range(len(waiting)):
                removed, waiting[number] = waiting[number], false
                if removed == false:
                    continue
                lost = self._withdrawn(number, removed)
                if lost == false:
                    continue
                self.offers[number] = self.offers[number] & ~lost
                lost = lost & self.left
                for offer in self.offers:
                    lost = lost & ~offer
                    if lost == false:
                        break
                else:
                    gone = self._take(lost)
                    waiting = [w | gone for w in waiting]
        # Offers of states that are gone were left alone until here, where it costs one conjunction each.
        self.offers = [offer & self.left for offer in self.offers]

    def _take(self, states: Node) -> Node:
        """Take states away and return them over column bits."""
        gone = self.manager.to_columns(states)
        self.left = self.left & ~states
        self._left_columns = self._left_columns & ~gone
        return gone

    def _before(self, number: int, target: Node, region: Node) -> Node:
        """Return the states of a region with an offer that may lead into a set over column bits."""
        manager = self.manager
        found = manager.and_exists(target, self._relations[number], manager.columns)
        return found & self.offers[number] & region

    @abstractmethod
    def _offered(self, relation: Node) -> Node:
        """Return the states that have a way on in a relation, before anything is removed."""

    @abstractmethod
    def _withdrawn(self, number: int, removed: Node) -> Node:
        """Return the states whose offer in a relation ends with removed states, given over column bits."""


class TransitionPeeling(Peeling):
    """Peeling of a graph: a state stays while one of its successors does."""

    def _offered(self, relation: Node) -> Node:
        manager = self.manager
        return manager.and_exists(self._left_columns, relation, manager.columns) & self.left

    def _withdrawn(self, number: int, removed: Node) -> Node:
        manager, relation = self.manager, self._relations[number]
        touched = self._before(number, removed, self.left)
        if touched == manager.false:
            return touched
        others = manager.and_exists(touched, relation, manager.rows) & self._left_columns
        return touched & ~manager.and_exists(others, relation, manager.columns)


class ChoicePeeling(Peeling):
    """Peeling of a decision process: a state stays while all successors of one of its choices do.

    Every relation holds at most one choice of every state.  Choices that may leave the states to begin
    with are left out.
    """

    def _offered(self, relation: Node) -> Node:
        manager = self.manager
        leaving = manager.and_exists(~self._left_columns, relation, manager.columns)
        return manager.exists(manager.columns, relation) & self.left & ~leaving

    def _withdrawn(self, number: int, removed: Node) -> Node:
        return self._before(number, removed, self.left)


def without_loops(manager: Manager, relation: Node) -> Node:
    """Return a relation without transitions from a state to itself."""
    return relation & ~manager.equal_bits(range(manager.n_bits))
