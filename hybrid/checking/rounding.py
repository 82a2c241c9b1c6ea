"""How far double precision can be off: bounds on relative errors of sums of non-negative products.

A sum of k products of doubles, added in any order, has a relative error of at most about k units of
rounding if all terms are non-negative (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
"""

from __future__ import annotations

import numpy as np

from hybrid.checking.explicit import ExplicitMatrix
from hybrid.operator import HybridMatrix
from hybrid.solvers.enclosure import UNIT
from mtbdd.offset import OffsetMTBDD

__all__ = ["row_entries", "step_slack", "sum_slack"]

# Terminals are united when 4 units in the last place apart, and blocks shared up to a scale are as
# accurate; a unit in the last place is up to two units of rounding.
_ENTRY_UNITS = 16
_STEP_UNITS = 12  # adding b, dividing, and the operands' own errors


def row_entries(matrix: OffsetMTBDD) -> int:
    """Return a bound on the number of non-zeros in any row.

    Notes
    -----
    Below a node that tests a column bit the counts of both children add up, below a row bit the
    greater one counts.  Time: O(nodes).
    """
    counts = np.ones(len(matrix.terminals), dtype=np.int64)
    for k in reversed(range(matrix.n_levels)):
        level = matrix.levels[k]
        # The number -1 of a zero submatrix picks the zero at the end.
        padded = np.append(counts, 0)
        low, high = padded[level.low], padded[level.high]
        counts = np.maximum(low, high) if k % 2 == 0 else low + high
    return int(counts.max(initial=0))


def step_slack(matrix: HybridMatrix | ExplicitMatrix, operands: int) -> float:
    """Return a bound on the relative error of one step ``(M x + b) / d``.

    Parameters
    ----------
    matrix : HybridMatrix or ExplicitMatrix
        M.
    operands : int
        Number of roundings behind b and d.
    """
    return (row_entries(matrix.symbolic) + _ENTRY_UNITS + _STEP_UNITS + operands) * UNIT


def sum_slack(terms: int) -> float:
    """Return a bound on the relative error of adding `terms` non-negative numbers pairwise, as numpy does."""
    return (130 + terms.bit_length()) * UNIT if terms > 1 else 0.0
