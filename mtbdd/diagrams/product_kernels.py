"""Compiled recursions on shared MTBDDs: products summed over bits, sums, maxima; importing it needs Numba.

A function has an array of nodes (level, else child, then child), children before parents, and one of values.
A leaf stands at the level `bottom` and names its value twice. The product follows the recursion of Clarke et
al. (1993) and Fujita, McGeer, Yang (1997): pairs of nodes, each computed once.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit

MULTIPLY, ADD, SCALE, GREATER, LESS = range(5)
"""Operations: the product of two given functions; sum, power of two, maximum and minimum of stored ones."""

DONE, PAUSED, FULL, OVERFLOW = range(4)
"""How a run ended."""

DEPTH, NODES, VALUES, KNOWN, RESULT, STEPS = range(6)
"""Places of a run's state: frames, nodes, values, cached pairs, the last result, steps made."""

_ID_BITS = 29
_LARGE, _SMALL = 2.0**500, 2.0**-480  # lemma: diagram-rounding
_SPLIT = 2.0**27 + 1
_LEAST = 5e-324


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
def _leaf(value, bottom, out_nodes, out_values, out_unique, out_state):  # type: ignore[no-untyped-def]
    """Return the leaf of a value; 0 is leaf 0."""
    if value == 0.0:
        return np.int64(0)
    mask = len(out_unique) - 1
    place = _scatter(np.float64(value).view(np.int64), bottom, 0) & mask
    while out_unique[place] >= 0:
        own = out_unique[place]
        if out_nodes[own, 0] == bottom and out_values[out_nodes[own, 1]] == value:
            return np.int64(own)
        place = (place + 1) & mask
    new, number = out_state[NODES], out_state[VALUES]
    out_nodes[new, 0], out_nodes[new, 1], out_nodes[new, 2] = bottom, number, number
    out_values[number] = value
    out_unique[place] = new
    out_state[NODES], out_state[VALUES] = new + 1, number + 1
    return new


@njit(cache=True, nogil=True)
def _node(level, low, high, out_nodes, out_unique, out_state):  # type: ignore[no-untyped-def]
    """Return the function that tests a bit and goes on with two stored functions."""
    if low == high:
        return low
    mask = len(out_unique) - 1
    place = _scatter(low, high, level) & mask
    while out_unique[place] >= 0:
        own = out_unique[place]
        if out_nodes[own, 1] == low and out_nodes[own, 2] == high and out_nodes[own, 0] == level:
            return np.int64(own)
        place = (place + 1) & mask
    new = out_state[NODES]
    out_nodes[new, 0], out_nodes[new, 1], out_nodes[new, 2] = level, low, high
    out_unique[place] = new
    out_state[NODES] = new + 1
    return new


@njit(cache=True, nogil=True)
def index_nodes(nodes, values, count, bottom, out_unique):  # type: ignore[no-untyped-def]
    """Put all stored nodes into an empty table of a power of two of places."""
    mask = len(out_unique) - 1
    for own in range(1, count):
        if nodes[own, 0] == bottom:
            place = _scatter(np.float64(values[nodes[own, 1]]).view(np.int64), bottom, 0) & mask
        else:
            place = _scatter(nodes[own, 1], nodes[own, 2], nodes[own, 0]) & mask
        while out_unique[place] >= 0:
            place = (place + 1) & mask
        out_unique[place] = own


@njit(cache=True, nogil=True)
def index_pairs(keys, results, out_keys, out_results):  # type: ignore[no-untyped-def]
    """Move cached pairs into an empty table of a power of two of places."""
    mask = len(out_keys) - 1
    for i in range(len(keys)):
        if keys[i] >= 0:
            place = _scatter(keys[i], 0, 0) & mask
            while out_keys[place] >= 0:
                place = (place + 1) & mask
            out_keys[place], out_results[place] = keys[i], results[i]


@njit(cache=True, nogil=True)
def insert(nodes, values, bottom, out_nodes, out_values, out_unique, out_state, out_ids):  # type: ignore[no-untyped-def]
    """Store a function; `out_ids` receives the stored node of each of its nodes, for which there is room."""
    for i in range(len(nodes)):
        if nodes[i, 0] == bottom:
            out_ids[i] = _leaf(values[nodes[i, 1]], bottom, out_nodes, out_values, out_unique, out_state)
        else:
            low, high = out_ids[nodes[i, 1]], out_ids[nodes[i, 2]]
            out_ids[i] = _node(nodes[i, 0], low, high, out_nodes, out_unique, out_state)


