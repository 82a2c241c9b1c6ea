"""Transitions that come as a list, brought back to the few moves that a model's text has.

A move changes variables by fixed amounts and has one value: `x'=x+1` at rate 2. A model of a million
transitions has dozens. Its sources are mostly a box, a product of sets of values, cut to the states: a box
that holds no other state than the sources says the same with a small diagram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.ragged import pointers
from hybrid.core.few_values import few_values
from hybrid.interchange.compressing.encoded_states import EncodedStates
from hybrid.interchange.compressing.state_columns import StateColumns
from hybrid.interchange.explicit_model import Numbers
from mtbdd.manager import Manager, Node
from mtbdd.states import index_states

_MOST_MOVES = 4096
_MOST_VALUES = 63  # of a variable whose sets of values are words of bits
_KEY_LIMIT = 1 << 62
_PART = 1 << 18  # entries that are looked at together


@dataclass(frozen=True)
class Moves:
    """Transitions by move.

    Attributes
    ----------
    order : ndarray of int64, shape (n_entries,)
        The entries, those of a move next to each other.
    starts : ndarray of int64, shape (n_moves + 1,)
        Where each move's entries lie in `order`.
    numbers : ndarray of uint16, shape (n_entries,)
        Every entry's move.
    changes : ndarray of int64, shape (n_moves, n_variables)
        What a move adds to every variable.
    values : ndarray of int64, shape (n_moves,)
        The number of its value.
    """

    order: Numbers
    starts: Numbers
    numbers: NDArray[np.integer]
    changes: Numbers
    values: Numbers


def find_moves(
    columns: StateColumns, sources: Numbers, targets: Numbers, values: NDArray[np.integer]
) -> Moves | None:
    """Return the moves of some transitions, None if there are so many that they save nothing.

    Parameters
    ----------
    columns : StateColumns
    sources, targets : ndarray of int64, shape (n_entries,)
        By the source's state numbers.
    values : ndarray of integers, shape (n_entries,)
        Numbers of values.

    Notes
    -----
    A state's variables are packed into one number (several where they are many) by radices wide enough that
    differences of states are differences of numbers. Time: O(entries log entries) in NumPy.
    """
    most = min(_MOST_MOVES, 32 + int(1e-5 * len(sources) * columns.rows.n_bits))
    keys: NDArray[np.integer] = np.asarray(values)
    for word in _packings(columns):
        change = np.empty(len(targets), dtype=np.int64)
        for part in _parts(len(targets)):
            change[part] = word[targets[part]] - word[sources[part]]
        changes, ids = few_values(change)
        del change
        if len(changes) > most:
            return None
        pairs = keys.astype(np.int64)
        pairs *= max(len(changes), 1)
        pairs += ids
        _, keys = few_values(pairs)
        del pairs
    n_moves = int(keys.max(initial=0)) + 1 if len(keys) else 0
    if n_moves > most:
        return None
    keys = keys.astype(np.uint16)  # sorted by digits, in linear time
    order = np.argsort(keys, kind="stable")
    counts = np.zeros(n_moves, dtype=np.int64)
    for part in _parts(len(keys)):
        counts += np.bincount(keys[part], minlength=n_moves)
    starts = pointers(np, counts)
    first = order[starts[:-1]]
    ends = targets[first], sources[first]
    moved = [np.subtract(*(column[end].astype(np.int64) for end in ends)) for column in columns.numbers]
    stacked = np.stack(moved, axis=1) if moved else np.zeros((n_moves, 0), dtype=np.int64)
    return Moves(order, starts, keys, stacked, np.asarray(values)[first])


def _parts(size: int) -> Iterator[slice]:
    """Yield stretches of so many entries, one after the other: what is made of one is no array of all."""
    for begin in range(0, size, _PART):
        yield slice(begin, begin + _PART)


def _packings(columns: StateColumns) -> list[Numbers]:
    """Return numbers of the states whose differences tell the differences of all variables."""
    words: list[Numbers] = []
    radix = _KEY_LIMIT
    for size, column in zip(columns.sizes(), columns.numbers, strict=True):
        width = 2 * size
        if radix * width >= _KEY_LIMIT:
            words.append(np.zeros(len(column), dtype=np.int64))
            radix = 1
        words[-1] += column.astype(np.int64) * radix
        radix *= width
    return words


ValueSets = list[tuple[int, int]]
"""By move: the values that a variable has in its sources, as a word of bits and 0; of a variable with many
values the least and the greatest."""


def value_sets(columns: StateColumns, moves: Moves, sources: Numbers) -> list[ValueSets]:
    """Return, for every variable, its values in the sources of every move.

    Parameters
    ----------
    columns : StateColumns
    moves : Moves
    sources : ndarray of int64, shape (n_entries,)

    Notes
    -----
    Time: O(entries x variables) in NumPy.
    """
    sorted_sources = sources[moves.order]
    first = moves.starts[:-1]
    found: list[ValueSets] = []
    for size, column in zip(columns.sizes(), columns.numbers, strict=True):
        narrow = column.astype(np.min_scalar_type(size))
        held = np.empty(len(sorted_sources), narrow.dtype)
        for part in _parts(len(held)):
            held[part] = narrow[sorted_sources[part]]
        if size <= _MOST_VALUES:
            word = np.min_scalar_type((1 << size) - 1)
            sets = np.bitwise_or.reduceat(np.left_shift(word.type(1), held, dtype=word), first)
            found.append([(mask, 0) for mask in sets.tolist()])
        else:
            low, high = np.minimum.reduceat(held, first), np.maximum.reduceat(held, first)
            found.append(list(zip(low.tolist(), high.tolist(), strict=True)))
    return found


def source_sets(
    states: EncodedStates, moves: Moves, sources: Numbers, values: Sequence[ValueSets]
) -> list[Node]:
    """Return, for every move, a set whose states are its sources; it may hold assignments that are no states.

    Parameters
    ----------
    states : EncodedStates
    moves : Moves
    sources : ndarray of int64, shape (n_entries,)
        Distinct within a move.
    values : sequence of ValueSets
        See `value_sets`.

    Notes
    -----
    Time: for every move that of counting a set's states, and O(states) for each whose sources are no box.
    """
    manager = states.encoding.manager
    counts = np.diff(moves.starts)
    boxes = [manager.true] * len(counts)
    for number, keys in enumerate(values):
        size = states.variable(number).size
        known: dict[tuple[int, int], Node] = (
            {((1 << size) - 1, 0): manager.true} if size <= _MOST_VALUES else {}
        )
        for move, key in enumerate(keys):
            if key not in known:
                if size > _MOST_VALUES:
                    known[key] = states.between(number, *key)
                else:
                    own = [value for value in range(size) if key[0] >> value & 1]
                    known[key] = states.number_sets(number, own)
            boxes[move] = boxes[move] & known[key]
    found = []
    for move, box in enumerate(boxes):
        if index_states(manager, box & states.node).size == counts[move]:
            found.append(box)
            continue
        members = moves.order[moves.starts[move] : moves.starts[move + 1]]
        mask = np.zeros(states.index.size, dtype=np.bool_)
        mask[sources[members]] = True
        found.append(states.set_of(mask))
    return found


def shifted(manager: Manager, rows: list[str], columns: list[str], amount: int) -> Node:
    """Return the relation "column number = row number + amount", modulo the numbers that the bits hold.

    Parameters
    ----------
    manager : Manager
    rows, columns : list of str
        Bits, most significant first.
    amount : int

    Notes
    -----
    Time: O(bits).
    """
    bdd = manager.bdd
    amount %= 1 << len(rows)
    carried = [manager.true, manager.false]  # by the carry that the bits below hand on
    for place, (row, column) in enumerate(zip(reversed(rows), reversed(columns), strict=True)):
        digit = amount >> place & 1
        x, y = bdd.var(row), bdd.var(column)
        found = [manager.false, manager.false]
        for bit in (0, 1):
            for carry in (0, 1):
                total = bit + digit + carry
                here = (x if bit else ~x) & (y if total & 1 else ~y) & carried[carry]
                found[total >> 1] = found[total >> 1] | here
        carried = found
    return carried[0] | carried[1]
