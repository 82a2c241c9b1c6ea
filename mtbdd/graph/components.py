"""Strongly connected components and maximal end components, on sets of states.

End components come out of a search like that for components, with choices in place of transitions. One is
searched from one state: what it can reach, and what of that can reach it. As in the CHAIN algorithm the next
search starts in the last round of the one before. It works on the part that is left there, so that searches
get shorter. Choices that may leave the rest are withdrawn during the search and not between decompositions.
States without any other are peeled off in bulk after every step. A component that nothing leaves is then a
maximal end component.

References
----------
C. Larsen, S. Schmidt, J. Steensgaard, A. Jakobsen, J. van de Pol, A. Pavlogiannis, "A truly symbolic
linear-time algorithm for SCC decomposition", TACAS 2023.
arXiv:2505.20748 (symbolic MEC decomposition), for interleaving the withdrawal of choices with the search.
[WKB16] §§2.2 to 2.4, for the definitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.prob01 import ChoicePeeling
from mtbdd.offset.states import index_states

# Dividing a graph by what single parts of its states can do, before anything is searched.
#
# Seen through a part of the bits, a graph becomes a small one: the values of those bits, and the changes
# of value that some transition makes.  A cycle of the graph is a closed walk there.  Transitions to a value
# from which the part cannot come back are therefore in no component and are taken away; states whose values
# cannot come from each other are in different ones.  Where processes drop out, decide or count up one by one,
# as in protocols and randomised algorithms, this alone separates components whose number grows exponentially
# in that of the processes.
#
# References
# ----------
# C. Wang, R. Bloem, G. D. Hachtel, K. Ravi, F. Somenzi, "Divide and compose: SCC refinement for language
# emptiness", CONCUR 2001: components of an abstraction hold those of the graph.

Part = tuple[int, ...]

_WIDEST = 20  # bits of a part: its relation is closed over three times as many variables
_CLOSURE_NODES = 3_000  # a closure with more nodes costs more than it saves


def model_parts(model: SymbolicModel) -> tuple[Part, ...]:
    """Return the parts of a model's states: the bits of every module, then those of every variable.

    Those that are too wide, or all there is, are left out.
    """
    encoding = model.encoding
    groups = [[variable.name for variable in module.variables] for module in model.source.modules]
    groups += [[variable.name] for variable in model.source.variables]
    most = min(_WIDEST, encoding.n_bits - 1)
    # A module of one variable has the same bits as that.
    parts = dict.fromkeys(tuple(encoding.bits_of(names)) for names in groups)
    return tuple(bits for bits in parts if 0 < len(bits) <= most)


def common_cycles(manager: Manager, relation: Node, part: Part) -> Relation | None:
    """Return which values of a part may come from each other, both ways.

    `relation`: the graph's transitions, over row and column bits. `part`: numbers of bits. Returns Relation
    or None: an equivalence over the part's row and column bits: pairs of values on a closed walk of the graph
    seen through the part, and equal ones. None if it would be a large diagram.

    Time: one quantification of the relation, and O(log k) products of relations over the part's bits alone
    for paths of k values.
    """
    own = frozenset(part)
    others = _names(manager, (i for i in range(manager.n_bits) if i not in own))
    projected = Relation(manager, manager.exists(others, relation), part)
    small = manager.size(projected.node) <= _CLOSURE_NODES
    closed = projected.closure(_CLOSURE_NODES) if small else None
    if closed is None:
        return None
    return Relation(manager, (closed.node & closed.inverse) | manager.equal_bits(part), part)


def cut_by_parts(manager: Manager, relation: Node, parts: Sequence[Part]) -> tuple[Node, list[Relation]]:
    """Return the transitions on which every part may come back, and the equivalences of `common_cycles`.

    A part inside one that has an equivalence already adds nothing, and has none of its own.
    Time: `common_cycles` and one conjunction with the relation a part.
    """
    classes: list[Relation] = []
    for part in parts:
        if any(set(part) <= set(found.bits) for found in classes):
            continue
        found = common_cycles(manager, relation, part)
        if found is not None:
            classes.append(found)
    for found in classes:
        relation = relation & found.node
    return relation, classes


def split_by_parts(manager: Manager, states: Node, classes: Sequence[Relation]) -> list[Node]:
    """Return a set in pieces, two states together if all equivalences hold between their values.

    Time: a few operations on sets for every piece. If every state of the set has a successor in it by one of
    the transitions that `cut_by_parts` left, every piece holds a cycle: there are no more pieces than
    components of several states.
    """
    pieces = [] if states == manager.false else [states]
    for same in classes:
        own = frozenset(same.bits)
        others = [name for i, name in enumerate(manager.rows) if i not in own]
        divided = []
        for piece in pieces:
            values = manager.exists(others, piece)
            while values != manager.false:
                together = same.image(_one_value(manager, values, same))
                divided.append(piece & together)
                values = values & ~together
        pieces = divided
    return pieces


def _one_value(manager: Manager, values: Node, part: Relation) -> Node:
    """Return one member of a set over a part's row bits."""
    chosen = manager.bdd.pick(values, care_vars=part.rows)
    return manager.bdd.cube({name: bool(chosen[name]) for name in part.rows})


