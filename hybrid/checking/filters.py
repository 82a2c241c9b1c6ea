"""Filters: one value out of the values of many states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from hybrid.base.directed_rounding import GREATEST, divided, outward
from hybrid.base.errors import PropertyError, UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from hybrid.base.units import json_number
from hybrid.matrix.operators.rounding import sum_slack
from mtbdd.base.communicator import Communicator
from mtbdd.base.errors import option
from mtbdd.base.records import Record
from mtbdd.build.model import PartModel, SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.errors import format_state
from mtbdd.offset.states import StateIndex, index_states, states_from

# States and their values, as filters list them: whole, and made when they are read.

Number = float | int | bool

_PART = 1 << 14  # states read together


class Listing(Sequence[tuple[str, Number]]):
    """Some states and a formula's value in each, in the order of the states' numbers.

    As a sequence it has pairs of text and value, `("(s=3, d=0)", 0.5)`; `records` has everything. `found` is
    over the states of `within`, and `indices` are those listed, in the order wanted. Memory: the arrays
    given, 8 to 32 bytes a state; texts and records are made as they are read.
    """

    def __init__(
        self,
        model: SymbolicModel,
        found: StateValues | StateTruth,
        indices: NDArray[np.int64],
        within: StateIndex,
    ) -> None:
        self._model, self._found, self._indices, self._within = model, found, indices, within

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, place: int) -> tuple[str, Number]: ...

    @overload
    def __getitem__(self, place: slice) -> Listing: ...

    def __getitem__(self, place: int | slice) -> tuple[str, Number] | Listing:
        if isinstance(place, slice):
            return Listing(self._model, self._found, self._indices[place], self._within)
        one = self._indices[place : place + 1 or None]
        if not one.size:
            raise IndexError(f"listing: expected a place below {len(self)}, got {place}")
        return next(iter(Listing(self._model, self._found, one, self._within)))

    def __iter__(self) -> Iterator[tuple[str, Number]]:
        for states, indices in self._parts():
            values = self._found.values[indices].tolist()
            yield from zip(map(format_state, states), values, strict=True)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a record a state: `state` by variable name, `value`, `lower` and `upper`.

        Bounds are None where the method gives none; a truth value is None where bounds do not decide it.
        """
        for states, indices in self._parts():
            some = self._found.at(indices)
            columns = [part.tolist() for part in some.columns()]
            unknown = some.unknown if isinstance(some, StateTruth) else None
            if unknown is not None:
                columns[0] = [None if u else v for u, v in zip(unknown.tolist(), columns[0], strict=True)]
            for state, value, lower, upper in zip(states, *columns, strict=True):
                bounds = (None, None) if lower != lower else (lower, upper)
                yield {"state": state, "value": value, "lower": bounds[0], "upper": bounds[1]}

    def __repr__(self) -> str:
        return f"<listing of {len(self)} states>"

    def _parts(self) -> Iterator[tuple[list[dict[str, bool | int]], NDArray[np.int64]]]:
        """Yield some states at a time, and their indices."""
        for begin in range(0, len(self), _PART):
            indices = self._indices[begin : begin + _PART]
            yield self._model.describe(indices, self._within), indices


# Values of states that processes share, brought together where a filter asks for them.

MOST_GATHERED = 1 << 24
"""States whose values are brought together, at most."""


def gathered(
    communicator: Communicator, found: StateValues | StateTruth, places: NDArray[np.int64]
) -> StateValues | StateTruth:
    """Return the values of some own states of all processes, process by process.

    Raises UnsupportedError where there are too many of them.
    """
    total = int(communicator.total([places.size])[0])
    if total > MOST_GATHERED:
        raise UnsupportedError(
            f"a filter over {total:,} states that several processes share: expected {MOST_GATHERED:,} at "
            "most; ask about fewer states, or with one process"
        )
    some = found.at(places)
    if isinstance(some, StateTruth):
        values = _together(communicator, some.values)
        unknown = _together(communicator, _mask(some.unknown, places.size))
        unproven = _together(communicator, _mask(some.unproven, places.size))
        reason = communicator.first_text(some.reason or None) or ""
        return StateTruth(
            values, unknown if unknown.any() else None, unproven if unproven.any() else None, reason
        )
    if communicator.all(some.is_exact):
        return StateValues.exact(_together(communicator, some.values))
    parts = [_together(communicator, part) for part in (some.values, some.lower, some.upper)]
    below, above = (
        _together(communicator, _mask(m, places.size)) for m in (some.open_lower, some.open_upper)
    )
    return StateValues(parts[0], parts[1], parts[2], below, above)


