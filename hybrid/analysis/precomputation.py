"""States where the graph alone decides an until: Prob0 and Prob1 for all and for some schedulers.

The sets are those of :mod:`mtbdd.graph.prob01`, whose searches on diagrams are taken where a model does not
suit the lists of :mod:`hybrid.analysis.predecessor_lists`.  A search here takes each state from a stack
once and drops or follows its incoming choices (Forejt et al., "Automated verification techniques for
probabilistic systems", 2011, algorithms 1 to 4; dropping choices until none is left as in Dowling and
Gallier, 1984, makes them linear), so that its time does not depend on how many steps away from the target a
state is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.predecessor_lists import PredecessorLists, predecessor_lists
from hybrid.base.backward_search import search_states, withdraw_states
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph import prob01 as graph
from mtbdd.graph.components import EndComponents, MaximalEndComponent, model_end_components
from mtbdd.graph.predecessors import remove_choices
from mtbdd.offset.states import states_from

Mask = NDArray[np.bool_]
Words = NDArray[Any]

_FEW_TRANSITIONS = 1 << 16
"""Transitions and states up to which the interpreter is done, in 0.05 s or so, before Numba is imported."""

_MOST_INTERPRETED = 1 << 18
"""The same of all searches of a process: some sets are found by one search for every state."""


def decided_states(model: SymbolicModel, safe: Node, target: Node, maximise: bool) -> tuple[Node, Node]:
    """Return where the greatest or least probability of `safe U target` is 0, and where it is 1."""
    if maximise:
        return prob0a(model, safe, target), prob1e(model, safe, target)
    zero = prob0e(model, safe, target)
    return zero, prob1a(model, safe, target, zero)


def prob0a(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 0 under all schedulers.

    Time: O(states + transitions), or that of :func:`mtbdd.graph.prob01.prob0a`.
    """
    lists = predecessor_lists(model)
    if lists is None:
        return graph.prob0a(model, safe, target)
    found = _search(lists, _through(model, lists, safe, target), model.indicator(target))
    return states_from(model.manager, model.index, ~found)


