"""Bounds that hold are made bounds that a sweep confirms.

The solvers' bounds come from directed iteration on the doubles next to the model's numbers, and may fail an
inequality by some units in the last place.  They are moved to the loose side where they do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.certificates.condition import Condition
from hybrid.checking.certificates.conditions import Next
from hybrid.checking.certificates.solving import slackened

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUNDS = 40
_PLACES = 2.0**-51


def mended(
    condition: Condition, lower: Vector, upper: Vector, unknown: Mask | None = None
) -> tuple[Vector, Vector]:
    """Return bounds moved to the loose side until the inequalities hold, if that is possible.

    A state that fails takes what one step makes of the vector, rounded to the loose side, more so with every
    round; if some rounds do not do, small systems are solved anew.

    Parameters
    ----------
    condition : Condition
    lower, upper : ndarray of float64, shape (states,)
    unknown : ndarray of bool, shape (states,), optional
        The states that an equation ``x = f(x)`` is about; default those that the condition names.

    Notes
    -----
    Time: one sweep a round.
    """
    if isinstance(condition, Next):
        # One step says what the values are, but for the last place; where they are doubles they are met.
        lower = upper = _best(condition, lower)
    lower, upper = (np.clip(v, condition.least, condition.greatest) for v in (lower, upper))
    with np.errstate(invalid="ignore"):
        middle = np.where(lower == upper, lower, 0.5 * lower + 0.5 * upper)
    if _mend(condition, lower, -1.0) and _mend(condition, upper, 1.0):
        return lower, upper
    for low, high in slackened(condition, middle, condition.unknown(middle) if unknown is None else unknown):
        if not condition.lower_faults(low)[0].any() and not condition.upper_faults(high)[0].any():
            return low, high
    return lower, upper


def _mend(condition: Condition, x: Vector, direction: float) -> bool:
    """Move a vector in place, up for direction 1, and return whether it holds then."""
    for round_ in range(_ROUNDS):
        faults, _ = condition.lower_faults(x) if direction < 0 else condition.upper_faults(x)
        places = np.flatnonzero(faults)
        if places.size == 0:
            return True
        image = _best(condition, x)[places]
        with np.errstate(invalid="ignore"):  # infinite ones stay what they were
            image += direction * np.abs(image) * (_PLACES * 2.0 ** (round_ // 4))
        image = np.nextafter(image, direction * np.inf)
        moved = np.fmin(x[places], image) if direction < 0 else np.fmax(x[places], image)
        x[places] = np.clip(moved, condition.least, condition.greatest)
    return False


def _best(condition: Condition, x: Vector) -> Vector:
    """Return about the best that one step makes of a vector, for every state."""
    image = condition.images(x)
    heads = condition.sweep.transitions.first[:-1].astype(np.intp)
    gather = np.fmax if condition.maximise else np.fmin
    return np.asarray(gather.reduceat(image, heads))
