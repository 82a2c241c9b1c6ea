"""Graph questions answered on sets: who can reach what, who surely does, bottom components.

All of them depend only on which transitions exist. Prob0 and Prob1 are the usual backward fixed points
([Tealdi13] §2.3). For MDPs they are algorithms 1 to 4 of Forejt et al., "Automated verification techniques
for probabilistic systems", 2011. Bottom strongly connected components are found by forward and backward sets
from one state at a time. A set of states is a `mtbdd.diagrams.manager.Node` over row bits, within the
reachable states.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np

from mtbdd.build.model import SymbolicModel
from mtbdd.build.reach import fixpoint
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import index_states

# Shrinking decision processes: states are taken away, and with them all that has no way to stay.
#
# What is left after peeling has a way on for every state: a choice all of whose successors are left.  A state
# without one is in no end component of several states; one relational product serves all of them that a
# step lays open.
#
# For that the steps are one relation, whose index bits distinguish them, and their choices are one set. A
# round is one product instead of one a step, and common parts of steps are visited once. Where states are
# removed one by one over very many rounds, steps in turn need fewer of them. Each starts from all removals of
# those before it.

_PATIENCE = 100  # rounds of all steps together before they take turns


def backward_by_steps(
    manager: Manager, steps: Iterable[tuple[Relation, Node]], target: Node, region: Node
) -> Node:
    """Return the states of a region that can reach a set inside it, the set included.

    `steps`: each with the states that may take it. `target`, `region`: over row bits. Rounds start from what
    the last one found; within a round every step starts from what those before it added as well, which saves
    rounds. Time: one relational product a step and round.
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

    Choices that may leave the states to begin with are left out. `steps`: without transitions from a state to
    itself, each with at most one choice of every state. `states`: the states to begin with, over row bits.
    `left`: the states that are left, over row bits. `offers`: for every step those of them that have a way on
    in it.
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


# Searches backward over the choices of a decision process, on sets.


def search_backward(model: SymbolicModel, target: Node, allowed: Sequence[Node]) -> Node:
    """Return the states with a path to `target` by allowed choices, the target included.

    `model`: an MDP. `target`: over row bits. `allowed`: for every layer the states whose choice may be taken.
    Time: one relational product a step and round.
    """
    from mtbdd.graph.prob01 import backward_by_steps

    steps = ((step, allowed[step.layer]) for step in model.choice_relations)
    return backward_by_steps(model.manager, steps, target, model.manager.disjunction(allowed))


def remove_choices(model: SymbolicModel, gone: Node, kept: Sequence[Node]) -> tuple[Node, list[Node]]:
    """Take states away, then choices that may lead to them, then states without any other, and so on.

    `model`: an MDP. `gone`: the states to begin with. `kept`: for every layer the states whose choice is
    there; a state without one in any layer never goes. Returns `gone`: all that went. `kept`: the choices
    that are left. Time: as for `search_backward`.
    """
    false = model.manager.false
    left = [own & ~gone for own in kept]
    frontier = gone
    while frontier != false:
        seen, new = frontier, false
        for step in model.choice_relations:
            hit = step.preimage(seen) & left[step.layer]
            if hit == false:
                continue
            left[step.layer] = left[step.layer] & ~hit
            # Only a state that has just been hit can have its last choice hit.
            for others in left:
                hit = hit & ~others
                if hit == false:
                    break
            else:
                seen, new = seen | hit, new | hit
        frontier, gone = new, gone | new
    return gone, left


_log = logging.getLogger(__name__)

_SEED = 20170  # any number: the same model takes the same course every time


def backward(model: SymbolicModel, target: Node, through: Node | None = None) -> Node:
    """Return the reachable states with a path to `target`.

    `target`: subset of the reachable states; always part of the result. `through`: all states of the path
    before `target` must lie in this set. Time: one relational product an event and round.
    """
    inside = model.reachable if through is None else through
    counters = model.encoding.counters
    return fixpoint(
        model.manager, target, model.relations, Relation.preimage, inside, through is not None, counters
    )


def forward(model: SymbolicModel, start: Node) -> Node:
    """Return the states reachable from `start`, itself included."""
    counters = model.encoding.counters
    return fixpoint(model.manager, start, model.relations, Relation.image, counters=counters)


