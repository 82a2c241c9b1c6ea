"""Arithmetic and functions on values with bounds.

Bounds are rounded outward where an operation rounds, and exact results of exact values stay exact.  A result
that leaves the doubles lies between the greatest one and infinity.  What has no value (0/0, the floor of an
infinite number) is NaN, and refused where it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.directed_rounding import GREATEST, Directed, added, divided, multiplied, outward
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.errors import option
from mtbdd.language.reals import doubles_around

# Comparisons of values with bounds, and a logic with an unknown truth.

Mask = NDArray[np.bool_]

_CLOSE = 1e-6  # values without bounds decide nothing that is closer than this, relatively


# ------------------------------------------------------------------ comparisons


def compare(operator: str, a: StateValues, b: StateValues, what: str) -> StateTruth:
    """Return ``a operator b`` for < <= > >= = !=, `what` in words for the reason of an unknown truth.

    Values without bounds are compared as they are unless they are close to each other.
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
    """Return where a is less than b for certain; bounds that meet distinguish them if one is open."""
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
    """Return ``a operator b`` for & | => <=>; a false operand settles a conjunction."""
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


Vector = NDArray[np.float64]

# lemma: arithmetic
_LIBRARY = 32 * 2.0**-53  # relative error granted to powers and logarithms
_WHOLE = 2.0**53


def constant_values(value: int | float, size: int) -> StateValues:
    """Return the same number for every state, with the doubles around it."""
    lower, upper = doubles_around(value)
    number = np.broadcast_to(np.float64(value), (size,))
    if lower == upper:
        return StateValues.exact(number)
    # The number is no double, so that neither bound is reached.
    inside = np.broadcast_to(np.bool_(True), (size,))
    low, high = (np.broadcast_to(np.float64(b), (size,)) for b in (lower, upper))
    return StateValues(number, low, high, inside, inside)


def negate(a: StateValues) -> StateValues:
    """Return ``-a``."""
    values = 0.0 - a.values
    if a.is_exact:
        return StateValues.exact(values)
    return StateValues(values, 0.0 - a.upper, 0.0 - a.lower, a.open_upper, a.open_lower)


def apply_arithmetic(operator: str, a: StateValues, b: StateValues) -> StateValues:
    """Return ``a operator b`` for + - * /."""
    if operator == "-":
        return apply_arithmetic("+", a, negate(b))
    operation = {"+": added, "*": multiplied, "/": divided}[operator]
    with np.errstate(all="ignore"):
        values = {"+": np.add, "*": np.multiply, "/": np.divide}[operator](a.values, b.values)
        if a.is_exact and b.is_exact:
            lower, upper = operation(a.values, b.values)
            return _made(values, lower, upper)
        if operator == "+":
            lower, upper = added(a.lower, b.lower)[0], added(a.upper, b.upper)[1]
        else:
            lower, upper = _corners(operation, a, b)
        if operator == "/":
            around = (b.lower <= 0) & (b.upper >= 0) & (b.lower != b.upper)
            lower, upper = np.where(around, -np.inf, lower), np.where(around, np.inf, upper)
        return _bounded(values, lower, upper, a, b)


def _corners(operation: Callable[[Vector, Vector], Directed], a: StateValues, b: StateValues) -> Directed:
    """Return bounds on an operation that is monotone in each operand from those at the corners."""
    lower = np.full(a.values.shape, np.inf)
    upper = -lower
    infinite = _infinite(a) | _infinite(b)
    for x in (a.lower, a.upper):
        for y in (b.lower, b.upper):
            low, high = operation(x, y)
            # Zero times a bound of infinity on a finite number is zero, and finite over finite is anything.
            if operation is multiplied:
                none = np.isnan(low) & ~np.isnan(x) & ~np.isnan(y) & ~infinite
                low, high = np.where(none, 0.0, low), np.where(none, 0.0, high)
            elif operation is divided:
                none = np.isnan(low) & ~np.isnan(x) & ~np.isnan(y) & ~infinite
                low, high = np.where(none, -np.inf, low), np.where(none, np.inf, high)
            lower, upper = np.minimum(lower, low), np.maximum(upper, high)
    return lower, upper


def _infinite(a: StateValues) -> Mask:
    """Return where a number is infinite for certain."""
    found: Mask = (a.lower == a.upper) & np.isinf(a.lower)
    return found


def _made(values: Vector, lower: Vector, upper: Vector) -> StateValues:
    """Return values with bounds, exact where these meet everywhere."""
    if bool((lower == upper).all()):
        return StateValues.exact(lower)
    return StateValues(_inside(values, lower, upper), lower, upper)


def _inside(values: Vector, lower: Vector, upper: Vector) -> Vector:
    """Return values within their bounds, finite unless these are infinite alike; NaN stays NaN."""
    least = np.where(lower == -np.inf, np.minimum(upper, -GREATEST), lower)
    greatest = np.where(upper == np.inf, np.maximum(lower, GREATEST), upper)
    return np.where(np.isnan(values), np.nan, np.fmin(np.fmax(values, least), greatest))


def _bounded(values: Vector, lower: Vector, upper: Vector, *operands: StateValues) -> StateValues:
    """Return values with bounds, NaN where an operand has none."""
    loose = np.logical_or.reduce([np.isnan(a.lower) | np.isnan(a.upper) for a in operands])
    lower, upper = np.where(loose, np.nan, lower), np.where(loose, np.nan, upper)
    return StateValues(np.where(loose, values, _inside(values, lower, upper)), lower, upper)


# ------------------------------------------------------------------ functions


