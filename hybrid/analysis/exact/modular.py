"""Triangular factors of a sparse matrix modulo a prime, compiled; rows and columns in one order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.compiled import njit

Int64Array = NDArray[np.int64]


@njit(cache=True, nogil=True)
def inverse_modulo(a, p):  # type: ignore[no-untyped-def]
    """Return the inverse of a number that is not 0 modulo a prime, by Euclid's algorithm."""
    r, s, old_r, old_s = a, 1, p, 0
    while r != 0:
        q = old_r // r
        old_r, r = r, old_r - q * r
        old_s, s = s, old_s - q * s
    return old_s % p


@njit(cache=True, nogil=True)
def factor_rows(ptr, columns, values, p, out_ptr, out_columns, out_values, out_inverse):  # type: ignore[no-untyped-def]
    """Factor a matrix as L U modulo a prime, row by row, L with ones on its diagonal.

    Parameters
    ----------
    ptr, columns, values : ndarray, int64
        Rows of the matrix, columns ascending, values 0 .. p - 1; the diagonal need not be stored.
    p : int
        A prime below 2^31.
    out_ptr : ndarray, shape (n + 1,), int64
    out_columns, out_values : ndarray, shape (room,), int64
        Rows of L and U side by side: what lies before the diagonal is L's.
    out_inverse : ndarray, shape (n,), int64
        Inverses of U's diagonal.

    Returns
    -------
    int
        n if the matrix was factored; i < n if the i-th pivot is 0 modulo p; -1 if there is no room.

    Notes
    -----
    Time: the multiplications of the elimination, and for each of them a step through the sorted list of the
    row's columns.
    """
    n = len(ptr) - 1
    work = np.zeros(n, np.int64)
    after = np.full(n + 1, -2, np.int64)  # the row's columns as an ascending list; -2: not in it
    room, used = len(out_columns), 0
    out_ptr[0] = 0
    for i in range(n):
        place = n
        after[n] = n
        for e in range(ptr[i], ptr[i + 1]):
            j = columns[e]
            work[j] = values[e]
            after[j] = n
            after[place] = j
            place = j
        if after[i] == -2:
            place = n
            while after[place] < i and after[place] != n:
                place = after[place]
            after[i] = after[place]
            after[place] = i
        k = after[n]
        while k < i:
            factor = work[k] * out_inverse[k] % p
            work[k] = factor
            if factor != 0:
                place = k
                for e in range(out_ptr[k], out_ptr[k + 1]):
                    j = out_columns[e]
                    if j <= k:
                        continue
                    if after[j] == -2:
                        while after[place] < j and after[place] != n:
                            place = after[place]
                        after[j] = after[place]
                        after[place] = j
                        work[j] = 0
                    work[j] = (work[j] - factor * out_values[e]) % p
                    place = j
            k = after[k]
        pivot = work[i]
        j = after[n]
        while j != n:
            if used == room:
                return -1
            out_columns[used] = j
            out_values[used] = work[j]
            used += 1
            following = after[j]
            after[j] = -2
            work[j] = 0
            j = following
        out_ptr[i + 1] = used
        if pivot == 0:
            return i
        out_inverse[i] = inverse_modulo(pivot, p)
    return n


@njit(cache=True, nogil=True)
def solve_factored(ptr, columns, values, inverse, p, x):  # type: ignore[no-untyped-def]
    """Solve ``L U x = b`` modulo the prime in place; x holds b, numbers 0 .. p - 1."""
    n = len(ptr) - 1
    for i in range(n):
        total = x[i]
        for e in range(ptr[i], ptr[i + 1]):
            j = columns[e]
            if j >= i:
                break
            total = (total - values[e] * x[j]) % p
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for e in range(ptr[i + 1] - 1, ptr[i] - 1, -1):
            j = columns[e]
            if j <= i:
                break
            total = (total - values[e] * x[j]) % p
        x[i] = total * inverse[i] % p


@njit(cache=True, nogil=True)
def lift_digits(ptr, columns, entries, factors, residual, p, out):  # type: ignore[no-untyped-def]
    """Find the next digits of x in base p.

    Of each ``out[k] = (M^-1 residual) mod p``, then ``residual = (residual - M out[k]) / p``.

    Parameters
    ----------
    ptr, columns, entries : ndarray, int64
        Rows of M as integers.
    factors : tuple
        Of `factor_rows`, without the prime: pointers, columns, values, inverses.
    residual : ndarray, shape (n,), int64
        Overwritten; no row of M times numbers below p may leave 63 bits.
    out : ndarray, shape (digits, n), int64
    """
    lu_ptr, lu_columns, lu_values, inverse = factors
    n = len(ptr) - 1
    for k in range(len(out)):
        digits = out[k]
        for i in range(n):
            digits[i] = residual[i] % p
        solve_factored(lu_ptr, lu_columns, lu_values, inverse, p, digits)
        for i in range(n):
            total = residual[i]
            for e in range(ptr[i], ptr[i + 1]):
                total -= entries[e] * digits[columns[e]]
            residual[i] = total // p
