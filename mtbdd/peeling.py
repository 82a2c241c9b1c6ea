"""Shrinking decision processes: states are taken away, and with them all that has no way to stay.

What is left after peeling has a way on for every state: a choice all of whose successors are left.  A state
without one is in no end component of several states; one relational product serves all of them that a
step lays open.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtbdd.manager import Manager, Node
from mtbdd.steps import Step

__all__ = ["ChoicePeeling"]


class ChoicePeeling:
    """States that are left, and what they offer: for every step the states with a choice that stays.

    Choices that may leave the states to begin with are left out.

    Parameters
    ----------
    manager : Manager
    steps : sequence of Step
        Without transitions from a state to itself, each with at most one choice of every state.
    states : Node
        The states to begin with, over row bits.

    Attributes
    ----------
    left : Node
        The states that are left, over row bits.
    offers : list of Node
        For every step those of them that have a way on in it.
    """

    def __init__(self, manager: Manager, steps: Sequence[Step], states: Node) -> None:
        self.manager = manager
        self.left = states
        self._steps = tuple(steps)
        self.offers = [self._offered(step) for step in steps]
        self.remove(states & ~manager.disjunction(self.offers))

    def forward(self, start: Node, region: Node) -> tuple[Node, Node]:
        """Return what can be reached from a set inside a region, and what the last round found.

        Time: one relational product a step and round.
        """
        false = self.manager.false
        found = frontier = last = start
        rest = region & ~start
        while frontier != false:
            last = seen = frontier
            frontier = false
            for step, offer in zip(self._steps, self.offers, strict=True):
                sources = seen & offer
                if sources == false:
                    continue
                new = step.after(sources) & rest
                if new != false:
                    seen, frontier, rest = seen | new, frontier | new, rest & ~new
            found = found | frontier
        return found, last

    def backward(self, target: Node, region: Node) -> Node:
        """Return the states of a region that can reach a set inside it, the set included.

        Time: one relational product a step and round.
        """
        false = self.manager.false
        found = frontier = target
        rest = region & ~target
        while frontier != false:
            seen = frontier
            frontier = false
            for step, offer in zip(self._steps, self.offers, strict=True):
                new = step.before(seen) & rest & offer
                if new != false:
                    seen, frontier, rest = seen | new, frontier | new, rest & ~new
            found = found | frontier
        return found

    def before(self, states: Node, region: Node) -> Node:
        """Return the states of a region with a transition that stays and may lead into a set."""
        found = (step.before(states) & offer for step, offer in zip(self._steps, self.offers, strict=True))
        return self.manager.disjunction(found) & region

    def remove(self, states: Node) -> None:
        """Take states away, and then whatever has no way on any more.

        Notes
        -----
        The steps take turns; each deals at once with all that was removed since its last one.
        Time: one relational product a turn.
        """
        false = self.manager.false
        if states == false:
            return
        self.left = self.left & ~states
        waiting = [states] * len(self._steps)
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
                    self.left = self.left & ~lost
                    waiting = [w | lost for w in waiting]
        # Offers of states that are gone were left alone until here, where it costs one conjunction each.
        self.offers = [offer & self.left for offer in self.offers]

    def _offered(self, step: Step) -> Node:
        """Return the states whose choice in a step stays, before anything is removed."""
        return step.sources & self.left & ~step.before(~self.left)

    def _withdrawn(self, number: int, removed: Node) -> Node:
        """Return the states whose choice in a step may lead to removed states."""
        return self._steps[number].before(removed) & self.offers[number] & self.left