def gathered_whole(
    model: PartModel, found: StateValues | StateTruth, states: Node, within: StateIndex
) -> tuple[StateValues | StateTruth, StateIndex]:
    """Return the values of some states of all processes, and the index that numbers all of these.

    `found` is over the own states of `within`, `states` are those wanted among them. Raises UnsupportedError
    where there are too many. Every process owns the same states in all calls, so that places need not be
    sent.
    """
    share, whole = model.manager.share, model.manager.whole
    assert share is not None
    together = gathered(share.communicator, found, np.flatnonzero(model.indicator(states, within)))
    index = index_states(whole, states)
    places = [index.places(index_states(whole, states & owner)) for owner in share.owners]
    return together.at(np.argsort(np.concatenate(places))), index


def decided_by_all(communicator: Communicator, truth: StateTruth) -> NDArray[np.bool_]:
    """Return the truth in the own states, where no process has one that is unknown: else UnknownError."""
    is_unknown = truth.unknown is not None and bool(truth.unknown.any())
    reason = communicator.first_text(truth.reason if is_unknown else None)
    if reason is not None:
        raise UnknownError(reason)
    return truth.values


def _mask(mask: NDArray[np.bool_] | None, size: int) -> NDArray[np.bool_]:
    return np.zeros(size, np.bool_) if mask is None else mask


def _together(communicator: Communicator, own: NDArray[Any]) -> NDArray[Any]:
    """Return the elements of all processes."""
    found = communicator.gather_bytes(np.ascontiguousarray(own).tobytes())
    return np.concatenate([np.frombuffer(part, own.dtype) for part in found])


# States that attain the extreme of some values, as far as bounds decide it.

_TIE = 1e-9  # values this close, relatively, share an extreme where there are no bounds


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


LISTING = ("print", "printall", "argmin", "argmax")
"""Filter operators whose result has a listing of states."""

_ORDERED = (*LISTING, "first", "state")  # whose result, or message, names states by their numbers
MOST_LISTED = 1 << 20
"""States that a listing has where several processes share the states, at most."""


_FEW = 1_000_000  # numbers that are added exactly


class RangeEnd(NamedTuple):
    """The least or the greatest of some values, with its bounds; these are None if there are none."""

    value: float
    lower: float | None
    upper: float | None


class Range(Record):
    """The least and the greatest value of some states.

    Attributes
    ----------
    least, greatest : RangeEnd
        Each with its `value`, `lower` and `upper` bound.
    states : int or None
        How many states there are; None where only their blocks are known.
    of_initial : bool
        Whether they are the initial states, not those of a filter.
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
        return f"from {json_number(self.least.value)} to {json_number(self.greatest.value)}{over}"


Pairs = tuple[tuple[Fraction, Fraction], ...]
"""The least pairs of two bounds, by the first one."""


class Summary(Record):
    """A filter's result.

    The `value` is None for a range, whose bounds hold for all values in it; bounds are None if there are
    none. A `listing` has states and their values, for filters that show them; `proven` says whether all of it
    rests on values with bounds. Of two bounds of a quantile there are `pairs`.
    """

    value: Number | None
    lower: Number | None
    upper: Number | None
    listing: Listing | None = None
    proven: bool = True
    range: Range | None = None
    pairs: Pairs | None = None


def summarise(
    model: SymbolicModel, operator: str, found: StateValues | StateTruth, states: Node, within: StateIndex
) -> Summary:
    """Return what a filter makes of the values of some states.

    The operator is one of the property language, or "initial": the one value that all states share, or else
    their range (truth values: whether all hold). `found` is over the states of `within`, `states` are those
    that count. Raises PropertyError where no state is left, or the operator does not fit the values, and
    UnknownError where the result is a truth value that the bounds do not decide.
    """
    from mtbdd.build.state_order import in_order

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
    """Return the result over all processes of a filter that names states by their numbers.

    Their values are brought together in every process, zeros that `print` leaves out not among them.
    """
    from mtbdd.build.state_order import in_order

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


OF_ENDS = ("initial", "forall", "exists", "min", "max", "range")
"""Filter operators whose result depends on the least and the greatest values alone."""


def summarise_ends(model: SymbolicModel, operator: str, found: StateValues | StateTruth) -> Summary:
    """Return what one of `OF_ENDS` makes of states of which `found` has the least and the greatest values."""
    if isinstance(found, StateTruth):
        return _of_truth(operator, found)
    summary = _of_numbers(model, operator, found, np.arange(found.values.size), model.index)
    span = summary.range
    return summary if span is None else replace(summary, range=replace(span, states=None))


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
    """Return the doubles around a sum; somewhat wider ones for more than a million numbers.

    Lemma: arithmetic (docs/bounds.md).
    """
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