def apply_call(function: str, arguments: Sequence[StateValues]) -> StateValues:
    """Return a function of the model language applied to values."""
    with np.errstate(all="ignore"):
        if function in ("min", "max"):
            reduce = np.minimum.reduce if function == "min" else np.maximum.reduce
            values = reduce([a.values for a in arguments])
            if all(a.is_exact for a in arguments):
                return StateValues.exact(values)
            lower, upper = reduce([a.lower for a in arguments]), reduce([a.upper for a in arguments])
            return _bounded(values, lower, upper, *arguments)
        if function in _ROUNDING:
            a = arguments[0]
            whole = _ROUNDING[function]
            values = np.where(np.isinf(a.values), np.nan, whole(a.values))
            if a.is_exact:
                return StateValues.exact(values)
            return _bounded(values, whole(a.lower), whole(a.upper), a)
        a, b = arguments
        values, lower, upper = {"pow": _power, "log": _logarithm, "mod": _modulo}[function](a, b)
        if a.is_exact and b.is_exact:
            nothing = np.isnan(values)
            return _made(values, np.where(nothing, np.nan, lower), np.where(nothing, np.nan, upper))
        return _bounded(values, lower, upper, a, b)


def _round_half_up(value: Vector) -> Vector:
    below = np.floor(value)
    return np.where(np.isinf(value), value, below + (value - below >= 0.5))


_ROUNDING: dict[str, Callable[[Vector], Vector]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": _round_half_up,
}

Bounded = tuple[Vector, Vector, Vector]


def _widened(function: Callable[[Vector, Vector], Vector], x: Vector, y: Vector) -> Directed:
    """Return bounds on a function of the library at a point."""
    value = function(x, y)
    low, high = outward(value, np.abs(value) * _LIBRARY + 2.0**-1074)  # lemma: arithmetic, underflow
    finite = np.isfinite(x) & np.isfinite(y)
    return (
        np.where(finite & (value == np.inf), GREATEST, low),
        np.where(finite & (value == -np.inf), -GREATEST, high),
    )


def _power(a: StateValues, b: StateValues) -> Bounded:
    """Return ``a ** b``: from the corners where a is positive, or b is an integer."""
    values = np.power(a.values, b.values)
    values = np.where(np.isinf(values) & (a.values == 0), np.nan, values)
    lower, upper = _corners(lambda x, y: _widened(np.power, x, y), a, b)
    exponent_known, whole = b.lower == b.upper, np.floor(b.lower) == b.lower
    even = whole & (np.mod(b.lower, 2) == 0)
    straddling = (a.lower < 0) & (a.upper > 0)
    lower = np.where(straddling & even, np.minimum(lower, 0.0), lower)
    monotone = (a.lower > 0) | ((a.lower >= 0) & (b.lower > 0))
    apart = (a.lower > 0) | (a.upper < 0)
    known = monotone | (exponent_known & whole & ((b.lower >= 0) | apart))
    lower, upper = np.where(known, lower, -np.inf), np.where(known, upper, np.inf)
    # Integer powers of integers are exact as far as doubles are.
    exact = exponent_known & (a.lower == a.upper) & whole & (b.lower >= 0) & (np.floor(a.lower) == a.lower)
    exact &= (np.abs(values) < _WHOLE / 4) & (b.lower < _WHOLE)
    base, exponent = (np.where(exact, v, 0).astype(np.int64) for v in (a.lower, b.lower))
    integer = np.power(base, exponent).astype(np.float64)
    return tuple(np.where(exact, integer, part) for part in (values, lower, upper))  # type: ignore[return-value]


def _logarithm(a: StateValues, b: StateValues) -> Bounded:
    """Return the logarithm of a to the base b."""

    def logarithm(x: Vector, y: Vector) -> Vector:
        return np.log(x) / np.log(y)

    defined = (a.values > 0) & (b.values > 0) & (b.values != 1)
    values = np.where(defined, logarithm(a.values, b.values), np.nan)
    lower, upper = _corners(lambda x, y: _widened(logarithm, x, y), a, b)
    known = (a.lower > 0) & ((b.lower > 1) | ((b.lower > 0) & (b.upper < 1)))
    return values, np.where(known, lower, -np.inf), np.where(known, upper, np.inf)


def _modulo(a: StateValues, b: StateValues) -> Bounded:
    """Return the remainder of integers."""
    values = np.where((b.values > 0) & np.isfinite(a.values), np.mod(a.values, b.values), np.nan)
    sure = (a.lower == a.upper) & (b.lower == b.upper) & (np.maximum(np.abs(a.lower), b.upper) <= _WHOLE)
    lower = np.where(b.lower > 0, np.where(sure, values, 0.0), -np.inf)
    upper = np.where(b.lower > 0, np.where(sure, values, np.maximum(b.upper - 1, 0.0)), np.inf)
    return values, lower, upper


def choose(condition: StateTruth, then: StateValues, otherwise: StateValues) -> StateValues:
    """Return ``condition ? then : otherwise``; where the condition is unknown, bounds cover both."""
    where = condition.values
    values = np.where(where, then.values, otherwise.values)
    exact = condition.unknown is None and condition.unproven is None
    if exact and then.is_exact and otherwise.is_exact:
        return StateValues.exact(values)
    lower = np.where(where, then.lower, otherwise.lower)
    upper = np.where(where, then.upper, otherwise.upper)
    if condition.unknown is not None:
        lower = np.where(condition.unknown, np.minimum(then.lower, otherwise.lower), lower)
        upper = np.where(condition.unknown, np.maximum(then.upper, otherwise.upper), upper)
    if condition.unproven is not None:
        lower, upper = (np.where(condition.unproven, np.nan, part) for part in (lower, upper))
    return StateValues(values, lower, upper)
