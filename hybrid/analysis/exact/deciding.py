"""Comparisons, and optima over states, that only exact values decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.exact.comparing import between, compare_exactly
from hybrid.analysis.exact.formulas import ExactFormulas
from hybrid.base.errors import NotExactError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.properties.tree import Filter
from mtbdd.language.errors import EvaluationError
from mtbdd.language.syntax import Expression


def settle(
    exact: ExactFormulas,
    truth: StateTruth,
    operator: str,
    left: tuple[Expression, StateValues],
    right: tuple[Expression, StateValues],
    positions: NDArray[np.int64] | None = None,
) -> StateTruth:
    """Return a comparison's truth with the states decided that its bounds left unknown.

    Parameters
    ----------
    exact : ExactFormulas
        Of the model that the formulas are about.
    truth : StateTruth
    operator : str
        One of < <= > >= = !=.
    left, right : pairs of a formula and its values
        If an exact value lies outside of its bounds, one of them is wrong: the truth then stays unknown.
    positions : ndarray of int64, optional
        The states that the truth and the values are about; default all.

    Returns
    -------
    StateTruth
        The same one if the exact values cannot be had.
    """
    if truth.unknown is None:
        return truth
    at = np.flatnonzero(truth.unknown).tolist()
    try:
        sides = [exact.values(formula) for formula, _ in (left, right)]
    except (NotExactError, EvaluationError):
        return truth
    if positions is not None:
        sides = [[side[i] for i in positions.tolist()] for side in sides]
    for values, (_, found) in zip(sides, (left, right), strict=True):
        if not all(between(values[i], float(found.lower[i]), float(found.upper[i])) for i in at):
            return truth
    decided = truth.values.copy()
    for i in at:
        decided[i] = compare_exactly(operator, sides[0][i], sides[1][i])
    return StateTruth(decided, None, truth.unproven, "")


def attained(
    exact: ExactFormulas, formula: Filter, truth: StateTruth, positions: NDArray[np.int64] | None
) -> StateTruth:
    """Return where argmin or argmax is attained, decided; the same truth if the values cannot be had.

    Parameters
    ----------
    exact : ExactFormulas
    formula : Filter
    truth : StateTruth
        Over the states that the filter looks at.
    positions : ndarray of int64, optional
        These states; default all.
    """
    try:
        values = exact.values(formula.operand)
    except (NotExactError, EvaluationError):
        return truth
    if positions is not None:
        values = [values[i] for i in positions.tolist()]
    if any(value != value for value in values):
        return truth
    best = min(values) if formula.operator == "argmin" else max(values)
    return StateTruth(np.array([value == best for value in values]))
