"""Strongly connected components of several states, those of all regions at once.

The component of a state s is the intersection of the states that s reaches (ahead) and of those that reach s
(behind).  States ahead only, states behind only and all others form three regions; every other component lies
in one of them.  The searches of all regions run together, from one state of each: transitions between regions
are removed from the relation, so that a search stays in its region and all regions share the relational
products.  The number of searches is then the depth of the division, not the number of components.  Before
every search the regions are divided by projections (`mtbdd.graph.projections`), and states without a
predecessor or without a successor are trimmed.

References
----------
L. Fleischer, B. Hendrickson, A. Pinar, "On identifying strongly connected components in parallel", IPDPS
2000, for the division. W. McLendon et al., "Finding strongly connected components in distributed graphs",
JPDC 2005, for the trimming. [WKB16] 2.2, which runs the same division on a graph's transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.projections import cut_by_parts, split_by_parts

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
    States without a successor are removed first, then those without a predecessor: removing the latter takes
    the last successor from no state that is left.
    Time: one relational product of what is left a round, or three of small sets next to what went last.
    """
    left = _peel(step.manager, step.before, step.after, states)
    return _peel(step.manager, step.after, step.before, left)


def _peel(manager: Manager, move: Callable[[Node], Node], back: Callable[[Node], Node], states: Node) -> Node:
    """Return the greatest subset X of the states with X <= move(X); `back` is the converse of `move`."""
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
    bits = dict.fromkeys(manager.rows, False)
    if rng is not None:
        bits = dict(zip(manager.rows, (rng.random(len(bits)) < 0.5).tolist(), strict=True))
    node = states
    while node != manager.true:
        name, children = node.var, (node.low, node.high)
        if node.negated:
            children = (~children[0], ~children[1])
        if children[bits[name]] == manager.false:
            bits[name] = not bits[name]
        node = children[bits[name]]
    return manager.bdd.cube(bits)


def _within(manager: Manager, relation: Node, states: Node) -> Relation:
    """Return the transitions between members of a set."""
    return Relation.whole(manager, relation & states & manager.to_columns(states))


def _search(manager: Manager, move: Callable[[Node], Node], start: Node) -> Node:
    """Return the closure of a set under `move`, the set included."""
    found = frontier = start
    while frontier != manager.false:
        frontier = move(frontier) & ~found
        found = found | frontier
    return found
