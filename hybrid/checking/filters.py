"""Filters: one value out of the values of many states."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.base.directed_rounding import GREATEST, divided, outward
from hybrid.base.errors import PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.checking.extremes import selected
from hybrid.checking.gathering import gathered, gathered_whole
from hybrid.checking.listing import Listing, Number
from hybrid.matrix.operators.rounding import sum_slack
from mtbdd.build.model import SymbolicModel
from mtbdd.build.part_model import PartModel
from mtbdd.build.state_order import in_order
from mtbdd.diagrams.manager import Node
from mtbdd.language.faults import format_state
from mtbdd.offset.states import StateIndex, index_states, states_from

LISTING = ("print", "printall", "argmin", "argmax")
"""Filter operators whose result has a listing of states."""

_ORDERED = (*LISTING, "first", "state")  # whose result, or complaint, tells states by their numbers
MOST_LISTED = 1 << 20
"""States that a listing has where several processes share the states, at most."""


_FEW = 1_000_000  # numbers that are added exactly


class RangeEnd(NamedTuple):
    """The least or the greatest of some values, with its bounds; these are None if there are none."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Range:
    """From where to where the values of some states go.

    Attributes
    ----------
    least, greatest : RangeEnd
    states : int or None
        How many there are; None where only blocks of them are known.
    of_initial : bool
        Whether they are the initial states, and not those of a filter.
    """

    least: RangeEnd
    greatest: RangeEnd
    states: int | None
    of_initial: bool

    def without_bounds(self) -> Range:
        """Return the range as an estimate."""
        least, greatest = (RangeEnd(end.value, None, None) for end in (self.least, self.greatest))
        return replace(self, least=least, greatest=greatest)

    def __str__(self) -> str:
        kind = "initial states" if self.of_initial else "states"
        over = "" if self.states is None else f" over {self.states:,} {kind}"
        return f"from {_shown(self.least.value)} to {_shown(self.greatest.value)}{over}"


def _shown(value: float) -> str:
    """Return a number with all its digits; infinities as in JSON."""
    return repr(value) if math.isfinite(value) else "Infinity" if value > 0.0 else "-Infinity"


