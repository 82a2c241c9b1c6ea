"""States where the graph alone decides an until: Prob0 and Prob1 for all and for some schedulers.

The sets are those of :mod:`mtbdd.graph.prob01`, whose searches on diagrams are taken where a model does not
suit the lists of :mod:`hybrid.analysis.precomputation`.  A search here takes each state from a stack
once and drops or follows its incoming choices (Forejt et al., "Automated verification techniques for
probabilistic systems", 2011, algorithms 1 to 4; dropping choices until none is left as in Dowling and
Gallier, 1984, makes them linear), so that its time does not depend on how many steps away from the target a
state is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import concatenated_ranges
from hybrid.base.components import search_states, withdraw_states
from hybrid.matrix.injection.injected import enumerate_paths
from hybrid.matrix.injection.submatrices import level_blocks
from mtbdd.base.records import Record
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph import prob01 as graph
from mtbdd.graph.prob01 import remove_choices
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex, states_from

if TYPE_CHECKING:
    from mtbdd.graph.components import EndComponents

# Predecessors of states: the layers of a decision process cut at a level, in lists by column.
#
# As in the products of the engine the upper part of the diagrams is listed as paths (instances) and the lower
# part as explicit submatrices, each kept once, here in compressed columns and without values. All layers are
# cut at the same level, so that a state's column prefix is found once for all of them. What a level takes is
# counted before anything is listed; a model that does not suit this form is left to the searches on sets
# (:mod:`mtbdd.graph.prob01`).

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]

_MOST_STATES = 2**31 - 1
_MOST_TRANSITIONS = 2**27  # beyond them searches on sets are taken, whose time depends on the diagrams
_MOST_LAYERS = 64  # one bit of a word each
_VECTORS = 24  # bytes a state that the lists may take: those of the vectors a solver needs at least
_FLOOR = 1 << 20  # ... or this many in all
_DETOURS = 4  # instances examined for every transition and state, on average at most


class PredecessorLists(Record, eq=False):
    """Instances by column group, and submatrices in compressed columns.

    Attributes
    ----------
    level : int
        Where the diagrams are cut; even.
    enabled : ndarray, shape (n_states,), uint8 or uint64
        Bit i is set where layer i has a choice.
    starts : ndarray, shape (groups + 1,), int64
        First state of every column group (states with the same prefix), and the number of states.
    shift : int
        States ``j << shift`` and later belong to the group ``near[j]`` or a later one.
    near : ndarray, shape (((n_states - 1) >> shift) + 1,), int32
    instance_ptr : ndarray, shape (groups + 1,), int64
        Instances over the columns of group g are ``instance_ptr[g] .. instance_ptr[g + 1]``.
    row : ndarray, shape (instances,), int32
        First row.
    choice : ndarray, shape (instances,), as `enabled`
        The layer's bit.
    slot : ndarray, shape (instances,), int32
        Where the columns of the submatrix begin in `column_ptr`.
    column_ptr : ndarray, shape (columns of all submatrices + 1,), int32
        Entries of column c of a submatrix are ``column_ptr[slot + c] .. column_ptr[slot + c + 1]``.
    entry_row : ndarray, shape (entries,), int32
        Local rows.
    """

    n_states: int
    n_transitions: int
    level: int
    enabled: NDArray[Any]
    starts: Int64Array
    shift: int
    near: Int32Array
    instance_ptr: Int64Array
    row: Int32Array
    choice: NDArray[Any]
    slot: Int32Array
    column_ptr: Int32Array
    entry_row: Int32Array

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        parts = (getattr(self, field.name) for field in fields(self))
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The first arguments of the searches in `hybrid.base.components`, in their order."""
        return (
            self.starts, self.shift, self.near, self.instance_ptr, self.row, self.choice, self.slot,
            self.column_ptr, self.entry_row,
        )  # fmt: skip

    def words(self, choices: Iterable[NDArray[np.bool_]]) -> NDArray[Any]:
        """Return sets of choices, given as one vector a layer, as words like `enabled`."""
        return _words(choices, 8 * self.enabled.itemsize, self.n_states)


def predecessor_lists(model: SymbolicModel) -> PredecessorLists | None:
    """Return the lists of a model, made once; None where a search on sets is called for.

    That is where states, transitions or layers are very many, or where no level keeps the lists below what a
    solver's vectors take. Chains are searched on sets unless states and transitions are few.
    """
    if not (model.is_mdp or _is_short(model)):
        return None
    return model.once(_smallest_lists)


