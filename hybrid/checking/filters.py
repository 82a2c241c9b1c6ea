"""Filters: one value out of the values of many states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.quantities import StateTruth, StateValues, UnknownError
from hybrid.checking.rounding import sum_slack
from mtbdd.faults import format_state
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel
from mtbdd.states import StateIndex

__all__ = ["MAX_LISTED", "Summary", "selected", "summarise"]

MAX_LISTED = 1000
_TIE = 1e-9  # values this close, relatively, share an extreme when there are no bounds to tell

Number = float | int | bool


@dataclass(frozen=True)
class Summary:
    """A filter's result.

    Attributes
    ----------
    value : float, int, bool or None
        None for a range, whose ends are the bounds.
    lower, upper : float, int, bool or None
        Bounds; None if there are none.
    listing : tuple of (str, number or bool)
        States and their values, for filters that show them; at most `MAX_LISTED`.
    """

    value: Number | None
    lower: Number | None
    upper: Number | None
    listing: tuple[tuple[str, Number], ...] = ()


def summarise(
    model: SymbolicModel, operator: str, found: StateValues | StateTruth, states: Node, within: StateIndex
) -> Summary:
    """Return what a filter makes of the values of some states.

    Parameters
    ----------
    operator : str
        A filter operator of the property language, or "initial": the one value that all states share,
        or else their range (truth values: whether all hold).
    found : StateValues or StateTruth
        Over the states of `within`.
    states : Node
        Those that count, among `within`.
    within : StateIndex

    Raises
    ------
    ValueError
        No state is left, or the operator does not fit the values.
    UnknownError
        The result is a truth value that the bounds do not decide.
    """
    indices = np.flatnonzero(model.indicator(states, within))
    if indices.size == 0:
        raise ValueError(f"filter({operator}, ...): no reachable state satisfies the filter's condition")
    if operator in ("argmin", "argmax"):
        if isinstance(found, StateTruth):
            raise ValueError(f"filter({operator}, ...) needs numbers, not truth values")
        best = np.flatnonzero(selected(operator, found, indices))
        extreme = _of_numbers(model, operator[3:], found.at(indices), indices, within)
        return Summary(extreme.value, extreme.lower, extreme.upper, _listing(model, found, best, within))
    if operator in ("print", "printall"):
        shown = indices
        if operator == "print":
            shown = indices[np.asarray(found.values[indices] != 0)]
        listing = _listing(model, found, shown, within)
        start = np.flatnonzero(model.indicator(model.initial, within))
        summary = _reduce(model, "initial", found, start, within)
        return Summary(summary.value, summary.lower, summary.upper, listing)
    return _reduce(model, operator, found, indices, within)


def selected(operator: str, found: StateValues, indices: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for the states of `found`, whether they attain the minimum (argmin) or maximum of some states.

    States whose bounds do not tell them from the extreme attain it, too.
    """
    sign = 1.0 if operator == "argmin" else -1.0
    some = found.at(indices)
    values = sign * some.values
    least = float(values.min())
    bounds = some.lower if sign > 0 else -some.upper
    others = some.upper if sign > 0 else -some.lower
    with np.errstate(invalid="ignore"):
        attained = np.where(
            np.isnan(bounds),
            values <= least + _TIE * abs(least),
            bounds <= np.nanmin(np.where(np.isnan(others), np.inf, others)),
        )
    result = np.zeros(found.values.size, dtype=np.bool_)
    result[indices[attained | (values == least)]] = True
    return result


def _reduce(
    model: SymbolicModel,
    operator: str,
    found: StateValues | StateTruth,
    indices: NDArray[np.int64],
    within: StateIndex,
) -> Summary:
    """Reduce the values of some states to one."""
    if isinstance(found, StateTruth):
        return _of_truth(operator, found.at(indices))
    return _of_numbers(model, operator, found.at(indices), indices, within)


# ------------------------------------------------------------------ truth values


