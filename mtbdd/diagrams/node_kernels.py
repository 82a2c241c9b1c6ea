"""Compiled operations on shared MTBDDs; importing it needs Numba.

A node has a level, an else child and a then child, children before parents. A leaf stands at the level
`bottom` and has a word of 64 bits: a double, a residue modulo 2^61 - 1, or any number. Node 0 is the leaf
whose word is 0. The product with a matrix follows the recursion of Clarke et al. (1993) and Fujita, McGeer,
Yang (1997): pairs of nodes, each computed once.

Row bit i is level 3 i, column bit i level 3 i + 1. Level 3 i + 2 is free for the columns of a second factor.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.compiled import njit

ADD, TIMES, MATRIX, SCALE = 0, 4, 8, 12
"""Operations in an arithmetic, whose number is added: sum, product, product with a matrix, power of two."""

MODULAR = 2
"""Arithmetic of residues; that of doubles is their rounding (0 nearest, 1 up, -1 down) modulo 4."""

GREATER, LESS, DIFFER, PAIR, SPLIT, EXCEPT = range(16, 22)
"""Further operations: maximum and minimum of doubles, difference of residues, and the word of two words.

Functions that differ are 0 in the same states. A word that is split by 0 stays as it is. A word except the
same word is 0, except another one it stays.
"""

DONE, PAUSED, FULL, OVERFLOW = range(4)
"""Outcomes of a run."""

DEPTH, NODES, KNOWN, RESULT, LOGGED, ROUNDED, TINY = range(7)
"""Places in the record of a store: frames, nodes, results known, the last one, operations noted.