@njit(cache=True, nogil=True)
def compact(nodes, values, root, bottom, out_place, out_nodes, out_values):  # type: ignore[no-untyped-def]
    """Copy the nodes of one stored function, leaves first, the root last; return counts of leaves and nodes.

    `out_place` has -1 for every node up to the root, and room for it.
    """
    leaves, inner = 0, 0
    out_place[root] = 0
    for i in range(root, -1, -1):
        if out_place[i] >= 0:
            if nodes[i, 0] == bottom:
                leaves += 1
            else:
                inner += 1
                out_place[nodes[i, 1]] = 0
                out_place[nodes[i, 2]] = 0
    leaf, own = 0, leaves
    for i in range(root + 1):
        if out_place[i] < 0:
            continue
        if nodes[i, 0] == bottom:
            out_nodes[leaf, 0], out_nodes[leaf, 1], out_nodes[leaf, 2] = bottom, leaf, leaf
            out_values[leaf] = values[nodes[i, 1]]
            out_place[i] = leaf
            leaf += 1
        else:
            out_nodes[own, 0] = nodes[i, 0]
            out_nodes[own, 1], out_nodes[own, 2] = out_place[nodes[i, 1]], out_place[nodes[i, 2]]
            out_place[i] = own
            own += 1
    return leaves, leaves + inner


