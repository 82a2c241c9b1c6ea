"""Rewards of single transitions, folded into what their choice earns on average."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Numbers = NDArray[np.int64]


def folded(row_starts: Numbers, values: Vector, rewards: Vector, per_jump: bool) -> tuple[Vector, float]:
    """Return the expected reward of every choice, and a bound on its relative error.

    Parameters
    ----------
    row_starts : ndarray of int64, shape (n_choices + 1,)
    values : ndarray of float64, shape (n_entries,)
        Probabilities or rates, not negative.
    rewards : ndarray of float64, shape (n_entries,)
        What a transition earns when it is taken; finite.
    per_jump : bool
        Divide by the row's sum: the values are rates, or probabilities that add up to 1 only roughly.

    Returns
    -------
    expected : ndarray of float64, shape (n_choices,)
    units : float
        Relative error in units of 2^-53; infinite if a number is beyond the normal doubles.

    Notes
    -----
    Sums of one sign lose at most a unit a term; where signs meet in a row, the row is added up in rationals.
    Time: O(entries).
    """
    n = len(row_starts) - 1
    expected = np.zeros(n)
    lengths = np.diff(row_starts)
    filled = np.flatnonzero(lengths)
    if not filled.size or not rewards.any():
        return expected, 0.0
    first = row_starts[filled]
    units = float(lengths.max()) + 1.0  # lemma: entry-units
    with np.errstate(over="ignore", invalid="ignore"):
        terms = values * rewards
        expected[filled] = np.add.reduceat(terms, first)
        if per_jump:
            sums = np.add.reduceat(values, first)
            expected[filled] = np.divide(expected[filled], sums, out=np.zeros(filled.size), where=sums > 0)
            # lemma: entry-units
            units = 2.0 * units + 1.0
    if not bool(np.isfinite(expected).all() and np.isfinite(terms).all() and np.isfinite(values).all()):
        return np.zeros(n), math.inf
    # Signs that meet may cancel, and products below the normal doubles lose digits.
    positive, negative = (np.logical_or.reduceat(mask, first) for mask in (rewards > 0, rewards < 0))
    # lemma: underflow
    tiny = np.logical_or.reduceat((np.abs(terms) < 2.0**-900) & (rewards != 0) & (values != 0), first)
    for k in np.flatnonzero((positive & negative) | tiny).tolist():
        own = slice(int(row_starts[filled[k]]), int(row_starts[filled[k] + 1]))
        weights = [Fraction(v) for v in values[own].tolist()]
        total = sum(
            (w * Fraction(r) for w, r in zip(weights, rewards[own].tolist(), strict=True)), Fraction(0)
        )
        if per_jump:
            total = total / sum(weights) if any(weights) else Fraction(0)
        if total and not 2.0**-1022 <= abs(total) <= sys.float_info.max:  # lemma: underflow
            units = math.inf
        else:
            expected[filled[k]] = float(total)
    return expected, units * (1.0 + 2.0**-40)  # lemma: entry-units