Then whether a result was rounded, and whether a product was so small that its relative error is unknown.
"""

_ID_BITS = 29
_LARGE, _SMALL = 2.0**500, 2.0**-480  # lemma: diagram-rounding
_SPLIT = 2.0**27 + 1
_LEAST = 5e-324
_TINY = 2.0**-960  # lemma: diagram-series
_P = (1 << 61) - 1
_LOW31 = (1 << 31) - 1
_LOW30 = (1 << 30) - 1


class Store(NamedTuple):
    """Nodes of reduced diagrams, and what is known of them.

    Attributes
    ----------
    nodes : ndarray of int32, shape (room, 3)
        Level, else child, then child; of a leaf the level `bottom` and 0 twice.
    words : ndarray of uint64, shape (room,)
        Of leaves, else 0.
    unique : ndarray of int32, shape (a power of two,)
        Nodes by what they are, -1 for none: open addressing.
    keys : ndarray of int64, shape (a power of two,)
        Operations whose result is known, with their operands, likewise.
    results : ndarray of int32, shape (places,)
        What they gave.
    stack : ndarray of int64, shape (frames, 6)
        Operation, both operands, stage, first result, power of two.
    log : ndarray of uint64, shape (l, 4)
        Operations on leaves: which, on which words, with which result; none are noted where l is 0.
    record : ndarray of int64, shape (7,)
    """

    nodes: NDArray[np.int32]
    words: NDArray[np.uint64]
    unique: NDArray[np.int32]
    keys: NDArray[np.int64]
    results: NDArray[np.int32]
    stack: NDArray[np.int64]
    log: NDArray[np.uint64]
    record: NDArray[np.int64]


# Arithmetic. `hybrid.base.directed_rounding` says the same of arrays: one function for both would have to be
# compiled, and what reads a model file or few numbers does without Numba.


@njit(cache=True, nogil=True)
def _times(a, b, rounding):  # type: ignore[no-untyped-def]
    """Return a product rounded to nearest (0), and then 0 only where a factor is, down (-1) or up (1).

    Lemma: diagram-rounding (docs/bounds.md).
    """
    found = a * b
    if a == 0.0 or b == 0.0 or abs(a) == 1.0 or abs(b) == 1.0:
        return found
    if found == 0.0:
        is_kept = rounding == 0 or np.copysign(1.0, found) == rounding  # lemma: diagram-rounding
        return np.copysign(_LEAST, found) if is_kept else 0.0
    if rounding == 0:
        return found
    x, y = abs(a), abs(b)
    if x < _LARGE and y < _LARGE and x > _SMALL and y > _SMALL:
        large = a * _SPLIT
        a_high = large - (large - a)
        a_low = a - a_high
        large = b * _SPLIT
        b_high = large - (large - b)
        b_low = b - b_high
        error = (
            (a_high * b_high - found) + a_high * b_low + a_low * b_high
        ) + a_low * b_low  # lemma: diagram-rounding
        if error * rounding <= 0.0:  # lemma: diagram-rounding
            return found
    return np.nextafter(found, rounding * np.inf)  # lemma: diagram-rounding


@njit(cache=True, nogil=True)
def _plus(a, b, rounding):  # type: ignore[no-untyped-def]
    """Return a sum rounded to nearest (0), down (-1) or up (1).

    Lemma: diagram-rounding (docs/bounds.md).
    """
    found = a + b
    if rounding == 0:
        return found
    rest = found - a
    error = (a - (found - rest)) + (b - rest)  # lemma: diagram-rounding
    if error * rounding <= 0.0:  # lemma: diagram-rounding
        return found
    return np.nextafter(found, rounding * np.inf)  # lemma: diagram-rounding


@njit(cache=True, nogil=True)
def _scatter(a, b, c):  # type: ignore[no-untyped-def]
    """Return a hash of three numbers."""
    key = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    key = (key ^ (key >> np.uint64(29))) + np.uint64(c) * np.uint64(0x165667B19E3779F9)
    key = (key ^ (key >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((key ^ (key >> np.uint64(31))) & np.uint64(0x7FFFFFFFFFFFFFFF))


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
def _leaf(store, bottom, word):  # type: ignore[no-untyped-def]
    """Return the leaf of a word, for which there is room."""
    if word == 0:
        return np.int64(0)
    mask = len(store.unique) - 1
    place = _scatter(word, bottom, 0) & mask
    while store.unique[place] >= 0:
        own = store.unique[place]
        if store.words[own] == word and store.nodes[own, 0] == bottom:
            return np.int64(own)
        place = (place + 1) & mask
    new = store.record[NODES]
    store.nodes[new, 0], store.nodes[new, 1], store.nodes[new, 2] = bottom, 0, 0
    store.words[new] = word
    store.unique[place] = new
    store.record[NODES] = new + 1
    return new


@njit(cache=True, nogil=True)
def _node(store, level, low, high):  # type: ignore[no-untyped-def]
    """Return the function that tests a bit and goes on with two others; there is room for its node."""
    if low == high:
        return np.int64(low)
    nodes, unique = store.nodes, store.unique
    mask = len(unique) - 1
    place = _scatter(low, high, level) & mask
    while unique[place] >= 0:
        own = unique[place]
        if nodes[own, 1] == low and nodes[own, 2] == high and nodes[own, 0] == level:
            return np.int64(own)
        place = (place + 1) & mask
    new = store.record[NODES]
    nodes[new, 0], nodes[new, 1], nodes[new, 2] = level, low, high
    store.words[new] = 0
    unique[place] = new
    store.record[NODES] = new + 1
    return new


@njit(cache=True, nogil=True)
def index_nodes(store, bottom):  # type: ignore[no-untyped-def]
    """Enter all nodes into an empty table."""
    mask = len(store.unique) - 1
    for own in range(1, store.record[NODES]):
        if store.nodes[own, 0] == bottom:
            place = _scatter(store.words[own], bottom, 0) & mask
        else:
            place = _scatter(store.nodes[own, 1], store.nodes[own, 2], store.nodes[own, 0]) & mask
        while store.unique[place] >= 0:
            place = (place + 1) & mask
        store.unique[place] = own


@njit(cache=True, nogil=True)
def index_keys(keys, results, out_keys, out_results):  # type: ignore[no-untyped-def]
    """Move known results into an empty table of a power of two of places."""
    mask = len(out_keys) - 1
    for i in range(len(keys)):
        if keys[i] >= 0:
            place = _scatter(keys[i], 0, 0) & mask
            while out_keys[place] >= 0:
                place = (place + 1) & mask
            out_keys[place], out_results[place] = keys[i], results[i]


@njit(cache=True, nogil=True)
def insert(store, bottom, nodes, words, out_ids):  # type: ignore[no-untyped-def]
    """Store a function; `out_ids` receives the stored node of each of its nodes, for which there is room."""
    for i in range(len(nodes)):
        if nodes[i, 0] == bottom:
            out_ids[i] = _leaf(store, bottom, words[nodes[i, 1]])
        else:
            out_ids[i] = _node(store, nodes[i, 0], out_ids[nodes[i, 1]], out_ids[nodes[i, 2]])


@njit(cache=True, nogil=True)
def mark(store, bottom, root, out_marks):  # type: ignore[no-untyped-def]
    """Mark the nodes of a function; return how many were not marked yet."""
    count = 0
    if not out_marks[root]:
        out_marks[root] = True
        count = 1
    for node in range(root, 0, -1):
        if out_marks[node] and store.nodes[node, 0] < bottom:
            for side in (1, 2):
                child = store.nodes[node, side]
                if not out_marks[child]:
                    out_marks[child] = True
                    count += 1
    return count


@njit(cache=True, nogil=True)
def keep(store, bottom, marks, out_place):  # type: ignore[no-untyped-def]
    """Move marked nodes together, the leaf 0 among them; `out_place` receives their new numbers."""
    count = 0
    for node in range(len(marks)):
        if not marks[node]:
            continue
        level, low, high = store.nodes[node, 0], store.nodes[node, 1], store.nodes[node, 2]
        if level < bottom:
            low, high = out_place[low], out_place[high]
        store.nodes[count, 0], store.nodes[count, 1], store.nodes[count, 2] = level, low, high
        store.words[count] = store.words[node]
        out_place[node] = count
        count += 1
    store.record[NODES] = count


@njit(cache=True, nogil=True)
def copy(store, bottom, marks, out_place, out_nodes, out_words):  # type: ignore[no-untyped-def]
    """Copy marked nodes, leaves first, each with its number in the place of both children; count leaves."""
    leaves = 0
    for node in range(len(marks)):
        if marks[node] and store.nodes[node, 0] == bottom:
            out_nodes[leaves, 0], out_nodes[leaves, 1], out_nodes[leaves, 2] = bottom, leaves, leaves
            out_words[leaves] = store.words[node]
            out_place[node] = leaves
            leaves += 1
    own = leaves
    for node in range(len(marks)):
        if marks[node] and store.nodes[node, 0] < bottom:
            out_nodes[own, 0] = store.nodes[node, 0]
            out_nodes[own, 1] = out_place[store.nodes[node, 1]]
            out_nodes[own, 2] = out_place[store.nodes[node, 2]]
            out_place[node] = own
            own += 1
    return leaves


@njit(cache=True, nogil=True)
def relabel(store, bottom, marks, words, out_image):  # type: ignore[no-untyped-def]
    """Give the marked leaves other words, `words` by node; there is room for all marked nodes once more."""
    for node in range(len(marks)):
        if not marks[node]:
            continue
        if store.nodes[node, 0] == bottom:
            out_image[node] = _leaf(store, bottom, words[node])
        else:
            low, high = out_image[store.nodes[node, 1]], out_image[store.nodes[node, 2]]
            out_image[node] = _node(store, store.nodes[node, 0], low, high)


@njit(cache=True, nogil=True)
def share_out(store, bottom, root, marks, out_share):  # type: ignore[no-untyped-def]
    """Fill in which share of all assignments leads to each node; 0 everywhere before."""
    out_share[root] = 1.0
    for node in range(root, 0, -1):
        if marks[node] and store.nodes[node, 0] < bottom:
            out_share[store.nodes[node, 1]] += out_share[node] / 2
            out_share[store.nodes[node, 2]] += out_share[node] / 2


@njit(cache=True, nogil=True)
def _note(store, operation, a, b, found):  # type: ignore[no-untyped-def]
    """Note an operation on leaves on request."""
    place = store.record[LOGGED]
    if place < len(store.log):
        store.log[place, 0], store.log[place, 1] = np.uint64(operation), a
        store.log[place, 2], store.log[place, 3] = b, found
        store.record[LOGGED] = place + 1


@njit(cache=True, nogil=True)
def _of_residues(store, operation, x, y):  # type: ignore[no-untyped-def]
    """Return the word that an operation makes of two words, which are residues or have no meaning."""
    if operation == ADD + MODULAR:
        word = plus(x, y)
    elif operation < GREATER:
        word = times(x, y)
    elif operation == DIFFER:
        word = plus(x, np.uint64(_P) - y)
    elif operation == EXCEPT:
        word = x  # equal words are one leaf
    else:
        word = pair_word(x, y)
    _note(store, operation, x, y, word)
    return word


@njit(cache=True, nogil=True)
def _of_doubles(record, operation, x, y):  # type: ignore[no-untyped-def]
    """Return what an operation makes of two doubles.

    Lemmas: diagram-rounding, diagram-series (docs/bounds.md).
    """
    if operation == GREATER:
        return max(x, y)
    if operation == LESS:
        return min(x, y)
    rounding = 0
    if operation & 3:
        rounding = 1 if operation & 3 == 1 else -1  # lemma: diagram-rounding
    if operation & ~3 == ADD:
        found = _plus(x, y, rounding)
        if record[ROUNDED] == 0 and _plus(x, y, -rounding) != found:  # lemma: diagram-series
            record[ROUNDED] = 1
        return found
    found = _times(x, y, rounding)
    if record[ROUNDED] == 0 and _times(x, y, -rounding) != found:  # lemma: diagram-series
        record[ROUNDED] = 1
    if abs(found) < _TINY:  # lemma: diagram-series
        record[TINY] = 1
    return found


@njit(cache=True, nogil=True)
def begin(store, operation, a, b, power):  # type: ignore[no-untyped-def]
    """Put one operation on the empty stack."""
    store.stack[0, 0], store.stack[0, 1], store.stack[0, 2] = operation, a, b
    store.stack[0, 3], store.stack[0, 4], store.stack[0, 5] = 0, 0, power
    store.record[DEPTH] = 1


@njit(cache=True, nogil=True)
def run(store, bottom, steps):  # type: ignore[no-untyped-def]
    """Go on with the operations on the stack until all are done, for at most so many steps.

    Returns int: DONE; PAUSED after so many steps; FULL where there is no room for more nodes, results or
    notes; OVERFLOW where a value leaves the finite doubles. PAUSED and FULL may be gone on with.
    """
    nodes, words, keys, results, stack, record = (
        store.nodes, store.words, store.keys, store.results, store.stack, store.record,
    )  # fmt: skip
    doubles = words.view(np.float64)
    mask = len(keys) - 1
    room = min(len(nodes), len(store.unique) // 2) - 2
    most = len(keys) // 2 - 2
    notes = len(store.log) - bottom - 2 if len(store.log) else 1
    left = steps
    while record[DEPTH] > 0:
        if left == 0:
            return PAUSED
        if record[NODES] > room or record[KNOWN] > most or record[LOGGED] > notes:
            return FULL
        left -= 1
        top = record[DEPTH] - 1
        operation, a, b, stage, power = (
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3], stack[top, 5],
        )  # fmt: skip
        kind = operation if operation >= GREATER else operation & ~3
        result = np.int64(-1)
        if stage == 0:
            if kind == ADD:
                if a == 0:
                    result = b
                elif b == 0:
                    result = a
            elif kind == GREATER or kind == LESS:
                if a == b:
                    result = a
            elif a == 0:
                result = np.int64(0)
            elif kind == DIFFER or kind == SPLIT or kind == EXCEPT:
                if b == 0:
                    result = a
                elif a == b and kind != SPLIT:
                    result = np.int64(0)
            elif b == 0 and kind != PAIR:
                result = np.int64(0)
            if result >= 0:
                record[RESULT], record[DEPTH] = result, top
                continue
            if (kind <= TIMES or kind == GREATER or kind == LESS) and a > b:
                a, b = b, a
                stack[top, 1], stack[top, 2] = a, b
        a_level, b_level = np.int64(nodes[a, 0]), np.int64(bottom)
        if kind != SCALE:
            b_level = np.int64(nodes[b, 0])
            if kind == MATRIX and b_level < bottom:
                b_level += 1
        level = min(a_level, b_level)
        is_word = operation >= DIFFER or operation & 3 == MODULAR and operation < GREATER
        key = (((operation << _ID_BITS) | a) << _ID_BITS) | b
        is_known = False
        if stage == 0 and (level < bottom or is_word):
            place = _scatter(key, 0, 0) & mask
            while keys[place] >= 0 and keys[place] != key:
                place = (place + 1) & mask
            is_known = keys[place] == key
            if is_known:
                result = np.int64(results[place])
        if is_known:
            pass
        elif level == bottom:
            if kind == SCALE and is_word:
                word = words[a]
                for _ in range(b):
                    twice = plus(word, word)
                    _note(store, ADD + MODULAR, word, word, twice)
                    word = twice
            elif kind == SCALE:
                value = doubles[a]
                for _ in range(b):
                    value = value * 2.0  # exact, or infinite
                if not np.isfinite(value):
                    return OVERFLOW
                word = np.float64(value).view(np.uint64)
            elif is_word:
                word = _of_residues(store, operation, words[a], words[b])
            else:
                value = _of_doubles(record, operation, doubles[a], doubles[b])
                if not np.isfinite(value):
                    return OVERFLOW
                word = np.float64(value + 0.0).view(np.uint64)
            result = _leaf(store, bottom, word)
        elif stage < 2:
            if stage == 1:
                stack[top, 4] = record[RESULT]
            side = stage + 1
            stack[top, 3] = side
            skipped = np.int64(0)
            if a_level == level:
                a = np.int64(nodes[a, side])
            if b_level == level:
                b = np.int64(nodes[b, side])
            if kind == MATRIX:
                below = np.int64(nodes[b, 0])
                below = min(np.int64(nodes[a, 0]), below + 1 if below < bottom else below)
                skipped = (below + 1) // 3 - (level + 2) // 3
            stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = operation, a, b
            stack[top + 1, 3], stack[top + 1, 4], stack[top + 1, 5] = 0, 0, skipped
            record[DEPTH] = top + 2
            continue
        elif stage == 3:
            result = record[RESULT]
        elif kind != MATRIX:
            result = _node(store, level, stack[top, 4], record[RESULT])
        elif level % 3 != 1:
            result = _node(store, level - level % 3 // 2, stack[top, 4], record[RESULT])
        else:
            low, high = stack[top, 4], record[RESULT]
            if low != 0 and high != 0:
                stack[top, 3] = 3
                stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = ADD + (operation & 3), low, high
                stack[top + 1, 3], stack[top + 1, 4], stack[top + 1, 5] = 0, 0, 0
                record[DEPTH] = top + 2
                continue
            result = low + high
        if not is_known and (level < bottom or is_word):
            place = _scatter(key, 0, 0) & mask
            while keys[place] >= 0:
                place = (place + 1) & mask
            keys[place], results[place] = key, result
            record[KNOWN] += 1
        if power > 0 and result != 0:
            # A skipped bit that is summed over doubles.
            stack[top, 0], stack[top, 1], stack[top, 2] = SCALE + (operation & 3), result, power
            stack[top, 3], stack[top, 5] = 0, 0
        else:
            record[RESULT], record[DEPTH] = result, top
    return DONE


@njit(cache=True, nogil=True)
def meet(store, bottom, steps, out_keys, out_stack, out_pairs, out_record):  # type: ignore[no-untyped-def]
    """Find all pairs of leaves that two functions have in one place, for at most so many steps.

    Pairs wait on `out_stack`, met ones are in `out_keys`, pairs of leaves in `out_pairs`; the record counts
    them.  Returns as `run` does.
    """
    nodes = store.nodes
    mask = len(out_keys) - 1
    left = steps
    while out_record[0] > 0:
        if left == 0:
            return PAUSED
        if (
            out_record[1] > len(out_keys) // 2 - 2
            or out_record[0] > len(out_stack) - 2
            or out_record[2] > len(out_pairs) - 1
        ):
            return FULL
        left -= 1
        out_record[0] -= 1
        key = out_stack[out_record[0]]
        place = _scatter(key, 0, 0) & mask
        while out_keys[place] >= 0 and out_keys[place] != key:
            place = (place + 1) & mask
        if out_keys[place] == key:
            continue
        out_keys[place] = key
        out_record[1] += 1
        a, b = key >> _ID_BITS, key & ((np.int64(1) << _ID_BITS) - 1)
        level = min(nodes[a, 0], nodes[b, 0])
        if level == bottom:
            out_pairs[out_record[2], 0], out_pairs[out_record[2], 1] = a, b
            out_record[2] += 1
            continue
        for side in (1, 2):
            left_child = np.int64(nodes[a, side]) if nodes[a, 0] == level else a
            right_child = np.int64(nodes[b, side]) if nodes[b, 0] == level else b
            out_stack[out_record[0]] = left_child << _ID_BITS | right_child
            out_record[0] += 1
    return DONE