def _names(manager: Manager, bits: Iterable[int]) -> list[str]:
    """Return the row and column bits of some numbers."""
    return [name for i in bits for name in (manager.rows[i], manager.columns[i])]


# Strongly connected components of several states, those of all regions at once.
#
# The component of a state s is the intersection of the states that s reaches (ahead) and of those that reach
# s (behind).  States ahead only, states behind only and all others form three regions; every other component
# lies in one of them.  The searches of all regions run together, from one state of each: transitions between
# regions are removed from the relation, so that a search stays in its region and all regions share the
# relational products.  The number of searches is then the depth of the division, not the number of
# components.  Before every search the regions are divided by projections (`mtbdd.graph.components`), and
# states without a predecessor or without a successor are trimmed.
#
# References
# ----------
# L. Fleischer, B. Hendrickson, A. Pinar, "On identifying strongly connected components in parallel", IPDPS
# 2000, for the division. W. McLendon et al., "Finding strongly connected components in distributed graphs",
# JPDC 2005, for the trimming. [WKB16] §2.2, which runs the same division on a graph's transitions.

_SEED = 40723  # any number: the same graph takes the same course every time
_FRONT = 5  # three products of a front cost as much as one of a set with this many times its nodes


def strong_components(
    manager: Manager, relations: Sequence[Node], states: Node, parts: Sequence[tuple[int, ...]] = ()
) -> Iterator[Node]:
    """Yield the strongly connected components of several states.

    `relations`: over row and column bits; the graph's transitions are those of all relations together.
    `states`: the graph's states, over row bits; transitions to or from others are left out. `parts`: numbers
    of bits that may distinguish components by themselves, as `mtbdd.graph.components.model_parts` has them;
    the answer does not depend on them.

    Time: one relational product a state of the longest search of a round, and a few operations on sets for
    every region; rounds are about the logarithm of the components in a row.
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
            parts = ()  # they decide no more, and would cost as much again in every round
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
        ahead, behind = (_search(manager, move, start) for move in (step.image, step.preimage))
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

    `step`: without transitions from a state to itself. `states`: over row bits.

    States without a successor are removed first, then those without a predecessor: removing the latter takes
    the last successor from no state that is left. Time: one relational product of what is left a round, or
    three of small sets next to what went last.
    """
    left = _peel(step.manager, step.preimage, step.image, states)
    return _peel(step.manager, step.image, step.preimage, left)


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


_log = logging.getLogger(__name__)


class StrongComponents(Record):
    """The strongly connected components of a graph.

    `components`: those of several states, over row bits. `trivial`: the states that are components of their
    own, whether or not they have a loop.
    """

    manager: Manager
    components: tuple[Node, ...]
    trivial: Node

    @cached_property
    def n_trivial(self) -> int:
        """Number of components of one state."""
        return index_states(self.manager.whole, self.trivial).size

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each component of several states."""
        return tuple(index_states(self.manager.whole, c).size for c in self.components)

    @property
    def count(self) -> int:
        """Number of components."""
        return self.n_trivial + len(self.components)


class MaximalEndComponent(Record):
    """A maximal end component.

    `states`: over row bits. `choices`: for every layer (relation) the states whose choice there stays inside.
    """

    states: Node
    choices: tuple[Node, ...]


class EndComponents(Record):
    """The maximal end components of a decision process, those of one state in bulk.

    `components`: those of several states. `single`: the union of all those of one state: each of these states
    is one by itself, and its choices there are the ones that surely come back to it.
    """

    manager: Manager
    components: tuple[MaximalEndComponent, ...]
    single: MaximalEndComponent

    @cached_property
    def n_single(self) -> int:
        """Number of components of one state."""
        return index_states(self.manager.whole, self.single.states).size

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each component of several states."""
        return tuple(index_states(self.manager.whole, c.states).size for c in self.components)

    @property
    def count(self) -> int:
        """Number of components."""
        return self.n_single + len(self.components)

    @cached_property
    def states(self) -> Node:
        """All states of end components."""
        return self.manager.disjunction([self.single.states, *(c.states for c in self.components)])


