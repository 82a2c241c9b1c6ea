"""The variables' values of many states, as arrays, without the states in between.

States that follow each other share long prefixes of their bits.  A range of them is read off the ODD level by
level, as a list of prefixes, so that a prefix is looked at once however many states begin with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtbdd.diagrams.encoding import EncodedVariable
from mtbdd.base.memory import require_memory
from mtbdd.offset.states import StateIndex

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

    Notes
    -----
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
