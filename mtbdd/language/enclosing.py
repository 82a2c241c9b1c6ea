"""Values of expressions over arrays, with a bound on what rounding costs them.

Numbers are computed in doubles together with a bound on their absolute error (running error analysis,
[Higham02] 3.3).  Where that leaves a comparison or an integer part open, or a number without correct
leading digits, the expression is evaluated once more on the real numbers, for these entries alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.language.errors import EvaluationError, Fault
from mtbdd.language.evaluate import evaluate
from mtbdd.language.reals import bounds
from mtbdd.language.rounded import real_of
from mtbdd.language.running_errors import LEAST, UNIT, UP, WHOLE, RunningErrors
from mtbdd.language.scalars import TooCloseError, TooLargeError
from mtbdd.language.syntax import Binary, Call, Expression, Literal
from mtbdd.language.types import is_double
from mtbdd.language.walk import children

_MOST_UNITS = 32
"""Relative error beyond which a number is evaluated on the reals, in units."""

Array = NDArray[Any]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Enclosed:
    """The values of an expression.

    Attributes
    ----------
    values : ndarray, any shape
        Bools, int64 or float64; NaN where the expression has no value.
    error : ndarray of float64, shape of `values`, or None
        Bound on the distance of every value from the number that it stands for; None if all are exact.
    """

    values: Array
    error: Vector | None


def has_doubles(expression: Expression) -> bool:
    """Return whether a number that is no integer may occur in an expression.

    Time: O(nodes), shared ones counted once.
    """
    seen: set[int] = set()
    stack = [expression]
    while stack:
        e = stack.pop()
        if isinstance(e, Literal):
            if isinstance(e.value, float):
                return True
        elif (isinstance(e, Binary) and e.operator == "/") or (isinstance(e, Call) and e.function == "log"):
            return True
        elif id(e) not in seen:
            seen.add(id(e))
            stack.extend(children(e))
    return False


def enclose(
    expression: Expression,
    environment: Mapping[str, Array],
    shape: tuple[int, ...],
    where: Mask | None = None,
) -> Enclosed:
    """Return the values of an expression over arrays.

    Parameters
    ----------
    expression : Expression
        Well-typed.
    environment : mapping of str to ndarray
        The values of names, bools or integers, of shapes that broadcast to `shape`; those of labels under
        their names in double quotes.
    shape : tuple of int
    where : ndarray of bool, shape `shape`, optional
        The entries that count; the others' values and errors mean nothing.

    Returns
    -------
    Enclosed
        Of the given shape.  The error is at most 32 units of rounding of the value; a number that is not zero
        is not 0.0.

    Raises
    ------
    EvaluationError
        Irrational numbers agree in so many digits that it is not known which one is greater, or numbers that
        are compared or rounded leave the doubles.

    Notes
    -----
    Time: several operations on whole arrays a node, and some ten microseconds a node for every entry that has
    to be evaluated once more.
    """
    if not has_doubles(expression):
        return Enclosed(np.broadcast_to(np.asarray(evaluate(expression, environment)), shape), None)
    with np.errstate(all="ignore"):
        found = RunningErrors(environment).of(expression)
        # In C order, so that what is put right below is put into these arrays and not into copies of them.
        values = np.array(np.broadcast_to(np.asarray(found.value), shape), order="C")
        doubtful = np.array(np.broadcast_to(np.asarray(found.doubt, dtype=np.bool_), shape), order="C")
        error = np.array(np.broadcast_to(np.asarray(found.error, dtype=np.float64), shape), order="C")
        is_number = is_double(expression, lambda _: False)
        if is_number:
            values = values.astype(np.float64, copy=False)
            doubtful |= ~(error <= _MOST_UNITS * UNIT * np.abs(values))  # lemma: entry-units
    if where is not None:
        doubtful &= where
    at = np.flatnonzero(doubtful)
    names = sorted(environment)
    columns = [np.broadcast_to(environment[name], shape).reshape(-1)[at].tolist() for name in names]
    known: dict[tuple[Any, ...], tuple[Any, float] | None] = {}
    mended = []
    for entry in zip(*columns, strict=True) if names else [()] * at.size:
        if entry not in known:
            known[entry] = _exact(expression, dict(zip(names, entry, strict=True)), is_number)
        mended.append(known[entry])
    if not is_number:
        return Enclosed(_with(values, at, mended), None)
    flat, bound = values.reshape(-1), error.reshape(-1)
    for k, exact in zip(at.tolist(), mended, strict=True):
        # NaN, infinite or far beyond all doubles: no number anyway.
        flat[k], bound[k] = (flat[k], 0.0) if exact is None else exact
    return Enclosed(values, error if (error if where is None else error[where]).any() else None)


def _with(values: Array, at: Array, mended: Sequence[tuple[Any, float] | None]) -> Array:
    """Return bools or integers with some entries replaced; NaN where an integer has no value."""
    if values.dtype.kind != "f":
        for k, exact in zip(at.tolist(), mended, strict=True):
            if exact is not None:
                values.reshape(-1)[k] = exact[0]
        return values
    # Integers that were computed as doubles, since some may have left 64 bits.
    whole = np.where(np.abs(values) <= WHOLE, values, 0.0).astype(np.int64)
    lost = np.isnan(values)
    for k, exact in zip(at.tolist(), mended, strict=True):
        lost.reshape(-1)[k] = exact is None
        if exact is not None:
            whole.reshape(-1)[k] = exact[0]
    return np.where(lost, np.nan, whole) if lost.any() else whole


def units_of(found: Enclosed, where: Mask | None = None) -> float:
    """Return the greatest relative error of numbers that count, in units of 2^-53."""
    if found.error is None:
        return 0.0
    error, size = found.error, np.abs(found.values)
    counts = (size > 0) & np.isfinite(size)
    if where is not None:
        counts &= where
    with np.errstate(over="ignore"):
        return float((error[counts] / size[counts]).max(initial=0.0)) / UNIT * UP  # lemma: entry-units


def nearest_nonzero(value: int | float, position: Any) -> tuple[float, float]:
    """Return the double for a real number, not zero unless that is, and a bound on its error.

    Raises
    ------
    EvaluationError
        Whether it is zero is not known.
    """
    low, high = bounds(real_of(value))
    if low == high == 0:
        return 0.0, 0.0
    if low <= 0 <= high:
        message = "expected a number that 60 digits tell from zero; write the number itself"
        raise TooCloseError([Fault(position, message)])
    double = float(value)
    if double == 0:
        double = LEAST if low > 0 else -LEAST
    if low == high == double:
        return double, 0.0
    # Half a unit in the last place, and the width of the enclosure, which is far less.
    return double, max(abs(double) * UNIT * UP, LEAST)  # lemma: entry-units


def _exact(
    expression: Expression, environment: Mapping[str, Any], is_number: bool
) -> tuple[Any, float] | None:
    """Return a single value and its error, None if it has none."""
    try:
        value = evaluate(expression, environment)
        if isinstance(value, float):
            return nearest_nonzero(value, expression.position)
    except TooCloseError:
        raise
    except TooLargeError:
        # Infinite weights and rewards are refused where they are met; a truth or an integer shows nothing.
        if is_number:
            return None
        raise
    except EvaluationError:
        return None
    return value, 0.0
