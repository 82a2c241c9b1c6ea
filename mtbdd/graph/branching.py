"""Where some path of a kind begins: the fixed points of computation tree logic, on sets.

A path is one that the graph has, however improbable ([CES86]); in an MDP any choice may be taken at any time.
States without a successor stay where they are.
"""

from __future__ import annotations

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.prob01 import backward


def some_next(model: SymbolicModel, target: Node) -> Node:
    """Return the reachable states with a successor in a set.  Time: one relational product an event."""
    found = model.deadlocks & target
    for relation in model.relations:
        found = found | relation.before(target)
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
        found = found | relation.after(states)
    return found