def _of_truth(operator: str, some: StateTruth) -> Summary:
    if operator in ("state", "first"):
        if operator == "state" and some.values.size > 1 and bool((some.values != some.values[0]).any()):
            raise ValueError(
                f"filter(state, ...): {some.values.size} states satisfy the filter's condition and "
                "differ; say which is wanted with filter(forall|exists|first, ...)"
            )
        some = some.at(np.zeros(1, dtype=np.int64))
        operator = "forall"
    certain, possible = some.certain, some.possible
    value: Number
    other: Number
    if operator in ("initial", "forall"):
        value, other = bool(certain.all()), bool(possible.all())
    elif operator == "exists":
        value, other = bool(certain.any()), bool(possible.any())
    elif operator == "count":
        value, other = int(certain.sum()), int(possible.sum())
    else:
        raise ValueError(f"filter({operator}, ...) needs numbers; for truth values there are {_FOR_TRUTH}")
    if value != other:
        raise UnknownError(some.reason)
    proven = some.unproven is None or not bool(some.unproven.any())
    return Summary(value, value, value) if proven else Summary(value, None, None)


_FOR_TRUTH = "forall, exists, count, first, state, print, printall"
_FOR_NUMBERS = "min, max, argmin, argmax, sum, avg, range, first, state, print, printall"


# ------------------------------------------------------------------ numbers


def _of_numbers(
    model: SymbolicModel, operator: str, some: StateValues, indices: NDArray[np.int64], within: StateIndex
) -> Summary:
    if operator == "state" and indices.size > 1:
        one, other = model.describe(indices[[int(some.values.argmin()), int(some.values.argmax())]], within)
        raise ValueError(
            f"filter(state, ...): {indices.size} states satisfy the filter's condition and have values from "
            f"{some.values.min()} in {format_state(one)} to {some.values.max()} in {format_state(other)}: "
            "say which is wanted with filter(min|max|avg|..., ...)"
        )
    if operator == "initial" and bool((some.values == some.values[0]).all()):
        return _bounded(float(some.values[0]), float(some.lower.min()), float(some.upper.max()))
    if operator == "state":
        operator = "first"
    if operator == "first":
        return _bounded(float(some.values[0]), float(some.lower[0]), float(some.upper[0]))
    if operator in ("min", "max"):
        reduce = np.min if operator == "min" else np.max
        return _bounded(*(float(reduce(part)) for part in (some.values, some.lower, some.upper)))
    if operator in ("sum", "avg"):
        return _total(operator, some)
    if operator in ("range", "initial"):
        inner_low, inner_high = float(some.values.min()), float(some.values.max())
        lower, upper = float(some.lower.min()), float(some.upper.max())
        return Summary(None, inner_low if lower != lower else lower, inner_high if upper != upper else upper)
    raise ValueError(f"filter({operator}, ...) needs truth values; for numbers there are {_FOR_NUMBERS}")


def _total(operator: str, some: StateValues) -> Summary:
    """Return a sum or a mean; whole numbers are added exactly, others with a slack for rounding."""
    share = 1.0 if operator == "sum" else 1.0 / some.values.size
    slack = 0.0
    whole = bool((np.floor(some.values) == some.values).all()) and float(np.abs(some.values).sum()) < 2.0**53
    if not (some.is_exact and whole):
        slack = sum_slack(some.values.size) * float(np.abs(some.values).sum())
    if operator == "avg":
        slack += 2.0**-52 * float(np.abs(some.values).sum()) if slack else 0.0
    value, lower, upper = (float(part.sum()) for part in (some.values, some.lower, some.upper))
    return _bounded(share * value, share * (lower - slack), share * (upper + slack))


def _bounded(value: float, lower: float, upper: float) -> Summary:
    """Return a number with its bounds, None where they are NaN."""
    if lower != lower or upper != upper:
        return Summary(value, None, None)
    return Summary(min(max(value, lower), upper), lower, upper)


def _listing(
    model: SymbolicModel,
    found: StateValues | StateTruth,
    indices: NDArray[np.int64],
    within: StateIndex,
) -> tuple[tuple[str, Number], ...]:
    """Return the first of some states with their values."""
    shown = indices[:MAX_LISTED]
    names = [format_state(state) for state in model.describe(shown, within)]
    return tuple(zip(names, found.values[shown].tolist(), strict=True))