# ------------------------------------------------------------------ graphs


def decompose(
    manager: Manager, relations: Sequence[Node], states: Node, parts: Sequence[tuple[int, ...]] = ()
) -> StrongComponents:
    """Return all strongly connected components, trivial ones as one set.

    Parameters
    ----------
    manager : Manager
    relations : sequence of Node
        Over row and column bits; the graph's transitions are those of all relations together.
    states : Node
        The graph's states, over row bits; transitions to or from others are left out.
    parts : sequence of tuple of int
        Numbers of bits by which to divide the graph before it is searched, see `mtbdd.graph.components`.

    See Also
    --------
    mtbdd.graph.components.strong_components : The search; no step of it lists states.
    """
    components = tuple(strong_components(manager, relations, states, parts))
    return StrongComponents(manager, components, states & ~manager.disjunction(components))


def model_components(model: SymbolicModel, within: Node | None = None) -> StrongComponents:
    """Return the strongly connected components of a model's graph, all choices taken together.

    `within`: restrict the graph to this subset of the reachable states.
    """
    _log.info("strongly connected components")
    relations = [model.layer_relation(number) for number in range(len(model.layers))]
    states = model.reachable if within is None else within
    return decompose(model.manager, relations, states, model_parts(model))


# ------------------------------------------------------------------ decision processes


def mec_decomposition(manager: Manager, relations: Sequence[Node], within: Node) -> EndComponents:
    """Return the maximal end components inside a set, those of one state in bulk.

    Parameters
    ----------
    manager : Manager
    relations : sequence of Node
        Over row and column bits, one a layer: each holds at most one choice of every state.
    within : Node
        Over row bits; choices that may leave it are left out.

    Returns
    -------
    EndComponents
        `choices` of the components in the order of the relations.

    Notes
    -----
    Every region searched is closed under the choices left.  If all that is ahead of a pivot can come back
    to it, this is an end component, and a maximal one, as all choices left stay in it.  Otherwise the
    states ahead that cannot come back are dealt with first and then, less the choices that lead to
    them, the pivot's component.  Time: one search either way for every component of every region that is
    left; withdrawing choices costs one relational product a relation and round, over all regions together.
    """
    steps = [Relation.whole(manager, relation) for relation in relations]
    moving = [step.moving() for step in steps]
    looping = [s.sources & within & ~m.sources for s, m in zip(steps, moving, strict=True)]
    graph = ChoicePeeling(manager, moving, within)
    components = []
    waiting = [(graph.left, graph.left)]
    while waiting:
        region, hint = waiting.pop()
        region = region & graph.left
        if region == manager.false:
            continue
        pivot = _pick(manager, region, hint)
        ahead, last = graph.forward(pivot, region)
        found = graph.backward(pivot, ahead)
        outside, inside = region & ~ahead, ahead & ~found
        waiting.append((outside, graph.preimage(found, outside)))
        if inside == manager.false:
            kept = zip(graph.offers, looping, strict=True)
            staying = tuple(found & (offer | loop) for offer, loop in kept)
            components.append(MaximalEndComponent(found, staying))
            graph.remove(found)
        else:
            waiting.append((found, graph.preimage(inside, found)))
            waiting.append((inside, last & inside))
    rest = within & ~manager.disjunction(c.states for c in components)
    single = manager.disjunction(loop & rest for loop in looping)
    alone = MaximalEndComponent(single, tuple(loop & single for loop in looping))
    return EndComponents(manager, tuple(components), alone)


def model_end_components(
    model: SymbolicModel, within: Node | None = None, allowed: Sequence[Node] | None = None
) -> EndComponents:
    """Return a model's maximal end components; a chain's are its bottom components.

    `within`: only inside this subset of the reachable states, without the choices that may leave it.
    `allowed`: for every layer the states whose choice counts; default all. Returns EndComponents: `choices`
    of the components has a set for every layer of the model.
    """
    _log.info("maximal end components")
    relations = [model.layer_relation(number) for number in range(len(model.layers))]
    if allowed is not None:
        relations = [relation & own for relation, own in zip(relations, allowed, strict=True)]
    return mec_decomposition(model.manager, relations, model.reachable if within is None else within)


def _pick(manager: Manager, region: Node, hint: Node) -> Node:
    """Return one state of a region as a set, from the hint if there is one in it."""
    if not manager.rows:
        return region
    wanted = region & hint
    chosen = manager.bdd.pick(wanted if wanted != manager.false else region)
    return manager.bdd.cube({name: bool(chosen.get(name, False)) for name in manager.rows})
