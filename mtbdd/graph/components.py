"""Strongly connected components and maximal end components, on sets of states.

End components come out of a search like that for components, with choices in place of transitions.  One is
searched from one state: what it can reach, and what of that can reach it.  As in the CHAIN algorithm the next
search starts in the last round of the one before, next to what is found already, and works on the part that
is left there, so that searches get shorter.  Choices that may leave what is left are withdrawn during the
search and not between decompositions, and states without any other are peeled off in bulk after every step;
a component that nothing leaves is then a maximal end component.

References
----------
C. Larsen, S. Schmidt, J. Steensgaard, A. Jakobsen, J. van de Pol, A. Pavlogiannis, "A truly symbolic
linear-time algorithm for SCC decomposition", TACAS 2023.
arXiv:2505.20748 (symbolic MEC decomposition), for interleaving the withdrawal of choices with the search.
[WKB16] 2.2 to 2.4, for the definitions.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.relation import Relation
from mtbdd.graph.projections import model_parts
from mtbdd.graph.regions import strong_components
from mtbdd.graph.trimming import ChoicePeeling
from mtbdd.offset.states import index_states

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StrongComponents:
    """The strongly connected components of a graph.

    Attributes
    ----------
    manager : Manager
    components : tuple of Node
        Those of several states, over row bits.
    trivial : Node
        The states that are components of their own, whether or not they have a loop.
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


@dataclass(frozen=True)
class MaximalEndComponent:
    """A maximal end component.

    Attributes
    ----------
    states : Node
        Over row bits.
    choices : tuple of Node
        For every layer (relation) the states whose choice there stays inside.
    """

    states: Node
    choices: tuple[Node, ...]


@dataclass(frozen=True)
class EndComponents:
    """The maximal end components of a decision process, those of one state in bulk.

    Attributes
    ----------
    manager : Manager
    components : tuple of MaximalEndComponent
        Those of several states.
    single : MaximalEndComponent
        The union of all those of one state: each of these states is one by itself, and its choices
        there are the ones that surely come back to it.
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
        Numbers of bits by which to divide the graph before it is searched, see `mtbdd.graph.projections`.

    See Also
    --------
    mtbdd.graph.regions.strong_components : The search; no step of it lists states.
    """
    components = tuple(strong_components(manager, relations, states, parts))
    return StrongComponents(manager, components, states & ~manager.disjunction(components))


def model_components(model: SymbolicModel, within: Node | None = None) -> StrongComponents:
    """Return the strongly connected components of a model's graph, all choices taken together.

    Parameters
    ----------
    model : SymbolicModel
    within : Node, optional
        Restrict the graph to this subset of the reachable states.
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
        waiting.append((outside, graph.before(found, outside)))
        if inside == manager.false:
            kept = zip(graph.offers, looping, strict=True)
            staying = tuple(found & (offer | loop) for offer, loop in kept)
            components.append(MaximalEndComponent(found, staying))
            graph.remove(found)
        else:
            waiting.append((found, graph.before(inside, found)))
            waiting.append((inside, last & inside))
    rest = within & ~manager.disjunction(c.states for c in components)
    single = manager.disjunction(loop & rest for loop in looping)
    alone = MaximalEndComponent(single, tuple(loop & single for loop in looping))
    return EndComponents(manager, tuple(components), alone)


def maximal_end_components(
    manager: Manager, relations: Sequence[Node], within: Node
) -> list[MaximalEndComponent]:
    """Return the maximal end components inside a set, every one by itself; see `mec_decomposition`.

    Those of several states come first.  Time: besides the search, one set for every component of
    one state; where there are very many, `mec_decomposition` keeps them together.
    """
    found = mec_decomposition(manager, relations, within)
    every = list(found.components)
    left = found.single.states
    while left != manager.false:
        state = _pick(manager, left, left)
        left = left & ~state
        every.append(MaximalEndComponent(state, tuple(state & c for c in found.single.choices)))
    return every


def model_end_components(
    model: SymbolicModel, within: Node | None = None, allowed: Sequence[Node] | None = None
) -> EndComponents:
    """Return a model's maximal end components; a chain's are its bottom components.

    Parameters
    ----------
    model : SymbolicModel
    within : Node, optional
        Only inside this subset of the reachable states, without the choices that may leave it.
    allowed : sequence of Node, optional
        For every layer the states whose choice counts; default all.

    Returns
    -------
    EndComponents
        `choices` of the components has a set for every layer of the model.
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