@njit(cache=True, nogil=True)
def run(  # type: ignore[no-untyped-def]
    f_nodes, f_values, f_zero, g_nodes, g_values, g_zero, bottom, summed, before, rounding, steps,
    out_nodes, out_values, out_unique, out_keys, out_results, out_stack, out_state,
):  # fmt: skip
    """Go on with the operations on the stack until all are done, for at most so many steps.

    Parameters
    ----------
    f_nodes, g_nodes : ndarray of int32, shape (nodes, 3)
        The functions that are multiplied.
    f_values, g_values : ndarray of float64
    f_zero, g_zero : int
        Their leaf 0, -1 for none.
    bottom : int
        Level of leaves.
    summed : ndarray of bool, shape (bottom,)
        Levels that a product is summed over.
    before : ndarray of int64, shape (bottom + 1,)
        Summed levels above each level.
    rounding : int
        0 to nearest, -1 down, 1 up.
    steps : int
    out_nodes, out_values : ndarray
        The stored functions.
    out_unique : ndarray of int32
        Their table, with a power of two of places, -1 where empty.
    out_keys : ndarray of int64
        Pairs whose result is known, likewise; `out_results` has the results.
    out_stack : ndarray of int64, shape (frames, 6)
        Operation, both operands, stage, first result, power of two.
    out_state : ndarray of int64, shape (6,)

    Returns
    -------
    int
        DONE; PAUSED after so many steps; FULL where there is no room for more nodes or pairs; OVERFLOW
        where a value leaves the finite doubles. The first two and FULL may be gone on with.
    """
    mask = len(out_keys) - 1
    room = min(len(out_nodes), len(out_unique) // 2) - 2
    pairs = len(out_keys) // 2 - 2
    left = steps
    while out_state[DEPTH] > 0:
        if left == 0:
            return PAUSED
        if out_state[NODES] > room or out_state[VALUES] > len(out_values) - 2 or out_state[KNOWN] > pairs:
            return FULL
        left -= 1
        out_state[STEPS] += 1
        top = out_state[DEPTH] - 1
        operation, a, b, stage = out_stack[top, 0], out_stack[top, 1], out_stack[top, 2], out_stack[top, 3]
        power = out_stack[top, 5]
        is_product = operation == MULTIPLY
        result = np.int64(-1)
        if stage == 0:
            if is_product:
                if a == f_zero or b == g_zero:
                    result = np.int64(0)
            elif operation == SCALE:
                if a == 0:
                    result = np.int64(0)
            elif operation == ADD:
                if a == 0:
                    result = b
                elif b == 0:
                    result = a
            elif a == b:
                result = a
            if result >= 0:
                out_state[RESULT], out_state[DEPTH] = result, top
                continue
        if is_product:
            a_level, b_level = np.int64(f_nodes[a, 0]), np.int64(g_nodes[b, 0])
        else:
            a_level = np.int64(out_nodes[a, 0])
            b_level = np.int64(bottom) if operation == SCALE else np.int64(out_nodes[b, 0])
        level = min(a_level, b_level)
        if stage == 0:
            if level == bottom:
                if is_product:
                    value = _times(f_values[f_nodes[a, 1]], g_values[g_nodes[b, 1]], rounding)
                    for _ in range(power):
                        value = value * 2.0  # exact, or infinite
                elif operation == SCALE:
                    value = out_values[out_nodes[a, 1]]
                    for _ in range(b):
                        value = value * 2.0
                else:
                    left_value, right_value = out_values[out_nodes[a, 1]], out_values[out_nodes[b, 1]]
                    if operation == ADD:
                        value = _plus(left_value, right_value, rounding)
                    elif operation == GREATER:
                        value = max(left_value, right_value)
                    else:
                        value = min(left_value, right_value)
                if not np.isfinite(value):
                    return OVERFLOW
                out_state[RESULT] = _leaf(value, bottom, out_nodes, out_values, out_unique, out_state)
                out_state[DEPTH] = top
                continue
            if operation != SCALE and not is_product and a > b:
                a, b = b, a
                a_level, b_level = b_level, a_level
                out_stack[top, 1], out_stack[top, 2] = a, b
            key = (((operation << _ID_BITS) | a) << _ID_BITS) | b
            place = _scatter(key, 0, 0) & mask
            while out_keys[place] >= 0 and out_keys[place] != key:
                place = (place + 1) & mask
            if out_keys[place] == key:
                result = out_results[place]
                if power > 0 and result != 0:
                    # A skipped bit that is summed over doubles.
                    out_stack[top, 0], out_stack[top, 1], out_stack[top, 2] = SCALE, result, power
                    out_stack[top, 5] = 0
                else:
                    out_state[RESULT], out_state[DEPTH] = result, top
                continue
        if stage < 2:
            if stage == 1:
                out_stack[top, 4] = out_state[RESULT]
            out_stack[top, 3] = stage + 1
            side = stage + 1
            skipped = np.int64(0)
            if is_product:
                if a_level == level:
                    a = f_nodes[a, side]
                if b_level == level:
                    b = g_nodes[b, side]
                below = min(f_nodes[a, 0], g_nodes[b, 0])
                skipped = before[below] - before[level + 1]
            else:
                if a_level == level:
                    a = out_nodes[a, side]
                if b_level == level:
                    b = out_nodes[b, side]
            out_stack[top + 1, 0], out_stack[top + 1, 1], out_stack[top + 1, 2] = operation, a, b
            out_stack[top + 1, 3], out_stack[top + 1, 4], out_stack[top + 1, 5] = 0, 0, skipped
            out_state[DEPTH] = top + 2
            continue
        if stage == 2:
            low, high = out_stack[top, 4], out_state[RESULT]
            if is_product and summed[level]:
                if low != 0 and high != 0:
                    out_stack[top, 3] = 3
                    out_stack[top + 1, 0], out_stack[top + 1, 1], out_stack[top + 1, 2] = ADD, low, high
                    out_stack[top + 1, 3], out_stack[top + 1, 4], out_stack[top + 1, 5] = 0, 0, 0
                    out_state[DEPTH] = top + 2
                    continue
                result = low + high
            else:
                result = _node(level, low, high, out_nodes, out_unique, out_state)
        else:
            result = out_state[RESULT]
        key = (((operation << _ID_BITS) | a) << _ID_BITS) | b
        place = _scatter(key, 0, 0) & mask
        while out_keys[place] >= 0:
            place = (place + 1) & mask
        out_keys[place], out_results[place] = key, result
        out_state[KNOWN] += 1
        if power > 0 and result != 0:
            out_stack[top, 0], out_stack[top, 1], out_stack[top, 2] = SCALE, result, power
            out_stack[top, 3], out_stack[top, 5] = 0, 0
        else:
            out_state[RESULT], out_state[DEPTH] = result, top
    return DONE


@njit(cache=True, nogil=True)
def meet(f_nodes, g_nodes, bottom, steps, out_keys, out_stack, out_pairs, out_state):  # type: ignore[no-untyped-def]
    """Find all pairs of leaves that two functions have in one place, for at most so many steps.

    Pairs wait on `out_stack`, met ones are in `out_keys`, pairs of leaves in `out_pairs`; the places DEPTH,
    KNOWN and VALUES of the state count them.  Returns as `run` does.
    """
    mask = len(out_keys) - 1
    left = steps
    while out_state[DEPTH] > 0:
        if left == 0:
            return PAUSED
        if out_state[KNOWN] > len(out_keys) // 2 - 2 or out_state[DEPTH] > len(out_stack) - 2:
            return FULL
        left -= 1
        out_state[DEPTH] -= 1
        key = out_stack[out_state[DEPTH]]
        place = _scatter(key, 0, 0) & mask
        while out_keys[place] >= 0 and out_keys[place] != key:
            place = (place + 1) & mask
        if out_keys[place] == key:
            continue
        out_keys[place] = key
        out_state[KNOWN] += 1
        a, b = key >> _ID_BITS, key & ((np.int64(1) << _ID_BITS) - 1)
        level = min(f_nodes[a, 0], g_nodes[b, 0])
        if level == bottom:
            if out_state[VALUES] > len(out_pairs) - 1:
                out_keys[place] = -1
                out_state[KNOWN] -= 1
                out_state[DEPTH] += 1
                return FULL
            out_pairs[out_state[VALUES], 0], out_pairs[out_state[VALUES], 1] = f_nodes[a, 1], g_nodes[b, 1]
            out_state[VALUES] += 1
            continue
        for side in (1, 2):
            left_child = np.int64(f_nodes[a, side]) if f_nodes[a, 0] == level else a
            right_child = np.int64(g_nodes[b, side]) if g_nodes[b, 0] == level else b
            out_stack[out_state[DEPTH]] = left_child << _ID_BITS | right_child
            out_state[DEPTH] += 1
    return DONE
