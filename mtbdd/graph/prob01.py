"""Graph questions answered on sets: who can reach what, who surely does, bottom components.

All of them depend only on which transitions exist. Prob0 and Prob1 are the usual backward fixed points
([Tealdi13] §2.3). For MDPs they are algorithms 1 to 4 of Forejt et al., "Automated verification techniques
for probabilistic systems", 2011. Bottom strongly connected components are found by forward and backward sets
from one state at a time. A set of states is a `mtbdd.diagrams.manager.Node` over row bits, within the
reachable states.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from mtbdd.build.model import SymbolicModel
from mtbdd.build.reach import fixpoint
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.relation import Relation
from mtbdd.offset.states import index_states

# Searches backward over the choices of a decision process, on sets.


def search_backward(model: SymbolicModel, target: Node, allowed: Sequence[Node]) -> Node:
    """Return the states with a path to `target` by allowed choices, the target included.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    target : Node
        Over row bits.
    allowed : sequence of Node
        For every layer the states whose choice may be taken.

    Notes
    -----
    Time: one relational product a step and round.
    """
    from mtbdd.graph.trimming import backward_by_steps

    steps = ((step, allowed[step.layer]) for step in model.choice_relations)
    return backward_by_steps(model.manager, steps, target, model.manager.disjunction(allowed))


def remove_choices(model: SymbolicModel, gone: Node, kept: Sequence[Node]) -> tuple[Node, list[Node]]:
    """Take states away, then choices that may lead to them, then states without any other, and so on.

    Parameters
    ----------
    model : SymbolicModel
        An MDP.
    gone : Node
        The states to begin with.
    kept : sequence of Node
        For every layer the states whose choice is there; a state without one in any layer never goes.

    Returns
    -------
    gone : Node
        All that went.
    kept : list of Node
        The choices that are left.

    Notes
    -----
    Time: as for `search_backward`.
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

    Parameters
    ----------
    model : SymbolicModel
    target : Node
        Subset of the reachable states; always part of the result.
    through : Node, optional
        All states of the path before `target` must lie in this set.

    Notes
    -----
    Time: one relational product an event and round.
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

    Notes
    -----
    The states outside the result are the least set that holds the target and all safe states each of
    whose choices has a successor in the set: those that go, if choices that may lead to it are withdrawn.
    Time: one relational product a step and round.
    """
    if not model.is_mdp:
        return prob0(model, safe, target)
    through = safe & ~target
    positive, _ = remove_choices(model, target, [o.enabled & through for o in model.layers])
    return model.reachable & ~positive


def prob1e(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 1 under some scheduler: Pmax is 1.

    Notes
    -----
    The greatest set from whose states the target can be reached by choices that stay surely in the
    set.  States that cannot reach the target are set aside, then choices that may lead to them and states
    without any other, until nothing changes; only then is the target searched for again.  Time: one
    relational product a step and round of either kind.
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

    These are the states from which no scheduler reaches, before the target, a state where some
    scheduler has probability 0.

    Parameters
    ----------
    model : SymbolicModel
    safe, target : Node
    zero : Node, optional
        The result of `prob0e` if it is known.
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

    Notes
    -----
    Absorbing states are components of their own and are found at once, with all that can
    reach them.  From any other state the search moves into a set of states reachable from it
    until that set is strongly connected; everything that can reach it is then set aside.
    It begins with the initial state, where all are known to be reached from it: no search has to show that.
    Moving on to a state drawn at random halves what lies ahead on a long path, where the
    next state in line would shorten it by one.  Time: a few forward and backward sets for
    every component that is not an absorbing state.
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

    Notes
    -----
    The greatest set in which every state has a successor.  States without one are taken away; only those
    that lead to what went last can go next.  Time: two relational products an event and round, and as many
    rounds as the longest path that leaves the set and cannot stay.
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
