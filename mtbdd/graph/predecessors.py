"""Searches backward over the choices of a decision process, on sets.

Rounds start from what the last one found; within a round every step starts from what those before it added as
well, which saves rounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node


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
    false = model.manager.false
    found = frontier = target
    left = model.manager.disjunction(allowed) & ~target
    while frontier != false:
        seen, new = frontier, false
        for step in model.choice_relations:
            hit = step.before(seen) & left & allowed[step.layer]
            if hit != false:
                seen, new, left = seen | hit, new | hit, left & ~hit
        frontier, found = new, found | new
    return found


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
            hit = step.before(seen) & left[step.layer]
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
