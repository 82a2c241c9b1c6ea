"""The compiled search state by state: relations walked as diagrams; importing it needs Numba.

A state is a code of ``n`` bits, row bit 0 the most significant.  References to nodes are as in
`mtbdd.diagrams.nodes`: twice the row, plus 1 for a negated edge; 2 is TRUE and 3 is FALSE.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def insert_all(codes, slots):  # type: ignore[no-untyped-def]
    """Put distinct codes into an empty table; `slots` has a power of two of places, all -1."""
    mask = len(slots) - 1
    for code in codes:
        place = _scatter(code, mask)
        while slots[place] >= 0:
            place = (place + 1) & mask
        slots[place] = code


@njit(cache=True, nogil=True)
def _scatter(code, mask):  # type: ignore[no-untyped-def]
    """Return a code's first place: both halves of its 62 bits times odd numbers, too small to overflow."""
    product = (code & 0x7FFFFFFF) * 0x5851F42D + (code >> 31) * 0x6C078965
    return (product >> 20) & mask


@njit(cache=True, nogil=True)
def explore(nodes, guards, relations, bit_starts, bits, n_bits, out_queue, out_slots, out_ends):  # type: ignore[no-untyped-def]
    """Search breadth first until all states found have been explored, or there is no room.

    Parameters
    ----------
    nodes : ndarray of int32, shape (nodes, 4)
        The nodes of all diagrams: level, else and then reference, shift of the level's bit in a code.
    guards, relations : ndarray of int64, shape (events,)
        References: where an event is enabled (row bits), and its relation.
    bit_starts : ndarray of int64, shape (events + 1,)
        Where an event's part of `bits` starts.
    bits : ndarray of int64, shape (bit_starts[-1],)
        Numbers of the bits that events may change, ascending within an event.
    n_bits : int
    out_queue : ndarray of int64, shape (room,)
        States in the order in which they are met.
    out_slots : ndarray of int64, shape (slots,)
        The table of states met, open addressing; a power of two of places, more than `room`.
    out_ends : ndarray of int64, shape (2,)
        How many states have been explored, and met.

    Notes
    -----
    Time: O(levels) a state and event, and a successor.  A state whose successors find no room is
    explored again by the next call.  Not parallel: the order of states is that of the events.
    """
    room, mask = len(out_queue), len(out_slots) - 1
    head, tail = out_ends[0], out_ends[1]
    stack_ref = np.empty(n_bits + 1, np.int64)
    stack_at = np.empty(n_bits + 1, np.int64)
    stack_code = np.empty(n_bits + 1, np.int64)
    while head < tail:
        state = out_queue[head]
        for event in range(len(guards)):
            ref = guards[event]
            while ref > 3:
                row = ref >> 1
                ref = nodes[row, 1 + (state >> nodes[row, 3] & 1)] ^ (ref & 1)
            if ref == 3:
                continue
            end = bit_starts[event + 1]
            stack_ref[0], stack_at[0], stack_code[0] = relations[event], bit_starts[event], state
            depth = 1
            while depth > 0:
                depth -= 1
                ref, at, code = stack_ref[depth], stack_at[depth], stack_code[depth]
                while True:
                    # Row bits choose the way; above the next column bit there is nothing else.
                    stop = 3 * bits[at] + 1 if at < end else 3 * n_bits
                    while ref > 3 and nodes[ref >> 1, 0] < stop:
                        row = ref >> 1
                        ref = nodes[row, 1 + (state >> nodes[row, 3] & 1)] ^ (ref & 1)
                    if ref == 3 or at == end:
                        break
                    below, above = ref, ref
                    if ref > 3 and nodes[ref >> 1, 0] == stop:
                        below, above = nodes[ref >> 1, 1] ^ (ref & 1), nodes[ref >> 1, 2] ^ (ref & 1)
                    one = np.int64(1) << (n_bits - 1 - bits[at])
                    at += 1
                    if below != 3 and above != 3:
                        stack_ref[depth], stack_at[depth], stack_code[depth] = above, at, code | one
                        depth += 1
                    if below != 3:
                        ref, code = below, code & ~one
                    else:
                        ref, code = above, code | one
                if ref == 3:
                    continue
                place = _scatter(code, mask)
                while out_slots[place] >= 0 and out_slots[place] != code:
                    place = (place + 1) & mask
                if out_slots[place] < 0:
                    if tail == room:
                        out_ends[0], out_ends[1] = head, tail
                        return
                    out_slots[place] = code
                    out_queue[tail] = code
                    tail += 1
        head += 1
    out_ends[0], out_ends[1] = head, tail
