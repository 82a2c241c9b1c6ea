"""Vectors and values of states, from the order of the diagram to that of users and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.encoding import EncodedVariable
from mtbdd.offset.states import StateIndex, inverse, keeps_order, sorted_places, text_keys


def for_users(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector over all states in the order of their numbers: the same one where that is the index."""
    return vector if model.numbering is None else vector[..., model.numbering]


def for_diagram(model: SymbolicModel, vector: NDArray[Any]) -> NDArray[Any]:
    """Return a vector in the order of the states' numbers in that of the index: inverse of `for_users`."""
    numbers = model.once(_numbers)
    return vector if numbers is None else vector[numbers]


def in_order(
    model: SymbolicModel, indices: NDArray[np.int64], within: StateIndex | None = None
) -> NDArray[np.int64]:
    """Return indices of states in a set (default: all states), ascending, in the order of the numbers.

    Time: O(1) where the two orders are the same, otherwise O(k log k) for k indices; O(n) more in a
    model whose numbers were given to it.
    """
    index = model.index if within is None else within
    if indices.size < 2 or keeps_text(model):
        return indices
    if "numbering" not in vars(model):  # nor is it made for the sake of a few states
        return indices[sorted_places(model.encoding, index, indices)]
    numbers = model.once(_numbers)
    assert numbers is not None
    places = indices if index is model.index else np.flatnonzero(model.indicator(index.states))[indices]
    return indices[np.argsort(numbers[places])]


def keeps_text(model: SymbolicModel) -> bool:
    """Return whether states are numbered as they are indexed."""
    return model.numbering is None if "numbering" in vars(model) else keeps_order(model.encoding)


def _numbers(model: SymbolicModel) -> NDArray[np.int64] | None:
    return None if model.numbering is None else inverse(model.numbering)


# The variables' values of many states, as arrays, without the states in between.
#
# States that follow each other share long prefixes of their bits.  A range of them is read off the ODD level
# by level, as a list of prefixes, so that a prefix is examined once however many states begin with it.

# Which numbers a process's own states have among those of all, where processes share the states.

_ROUND = 1 << 18
"""States whose places in the text's order are found together."""


