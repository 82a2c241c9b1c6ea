"""The compiled loops of refinement on diagrams: products of a matrix with functions of the states.

Functions of the states are nodes of a `Store`. A leaf has a word: the number of a block, or a residue modulo
2^61 - 1. Node 0 is the leaf 0. Importing it needs Numba.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.compiled import njit

_P = (1 << 61) - 1
_LOW31 = (1 << 31) - 1
_LOW30 = (1 << 30) - 1

ADD, MULTIPLY, DIFFER, PAIR, SPLIT, PRODUCT = 0, 1, 2, 3, 4, 5
"""Operations on leaves: of residues, and the word of a pair of words; of a product, with a matrix.

Functions that differ are 0 in the same states. A word that is split by 0 stays as it is.
"""

SIZE, LOGGED, LEFT = 0, 1, 2
"""Places in the record of a store: nodes, operations noted, steps until the caller is asked."""

MOST = 1 << 61
"""Counts of formal sums are less."""


class Store(NamedTuple):
    """Nodes of reduced diagrams over the row bits, children before their parents.

    Attributes
    ----------
    level : ndarray of int32, shape (room,)
        The bit that a node tests; of leaves the number of bits.
    low, high : ndarray of int32, shape (room,)
    word : ndarray of uint64, shape (room,)
        Of leaves.
    slots : ndarray of int32, shape (a power of two,)
        Nodes by what they are, -1 for none: open addressing.
    keys : ndarray of uint64, shape (k, 2), k a power of two
    results : ndarray of int32, shape (k,)
        What operations gave, -1 for none; a later one takes the place of one with the same hash.
    log : ndarray of uint64, shape (l, 4)
        Operations on leaves: which, on which words, with which result; none are noted where l is 0.
    record : ndarray of int64, shape (3,)
    """

    level: NDArray[np.int32]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    word: NDArray[np.uint64]
    slots: NDArray[np.int32]
    keys: NDArray[np.uint64]
    results: NDArray[np.int32]
    log: NDArray[np.uint64]
    record: NDArray[np.int64]


@njit(cache=True, nogil=True)
def mixed(number):  # type: ignore[no-untyped-def]
    """Return a word that looks random, always the same for a number."""
    word = np.uint64(number) + np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def plus(a, b):  # type: ignore[no-untyped-def]
    """Return a sum modulo 2^61 - 1."""
    total = a + b
    return total - np.uint64(_P) if total >= np.uint64(_P) else total


@njit(cache=True, nogil=True)
def times(a, b):  # type: ignore[no-untyped-def]
    """Return a product modulo 2^61 - 1, by halves: 2^62 is 2."""
    high_a, low_a = a >> np.uint64(31), a & np.uint64(_LOW31)
    high_b, low_b = b >> np.uint64(31), b & np.uint64(_LOW31)
    middle = high_a * low_b + low_a * high_b
    total = (
        high_a * high_b * np.uint64(2)
        + (middle >> np.uint64(30))
        + ((middle & np.uint64(_LOW30)) << np.uint64(31))
        + low_a * low_b
    )
    total = (total & np.uint64(_P)) + (total >> np.uint64(61))
    return total - np.uint64(_P) if total >= np.uint64(_P) else total


@njit(cache=True, nogil=True)
def pair_word(a, b):  # type: ignore[no-untyped-def]
    """Return the word of a pair: below 2^61 - 1, and not 0."""
    word = mixed(mixed(a) ^ b) % np.uint64(_P)
    return word if word else np.uint64(1)


@njit(cache=True, nogil=True)
def _made(store, level, low, high, word):  # type: ignore[no-untyped-def]
    """Return the node with some content, an old one if there is one; -1 without room."""
    mask = len(store.slots) - 1
    both = (np.uint64(low) << np.uint64(32)) | np.uint64(high)
    place = np.int64(mixed(both ^ mixed(word + np.uint64(level))) & np.uint64(mask))
    while store.slots[place] >= 0:
        node = np.int64(store.slots[place])
        if (
            store.level[node] == level
            and store.low[node] == low
            and store.high[node] == high
            and store.word[node] == word
        ):
            return node
        place = (place + 1) & mask
    node = store.record[SIZE]
    if node >= len(store.level):
        return np.int64(-1)
    store.level[node], store.low[node], store.high[node], store.word[node] = level, low, high, word
    store.slots[place] = node
    store.record[SIZE] = node + 1
    return node


@njit(cache=True, nogil=True)
def leaf(store, n_bits, word):  # type: ignore[no-untyped-def]
    """Return the leaf with some word; -1 without room."""
    return _made(store, n_bits, np.int64(0), np.int64(0), word)


@njit(cache=True, nogil=True)
def node_of(store, level, low, high):  # type: ignore[no-untyped-def]
    """Return the node that tests a bit; -1 without room."""
    if low == high:
        return np.int64(low)
    return _made(store, level, low, high, np.uint64(0))


@njit(cache=True, nogil=True)
def _note(store, operation, a, b, found):  # type: ignore[no-untyped-def]
    """Note an operation on leaves; False without room."""
    if not len(store.log):
        return True
    place = store.record[LOGGED]
    if place >= len(store.log):
        return False
    store.log[place, 0], store.log[place, 1] = np.uint64(operation), a
    store.log[place, 2], store.log[place, 3] = b, found
    store.record[LOGGED] = place + 1
    return True


@njit(cache=True, nogil=True)
def combined(store, n_bits, operation, a, b):  # type: ignore[no-untyped-def]
    """Return an operation of two functions; -1 where the caller is to make room, or to look at the time."""
    if a == 0:
        return np.int64(b) if operation == ADD else np.int64(0)
    if b == 0 and operation != PAIR:
        return np.int64(a) if operation != MULTIPLY else np.int64(0)
    if a == b and operation == DIFFER:
        return np.int64(0)
    if operation <= MULTIPLY and a > b:
        a, b = b, a
    first = (np.uint64(a) << np.uint64(32)) | np.uint64(b)
    place = np.int64(mixed(first + np.uint64(operation)) & np.uint64(len(store.results) - 1))
    if (
        store.results[place] >= 0
        and store.keys[place, 0] == first
        and store.keys[place, 1] == np.uint64(operation)
    ):
        return np.int64(store.results[place])
    store.record[LEFT] -= 1
    if store.record[LEFT] < 0:
        return np.int64(-1)
    level = min(np.int64(store.level[a]), np.int64(store.level[b]))
    if level == n_bits:
        x, y = store.word[a], store.word[b]
        if operation == ADD:
            word = plus(x, y)
        elif operation == MULTIPLY:
            word = times(x, y)
        elif operation == DIFFER:
            word = plus(x, np.uint64(_P) - y)
        else:
            word = pair_word(x, y)
        if not _note(store, operation, x, y, word):
            return np.int64(-1)
        found = leaf(store, n_bits, word)
    else:
        a_low, a_high, b_low, b_high = np.int64(a), np.int64(a), np.int64(b), np.int64(b)
        if store.level[a] == level:
            a_low, a_high = np.int64(store.low[a]), np.int64(store.high[a])
        if store.level[b] == level:
            b_low, b_high = np.int64(store.low[b]), np.int64(store.high[b])
        low = combined(store, n_bits, operation, a_low, b_low)
        if low < 0:
            return np.int64(-1)
        high = combined(store, n_bits, operation, a_high, b_high)
        if high < 0:
            return np.int64(-1)
        found = node_of(store, level, low, high)
    if found < 0:
        return np.int64(-1)
    store.keys[place, 0], store.keys[place, 1] = first, np.uint64(operation)
    store.results[place] = found
    return found


@njit(cache=True, nogil=True)
def product(store, n_bits, matrix, residues, bit, m, v):  # type: ignore[no-untyped-def]
    """Return a matrix times a function of the states, from some bit on; -1 as for `combined`.

    `matrix` has levels, else and then children: row bit k is level 2 k, column bit k level 2 k + 1; of a leaf
    the else child is the place of its residue, node 0 is the leaf 0.
    """
    if m == 0 or v == 0:
        return np.int64(0)
    first = (np.uint64(m) << np.uint64(32)) | np.uint64(v)
    kind = np.uint64(PRODUCT + bit)
    place = np.int64(mixed(first + kind) & np.uint64(len(store.results) - 1))
    if store.results[place] >= 0 and store.keys[place, 0] == first and store.keys[place, 1] == kind:
        return np.int64(store.results[place])
    store.record[LEFT] -= 1
    if store.record[LEFT] < 0:
        return np.int64(-1)
    level, lows, highs = matrix
    if bit == n_bits:
        number = np.int64(lows[m])
        word = times(residues[number], store.word[v])
        if not _note(store, PRODUCT, np.uint64(number), store.word[v], word):
            return np.int64(-1)
        found = leaf(store, n_bits, word)
    else:
        m_low, m_high = np.int64(m), np.int64(m)
        if level[m] == 2 * bit:
            m_low, m_high = np.int64(lows[m]), np.int64(highs[m])
        v_low, v_high = np.int64(v), np.int64(v)
        if store.level[v] == bit:
            v_low, v_high = np.int64(store.low[v]), np.int64(store.high[v])
        of_low, own = np.int64(0), np.int64(0)
        for half in range(2):
            row = m_high if half else m_low
            if half:
                of_low = own
                if m_high == m_low:
                    break
            left, right = row, row
            if level[row] == 2 * bit + 1:
                left, right = np.int64(lows[row]), np.int64(highs[row])
            one = product(store, n_bits, matrix, residues, bit + 1, left, v_low)
            if one < 0:
                return np.int64(-1)
            other = product(store, n_bits, matrix, residues, bit + 1, right, v_high)
            if other < 0:
                return np.int64(-1)
            own = combined(store, n_bits, ADD, one, other)
            if own < 0:
                return np.int64(-1)
        found = node_of(store, bit, of_low, own)
    if found < 0:
        return np.int64(-1)
    store.keys[place, 0], store.keys[place, 1] = first, kind
    store.results[place] = found
    return found


@njit(cache=True, nogil=True)
def marked(store, root, marks):  # type: ignore[no-untyped-def]
    """Mark the nodes of a function."""
    marks[root] = True
    for node in range(root, 0, -1):
        if marks[node]:
            marks[store.low[node]] = True
            marks[store.high[node]] = True


@njit(cache=True, nogil=True)
def copied(old, new, marks, image):  # type: ignore[no-untyped-def]
    """Copy marked nodes to another store, which has room for them; `image` are their numbers there."""
    for node in range(len(marks)):
        if marks[node]:
            low, high = image[old.low[node]], image[old.high[node]]
            if node == 0 or (old.low[node] == 0 and old.high[node] == 0):
                low, high = 0, 0
            image[node] = _made(new, np.int64(old.level[node]), low, high, old.word[node])


@njit(cache=True, nogil=True)
def relabelled(store, n_bits, marks, words, image):  # type: ignore[no-untyped-def]
    """Give the marked leaves other words, `words` by node; `image` are the new functions.

    False without room: the store is to grow, and the call to be repeated.
    """
    for node in range(len(marks)):
        if not marks[node]:
            continue
        low, high = np.int64(image[store.low[node]]), np.int64(image[store.high[node]])
        if store.level[node] == n_bits:
            found = leaf(store, n_bits, words[node])
        elif low == store.low[node] and high == store.high[node]:
            found = node
        else:
            found = node_of(store, np.int64(store.level[node]), low, high)
        if found < 0:
            return False
        image[node] = found
    return True


@njit(cache=True, nogil=True)
def measured(store, root, marks, share):  # type: ignore[no-untyped-def]
    """Fill in which share of all assignments leads to each node; 0 everywhere before."""
    share[root] = 1.0
    for node in range(root, 0, -1):
        if marks[node] and (store.low[node] or store.high[node]):
            share[store.low[node]] += share[node] / 2
            share[store.high[node]] += share[node] / 2


@njit(cache=True, nogil=True)
def placed(store):  # type: ignore[no-untyped-def]
    """Enter all nodes into empty slots."""
    mask = len(store.slots) - 1
    for node in range(store.record[SIZE]):
        level, low, high = store.level[node], np.int64(store.low[node]), np.int64(store.high[node])
        both = (np.uint64(low) << np.uint64(32)) | np.uint64(high)
        place = np.int64(mixed(both ^ mixed(store.word[node] + np.uint64(level))) & np.uint64(mask))
        while store.slots[place] >= 0:
            place = (place + 1) & mask
        store.slots[place] = node


@njit(cache=True, nogil=True)
def formal_sums(begin, operations, terms, starts, ends, keys, counts, record):  # type: ignore[no-untyped-def]
    """Work out what words stand for, from noted operations; require each to stand for one formal sum.

    Parameters
    ----------
    begin : int
        First operation to look at.
    operations : ndarray of int64, shape (l, 4)
        `ADD` of two words, or `PRODUCT` of a terminal and a block, and the word that it gives; words by
        number, in an order in which operands come first.
    terms : tuple of two ndarray of int64, and int
        Of every terminal its symbol and its count; the number of symbols.
    starts, ends : ndarray of int64, shape (words,)
        Where the sum of each word stands, -1 while none is known.
    keys, counts : ndarray of int64, shape (room,)
        Of sums one after the other: ``block * n_symbols + symbol``, ascending, and how often.
    record : ndarray of int64, shape (2,)
        How much room is taken; 1 if a word stands for two sums, 2 if a count is too large.

    Returns
    -------
    int
        The first operation that there is no room for.
    """
    symbols, counted, n_symbols = terms
    for k in range(begin, len(operations)):
        operation, a, b, c = operations[k]
        end = record[0]
        if operation == PRODUCT:
            if end >= len(keys):
                return k
            keys[end], counts[end] = b * n_symbols + symbols[a], counted[a]
            end += 1
        else:
            i, j = starts[a], starts[b]
            if end + (ends[a] - i) + (ends[b] - j) > len(keys):
                return k
            while i < ends[a] or j < ends[b]:
                if j >= ends[b] or (i < ends[a] and keys[i] < keys[j]):
                    keys[end], counts[end] = keys[i], counts[i]
                    i += 1
                elif i >= ends[a] or keys[j] < keys[i]:
                    keys[end], counts[end] = keys[j], counts[j]
                    j += 1
                else:
                    keys[end], counts[end] = keys[i], counts[i] + counts[j]
                    if counts[end] >= MOST:
                        record[1] = 2
                        return k
                    i += 1
                    j += 1
                end += 1
        if starts[c] < 0:
            starts[c], ends[c] = record[0], end
            record[0] = end
            continue
        size = end - record[0]
        is_same = size == ends[c] - starts[c]
        if is_same:
            for place in range(size):
                own, known = record[0] + place, starts[c] + place
                if keys[own] != keys[known] or counts[own] != counts[known]:
                    is_same = False
                    break
        if not is_same:
            record[1] = 1
            return k
    return len(operations)


@njit(cache=True, nogil=True)
def agreeing(blocks, words, skip, n_symbols, starts, ends, keys, counts):  # type: ignore[no-untyped-def]
    """Tell whether all words of a block stand for one sum; with `skip` but for what leads to the block.

    `blocks` and `words` are pairs, those of one block next to each other.
    """
    first = 0
    for k in range(1, len(blocks)):
        block = blocks[k]
        if blocks[first] != block:
            first = k
            continue
        i, j = starts[words[first]], starts[words[k]]
        end_i, end_j = ends[words[first]], ends[words[k]]
        while True:
            while skip and i < end_i and keys[i] // n_symbols == block:
                i += 1
            while skip and j < end_j and keys[j] // n_symbols == block:
                j += 1
            if i >= end_i or j >= end_j:
                break
            if keys[i] != keys[j] or counts[i] != counts[j]:
                return False
            i += 1
            j += 1
        if i < end_i or j < end_j:
            return False
    return True
