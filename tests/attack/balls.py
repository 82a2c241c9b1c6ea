"""Powers and exponentials of small matrices as whole numbers times ``2**-BITS``, with bounds on the error.

A matrix here is a list of rows of whole numbers; an error counts units of ``2**-BITS`` in the greatest row
sum of absolute differences.  All matrices approximated are powers, exponentials or averages of exponentials
of sub-stochastic ones, so that their row sums are at most 1, and an error e of a factor costs at most e in a
product with another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

__all__ = ["BITS", "Ball", "exponential", "power", "sums", "times"]

BITS = 1600
_ONE = 1 << BITS
_HALVINGS = 16  # ||Q h|| <= 2**-_HALVINGS before the series

Matrix = list[list[int]]
Ball = tuple[Fraction, Fraction]


def _product(a: Matrix, b: Matrix) -> Matrix:
    """Return a product, every element rounded down: an error of at most n units a row."""
    columns = list(zip(*b, strict=True))
    return [
        [sum(x * y for x, y in zip(row, column, strict=True) if x and y) >> BITS for column in columns]
        for row in a
    ]


def power(rows: Sequence[Mapping[int, Fraction]], steps: int) -> tuple[Matrix, int]:
    """Return a stochastic or sub-stochastic matrix to the power of `steps`, and the error."""
    n = len(rows)
    square = [[math.floor(row.get(t, 0) * _ONE) for t in range(n)] for row in rows]
    result = [[_ONE if s == t else 0 for t in range(n)] for s in range(n)]
    error, square_error = 0, n
    while steps:
        if steps & 1:
            result, error = _product(result, square), error + square_error + n
        steps >>= 1
        if steps:
            square, square_error = _product(square, square), 2 * square_error + n
    return result, error


def sums(rows: Sequence[Mapping[int, Fraction]], steps: int) -> tuple[Matrix, int]:
    """Return the sum of the powers below `steps` of a stochastic matrix, and the error.

    Notes
    -----
    From the highest bit of `steps` on: ``S(2 m) = S(m) + P**m S(m)`` and ``S(m + 1) = I + P S(m)``.  The row
    sums of S(m) are m at most, so that an error e of P**m costs e m.
    """
    n = len(rows)
    one = [[math.floor(row.get(t, 0) * _ONE) for t in range(n)] for row in rows]
    unit = [[_ONE if s == t else 0 for t in range(n)] for s in range(n)]
    whole, made = [[0] * n for _ in range(n)], 0
    matrix, matrix_error, error = unit, 0, 0
    for bit in bin(steps)[2:]:
        whole = _added(whole, _product(matrix, whole))
        error = 2 * error + matrix_error * made + n
        matrix, matrix_error = _product(matrix, matrix), 2 * matrix_error + n
        made *= 2
        if bit == "1":
            whole = _added(unit, _product(one, whole))
            error += n * made + n
            matrix, matrix_error = _product(one, matrix), matrix_error + 2 * n
            made += 1
    return whole, error


def _added(a: Matrix, b: Matrix) -> Matrix:
    return [[x + y for x, y in zip(p, q, strict=True)] for p, q in zip(a, b, strict=True)]


def exponential(rows: Sequence[Mapping[int, Fraction]], time: Fraction) -> tuple[Matrix, Matrix, int]:
    """Return ``exp(Q t)`` and the average of ``exp(Q u)`` over u in [0, t], and an error bound of both.

    Parameters
    ----------
    rows : sequence of mapping
        Rates, self-loops without effect; a row without any is an absorbing state.

    Notes
    -----
    The series at ``h = t / 2**k`` with ``||Q h|| <= 2**-16``, then k squarings: ``E(2h) = E(h)**2`` and
    ``A(2h) = (A(h) + E(h) A(h)) / 2``.  An element of Q h is rounded once, that of a term of the series
    twice; with K terms the error before squaring is below 8 n K units, and a squaring makes it at most three
    times as large.
    """
    n = len(rows)
    fastest = max((sum((p for t, p in row.items() if t != s), Fraction(0)) for s, row in enumerate(rows)))
    bound = 2 * fastest * time
    halvings = 0
    while bound > Fraction(2**halvings, 2**_HALVINGS):
        halvings += 1
    step = time / 2**halvings
    small: list[dict[int, int]] = []
    for s, row in enumerate(rows):
        line = {t: math.floor(p * step * _ONE) for t, p in row.items() if t != s}
        line[s] = -sum(line.values())
        small.append(line)
    term = [[_ONE if s == t else 0 for t in range(n)] for s in range(n)]
    whole, average = [list(r) for r in term], [list(r) for r in term]
    k = 0
    while any(any(r) for r in term) and k * _HALVINGS <= BITS + _HALVINGS:
        k += 1
        # Terms commute: Q**k h**k / k! = (Q h) times the term before, over k.
        term = [
            [sum(a * term[r][t] for r, a in small[s].items()) // (k << BITS) for t in range(n)]
            for s in range(n)
        ]
        for s in range(n):
            for t in range(n):
                whole[s][t] += term[s][t]
                average[s][t] += term[s][t] // (k + 1)
    error = 8 * n * (k + 2)
    for _ in range(halvings):
        moved = _product(whole, average)
        average = [
            [(a + b) >> 1 for a, b in zip(x, y, strict=True)] for x, y in zip(average, moved, strict=True)
        ]
        whole = _product(whole, whole)
        error = 3 * error + 2 * n
    return whole, average, error


def times(matrix: Matrix, error: int, vector: Sequence[Ball]) -> list[Ball]:
    """Return enclosures of a non-negative matrix times a vector of enclosures."""
    greatest = max((max(abs(low), abs(high)) for low, high in vector), default=Fraction(0))
    radius = error * greatest / _ONE
    found = []
    for row in matrix:
        low = sum((a * v[0] for a, v in zip(row, vector, strict=True) if a), Fraction(0)) / _ONE
        high = sum((a * v[1] for a, v in zip(row, vector, strict=True) if a), Fraction(0)) / _ONE
        found.append((min(low, high) - radius, max(low, high) + radius))
    return found