def _is_short(model: SymbolicModel) -> bool:
    """Return whether the interpreter lists and searches a chain sooner than diagrams are searched."""
    if "numba" in sys.modules or not _has_time(_FEWEST) or model.n_states > _FEWEST:
        return False
    return model.n_states + model.n_transitions <= _FEWEST


def _smallest_lists(model: SymbolicModel) -> PredecessorLists | None:
    suits = (
        model.communicator.size == 1  # they would need the states of all processes
        and 0 < model.n_states <= _MOST_STATES
        and len(model.layers) <= _MOST_LAYERS
        and model.n_transitions <= _MOST_TRANSITIONS
    )
    if suits and model.is_few:
        return list_predecessors(model, 0)
    level = _best_level(model) if suits else None
    return None if level is None else list_predecessors(model, level)


def _best_level(model: SymbolicModel) -> int | None:
    """Return the level with the smallest lists among those with few instances without a match."""
    matrices = _matrices(model)
    bits = model.index.n_bits
    nbytes, visits = np.zeros(bits + 1), np.zeros(bits + 1)
    for matrix in matrices:
        below, above = matrix.entries_below, matrix.paths_above
        for bit in range(bits + 1):
            k = 2 * bit
            columns = matrix.columns[k].astype(np.float64)
            nbytes[bit] += 9.0 * float(above[k].sum()) + 4.0 * float(below[k].sum() + columns.sum())
            visits[bit] += float(above[k] @ columns)
    nbytes += 16.0 * _prefix_counts(model.index)
    allowed = visits <= _DETOURS * (model.n_transitions + model.n_states)
    allowed &= nbytes <= max(_FLOOR, _VECTORS * model.n_states)
    if not allowed.any():
        return None
    return 2 * int(np.argmin(np.where(allowed, nbytes, np.inf)))


