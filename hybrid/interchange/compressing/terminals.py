"""The numbers of a model written out, as terminals of a diagram."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.core.few_values import few_values
from hybrid.interchange.explicit_model import ExplicitModel, Vector
from mtbdd.language.syntax import ModelType
from mtbdd.matrix import merge_close

# lemma: entry-units
_NEAR = 2.0**-50  # of 1: probabilities that add up so closely only have rounding errors
_NEAR_UNITS = 8.0
_EXACT_GRID = 2.0**40  # multiples of its inverse below 2^12 add up without rounding


def terminals_of(model: ExplicitModel) -> tuple[NDArray[np.integer], Vector, float]:
    """Return the distinct numbers of a model's entries.

    Values within 4 units in the last place are united: rates that were split into factors come back so.

    Parameters
    ----------
    model : ExplicitModel

    Returns
    -------
    numbers : ndarray of integers, shape (n_entries,)
        A number in `terminals` for every entry.
    terminals : ndarray of float64, ascending
        Of rows of probabilities divided by their sums.
    units : float
        Bound on the relative error of every entry, in units of 2^-53.

    Notes
    -----
    Time: O(entries log entries) in NumPy.
    """
    values, units = model.values, model.value_units
    if model.type is not ModelType.CTMC:
        values, units = _scaled(model)
    different, places = few_values(values)
    united = merge_close(different.tolist())
    representatives = np.array([united[v] for v in different.tolist()], dtype=np.float64)
    moved = np.abs(representatives - different) / different
    # lemma: entry-units
    distance = float(moved.max(initial=0.0)) * 2.0**53 * (1 + 2.0**-40)
    terminals, numbers = np.unique(representatives, return_inverse=True)
    # lemma: entry-units
    units += distance * (1 + units * 2.0**-53)
    kind = np.uint16 if len(terminals) <= 1 << 16 else np.int64
    return numbers.reshape(-1).astype(kind)[places], terminals, units


def _scaled(model: ExplicitModel) -> tuple[Vector, float]:
    """Return probabilities of rows that add up to 1, and their error in units.

    A row means its doubles divided by their sum. Where that is 1 but for rounding, the doubles stay.
    """
    values, sums = model.values, model.row_sums
    lengths = np.diff(model.row_starts)
    filled = lengths > 0
    grid = values * _EXACT_GRID
    if bool((grid == np.floor(grid)).all()) and bool((sums[filled] == 1.0).all()):
        return values, model.value_units
    most = float(lengths.max(initial=1))
    # The sum is off by as much as its terms are.
    # lemma: entry-units
    units = 2.0 * model.value_units + _NEAR_UNITS + most + 2.0
    far = filled & (np.abs(sums - 1.0) > _NEAR)
    if bool(far.any()):
        divisors = np.where(far, sums, 1.0)
        values = values / np.repeat(divisors, lengths)
    # lemma: entry-units
    return values, units * (1 + 2.0**-40)
