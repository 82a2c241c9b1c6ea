"""Searches backward over the choices of a decision process, held as blocks: as they are, and to be compiled.

The lists are those of :class:`hybrid.analysis.precomputation.PredecessorLists`. A state is taken from the
stack once at most, when all instances over its column are looked at: O(transitions) in all, and O(1) more for
every instance that has no entry there. One thread. Arguments are arrays where the functions are compiled
(:mod:`hybrid.matrix.cpu.backward_kernels`), and lists where the interpreter runs them.
"""

from __future__ import annotations


def search_states(  # type: ignore[no-untyped-def]
    starts,
    shift,
    near,
    instance_ptr,
    row,
    choice,
    slot,
    column_ptr,
    entry_row,
    allowed,
    stack,
    waiting,
    found,
):
    """Mark all states with a path to marked ones by allowed choices.

    Parameters
    ----------
    allowed : ndarray, shape (n,), unsigned integers
        One bit for every layer whose choice may be taken.
    stack : ndarray, shape (n,), int32
        The first `waiting` elements are the marked states.
    found : ndarray, shape (n,), bool
        Marks, changed in place.
    """
    while waiting > 0:
        waiting -= 1
        state = stack[waiting]
        group = near[state >> shift]
        while starts[group + 1] <= state:
            group += 1
        local = state - starts[group]
        for i in range(instance_ptr[group], instance_ptr[group + 1]):
            place = slot[i] + local
            for e in range(column_ptr[place], column_ptr[place + 1]):
                source = row[i] + entry_row[e]
                if not found[source] and allowed[source] & choice[i]:
                    found[source] = True
                    stack[waiting] = source
                    waiting += 1


def withdraw_states(  # type: ignore[no-untyped-def]
    starts, shift, near, instance_ptr, row, choice, slot, column_ptr, entry_row, kept, stack, waiting, gone
):
    """Drop all choices that may lead to marked states, and mark the states that lose their last one.

    Parameters
    ----------
    kept : ndarray, shape (n,), unsigned integers
        One bit for every layer whose choice is there, none in marked states; changed in place. A state that
        has none to begin with is never marked.
    stack, waiting, gone
        As `stack`, `waiting` and `found` of :func:`search_states`.
    """
    while waiting > 0:
        waiting -= 1
        state = stack[waiting]
        group = near[state >> shift]
        while starts[group + 1] <= state:
            group += 1
        local = state - starts[group]
        for i in range(instance_ptr[group], instance_ptr[group + 1]):
            place = slot[i] + local
            for e in range(column_ptr[place], column_ptr[place + 1]):
                source = row[i] + entry_row[e]
                if kept[source] & choice[i]:
                    kept[source] ^= choice[i]
                    if kept[source] == 0:
                        gone[source] = True
                        stack[waiting] = source
                        waiting += 1
