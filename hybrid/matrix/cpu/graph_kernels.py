"""Compiled searches on graphs: strongly connected and maximal end components, orders, levels."""

from __future__ import annotations

import numpy as np

from hybrid.base import components as backward_search
from mtbdd.base.compiled import njit

# The searches of :mod:`hybrid.base.components`, compiled; importing needs Numba.

search_states = njit(cache=True, nogil=True)(backward_search.search_states)
withdraw_states = njit(cache=True, nogil=True)(backward_search.withdraw_states)


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    active, targets, choice_ptr, choice_offsets, kept, number, low, stack, path, at_choice, at_entry,
    component,
):  # fmt: skip
    """Find the components of active states by Tarjan's algorithm, without recursion; return how many.

    Kept choices of active states lead to active states only. Components come in an order in which every
    one comes after those it leads to.
    """
    for v in active:
        number[v] = 0
        component[v] = -1
    clock, found, waiting = 0, 0, 0
    for root in active:
        if number[root] != 0:
            continue
        fresh, depth = root, 0
        while True:
            if fresh >= 0:
                clock += 1
                number[fresh] = clock
                low[fresh] = clock
                at_choice[fresh] = choice_ptr[fresh]
                at_entry[fresh] = choice_offsets[choice_ptr[fresh]]
                stack[waiting] = fresh
                waiting += 1
                path[depth] = fresh
                depth += 1
                fresh = -1
            v = path[depth - 1]
            c, e, last = at_choice[v], at_entry[v], choice_ptr[v + 1]
            lowest = low[v]
            while c < last:
                if kept[c]:
                    end = choice_offsets[c + 1]
                    while e < end:
                        w = targets[e]
                        e += 1
                        if number[w] == 0:
                            fresh = w
                            break
                        if component[w] < 0:
                            lowest = min(lowest, number[w])
                    if fresh >= 0:
                        break
                c += 1
                e = choice_offsets[c]
            low[v] = lowest
            if fresh >= 0:
                at_choice[v], at_entry[v] = c, e
                continue
            if lowest == number[v]:
                while True:
                    waiting -= 1
                    w = stack[waiting]
                    component[w] = found
                    if w == v:
                        break
                found += 1
            depth -= 1
            if depth == 0:
                break
            parent = path[depth - 1]
            low[parent] = min(low[parent], lowest)
    return found


@njit(cache=True, nogil=True)
def _least_states(active, component, least):  # type: ignore[no-untyped-def]
    """Write the least state of every component; active states ascend."""
    for i in range(len(active) - 1, -1, -1):
        least[component[active[i]]] = active[i]


@njit(cache=True, nogil=True)
def strong_components(targets, choice_ptr, choice_offsets, out_labels):  # type: ignore[no-untyped-def]
    """Name the strongly connected component of every state by its least state; return their number.

    Parameters
    ----------
    targets : ndarray, shape (transitions,), integers
    choice_ptr : ndarray, shape (n + 1,), integers
        Choices of state s are ``choice_ptr[s] .. choice_ptr[s + 1]``.
    choice_offsets : ndarray, shape (choices + 1,), integers
        Transitions of choice c are ``choice_offsets[c] .. choice_offsets[c + 1]``.
    out_labels : ndarray, shape (n,), int64

    Notes
    -----
    Time: O(n + transitions), Tarjan's algorithm on one thread. Memory: seven vectors.
    """
    n = len(choice_ptr) - 1
    active = np.arange(n)
    kept = np.ones(len(choice_offsets) - 1, np.bool_)
    component = np.empty(n, np.int64)
    count = _search(
        active, targets, choice_ptr, choice_offsets, kept, np.empty(n, np.int64), np.empty(n, np.int64),
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), component,
    )  # fmt: skip
    least = np.empty(count, np.int64)
    _least_states(active, component, least)
    for v in range(n):
        out_labels[v] = least[component[v]]
    return count


@njit(cache=True, nogil=True)
def _remove(queue, waiting, back_ptr, back, state_of, kept, left, removed):  # type: ignore[no-untyped-def]
    """Drop the choices that may lead to removed states, and remove the states that lose their last one."""
    while waiting > 0:
        waiting -= 1
        v = queue[waiting]
        for b in range(back_ptr[v], back_ptr[v + 1]):
            c = back[b]
            if kept[c]:
                kept[c] = False
                p = state_of[c]
                left[p] -= 1
                if left[p] == 0:
                    removed[p] = True
                    queue[waiting] = p
                    waiting += 1


