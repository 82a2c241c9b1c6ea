"""Compiled substitution over compressed sparse rows, and the order of their components."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def substitute_csr(  # type: ignore[no-untyped-def]
    rows, indptr, indices, data, least, most, low, high, underflow, tiny, upper_bound, lower, upper
):
    """Solve rows whose successors are solved, one after the other, between bounds.

    Parameters
    ----------
    rows : ndarray, shape (k,), int64
        In an order in which every row comes after those it refers to.
    indptr, indices, data : ndarray
        M in CSR, shape (n, n).
    least, most : ndarray, shape (n,), float64
        Bounds on the right-hand side.
    low, high : ndarray, shape (n,), float64
        The diagonal scaled up and down by the rounding error of a row.
    underflow : float64
        Bound on what underflow adds to a row's value.
    tiny : float64
        Positive values below it may have lost digits to underflow: their bounds are 0 and `tiny`.
    upper_bound : float64
        A bound on all values known beforehand, or infinity.
    lower, upper : ndarray, shape (n,), float64
        Bounds of the rows solved; those of `rows` are written.
    """
    for k in range(len(rows)):
        i = rows[k]
        below = least[i]
        above = most[i]
        positive = above > 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            below += data[e] * lower[j]
            above += data[e] * upper[j]
            positive = positive or upper[j] > 0.0
        below /= low[i]
        above /= high[i]
        if positive:
            below = max(below - underflow, 0.0)
            above += underflow
            if above < tiny:
                below, above = 0.0, tiny
        lower[i] = below
        upper[i] = min(above, upper_bound)


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
                    # The entry is looked at again once the component below is done.
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