def prob0e(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 0 under some scheduler.

    Time: O(states + transitions), or that of :func:`mtbdd.graph.prob01.prob0e`.
    """
    lists = predecessor_lists(model)
    if lists is None:
        return graph.prob0e(model, safe, target)
    positive = _withdraw(lists, _through(model, lists, safe, target), model.indicator(target))
    return states_from(model.manager, model.index, ~positive)


def prob1a(model: SymbolicModel, safe: Node, target: Node, zero: Node | None = None) -> Node:
    """Return the states where `safe U target` has probability 1 under all schedulers.

    Parameters
    ----------
    model : SymbolicModel
    safe, target : Node
    zero : Node, optional
        The result of `prob0e` if it is known.

    Notes
    -----
    Time: O(states + transitions), or that of :func:`mtbdd.graph.prob01.prob1a`.
    """
    if zero is None:
        zero = prob0e(model, safe, target)
    if zero == model.manager.false:
        return model.reachable
    lists = predecessor_lists(model)
    if lists is None:
        return graph.prob1a(model, safe, target, zero)
    found = _search(lists, _through(model, lists, safe, target), model.indicator(zero))
    return states_from(model.manager, model.index, ~found)


def prob1e(model: SymbolicModel, safe: Node, target: Node) -> Node:
    """Return the states where `safe U target` has probability 1 under some scheduler.

    Notes
    -----
    Time: O(states + transitions) for every search of the target, one more than there are regions to give up
    one after the other, or that of :func:`mtbdd.graph.prob01.prob1e`.
    """
    lists = predecessor_lists(model)
    if lists is None:
        return graph.prob1e(model, safe, target)
    goal = model.indicator(target)
    kept = _through(model, lists, safe, target)
    gone = np.zeros(lists.n_states, np.bool_)
    while True:
        found = _search(lists, kept, goal)
        lost = ~(found | gone)
        if not lost.any():
            return states_from(model.manager, model.index, found)
        gone |= _withdraw(lists, kept, lost)


def staying_states(model: SymbolicModel, within: Node, allowed: Sequence[Node] | None = None) -> Node:
    """Return the states of a set from which some scheduler surely never leaves it.

    Parameters
    ----------
    model : SymbolicModel
    within : Node
        Subset of the reachable states.
    allowed : sequence of Node, optional
        For every layer the states whose choice may be taken; default all.

    Notes
    -----
    Time: O(states + transitions), or that of :func:`mtbdd.graph.predecessors.remove_choices`.
    """
    manager = model.manager
    lists = predecessor_lists(model)
    outside = model.reachable & ~within
    if lists is not None:
        if allowed is None:
            kept = lists.enabled.copy()
        else:
            kept = lists.words(model.indicator(own) for own in allowed)
        gone = _withdraw(lists, kept, model.indicator(outside) | (kept == 0))
        return states_from(manager, model.index, ~gone)
    if not model.is_mdp:
        return within
    choices = [own.enabled for own in model.layers] if allowed is None else list(allowed)
    lost, _ = remove_choices(model, outside | (within & ~manager.disjunction(choices)), choices)
    return within & ~lost


def end_components(
    model: SymbolicModel, within: Node, allowed: Sequence[Node] | None = None
) -> EndComponents:
    """Return the maximal end components inside a set.

    Parameters
    ----------
    model : SymbolicModel
    within : Node
        Choices that may leave it are left out.
    allowed : sequence of Node, optional
        For every layer the states whose choice may be taken; default all.

    Notes
    -----
    Only states from which a scheduler may stay in the set are searched, and often there are none.  Time: that
    of `staying_states`, and of :func:`mtbdd.graph.components.model_end_components` on them.
    """
    staying = staying_states(model, within, allowed)
    if staying == model.manager.false:
        none = MaximalEndComponent(staying, tuple(staying for _ in model.layers))
        return EndComponents(model.manager, (), none)
    return model_end_components(model, staying, allowed)


def _through(model: SymbolicModel, lists: PredecessorLists, safe: Node, target: Node) -> Words:
    """Return the choices of safe states outside of the target, a new vector."""
    inside = model.indicator(safe & ~target)
    return np.where(inside, lists.enabled, 0).astype(lists.enabled.dtype)


def _search(lists: PredecessorLists, allowed: Words, target: Mask) -> Mask:
    """Return the states with a path to the target by allowed choices."""
    return _run(search_states, lists, allowed, target)


def _withdraw(lists: PredecessorLists, kept: Words, lost: Mask) -> Mask:
    """Return the lost states and all that lose their last choice with them; those choices are dropped."""
    kept[lost] = 0
    return _run(withdraw_states, lists, kept, lost)


_interpreted = 0
"""Transitions and states that the interpreter has searched."""


def _is_little(lists: PredecessorLists) -> bool:
    """Tell whether the interpreter has searched lists before compiled code is ready."""
    global _interpreted
    work = lists.n_transitions + lists.n_states
    if work > _FEW_TRANSITIONS or work > _MOST_INTERPRETED - _interpreted or "numba" in sys.modules:
        return False
    _interpreted += work
    return True


def _run(search: Callable[..., None], lists: PredecessorLists, choices: Words, start: Mask) -> Mask:
    """Run a search of `backward_search`, compiled or, where that is sooner done, by the interpreter."""
    first = np.flatnonzero(start)
    if _is_little(lists):
        arrays = (part.tolist() if isinstance(part, np.ndarray) else part for part in lists.arrays)
        kept, marks = choices.tolist(), start.tolist()
        stack = first.tolist() + [0] * (lists.n_states - first.size)
        search(*arrays, kept, stack, first.size, marks)
        choices[:] = kept
        return np.array(marks, np.bool_)
    from hybrid.matrix.cpu import backward_kernels

    places = np.empty(lists.n_states, np.int32)
    places[: first.size] = first
    marked = start.copy()
    getattr(backward_kernels, search.__name__)(*lists.arrays, choices, places, first.size, marked)
    return marked
