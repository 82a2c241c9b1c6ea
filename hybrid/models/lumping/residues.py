"""Numbers that add up exactly in any order: rational numbers modulo a prime.

Whether two states are alike is a question about sums: 0.1 + 0.2 and 0.3 are one number on paper, and two as
doubles.  Every distinct number of a model is taken for the simplest fraction that it may stand for, and
fractions are added modulo the prime 2^61 - 1.  Equal sums have equal residues; different sums have different
ones but for an accident, which the proof of the quotient (`hybrid.models.lumping.quotient`) would find.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import UnsupportedError

PRIME = (1 << 61) - 1
"""A Mersenne prime: products are reduced by shifts."""

_MOST_FRACTIONS = 20_000
"""Distinct numbers that are taken for fractions; more are the doubles that they are."""


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of the least denominator in a closed interval, ``0 < low <= high``.

    Notes
    -----
    By the continued fractions of both ends. Time: O(their length).
    """
    terms = []
    while True:
        whole = low.numerator // low.denominator
        if low == whole or whole + 1 <= high:
            terms.append(whole if low == whole else whole + 1)
            break
        terms.append(whole)
        low, high = 1 / (high - whole), 1 / (low - whole)
    found = Fraction(terms.pop())
    while terms:
        found = terms.pop() + 1 / found
    return found


def meant_by(value: float, units: float) -> Fraction:
    """Return the simplest rational number that a double, off by some units of 2^-53, may stand for."""
    exact = Fraction(value)
    if not units or not value:
        return exact
    distance = abs(exact) * Fraction(units) / 2**53  # lemma: simplest-fractions
    if value < 0:
        return -simplest_between(-exact - distance, -exact + distance)
    return simplest_between(exact - distance, exact + distance)


def residues(values: NDArray[np.float64], units: float) -> NDArray[np.uint64]:
    """Return what distinct numbers are modulo `PRIME`.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
    units : float
        Bound on their relative errors, in units of 2^-53; doubles that may stand for one number may get one
        residue.

    Returns
    -------
    ndarray of uint64, shape (m,)

    Raises
    ------
    UnsupportedError
        A number is not finite.

    Notes
    -----
    Time: some 20 microseconds a number.
    """
    if not bool(np.isfinite(values).all()):
        raise UnsupportedError("the bisimulation quotient needs rates and rewards that are finite numbers")
    if len(values) > _MOST_FRACTIONS or not units < 2.0**40:
        units = 0.0
    found = np.empty(len(values), dtype=np.uint64)
    for place, value in enumerate(values.tolist()):
        number = meant_by(value, units)
        below = number.denominator % PRIME or 1  # no number of a model is as long as that
        found[place] = number.numerator * pow(below, -1, PRIME) % PRIME
    return found
