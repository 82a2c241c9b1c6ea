"""Shrinking decision processes: states are taken away, and with them all that has no way to stay.

What is left after peeling has a way on for every state: a choice all of whose successors are left.  A state
without one is in no end component of several states; one relational product serves all of them that a
step lays open.

For that the steps are one relation, whose index bits distinguish them, and their choices are one set. A round
is one product instead of one a step, and common parts of steps are visited once. Where states are removed one
by one over very many rounds, steps in turn need fewer of them. Each starts from all removals of those before
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation

_PATIENCE = 100  # rounds of all steps together before they take turns


def backward_by_steps(
    manager: Manager, steps: Iterable[tuple[Relation, Node]], target: Node, region: Node
) -> Node:
    """Return the states of a region that can reach a set inside it, the set included.

    Parameters
    ----------
    manager : Manager
    steps : iterable of (Relation, Node)
        Each with the states that may take it.
    target, region : Node
        Over row bits.

    Notes
    -----
    Rounds start from what the last one found; within a round every step starts from what those before it
    added as well, which saves rounds.  Time: one relational product a step and round.
    """
    pairs, false = list(steps), manager.false
    found = frontier = target
    rest = region & ~target
    while frontier != false:
        seen, new = frontier, false
        for step, allowed in pairs:
            hit = step.preimage(seen) & rest & allowed
            if hit != false:
                seen, new, rest = seen | hit, new | hit, rest & ~hit
        frontier, found = new, found | new
    return found


class ChoicePeeling:
    """States that are left, and what they offer: for every step the states with a choice that stays.

    Choices that may leave the states to begin with are left out.

    Parameters
    ----------
    manager : Manager
    steps : sequence of Relation
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

    def __init__(self, manager: Manager, steps: Sequence[Relation], states: Node) -> None:
        self.manager = manager
        self.left = states
        self._steps = tuple(steps)
        self._index = manager.index_bits(max(1, (len(steps) - 1).bit_length()))
        self._cubes = [manager.cube(self._index, number) for number in range(len(steps))]
        pairs = zip(self._steps, self._cubes, strict=True)
        self._together = manager.disjunction(
            step.over_bits(range(manager.n_bits)) & cube for step, cube in pairs
        )
        offered = manager.exists(manager.columns, self._together) & states
        self._offers = offered & ~self._leading_to(~states)
        self.offers = self._by_step()
        self.remove(states & ~self._stepless(self._offers))

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
                new = step.image(sources) & rest
                if new != false:
                    seen, frontier, rest = seen | new, frontier | new, rest & ~new
            found = found | frontier
        return found, last

    def backward(self, target: Node, region: Node) -> Node:
        """Return the states of a region that can reach a set inside it, the set included.

        Time: one relational product a step and round.
        """
        return backward_by_steps(self.manager, zip(self._steps, self.offers, strict=True), target, region)

    def preimage(self, states: Node, region: Node) -> Node:
        """Return the states of a region with a transition that stays and may lead into a set."""
        found = (step.preimage(states) & offer for step, offer in zip(self._steps, self.offers, strict=True))
        return self.manager.disjunction(found) & region

    def remove(self, states: Node) -> None:
        """Remove states, then repeatedly those without successors.

        Notes
        -----
        Time: one relational product a round; if rounds are many, then one a step and turn.
        """
        false = self.manager.false
        if states == false:
            return
        self.left = self.left & ~states
        self._offers = self._offers & ~states
        gone, rounds = states, 0
        while gone != false and rounds < _PATIENCE:
            lost = self._leading_to(gone) & self._offers
            self._offers = self._offers & ~lost
            hit = self._stepless(lost)
            gone = hit & ~self._stepless(self._offers & hit)
            self.left = self.left & ~gone
            rounds += 1
        self.offers = self._by_step()
        if gone != false:
            self._remove_in_turns(gone)

    def _remove_in_turns(self, gone: Node) -> None:
        """Go on when states have gone; each step deals at once with all that went since its last turn."""
        false = self.manager.false
        waiting = [gone] * len(self._steps)
        while any(removed != false for removed in waiting):
            for number in range(len(waiting)):
                removed, waiting[number] = waiting[number], false
                if removed == false:
                    continue
                lost = self._steps[number].preimage(removed) & self.offers[number]
                if lost == false:
                    continue
                self.offers[number] = self.offers[number] & ~lost
                for offer in self.offers:
                    lost = lost & ~offer
                    if lost == false:
                        break
                else:
                    self.left = self.left & ~lost
                    waiting = [w | lost for w in waiting]
        pairs = zip(self.offers, self._cubes, strict=True)
        self._offers = self.manager.disjunction(offer & cube for offer, cube in pairs)

    def _leading_to(self, states: Node) -> Node:
        """Return the choices, over row and index bits, that may lead to some states.

        What is renamed is the states: choices that may lead to them are a larger diagram.
        """
        return self.manager.and_exists(self.manager.to_columns(states), self._together, self.manager.columns)

    def _by_step(self) -> list[Node]:
        """Return the offers of every step, over row bits."""
        return [self._stepless(self._offers & cube) for cube in self._cubes]

    def _stepless(self, offers: Node) -> Node:
        """Return the states of some offers."""
        return self.manager.exists(self._index, offers)
