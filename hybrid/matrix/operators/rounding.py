"""Bounds on relative rounding errors of sums of non-negative products in double precision.

A sum of k products of doubles that are not negative has a relative error of about k units of rounding at
most, in any order. (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.)
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.base.state_values import StateValues
from hybrid.matrix.operators.hybrid_matrix import DistributedMatrix, HybridMatrix
from hybrid.matrix.space.bounded_solution import UNIT
from mtbdd.base.communicator import communicator_of
from mtbdd.base.records import Record
from mtbdd.language.reals import doubles_around, real_of
from mtbdd.offset.offset import SCALED_UNITS, OffsetMTBDD, row_entries

if TYPE_CHECKING:
    from hybrid.matrix.explicit.operators import ExplicitOperator

# The share of a value that a step keeps, and the share that it loses, with the errors of both.


class Discount(Record):
    """A number d between 0 and 1.

    Attributes
    ----------
    factor : float
        d.
    rest : float
        1 - d, with its own digits: the difference of doubles would have few of them where d is near 1.
    units : float
        Bound on the relative error of either, in units of rounding.
    """

    factor: float
    rest: float
    units: float

    @staticmethod
    def of(value: float) -> Discount:
        """Return the discount that a number of a property means."""
        exact = real_of(value)
        low, high = doubles_around(value)
        least, most = (exact, exact) if isinstance(exact, Fraction) else (Fraction(low), Fraction(high))
        spread = float((most - least) / (1 - most)) * 2.0**53
        return Discount(float(value), float(1 - most), 1.0 + spread)

    def bound(self, greatest: float, units: float = 0.0) -> float:
        """Return a bound on all that can be earned, from the most that a step earns.

        Parameters
        ----------
        greatest : float
        units : float
            Its relative error in units of rounding.
        """
        return greatest / self.rest * (1.0 + (units + self.units + 8.0) * 2.0**-52)  # lemma: rounding


Vector = NDArray[np.float64]

TINIEST = 2.0**-1022  # lemma: underflow
"""More than what underflow costs in a product and a sum of as many terms as a row may have."""

_DEEPEST = -900.0  # logarithm of products that are far from underflow

_STEP_UNITS = 12  # adding b, dividing, and the operands' own errors


def step_slack(matrix: HybridMatrix | DistributedMatrix | ExplicitOperator, operands: int) -> float:
    """Return a bound on the relative error of one step ``(M x + b) / d``.

    Parameters
    ----------
    matrix : HybridMatrix, DistributedMatrix or ExplicitOperator
        M.
    operands : int
        Number of roundings behind b and d.
    """
    units = row_entries(matrix.symbolic) + ratio_units(matrix.symbolic)  # lemma: rounding
    return (communicator_of(matrix).greatest(units) + _STEP_UNITS + operands) * UNIT  # lemma: rounding


def ratio_units(matrix: OffsetMTBDD) -> float:
    """Return a bound on the relative error of entries over their sum, in units of rounding.

    Both stand for what the text means.  The sum is not made of shared blocks; where it is, its error has
    `SCALED_UNITS` more.
    """
    return 2.0 * matrix.entry_units - SCALED_UNITS  # lemma: rounding


def widened(values: Vector, slack: float) -> tuple[Vector, Vector]:
    """Return bounds of numbers, not negative, that are off by a relative error, or next to underflow."""
    error = values * (slack + 2.0 * UNIT) + TINIEST  # lemma: rounding
    lower: Vector = np.maximum(values - error, 0.0)  # lemma: rounding
    return lower, values + error  # lemma: rounding


def scaled_bounds(found: StateValues, units: float) -> StateValues:
    """Return values, not negative, with bounds for what they come from being off by a relative error.

    Parameters
    ----------
    units : float
        The error in units of rounding.
    """
    if units == 0.0:
        return found
    share = (units + 4.0) * UNIT  # lemma: rounding
    with np.errstate(over="ignore"):
        # A part of a number next to the least double may be rounded up to that number.
        lower = np.nextafter(found.lower * max(1.0 - share, 0.0), 0.0)  # lemma: underflow
        # lemma: rounding
        upper = np.where(found.upper > 0.0, found.upper * (1.0 + share) + TINIEST, found.upper)
    return StateValues(found.values, lower, upper, found.open_lower)


def far_from_underflow(seeds: Vector, entry: float, steps: int) -> bool:
    """Return whether zeros are exact after some steps from `seeds` over entries no less than `entry`.

    Parameters
    ----------
    seeds : ndarray of float64, any shape
        What the values come from, not negative; zeros do not count.
    """
    positive = seeds[seeds > 0.0]
    if positive.size == 0:
        return True
    least = min(entry, 1.0)
    return least > 0.0 and math.log2(float(positive.min())) + steps * math.log2(least) > _DEEPEST


def sum_slack(terms: int) -> float:
    """Return a bound on the relative error of adding `terms` non-negative numbers pairwise, as numpy does."""
    return (130 + terms.bit_length()) * UNIT if terms > 1 else 0.0  # lemma: rounding
