"""Transitions that come as a list, brought back to the few moves that a model's text has.

A move changes variables by fixed amounts and has one value: `x'=x+1` at rate 2. A model of a million
transitions has dozens. Its sources are mostly a box, a product of sets of values, cut to the states: a box
that holds no other state than the sources says the same with a small diagram.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.compressing.encoded_states import EncodedStates
from hybrid.interchange.compressing.few_values import few_values
from hybrid.interchange.explicit_model import Numbers
from mtbdd.manager import Manager, Node
from mtbdd.states import index_states

_MOST_MOVES = 4096
_MOST_VALUES = 63  # of a variable whose sets of values are words of bits
_KEY_LIMIT = 1 << 62


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
    states: EncodedStates, sources: Numbers, targets: Numbers, values: NDArray[np.integer]
) -> Moves | None:
    """Return the moves of some transitions, None if there are so many that they save nothing.

    Parameters
    ----------
    states : EncodedStates
    sources, targets : ndarray of int64, shape (n_entries,)
        By the source's state numbers.
    values : ndarray of integers, shape (n_entries,)
        Numbers of values.

    Notes
    -----
    A state's variables are packed into one number (several where they are many) by radices wide enough that
    differences of states are differences of numbers. Time: O(entries log entries) in NumPy.
    """
    most = min(_MOST_MOVES, 32 + int(1e-4 * len(sources) * states.encoding.n_bits))
    keys: NDArray[np.integer] = np.asarray(values)
    for word in _packings(states):
        change = word[targets]
        change -= word[sources]
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
    starts = np.zeros(n_moves + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n_moves), out=starts[1:])
    first = order[starts[:-1]]
    moved = [column[targets[first]] - column[sources[first]] for column in states.columns]
    stacked = np.stack(moved, axis=1) if moved else np.zeros((n_moves, 0), dtype=np.int64)
    return Moves(order, starts, keys, stacked, np.asarray(values)[first])


def _packings(states: EncodedStates) -> list[Numbers]:
    """Return numbers of the states whose differences tell the differences of all variables."""
    words: list[Numbers] = []
    radix = _KEY_LIMIT
    for variable, column in zip(states.encoding.variables, states.columns, strict=True):
        width = 2 * variable.size
        if radix * width >= _KEY_LIMIT:
            words.append(np.zeros(len(column), dtype=np.int64))
            radix = 1
        words[-1] += column * radix
        radix *= width
    return words


def source_sets(states: EncodedStates, moves: Moves, sources: Numbers) -> list[Node]:
    """Return, for every move, a set whose states are its sources; it may hold assignments that are no states.

    Parameters
    ----------
    states : EncodedStates
    moves : Moves
    sources : ndarray of int64, shape (n_entries,)
        Distinct within a move.

    Notes
    -----
    Time: O(entries x variables) in NumPy, and for every move that of counting a set's states; O(states) for
    each whose sources are no box.
    """
    manager = states.encoding.manager
    sorted_sources = sources[moves.order]
    first = moves.starts[:-1]
    counts = np.diff(moves.starts)
    boxes = [manager.true] * len(counts)
    for number, column in enumerate(states.columns):
        variable = states.encoding.variables[number]
        held = column.astype(np.min_scalar_type(variable.size))[sorted_sources]
        known: dict[tuple[int, int], Node] = {}
        if variable.size <= _MOST_VALUES:
            word = np.min_scalar_type((1 << variable.size) - 1)
            sets = np.bitwise_or.reduceat(np.left_shift(word.type(1), held, dtype=word), first)
            keys = [(mask, 0) for mask in sets.tolist()]
        else:
            low, high = np.minimum.reduceat(held, first), np.maximum.reduceat(held, first)
            keys = list(zip(low.tolist(), high.tolist(), strict=True))
        every = (1 << variable.size) - 1
        for move, key in enumerate(keys):
            if key not in known:
                if variable.size > _MOST_VALUES:
                    known[key] = states.between(number, *key)
                elif key[0] == every:
                    known[key] = manager.true
                else:
                    own = [value for value in range(variable.size) if key[0] >> value & 1]
                    known[key] = states.number_sets(number, own)
            boxes[move] = boxes[move] & known[key]
    found = []
    for move, box in enumerate(boxes):
        if index_states(manager, box & states.node).size == counts[move]:
            found.append(box)
            continue
        mask = np.zeros(states.index.size, dtype=np.bool_)
        mask[sorted_sources[moves.starts[move] : moves.starts[move + 1]]] = True
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
