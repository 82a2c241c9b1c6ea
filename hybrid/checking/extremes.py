"""Where the extreme of some values is attained, as far as their bounds tell."""

from __future__ import annotations

import numpy as np

from hybrid.base.errors import PropertyError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.gathering import gathered
from mtbdd.base.communicator import Communicator
from mtbdd.base.wording import option

_TIE = 1e-9  # values this close, relatively, share an extreme when there are no bounds to tell


def selected(operator: str, found: StateValues) -> StateTruth:
    """Return where the minimum (argmin) or maximum of some states' values is attained.

    It is unknown for states whose bounds meet the extreme's.  Without bounds, those attain it that are close
    to it, and nothing is proven.
    """
    sign = 1.0 if operator == "argmin" else -1.0
    values = sign * found.values
    if np.isnan(values).any():
        raise PropertyError(
            f"filter({operator}, ...): expected a value in every state asked for, got none in some"
        )
    least = float(values.min())
    lower, upper = (found.lower, found.upper) if sign > 0 else (-found.upper, -found.lower)
    loose = np.isnan(lower) | np.isnan(upper)
    if loose.any():
        return StateTruth(values <= least + _TIE * abs(least), None, np.ones(values.size, dtype=np.bool_))
    possible = lower <= upper.min()
    # The least lower bound of all others: of all, except for the state that has that alone.
    first, second = np.partition(lower, 1)[:2] if lower.size > 1 else (lower[0], np.inf)
    others = np.where((lower == first) & (first < second), second, first)
    certain = upper <= others
    unknown = possible & ~certain
    if not unknown.any():
        return StateTruth(certain)
    at = np.flatnonzero(unknown)[:2].tolist()
    shown = " and ".join(f"[{float(found.lower[i])!r}, {float(found.upper[i])!r}]" for i in at)
    reason = (
        f"filter({operator}, ...) is unknown at this precision: one of several values may be the extreme, "
        f"such as {shown}; choose a smaller {option('epsilon')}"
    )
    return StateTruth(certain, unknown, None, reason)


def selected_by_all(communicator: Communicator, operator: str, found: StateValues) -> StateTruth:
    """Return where an extreme of the values of all processes is attained, in own states; see `selected`."""
    if communicator.size == 1:
        return selected(operator, found)
    size = found.values.size
    first = int(communicator.gather([size])[: communicator.rank].sum())
    together = gathered(communicator, found, np.arange(size))
    assert isinstance(together, StateValues)
    return selected(operator, together).at(np.arange(first, first + size))
