"""Strongly connected components of several states, those of all regions at once.

A state's component is what it can reach and what can reach it; the states ahead of it only, those behind it
only and the others are three regions that no other component crosses.  Here the searches of all regions run
together, from one state of each: transitions from region to region are taken out of the relation, so that a
search stays in its own region, and what one relational product costs is shared.  The number of searches is
then the depth of the division, not the number of components.  Before every search, what single parts of the
states can do divides the regions further (`mtbdd.graph.projections`), and states without a way in or a way
on are trimmed.

References ---------- L. Fleischer, B. Hendrickson, A. Pinar, "On identifying strongly connected components
in parallel", IPDPS 2000, for the division. W. McLendon et al., "Finding strongly connected components in
distributed graphs", JPDC 2005, for the peeling. [WKB16] §2.2, which runs the same division on a graph's
transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mtbdd.graph.projections import cut_by_parts, split_by_parts
from mtbdd.manager import Manager, Node
from mtbdd.relation import Relation

_SEED = 40723  # any number: the same graph takes the same course every time
_FRONT = 5  # three products of a front cost as much as one of a set with this many times its nodes


def strong_components(
    manager: Manager, relations: Sequence[Node], states: Node, parts: Sequence[tuple[int, ...]] = ()
) -> Iterator[Node]:
    """Yield the strongly connected components of several states.

    Parameters
    ----------
    manager : Manager
    relations : sequence of Node
        Over row and column bits; the graph's transitions are those of all relations together.
    states : Node
        The graph's states, over row bits; transitions to or from others are left out.
    parts : sequence of tuple of int
        Numbers of bits that may tell components apart by themselves, as
        `mtbdd.graph.projections.model_parts` has them; the answer does not depend on them.

    Notes
    -----
    Time: one relational product a state of the longest search of a round, and a
    few operations on sets for every region; rounds are about the logarithm of the components in a row.
    """
    false = manager.false
    rng: np.random.Generator | None = None
    relation = manager.disjunction(relations) & ~manager.equal_bits(range(manager.n_bits))
    relation = _within(manager, relation, states).node
    regions = [] if states == false else [states]
    while regions:
        left = manager.disjunction(regions)
        whole = relation
        relation, classes = cut_by_parts(manager, whole, parts)
        if relation == whole:
            parts = ()  # they tell no more, and would cost as much again in every round
        step = _within(manager, relation, left)
        kept = trim(step, left)
        if kept != left:
            regions = [r for r in (region & kept for region in regions) if r != false]
            step = _within(manager, step.node, kept)
        regions = [piece for region in regions for piece in split_by_parts(manager, region, classes)]
        pivots = [draw_state(manager, region, rng) for region in regions]
        # The first search covers most of the graph, and from a corner of it the diagrams stay smallest; later
        # ones divide their regions evenly if they start anywhere.
        rng = rng or np.random.default_rng(_SEED)
        start = manager.disjunction(pivots)
        ahead, behind = (_search(manager, move, start) for move in (step.after, step.before))
        divided = []
        for region, pivot in zip(regions, pivots, strict=True):
            found = region & ahead & behind
            if found != pivot:
                yield found
            others = (region & ahead & ~behind, region & behind & ~ahead, region & ~ahead & ~behind)
            divided += [part for part in others if part != false]
        regions, relation = divided, step.node
        if not regions:
            return
        for part in (ahead, behind):
            columns = manager.to_columns(part)
            relation = (relation & part & columns) | (relation & ~part & ~columns)


def trim(step: Relation, states: Node) -> Node:
    """Return the greatest subset whose states all have a successor and a predecessor in it.

    Parameters
    ----------
    step : Relation
        Without transitions from a state to itself.
    states : Node
        Over row bits.

    Notes
    -----
    States without a way on go first, then those without a way in: that takes no state's only way on.
    Time: one relational product of what is left a round, or three of small sets next to what went last.
    """
    left = _peel(step.manager, step.before, step.after, states)
    return _peel(step.manager, step.after, step.before, left)


def _peel(manager: Manager, move: Callable[[Node], Node], back: Callable[[Node], Node], states: Node) -> Node:
    """Return the greatest subset that moving from it covers, where `back` is the opposite of `move`."""
    false = manager.false
    left = states & move(states)
    gone = states & ~left
    while gone != false:
        if _FRONT * manager.size(gone) < manager.size(left):
            near = move(gone) & left
            gone = near if near == false else near & ~move(back(near) & left)
        else:
            gone = left & ~move(left)
        left = left & ~gone
    return left


def draw_state(manager: Manager, states: Node, rng: np.random.Generator | None) -> Node:
    """Return one state of a set that is not empty, drawn by a walk down its diagram; without `rng` the first.

    Time: O(bits).
    """
    if not manager.rows:
        return states
    turns = dict.fromkeys(manager.rows, False)
    if rng is not None:
        turns = dict(zip(manager.rows, (rng.random(len(turns)) < 0.5).tolist(), strict=True))
    node = states
    while node != manager.true:
        name, children = node.var, (node.low, node.high)
        if node.negated:
            children = (~children[0], ~children[1])
        if children[turns[name]] == manager.false:
            turns[name] = not turns[name]
        node = children[turns[name]]
    return manager.bdd.cube(turns)


def _within(manager: Manager, relation: Node, states: Node) -> Relation:
    """Return the transitions between members of a set."""
    return Relation.whole(manager, relation & states & manager.to_columns(states))


def _search(manager: Manager, move: Callable[[Node], Node], start: Node) -> Node:
    """Return all that repeated moves lead to from a set, the set included."""
    found = frontier = start
    while frontier != manager.false:
        frontier = move(frontier) & ~found
        found = found | frontier
    return found
