"""Graph questions answered on sets: who can reach what, who surely does, bottom components.

All of them look only at which transitions exist.  Prob0 and Prob1 are the usual backward
fixed points (thesis 003, section 2.3); bottom strongly connected components are found by
forward and backward sets from one state at a time.
"""

from __future__ import annotations

from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.reach import fixpoint, image, preimage

__all__ = ["backward", "bottom_components", "forward", "prob0", "prob1"]


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
    return fixpoint(model.encoding, target, model.relations, preimage, inside, through is not None)


def forward(model: SymbolicModel, start: Node) -> Node:
    """Return the states reachable from `start`, itself included."""
    return fixpoint(model.encoding, start, model.relations, image)


def prob0(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states from which `safe U target` has probability 0."""
    through = None if safe == model.reachable else safe & ~target
    return model.reachable & ~backward(model, target, through)


def prob1(model: SymbolicModel, safe: Node, target: Node, zero: Node) -> Node:
    """Return the states from which `safe U target` has probability 1.

    These are the states that cannot reach `zero` (the result of `prob0`) before the target.
    """
    return model.reachable & ~backward(model, zero, safe & ~target)


def bottom_components(model: SymbolicModel) -> list[Node]:
    """Return the bottom strongly connected components of the reachable states.

    Notes
    -----
    From any state the search moves into a set of states reachable from it until that set
    is strongly connected; everything that can reach it is then set aside.  Time: a few
    forward and backward sets for every component found.
    """
    manager = model.manager
    false = manager.false
    remaining, found = model.reachable, []
    while remaining != false:
        state = model.encoding.state(_stored(model, remaining))
        ahead = forward(model, state)
        while True:
            behind = backward(model, state)
            outside = ahead & ~behind
            if outside == false:
                break
            state = model.encoding.state(_stored(model, outside))
            ahead = forward(model, state)
        found.append(ahead)
        remaining = remaining & ~behind
    return found


def _stored(model: SymbolicModel, states: Node) -> dict[str, int]:
    """Return one state of a set with every value as a number."""
    return {name: int(value) for name, value in model.encoding.pick(states).items()}
