"""Comparisons of values with bounds, and a logic with an unknown truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.wording import option

Mask = NDArray[np.bool_]

_CLOSE = 1e-6  # values without bounds decide nothing that is closer than this, relatively


# ------------------------------------------------------------------ comparisons


def compare(operator: str, a: StateValues, b: StateValues, what: str) -> StateTruth:
    """Return ``a operator b`` for < <= > >= = !=.

    Values without bounds are compared as they are unless they are close to each other.

    Parameters
    ----------
    what : str
        The comparison in words, for the reason of an unknown truth.
    """
    if operator in (">", ">="):
        return compare("<" if operator == ">" else "<=", b, a, what)
    if operator == "!=":
        return compare("=", a, b, what).negated()
    function: Callable[..., Any] = {"<": np.less, "<=": np.less_equal, "=": np.equal}[operator]
    values = np.asarray(function(a.values, b.values))
    if a.is_exact and b.is_exact:
        return StateTruth(values)
    with np.errstate(invalid="ignore"):
        loose = np.isnan(a.lower) | np.isnan(b.lower)
        if operator == "=":
            holds = (a.lower == a.upper) & (b.lower == b.upper) & (a.lower == b.lower)
            fails = _is_below(a, b) | _is_below(b, a)
        elif operator == "<":
            holds, fails = _is_below(a, b), a.lower >= b.upper
        else:
            holds, fails = a.upper <= b.lower, _is_below(b, a)  # lemma: comparison
        size = np.maximum(np.abs(a.values), np.abs(b.values))
        close = np.abs(a.values - b.values) <= _CLOSE * size
    unknown = np.where(loose, close, ~(holds | fails))
    if not unknown.any():
        return StateTruth(np.where(loose, values, holds), None, loose if loose.any() else None)
    at = int(np.flatnonzero(unknown)[0])
    one, other = (_known(v, at) for v in (a, b))
    reason = (
        f"{what} is unknown at this precision: in some state {one} is compared with {other}; "
        f"choose a smaller {option('epsilon')}, or ask for the value with =?"
    )
    return StateTruth(np.where(loose, values, holds), unknown, loose if loose.any() else None, reason)


def _is_below(a: StateValues, b: StateValues) -> Mask:
    """Return where a is less than b for certain; bounds that meet tell them apart if one is open."""
    below: Mask = a.upper < b.lower
    for opened in (a.open_upper, b.open_lower):
        if opened is not None:
            below = below | ((a.upper == b.lower) & opened)
    return below


def _known(values: StateValues, at: int) -> str:
    """Return what is known of one value, in words."""
    lower, upper = float(values.lower[at]), float(values.upper[at])
    if lower == upper:
        return f"{lower!r}"
    if lower != lower:
        return f"{float(values.values[at])!r} (an estimate, without bounds)"
    return f"a value in [{lower!r}, {upper!r}]"


# ------------------------------------------------------------------ logic


def apply_logic(operator: str, a: StateTruth, b: StateTruth) -> StateTruth:
    """Return ``a operator b`` for & | => <=>; a false operand settles a conjunction whatever the other is."""
    if operator == "<=>":
        return equivalent(a, b)
    if operator == "=>":
        return apply_logic("|", a.negated(), b)
    if operator == "|":
        return apply_logic("&", a.negated(), b.negated()).negated()
    values = a.values & b.values
    if a.unknown is None and b.unknown is None and a.unproven is None and b.unproven is None:
        return StateTruth(values)
    certain, possible = a.certain & b.certain, a.possible & b.possible
    false_for_sure = _settled(a, False) | _settled(b, False)
    unproven = _or(a.unproven, b.unproven)
    if unproven is not None:
        unproven = unproven & ~false_for_sure
    return StateTruth(certain, _none_if_empty(certain ^ possible), _none_if_empty(unproven), _reason(a, b))


def equivalent(a: StateTruth, b: StateTruth) -> StateTruth:
    """Return whether two truths are the same."""
    unknown, unproven = _or(a.unknown, b.unknown), _or(a.unproven, b.unproven)
    return StateTruth(a.values == b.values, unknown, unproven, _reason(a, b))


def _settled(a: StateTruth, value: bool) -> Mask:
    """Return where a truth has a value for certain and with proof."""
    found: Mask = a.values if value else ~a.values
    for doubt in (a.unknown, a.unproven):
        if doubt is not None:
            found = found & ~doubt
    return found


def _or(a: Mask | None, b: Mask | None) -> Mask | None:
    return b if a is None else a if b is None else a | b


def _none_if_empty(mask: Mask | None) -> Mask | None:
    return mask if mask is not None and bool(mask.any()) else None


def _reason(a: StateTruth, b: StateTruth) -> str:
    return a.reason or b.reason