def prob0(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states from which `safe U target` has probability 0 in a chain."""
    through = None if safe == model.reachable else safe & ~target
    return model.reachable & ~backward(model, target, through)


def prob1(model: SymbolicModel, safe: Node, target: Node, zero: Node) -> Node:
    """Return the states from which `safe U target` has probability 1 in a chain.

    These are the states that cannot reach `zero` (the result of `prob0`) before the target.
    """
    return model.reachable & ~backward(model, zero, safe & ~target)


def prob0a(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 0 under all schedulers: Pmax is 0.

    Time: one relational product a step and round.
    """
    if not model.is_mdp:
        return prob0(model, safe, target)
    through = safe & ~target
    return model.reachable & ~search_backward(model, target, [o.enabled & through for o in model.layers])


def prob0e(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 0 under some scheduler: Pmin is 0.

    The states outside the result are the least set that holds the target and all safe states each of whose
    choices has a successor in the set: those that go, if choices that may lead to it are withdrawn. Time: one
    relational product a step and round.
    """
    if not model.is_mdp:
        return prob0(model, safe, target)
    through = safe & ~target
    positive, _ = remove_choices(model, target, [o.enabled & through for o in model.layers])
    return model.reachable & ~positive


def prob1e(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 1 under some scheduler: Pmax is 1.

    The greatest set from whose states the target can be reached by choices that stay surely in the set.
    States that cannot reach the target are set aside, then choices that may lead to them and states without
    any other, until nothing changes; only then is the target searched for again. Time: one relational product
    a step and round of either kind.
    """
    if not model.is_mdp:
        return prob1(model, safe, target, prob0(model, safe, target))
    through = safe & ~target
    kept = [o.enabled & through for o in model.layers]
    gone = model.manager.false
    while True:
        found = search_backward(model, target, kept)
        lost = model.reachable & ~found & ~gone
        if lost == model.manager.false:
            return found
        lost, kept = remove_choices(model, lost, kept)
        gone = gone | lost


def prob1a(model: SymbolicModel, safe: Node, target: Node, zero: Node | None = None) -> Node:
    """Return the states where `safe U target` has probability 1 under all schedulers: Pmin is 1.

    These are the states from which no scheduler reaches, before the target, a state where some scheduler has
    probability 0. `zero`: the result of `prob0e` if it is known.
    """
    if zero is None:
        zero = prob0e(model, safe, target)
    if not model.is_mdp:
        return prob1(model, safe, target, zero)
    if zero == model.manager.false:
        return model.reachable
    through = safe & ~target
    return model.reachable & ~search_backward(model, zero, [o.enabled & through for o in model.layers])


def bottom_components(model: SymbolicModel) -> list[Node]:
    """Return the bottom strongly connected components of the reachable states.

    Absorbing states are components of their own and are found at once, with all that can reach them. From any
    other state the search moves into a set of states reachable from it until that set is strongly connected;
    everything that can reach it is then set aside. It begins with the initial state, where all are known to
    be reached from it: no search has to show that. Moving on to a state drawn at random halves what lies
    ahead on a long path, where the next state in line would shorten it by one. Time: a few forward and
    backward sets for every component that is not an absorbing state.
    """
    _log.info("bottom strongly connected components")
    false = model.manager.false
    rng: np.random.Generator | None = None
    absorbing = absorbing_states(model)
    found = _singletons(model, absorbing)
    remaining = model.reachable
    if absorbing != false:
        remaining = remaining & ~backward(model, absorbing)
    while remaining != false:
        is_first = model.is_reached and remaining == model.reachable
        if is_first and index_states(model.manager.whole, model.initial).size == 1:
            state, ahead = model.initial, model.reachable
        else:
            rng = rng or np.random.default_rng(_SEED)
            state = _draw(model, remaining, rng)
            ahead = forward(model, state)
        while True:
            behind = backward(model, state)
            outside = ahead & ~behind
            if outside == false:
                break
            rng = rng or np.random.default_rng(_SEED)
            state = _draw(model, outside, rng)
            ahead = forward(model, state)
        found.append(ahead)
        remaining = remaining & ~behind
    return found


def absorbing_states(model: SymbolicModel) -> Node:
    """Return the reachable states that no transition leaves.  Time: one quantification an event."""
    manager = model.manager
    leaving = (relation.moving().sources for relation in model.relations)
    return model.reachable & ~manager.disjunction(leaving)


def _singletons(model: SymbolicModel, states: Node) -> list[Node]:
    """Return every state of a set as a set of its own, in index order."""
    index = index_states(model.manager.whole, states)
    return [_cube(model, row) for row in index.bits_at(np.arange(index.size)).tolist()]


def _draw(model: SymbolicModel, states: Node, rng: np.random.Generator) -> Node:
    """Return one state of a set, all equally likely."""
    index = index_states(model.manager.whole, states)
    return _cube(model, index.bits_at(rng.integers(index.size, size=1)).tolist()[0])


def _cube(model: SymbolicModel, bits: list[bool]) -> Node:
    """Return the set of one state, given its row bits."""
    if not bits:
        return model.manager.true
    return model.manager.bdd.cube(dict(zip(model.manager.rows, bits, strict=True)))


# States where some path of a kind begins: the fixed points of computation tree logic, on sets.
#
# A path is one that the graph has, however improbable ([CES86]); in an MDP any choice may be taken at any
# time. States without a successor stay where they are.


def some_next(model: SymbolicModel, target: Node) -> Node:
    """Return the reachable states with a successor in a set.  Time: one relational product an event."""
    found = model.deadlocks & target
    for relation in model.relations:
        found = found | relation.preimage(target)
    return found & model.reachable


def some_until(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where some path stays in `safe` until it is in `target`.

    Time: one relational product an event and round.
    """
    return backward(model, target, safe & ~target)


def some_always(model: SymbolicModel, safe: Node) -> Node:
    """Return the states where some infinite path stays in `safe` for ever.

    The greatest set in which every state has a successor. States without one are taken away; only those that
    lead to what went last can go next. Time: two relational products an event and round, and as many rounds
    as the longest path that leaves the set and cannot stay.
    """
    false = model.manager.false
    left = safe & model.reachable
    gone = left & ~some_next(model, left)
    while gone != false:
        left = left & ~gone
        suspects = some_next(model, gone) & left
        gone = suspects if suspects == false else suspects & ~some_next(model, left)
    return left


def successors(model: SymbolicModel, states: Node) -> Node:
    """Return the successors of a set of reachable states.  Time: one relational product an event."""
    found = model.deadlocks & states
    for relation in model.relations:
        found = found | relation.image(states)
    return found