def list_predecessors(model: SymbolicModel, level: int) -> PredecessorLists:
    """Cut the layers of a model at an even level and list them by column.

    A level that is odd or not one of the diagrams' is refused, and a model with more than 64 layers or 2^31 -
    1 states. Time: O((instances + entries) * levels), array sweeps only.
    """
    matrices, index = _matrices(model), model.index
    if level % 2 or not 0 <= level <= 2 * index.n_bits:
        raise ValueError(f"level: expected an even number from 0 to {2 * index.n_bits}, got {level}")
    if len(matrices) > _MOST_LAYERS or index.size > _MOST_STATES:
        raise ValueError(
            f"expected at most {_MOST_LAYERS} layers and {_MOST_STATES} states, got {len(matrices)} and "
            f"{index.size}: use the searches on sets of mtbdd.graph.prob01"
        )
    enabled = _words((model.indicator(own.enabled) for own in model.layers), len(matrices), index.size)
    starts = _group_starts(index, level // 2)
    parts: list[tuple[NDArray[Any], ...]] = []
    slots = entries = 0
    for number, matrix in enumerate(matrices):
        row, column, node = enumerate_paths(matrix, level)
        blocks = level_blocks(matrix, level)
        own = np.repeat(np.arange(len(blocks)), np.diff(blocks.ptr))
        # Columns of all submatrices one after the other; entries in that order, rows ascending within each.
        first = pointers(np, blocks.n_columns)
        place = first[own] + blocks.column
        order = np.argsort(place, kind="stable")
        parts.append(
            (
                np.searchsorted(starts, column, side="right") - 1,
                row,
                np.full(row.size, 1 << number, np.uint64),
                first[node] + slots,
                np.cumsum(np.bincount(place, minlength=int(first[-1]))) + entries,
                blocks.row[order],
            )
        )
        slots, entries = slots + int(first[-1]), entries + order.size
    group, rows, choice, slot, ends, local = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(group, kind="stable")
    shift = max(int(index.size // max(starts.size - 1, 1)).bit_length() - 1, 0)
    corners = np.arange(((max(index.size, 1) - 1) >> shift) + 1, dtype=np.int64) << shift
    return PredecessorLists(
        n_states=index.size,
        n_transitions=model.n_transitions,
        level=level,
        enabled=enabled,
        starts=starts,
        shift=shift,
        near=(np.searchsorted(starts, corners, side="right") - 1).astype(np.int32),
        instance_ptr=pointers(np, np.bincount(group, minlength=starts.size - 1)),
        row=rows[order].astype(np.int32),
        choice=choice[order].astype(enabled.dtype),
        slot=slot[order].astype(np.int32),
        column_ptr=np.concatenate(([0], ends)).astype(np.int32),
        entry_row=local.astype(np.int32),
    )


def _words(choices: Iterable[NDArray[np.bool_]], n_layers: int, n_states: int) -> NDArray[Any]:
    """Pack one vector a layer to a word a state."""
    word = np.uint8 if n_layers <= 8 else np.uint64
    found: NDArray[Any] = np.zeros(n_states, word)
    for number, own in enumerate(choices):
        found[own] |= word(1 << number)
    return found


def _matrices(model: SymbolicModel) -> list[OffsetMTBDD]:
    layers, every = range(len(model.layers)), model.index
    if model.is_few:
        return [model.part(number, every, every, every) for number in layers]
    return [model.layer_transitions(number) for number in layers]


def _prefix_counts(index: StateIndex) -> NDArray[np.float64]:
    """Return the number of prefixes of the states of every length, shape (n_bits + 1,)."""
    paths = np.ones(index.counts[0].size)
    found = [float(paths.sum())]
    for bit in range(index.n_bits):
        below = np.zeros(index.counts[bit + 1].size)
        for child in (index.low[bit], index.high[bit]):
            there = child >= 0
            np.add.at(below, child[there], paths[there])
        paths = below
        found.append(float(paths.sum()))
    return np.array(found)


def _group_starts(index: StateIndex, bits: int) -> Int64Array:
    """Return the first state of every prefix of some bits, and the number of states."""
    sequence = np.zeros(min(index.size, 1), np.int64)
    for bit in range(bits):
        both = np.stack((index.low[bit][sequence], index.high[bit][sequence]), axis=1).ravel()
        sequence = both[both >= 0].astype(np.int64)
    starts: Int64Array = pointers(np, index.counts[bits][sequence])
    return starts


Mask = NDArray[np.bool_]
Words = NDArray[Any]

_FEW_TRANSITIONS = 1 << 20
"""Transitions and states up to which rounds in NumPy are done, in 0.1 s or so, before Numba is imported."""

_WIDE = 48
"""States from which a round takes as long as the interpreter does to look at them one by one."""

_FEWEST = 1 << 14
"""Transitions and states of a chain up to which lists are made and searched sooner than diagrams."""

_MOST_INTERPRETED = 1 << 21
"""The same of all searches of a process: some sets are found by one search for every state."""


def never_reached(model: SymbolicModel, safe: Node, target: Node, maximise: bool) -> Node:
    """Return where the probability of ``safe U target``, of an MDP the greatest or the least, is 0."""
    return prob0a(model, safe, target) if maximise or not model.is_mdp else prob0e(model, safe, target)


def reaching(model: SymbolicModel, target: Node, through: Node | None = None) -> Node:
    """Return the reachable states with a path to a target, all before it in a set.

    Time: O(states + transitions), or that of :func:`mtbdd.graph.prob01.backward`.
    """
    lists = predecessor_lists(model)
    if lists is None:
        return graph.backward(model, target, through)
    allowed = lists.enabled if through is None else np.where(model.indicator(through), lists.enabled, 0)
    found = _search(lists, allowed.astype(lists.enabled.dtype), model.indicator(target))
    return states_from(model.manager, model.index, found)


def staying_choices(model: SymbolicModel, states: Node) -> list[Node]:
    """Return for every layer the states of a set whose choice surely stays in it.

    Lemma: endings (docs/multi.md).
    """
    kept = [layer.enabled & states for layer in model.layers]
    outside = model.reachable & ~states
    if outside != model.manager.false:
        for step in model.choice_relations:
            kept[step.layer] = kept[step.layer] & ~step.preimage(outside)  # lemma: endings
    return kept


def decided_states(model: SymbolicModel, safe: Node, target: Node, maximise: bool) -> tuple[Node, Node]:
    """Return where the probability of `safe U target`, of an MDP the greatest or least, is 0, and where 1."""
    if not model.is_mdp:
        zero = prob0a(model, safe, target)
        return zero, prob1a(model, safe, target, zero)
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

    `zero` is the result of `prob0e` if it is known. Time: O(states + transitions), or that of
    :func:`mtbdd.graph.prob01.prob1a`.
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

    `allowed` has for every layer the states whose choice may be taken; default all. Time: O(states +
    transitions), or that of :func:`mtbdd.graph.prob01.remove_choices`.
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
    """Return the maximal end components inside a set; `allowed` is as for `staying_states`.

    Only states from which a scheduler may stay in the set are searched, and often there are none. Time: that
    of `staying_states`, and of :func:`mtbdd.graph.components.model_end_components` on them.
    """
    from mtbdd.graph.components import EndComponents, MaximalEndComponent, model_end_components

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

    def found_from(states: Int64Array, found: Mask) -> Int64Array:
        source, choice = _steps_into(lists, states)
        new: Int64Array = source[(allowed[source] & choice != 0) & ~found[source]]
        return new

    return _run(search_states, found_from, lists, allowed, target)


def _withdraw(lists: PredecessorLists, kept: Words, lost: Mask) -> Mask:
    """Return the lost states and all that lose their last choice with them; those choices are dropped."""
    kept[lost] = 0

    def gone_from(states: Int64Array, gone: Mask) -> Int64Array:
        source, choice = _steps_into(lists, states)
        hit = kept[source] & choice != 0
        source = source[hit]
        np.bitwise_and.at(kept, source, ~choice[hit])
        new: Int64Array = source[kept[source] == 0]
        return new

    return _run(withdraw_states, gone_from, lists, kept, lost)


_interpreted = 0
"""Transitions and states that were searched without compiled code."""


def _is_little(lists: PredecessorLists) -> bool:
    """Return whether lists are searched in rounds before compiled code is ready."""
    global _interpreted
    work = lists.n_transitions + lists.n_states
    if work > _FEW_TRANSITIONS or not _has_time(work) or "numba" in sys.modules:
        return False
    _interpreted += work
    return True


def _has_time(work: int) -> bool:
    """Return whether some transitions and states may still be searched without compiled code."""
    return work <= _MOST_INTERPRETED - _interpreted


def _run(
    search: Callable[..., int],
    advance: Callable[[Int64Array, Mask], Int64Array],
    lists: PredecessorLists,
    choices: Words,
    start: Mask,
) -> Mask:
    """Search backward from some states by compiled code or, where that is sooner done, in rounds.

    Parameters
    ----------
    search : callable
        Of `hybrid.base.components`: state by state.
    advance : callable
        ``(states, marked)`` to the states that a round from some states marks, which may come repeatedly.
    """
    marked, waiting = start.copy(), np.flatnonzero(start)
    stack = np.empty(lists.n_states, np.int32)
    if not _is_little(lists):
        from hybrid.matrix.cpu import graph_kernels

        stack[: waiting.size] = waiting
        compiled = getattr(graph_kernels, search.__name__)
        compiled(*lists.arrays, choices, stack, waiting.size, marked, lists.n_states + 1)
        return marked
    arrays = (*lists.arrays, choices, stack)
    views = [part.data if isinstance(part, np.ndarray) else part for part in arrays]
    last = np.empty(lists.n_states, np.int64)
    while waiting.size:
        if waiting.size < _WIDE:
            stack[: waiting.size] = waiting
            left = search(*views, waiting.size, marked.data, _WIDE)
            waiting = stack[:left].astype(np.int64)
            continue
        waiting = advance(waiting, marked)
        places = np.arange(waiting.size)
        last[waiting] = places
        waiting = waiting[last[waiting] == places]
        marked[waiting] = True
    return marked


def _steps_into(lists: PredecessorLists, states: Int64Array) -> tuple[Int64Array, Words]:
    """Return sources and choices' bits of all transitions into some states."""
    group = np.searchsorted(lists.starts, states, side="right") - 1
    count = lists.instance_ptr[group + 1] - lists.instance_ptr[group]
    instance = concatenated_ranges(lists.instance_ptr[group], count)
    place = lists.slot[instance] + (states - lists.starts[group]).repeat(count)
    count = (lists.column_ptr[place + 1] - lists.column_ptr[place]).astype(np.int64)
    entry = concatenated_ranges(lists.column_ptr[place], count)
    instance = instance.repeat(count)
    sources: Int64Array = lists.row[instance] + lists.entry_row[entry]
    return sources, lists.choice[instance]