@dataclass(frozen=True)
class Summary:
    """A filter's result.

    Attributes
    ----------
    value : float, int, bool or None
        None for a range.
    lower, upper : float, int, bool or None
        Bounds, of a range on all values in it; None if there are none.
    listing : Listing or None
        States and their values, for filters that show them.
    proven : bool
        Whether all of it rests on values with bounds.
    range : Range or None
    """

    value: Number | None
    lower: Number | None
    upper: Number | None
    listing: Listing | None = None
    proven: bool = True
    range: Range | None = None


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
    PropertyError
        No state is left, or the operator does not fit the values.
    UnknownError
        The result is a truth value that the bounds do not decide.
    """
    indices = np.flatnonzero(model.indicator(states, within))
    if model.communicator.size > 1:
        if isinstance(model, PartModel) and operator in _ORDERED and states != model.manager.false:
            return _of_all(model, operator, found, states, within)
        found = gathered(model.communicator, found, indices)
        indices = np.arange(found.values.size)
    if operator in _ORDERED:
        indices = in_order(model, indices, within)
    if indices.size == 0:
        raise PropertyError(f"filter({operator}, ...): no reachable state satisfies the filter's condition")
    if operator in ("argmin", "argmax"):
        if isinstance(found, StateTruth):
            raise PropertyError(f"filter({operator}, ...) needs numbers, not truth values")
        best = indices[np.flatnonzero(selected(operator, found.at(indices)).possible)]
        extreme = _of_numbers(model, operator[3:], found.at(indices), indices, within)
        return Summary(extreme.value, extreme.lower, extreme.upper, Listing(model, found, best, within))
    if operator in ("print", "printall"):
        shown = indices
        if operator == "print":
            shown = indices[np.asarray(found.values[indices] != 0)]
        listing = Listing(model, found, shown, within)
        start = np.flatnonzero(model.indicator(model.initial, within))
        summary = _reduce(model, "initial", found, start, within)
        return replace(summary, listing=listing)
    return _reduce(model, operator, found, indices, within)


def _of_all(
    model: PartModel, operator: str, found: StateValues | StateTruth, states: Node, within: StateIndex
) -> Summary:
    """Return what a filter that tells states by their numbers makes of the states of all processes.

    Their values are brought together in every process, zeros that `print` leaves out not among them.
    """
    if operator not in ("print", "printall"):
        together, index = gathered_whole(model, found, states, within)
        summary = summarise(model.whole, operator, together, states, index)
        if summary.listing is not None:
            _check_length(operator, len(summary.listing))
        return summary
    shown = states
    if operator == "print":
        marked = model.indicator(states, within) & np.asarray(found.values != 0)
        shown = states_from(model.manager, within, marked)
    _check_length(operator, index_states(model.manager, shown).total)
    together, index = gathered_whole(model, found, shown | model.initial, within)
    indices = in_order(model.whole, np.flatnonzero(model.whole.indicator(shown, index)), index)
    start = np.flatnonzero(model.whole.indicator(model.initial, index))
    summary = _reduce(model.whole, "initial", together, start, index)
    return replace(summary, listing=Listing(model.whole, together, indices, index))


def _check_length(operator: str, length: int) -> None:
    """Refuse listings that are too long for every process to hold."""
    if length > MOST_LISTED:
        raise UnsupportedError(
            f"filter({operator}, ...) lists {length:,} states that several processes share: expected "
            f"{MOST_LISTED:,} at most; ask about fewer states, or with one process"
        )


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
            raise PropertyError(
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
        raise PropertyError(f"filter({operator}, ...) needs numbers; for truth values there are {_FOR_TRUTH}")
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
        raise PropertyError(
            f"filter(state, ...): {indices.size} states satisfy the filter's condition and have values from "
            f"{some.values.min()} in {format_state(one)} to {some.values.max()} in {format_state(other)}: "
            "say which is wanted with filter(min|max|avg|..., ...)"
        )
    missing = np.flatnonzero(np.isnan(some.values))
    if missing.size:
        state = "a state"
        if model.communicator.size == 1:
            state = format_state(model.describe(indices[missing[:1]], within)[0])
        raise PropertyError(
            f"expected a value in every state asked for, got none in {state}: zero divided by zero, or "
            "infinite values that cancel or are rounded"
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
        least, greatest = _end(some, np.min), _end(some, np.max)
        found = Range(least, greatest, indices.size, operator == "initial")
        return Summary(None, least.lower, greatest.upper, proven=least.lower is not None, range=found)
    raise PropertyError(f"filter({operator}, ...) needs truth values; for numbers there are {_FOR_NUMBERS}")


def _total(operator: str, some: StateValues) -> Summary:
    """Return a sum or a mean, rounded outward."""
    if bool(np.isnan(some.lower).any()):
        value = _sum(some.values)[0]
        return Summary(value if operator == "sum" else value / some.values.size, None, None)
    lower, upper = _sum(some.lower)[0], _sum(some.upper)[1]
    with np.errstate(over="ignore", invalid="ignore"):
        value = lower if some.is_exact and lower == upper else float(some.values.sum())
    if operator == "avg":
        count = np.array([float(some.values.size)])
        value /= some.values.size
        lower = float(divided(np.array([lower]), count)[0][0])
        upper = float(divided(np.array([upper]), count)[1][0])
    return _bounded(value, lower, upper)


def _sum(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the doubles around a sum; somewhat wider ones for more than a million numbers."""
    with np.errstate(all="ignore"):
        total = float(values.sum())
        size = float(np.abs(values).sum())
    if not math.isfinite(size):
        if np.isinf(values).any():
            if total != total:
                raise PropertyError("filter(sum|avg, ...): infinite values of both signs add up to nothing")
            return total, total
        with np.errstate(over="ignore"):
            low, high = (part * 2.0**64 for part in _sum(values * 2.0**-64))  # lemma: arithmetic
        # Between the greatest double and infinity; what scaling loses is below the last place.
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)  # lemma: arithmetic
        return (GREATEST if low == math.inf else low), (-GREATEST if high == -math.inf else high)
    if values.size > _FEW:
        slack = size * sum_slack(values.size)  # lemma: arithmetic, rounding
        lower, upper = outward(np.array([total]), np.array([slack]))  # lemma: arithmetic, rounding
        return float(lower[0]), float(upper[0])
    total = math.fsum(values.tolist())
    rest = math.fsum([*values.tolist(), -total])
    # lemma: arithmetic
    return (
        math.nextafter(total, -math.inf) if rest < 0 else total,
        math.nextafter(total, math.inf) if rest > 0 else total,
    )


def _end(some: StateValues, reduce: Callable[[NDArray[np.float64]], np.float64]) -> RangeEnd:
    """Return the least or the greatest of some values."""
    found = _bounded(*(float(reduce(part)) for part in (some.values, some.lower, some.upper)))
    assert isinstance(found.value, float)
    return RangeEnd(found.value, found.lower, found.upper)


def _bounded(value: float, lower: float, upper: float) -> Summary:
    """Return a number with its bounds, None where they are NaN."""
    if lower != lower or upper != upper:
        return Summary(value, None, None)
    value = min(max(value, lower), upper)
    if math.isinf(value) and lower != upper:
        value = lower if math.isfinite(lower) else upper if math.isfinite(upper) else 0.0
    return Summary(value, lower, upper)