@njit(cache=True, nogil=True)
def decompose_end_components(targets, choice_ptr, choice_offsets, out_labels, out_kept):  # type: ignore[no-untyped-def]
    """Find the maximal end components; return their number.

    Choices that leave the component of their state are dropped; a state without choices goes, and
    every choice that may lead to it with it, by a queue. Only components that lost a choice are
    decomposed again.

    Parameters
    ----------
    targets, choice_ptr, choice_offsets
        As in :func:`strong_components`.
    out_labels : ndarray, shape (n,), int64
        The least state of the state's end component, -1 for states in none.
    out_kept : ndarray, shape (choices,), bool
        The choices that stay in the end component of their state.

    Notes
    -----
    Time: O(n + transitions) a decomposition of what changed, at most n of them; the queue is linear in
    all. Memory: eleven vectors and the transposed graph.

    References
    ----------
    [WKB16] §2.4, on one thread.
    """
    n, n_choices = len(choice_ptr) - 1, len(choice_offsets) - 1
    out_kept[:] = True
    out_labels[:] = -1
    state_of = np.empty(n_choices, np.int64)
    left = np.empty(n, np.int64)
    for v in range(n):
        left[v] = choice_ptr[v + 1] - choice_ptr[v]
        state_of[choice_ptr[v] : choice_ptr[v + 1]] = v
    # The transposed graph: the choices that may lead to each state.
    back_ptr = np.zeros(n + 1, np.int64)
    for w in targets:
        back_ptr[w + 1] += 1
    for v in range(n):
        back_ptr[v + 1] += back_ptr[v]
    back = np.empty(len(targets), np.int64)
    cursor = back_ptr[:-1].copy()
    for c in range(n_choices):
        for e in range(choice_offsets[c], choice_offsets[c + 1]):
            w = targets[e]
            back[cursor[w]] = c
            cursor[w] += 1
    number, low, component = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    stack, path = np.empty(n, np.int64), np.empty(n, np.int64)
    at_choice, at_entry = np.empty(n, np.int64), np.empty(n, np.int64)
    least, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    removed, changed = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    waiting = 0
    for v in range(n):
        if left[v] == 0:
            removed[v] = True
            queue[waiting] = v
            waiting += 1
    _remove(queue, waiting, back_ptr, back, state_of, out_kept, left, removed)
    active = np.flatnonzero(~removed)
    while len(active) > 0:
        found = _search(
            active, targets, choice_ptr, choice_offsets, out_kept, number, low, stack, path, at_choice,
            at_entry, component,
        )  # fmt: skip
        changed[:found] = False
        _least_states(active, component, least)
        waiting = 0
        for s in active:
            own = component[s]
            out_labels[s] = least[own]
            for c in range(choice_ptr[s], choice_ptr[s + 1]):
                if not out_kept[c]:
                    continue
                for e in range(choice_offsets[c], choice_offsets[c + 1]):
                    if component[targets[e]] != own:
                        out_kept[c] = False
                        changed[own] = True
                        left[s] -= 1
                        break
            if left[s] == 0:
                removed[s] = True
                queue[waiting] = s
                waiting += 1
        _remove(queue, waiting, back_ptr, back, state_of, out_kept, left, removed)
        again = 0
        for s in active:
            if removed[s]:
                out_labels[s] = -1
            elif changed[component[s]]:
                active[again] = s
                again += 1
        active = active[:again]
    count = 0
    for v in range(n):
        if out_labels[v] == v:
            count += 1
    return count


@njit(cache=True, nogil=True)
def breadth_first_order(row_starts, columns, start, out_order):  # type: ignore[no-untyped-def]
    """Write the states in the order in which a search meets them, which goes on from the first one not met.

    Parameters
    ----------
    row_starts, columns : ndarray, integers
        Of a :class:`gpu_kernels.runtime.csr.CsrArrays` with n rows and n columns.
    start : ndarray, shape (k,), int64
        Distinct states.
    out_order : ndarray, shape (n,), int64
        It is the queue as well, for what leaves a queue is in the order wanted.
    """
    n = len(out_order)
    seen = np.zeros(n, np.bool_)
    head, tail, candidate = 0, 0, 0
    for s in start:
        seen[s] = True
        out_order[tail] = s
        tail += 1
    while head < n:
        if head == tail:
            while seen[candidate]:
                candidate += 1
            seen[candidate] = True
            out_order[tail] = candidate
            tail += 1
        state = out_order[head]
        head += 1
        for i in range(row_starts[state], row_starts[state + 1]):
            to = columns[i]
            if not seen[to]:
                seen[to] = True
                out_order[tail] = to
                tail += 1


@njit(cache=True, nogil=True)
def component_levels(indptr, indices, label, members_ptr, members, heavy):  # type: ignore[no-untyped-def]
    """Return, for each strongly connected component, its level: 0 has no heavy component below it.

    Parameters
    ----------
    indptr, indices : ndarray
        The pattern of M in CSR, shape (n, n).
    label : ndarray, shape (n,), int32
        Component of every row.
    members_ptr, members : ndarray, int64
        Rows of component c are ``members[members_ptr[c]:members_ptr[c + 1]]``.
    heavy : ndarray, shape (components,), bool
        Components of several rows.

    Returns
    -------
    level : ndarray, shape (components,), int64
        The greatest number of heavy components on a path that leaves the component, its own not counted.
    order : ndarray, shape (components,), int64
        Components, each after all that it refers to.
    """
    n = len(heavy)
    level = np.zeros(n, np.int64)
    order = np.empty(n, np.int64)
    # Depth-first, with the stack in arrays; a component is done when all those below it are.
    state = np.zeros(n, np.int8)
    stack = np.empty(n, np.int64)
    row_at = np.empty(n, np.int64)
    entry_at = np.empty(n, np.int64)
    count = 0
    for root in range(n):
        if state[root] != 0:
            continue
        top = 0
        stack[0] = root
        state[root] = 1
        row_at[root] = members_ptr[root]
        entry_at[root] = indptr[members[members_ptr[root]]]
        while top >= 0:
            c = stack[top]
            pushed = False
            while row_at[c] < members_ptr[c + 1]:
                i = members[row_at[c]]
                while entry_at[c] < indptr[i + 1]:
                    other = label[indices[entry_at[c]]]
                    if other == c:
                        entry_at[c] += 1
                        continue
                    if state[other] == 0:
                        state[other] = 1
                        row_at[other] = members_ptr[other]
                        entry_at[other] = indptr[members[members_ptr[other]]]
                        top += 1
                        stack[top] = other
                        pushed = True
                        break
                    # The entry is examined again once the component below is done.
                    level[c] = max(level[c], level[other] + (1 if heavy[other] else 0))
                    entry_at[c] += 1
                if pushed:
                    break
                row_at[c] += 1
                if row_at[c] < members_ptr[c + 1]:
                    entry_at[c] = indptr[members[row_at[c]]]
            if not pushed:
                order[count] = c
                count += 1
                top -= 1
    return level, order
