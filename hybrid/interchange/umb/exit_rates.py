"""Rates as products of a probability and the state's exit rate, which is how the format has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]

_TINY = np.finfo(np.float64).tiny
_ROWS = 1 << 13

# Exit rates are tried so many doubles around the sum of the rates.
_REACH = 32

# Splits a double into two of 26 bits.
_SPLIT = 2.0**27 + 1.0


def rates_of_products(probabilities: Vector, exits: Vector, starts: Numbers) -> tuple[bool, int | None]:
    """Turn probabilities into rates, in place.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (n_entries,)
        Not negative, finite; the rates afterwards.
    exits : ndarray of float64, shape (n_states,)
    starts : ndarray of int64, shape (n_states + 1,)

    Returns
    -------
    is_exact : bool
        No product was rounded.
    wrong : int or None
        The first entry whose rate is infinite, or is not 0 and below the normal doubles.

    Notes
    -----
    Time: O(n_entries). A product that is not known to be exact counts as rounded.
    """
    is_exact = True
    wrong = None
    for rows in _chunks(starts):
        own = slice(int(starts[rows.start]), int(starts[rows.stop]))
        left = probabilities[own]
        right = np.repeat(exits[rows], np.diff(starts[rows.start : rows.stop + 1]))
        with np.errstate(over="ignore", under="ignore"):
            rates = left * right
        # lemma: underflow
        bad = ~np.isfinite(rates) | ((rates < _TINY) & (left > 0) & (right > 0))
        if wrong is None and bad.any():
            wrong = own.start + int(np.argmax(bad))
        is_exact = is_exact and wrong is None and not _rounded(left, right, rates).any()
        probabilities[own] = rates
    return is_exact, wrong


def _rounded(left: Vector, right: Vector, product: Vector) -> NDArray[np.bool_]:
    """Return where a product of numbers that are not negative may have been rounded (Dekker's product)."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        high, low = _halves(left)
        top, bottom = _halves(right)
        # lemma: entry-units
        error = ((high * top - product) + high * bottom + low * top) + low * bottom
        # lemma: entry-units
        is_known = (product == 0) | ((product > 2.0**-900) & (np.maximum(left, right) < 2.0**900))
    rounded: NDArray[np.bool_] = (error != 0) | ~is_known
    return rounded


def _halves(numbers: Vector) -> tuple[Vector, Vector]:
    scaled = _SPLIT * numbers
    high = scaled - (scaled - numbers)
    return high, numbers - high


def probabilities_and_exits(rates: Vector, starts: Numbers) -> tuple[Vector, Vector, int | None]:
    """Return probabilities and exit rates whose products are the rates, to the bit wherever that can be had.

    Parameters
    ----------
    rates : ndarray of float64, shape (n_entries,)
        Not negative, finite.
    starts : ndarray of int64, shape (n_states + 1,)

    Returns
    -------
    probabilities : ndarray of float64, shape (n_entries,)
    exits : ndarray of float64, shape (n_states,)
        At most 32 units in the last place from the sum that was computed of a state's rates.
    wrong : int or None
        The first state whose rates have no such form: their sum, a rate or a quotient is no normal double.

    Notes
    -----
    Not every double is a rounded product with a given one: where an exit rate leaves rates out, its
    neighbours are tried. If none will do, the product of the numbers returned is still within one unit of
    2^-53 of the rate, relative, and rounding it gives the rate or a double next to it.

    Time: O(n_entries), and 64 times the entries of such states.
    """
    probabilities = np.zeros_like(rates)
    exits = np.zeros(len(starts) - 1)
    wrong: int | None = None
    for rows in _chunks(starts):
        lengths = np.diff(starts[rows.start : rows.stop + 1])
        own = slice(int(starts[rows.start]), int(starts[rows.stop]))
        filled = np.flatnonzero(lengths)
        sums = np.zeros(len(lengths))
        with np.errstate(over="ignore"):
            if filled.size:
                sums[filled] = np.add.reduceat(rates[own], starts[rows.start + filled] - own.start)
        chosen, is_rate = _quotients(rates[own], np.repeat(sums, lengths))
        row_of = np.repeat(np.arange(len(lengths)), lengths)
        # Among normal doubles, the quotient loses half a unit in the last place; below, more.
        # lemma: underflow
        is_below = (rates[own] > 0) & (rates[own] < _TINY)
        # lemma: underflow
        is_lost = ~np.isfinite(sums)[row_of] | (~is_rate & (chosen < _TINY)) | is_below
        if wrong is None and is_lost.any():
            wrong = rows.start + int(row_of[np.argmax(is_lost)])
        _with_neighbours(rates[own], row_of, sums, chosen, is_rate)
        probabilities[own] = chosen
        exits[rows] = sums
    return probabilities, exits, wrong


def _with_neighbours(
    rates: Vector, row_of: Numbers, sums: Vector, chosen: Vector, is_rate: NDArray[np.bool_]
) -> None:
    """Replace exit rates and probabilities, in place, where neighbours of the exit rate give the rates."""
    is_waiting = np.zeros(len(sums), dtype=np.bool_)
    is_waiting[row_of[~is_rate]] = True
    is_waiting &= np.isfinite(sums)
    entries = np.flatnonzero(is_waiting[row_of])
    for distance in range(1, _REACH + 1):
        for sign in (1, -1):
            if not entries.size:
                return
            # The entries of a state are neighbours, and its sum stays as it is until it is done.
            first = np.flatnonzero(np.diff(row_of[entries], prepend=-1))
            lengths = np.diff(first, append=entries.size)
            tried = sums[row_of[entries[first]]]
            tried = tried + sign * distance * np.spacing(tried)
            found, is_right = _quotients(rates[entries], np.repeat(tried, lengths))
            is_done = np.logical_and.reduceat(is_right, first)
            done = np.repeat(is_done, lengths)
            chosen[entries[done]] = found[done]
            sums[row_of[entries[first[is_done]]]] = tried[is_done]
            entries = entries[~done]


def _quotients(rates: Vector, exits: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """Return probabilities, and where their product with the exit rate rounds to the rate.

    No other double does where the one next to the quotient does not.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.divide(rates, exits, out=np.zeros_like(rates), where=exits > 0)
        return found, found * exits == rates


def _chunks(starts: Numbers) -> Iterator[slice]:
    """Yield ranges of states."""
    count = len(starts) - 1
    for first in range(0, count, _ROWS):
        yield slice(first, min(first + _ROWS, count))