def own_numbers(model: SymbolicModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the own states among all, ascending, and their indices among the own.

    `model`: as this process has it. All processes call it at once. Returns `numbers, indices`: ndarray of
    int64, shape (own states,). Raises MemoryError: there is no room for the numbers.

    Memory: some words for every own state, and the keys of some 260,000 states; a numbering that was given to
    the model is held already. Time: O(own states) in numpy for every bit where the diagram keeps the order of
    the text; in another order own states are sorted, and merged with those of the others.
    """
    whole = model.whole
    given = None if whole.given is None else whole.given.numbering
    held = vars(whole).get("numbering") if given is None else given
    if held is not None:
        return _given(held, whole.index.places(model.index))
    if "numbering" in vars(whole) or keeps_order(whole.encoding):
        return whole.index.places(model.index), np.arange(model.index.size)
    return _merged(model)


def _given(
    numbering: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Search a list of all states for the own ones, some at a time."""
    numbers, indices = np.empty_like(places), np.empty_like(places)
    done = 0
    for begin in range(0, numbering.size if places.size else 0, _ROUND):
        part = numbering[begin : begin + _ROUND]
        found = np.minimum(np.searchsorted(places, part), places.size - 1)
        own = np.flatnonzero(places[found] == part)
        numbers[done : done + own.size], indices[done : done + own.size] = begin + own, found[own]
        done += own.size
    return numbers, indices


def _merged(model: SymbolicModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the own states in the order of the text, and find their places among those of all processes.

    In every round each process shows its next states.  Up to the least of the last states shown, of those
    processes that have more, all are known.
    """
    communicator, index = model.communicator, model.index
    order = sorted_places(model.encoding, index)
    numbers = np.empty_like(order)
    piece = -(-_ROUND // communicator.size)
    done = told = 0
    while True:
        shown = text_keys(model.encoding, index, order[done : done + piece])
        sizes, more = communicator.gather([shown.shape[1], done + piece < order.size]).T
        found = communicator.gather_bytes(shown.tobytes())
        parts = [np.frombuffer(part, np.int64).reshape(shown.shape[0], -1) for part in found]
        places = np.empty(int(sizes.sum()), np.int64)
        places[np.lexsort(np.concatenate(parts, axis=1)[::-1])] = np.arange(places.size)
        ends = np.cumsum(sizes).astype(np.int64)
        unfinished = ends[more > 0] - 1
        known = int(places[unfinished].min()) + 1 if unfinished.size else places.size
        end = int(ends[communicator.rank])
        own = places[end - shown.shape[1] : end]
        own = own[own < known]
        numbers[done : done + own.size] = told + own
        done, told = done + own.size, told + known
        if not unfinished.size:
            return numbers, order


_SMALL = 1 << 31  # integers below it in size take 4 bytes
_PART = 1 << 18  # states whose values are decoded together


def table_type(variables: Sequence[EncodedVariable]) -> np.dtype[Any]:
    """Return the structured dtype of states: a field a variable, bool, int32, or int64 where needed."""
    kinds = [
        np.bool_ if v.is_bool else np.int32 if max(-v.low, v.high + 1) <= _SMALL else np.int64
        for v in variables
    ]
    return np.dtype([(v.name, kind) for v, kind in zip(variables, kinds, strict=True)])


def table_of_range(
    index: StateIndex, variables: Sequence[EncodedVariable], begin: int, end: int
) -> NDArray[Any]:
    """Return the states with the indices begin .. end - 1, shape (end - begin,), a field a variable.

    Time: O(levels + prefixes + states * variables) in numpy, the prefixes being those of these states.
    """
    table = np.zeros(max(end - begin, 0), dtype=table_type(variables))
    if not table.size:
        return table
    by_last = {v.bits[-1]: v for v in variables if v.bits}
    for v in variables:
        if not v.bits:
            table[v.name] = v.low
    node, start, value = (np.zeros(1, dtype=np.int64) for _ in range(3))
    for bit, (low, high) in enumerate(zip(index.low, index.high, strict=True)):
        counts = np.append(index.counts[bit + 1], 0)  # place -1: no child, no states
        children = np.stack([low[node], high[node]], axis=1)
        sizes = counts[children]
        starts = np.stack([start, start + sizes[:, 0]], axis=1)
        kept = (sizes > 0) & (starts < end) & (starts + sizes > begin)
        value = np.stack([2 * value, 2 * value + 1], axis=1)[kept]
        node, start = children[kept].astype(np.int64), starts[kept]
        if bit in by_last:
            variable = by_last[bit]
            lengths = np.minimum(start + counts[node], end) - np.maximum(start, begin)
            table[variable.name] = np.repeat(_decoded(variable, value), lengths)
            value = np.zeros(node.size, dtype=np.int64)
    return table


def table_of_states(
    index: StateIndex, variables: Sequence[EncodedVariable], indices: NDArray[np.int64]
) -> NDArray[Any]:
    """Return some states by index, shape (len(indices),), a field a variable.  Time: O(len * bits)."""
    bits = index.bits_at(indices)
    table = np.zeros(indices.size, dtype=table_type(variables))
    for v in variables:
        stored = np.zeros(indices.size, dtype=np.int64)
        for bit in v.bits:
            stored = 2 * stored + bits[:, bit]
        table[v.name] = _decoded(v, stored)
    return table


def states_in_parts(
    index: StateIndex,
    variables: Sequence[EncodedVariable],
    numbering: NDArray[np.int64] | None,
    part: int = _PART,
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield all states in the order of their numbers, some at a time, as (numbers, table)."""
    for begin in range(0, index.size, part):
        end = min(begin + part, index.size)
        if numbering is None:
            table = table_of_range(index, variables, begin, end)
        else:
            table = table_of_states(index, variables, numbering[begin:end])
        yield slice(begin, end), table


def some_states(
    index: StateIndex,
    variables: Sequence[EncodedVariable],
    numbering: NDArray[np.int64] | None,
    states: ArrayLike | slice | None,
) -> NDArray[Any]:
    """Return some states by number, or all of them, a field a variable.

    Parameters
    ----------
    index : StateIndex
    variables : sequence of EncodedVariable
        The fields.
    numbering : ndarray of int64, shape (n,), or None
        The index of each state; None if numbers are indices.
    states : array of int, array of bool of shape (n,), slice, or None
        Numbers of states, or where they are; None are all.

    Returns
    -------
    ndarray, structured, shape (n,) or that of the numbers

    Raises
    ------
    IndexError
        A number is not that of a state.
    MemoryError
        There is no room for it.

    Notes
    -----
    Time: O(states * variables).
    """
    size, kind = index.size, table_type(variables)
    if states is None or isinstance(states, slice):
        begin, end, step = (states or slice(None)).indices(size)
        if step != 1 or numbering is not None:
            return some_states(index, variables, numbering, np.arange(begin, end, step))
        require_memory(max(end - begin, 0) * kind.itemsize, "a table of states", "ask for fewer states")
        table = np.zeros(max(end - begin, 0), dtype=kind)
        for first in range(begin, end, _PART):
            last = min(first + _PART, end)
            table[first - begin : last - begin] = table_of_range(index, variables, first, last)
        return table
    numbers = np.asarray(states)
    if numbers.dtype == np.bool_:
        if numbers.shape != (size,):
            raise IndexError(f"states: expected {size} truth values, one a state, got {numbers.shape}")
        numbers = np.flatnonzero(numbers)
    if numbers.size and (numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= size):
        raise IndexError(f"states: expected numbers from 0 to {size - 1}")
    flat = numbers.reshape(-1).astype(np.int64)
    require_memory(flat.size * kind.itemsize, "a table of states", "ask for fewer states")
    table = np.zeros(flat.size, dtype=kind)
    for begin in range(0, flat.size, _PART):
        part = flat[begin : begin + _PART]
        places = part if numbering is None else numbering[part]
        table[begin : begin + _PART] = table_of_states(index, variables, places)
    return table.reshape(numbers.shape)


def _decoded(variable: EncodedVariable, stored: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values that stored numbers stand for."""
    return stored.astype(np.bool_) if variable.is_bool else stored + variable.low
