"""The arrays of UMB files: numbers, sets and strings, packed variables, rates as products with exit rates."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import Bytes
from hybrid.models.interchange.explicit_model import Mask, Numbers, StateVariable, Vector, narrowed
from hybrid.models.interchange.umb.schema import PackedClass, PackedField, ValueType

# Integers up to here are doubles, so that one division rounds once.
_EXACT = 2**53


def nearest_doubles(data: NDArray[np.uint8], size: int) -> tuple[NDArray[np.float64], float, int | None]:
    """Return the doubles next to rationals.

    `data` (ndarray of uint8, shape (n * size,)): the numerator (signed), then the denominator, `size` / 2
    bytes each, little-endian. `size`: bytes a number, a multiple of 16. Time: O(n) for parts up to 2^53, else
    O(n log n) and a division of long integers for every distinct number. Returns `values`: ndarray of
    float64, shape (n,). `units`: relative error of every number, in units of 2^-53: 0 if all are doubles
    themselves, else 1. `wrong`: the first number that has the denominator 0, or whose double is beyond the
    normal ones.
    """
    count = data.size // size
    if size == 16:
        pairs = data.view("<i8").reshape(count, 2)
        numerators, denominators = pairs[:, 0], pairs[:, 1]
        if not count:
            return np.zeros(0), 0.0, None
        largest = max(-int(numerators.min()), int(numerators.max()), int(denominators.max()))
        if int(denominators.min()) > 0 and largest <= _EXACT:
            values = numerators / denominators.astype(np.float64)
            shared = np.gcd(numerators, denominators)
            reduced = denominators // shared
            return values, float((reduced & (reduced - 1)).any()), None
    rows = data.view(np.dtype((np.void, size)))
    distinct, first, which = np.unique(rows, return_index=True, return_inverse=True)
    values = np.zeros(len(distinct))
    units = 0.0
    wrong = None
    half = size // 2
    for k, row in enumerate(distinct):
        content = row.tobytes()
        numerator = int.from_bytes(content[:half], "little", signed=True)
        denominator = int.from_bytes(content[half:], "little")
        value = _divided(numerator, denominator)
        if value is None:
            wrong = int(first[k]) if wrong is None else min(wrong, int(first[k]))
            continue
        values[k] = value
        above, below = value.as_integer_ratio()
        if above * denominator != below * numerator:
            units = 1.0
    return values[which.reshape(-1)], units, wrong


def _divided(numerator: int, denominator: int) -> float | None:
    """Return the double next to a fraction if that is 0 or a normal double."""
    if not denominator:
        return None
    try:
        value = numerator / denominator
    except OverflowError:
        return None
    return value if not numerator or abs(value) >= sys.float_info.min else None


_LARGEST = np.finfo(np.float64).max


class UmbArrays:
    """The arrays in the members of a file, whose sizes have been compared with the index.

    `contents` (dict of str to ndarray of uint8): bytes of the members; every array is taken once. `source`:
    the file, for messages.
    """

    def __init__(self, contents: dict[str, Bytes], source: str) -> None:
        self._contents = contents
        self._source = source

    def fault(self, name: str, index: int, expected: str, came: object) -> InterchangeError:
        """Return the error that an element of an array is not what was expected."""
        return InterchangeError(
            f"{self._source}: {name}[{index}]: expected {expected}, got {came}; write the file again"
        )

    def missing(self, name: str, why: str) -> InterchangeError:
        """Return the error that a member is not there."""
        return InterchangeError(f"{self._source}: {name}: expected {why}, got no such member; add it")

    def has(self, name: str) -> bool:
        """Return whether there is a member of this name."""
        return name in self._contents

    def raw(self, name: str) -> Bytes | None:
        """Return the bytes of a member."""
        return self._contents.pop(name, None)

    def starts(self, name: str, count: int, last: int) -> Numbers | None:
        """Return where the intervals of `count` elements begin among `last` others, with the end.

        Returns ndarray of int64, shape (count + 1,), or None: None where there is no such member. Raises
        InterchangeError: they do not begin with 0, fall, or do not end with `last`.
        """
        data = self.raw(name)
        if data is None:
            return None
        found = data.view("<i8").astype(np.int64, copy=False)
        if found[0] != 0:
            raise self.fault(name, 0, "0", found[0])
        if (found[1:] < found[:-1]).any():
            k = int(np.argmax(found[1:] < found[:-1])) + 1
            raise self.fault(name, k, f"a number not below {found[k - 1]}, the one before", found[k])
        if found[-1] != last:
            raise self.fault(name, count, f"{last}, the number of targets", found[-1])
        return found

    def targets(self, name: str, below: int) -> Numbers | None:
        """Return numbers below a bound."""
        data = self.raw(name)
        if data is None:
            return None
        found = data.view("<i8").astype(np.int64, copy=False)
        if found.size and not (found.min() >= 0 and found.max() < below):
            k = int(np.argmax((found < 0) | (found >= below)))
            came = found.view(np.uint64)[k]
            raise self.fault(name, k, f"a number from 0 to {below - 1}", came)
        return found

    def small_numbers(self, name: str, below: int) -> NDArray[np.uint32] | None:
        """Return numbers of 32 bits below a bound."""
        data = self.raw(name)
        if data is None:
            return None
        found = data.view("<u4").astype(np.uint32, copy=False)
        if found.size and found.max() >= below:
            k = int(np.argmax(found >= below))
            raise self.fault(name, k, f"a number from 0 to {below - 1}", found[k])
        return found

    def numbers(self, name: str, kind: ValueType, least: float = -np.inf) -> tuple[Vector, float] | None:
        """Return finite numbers, the doubles next to rationals.

        Raises InterchangeError: a number that is infinite, none, below `least`, or a rational beyond the
        normal doubles. Returns `values`. `units`: relative error of every number, in units of 2^-53.
        """
        data = self.raw(name)
        if data is None:
            return None
        units = 0.0
        if kind.name == "double":
            found = data.view("<f8").astype(np.float64, copy=False)
        else:
            # lemma: entry-units
            found, units, wrong = nearest_doubles(data, kind.bits // 8)
            if wrong is not None:
                raise self.fault(name, wrong, "a fraction that is 0 or between 2^-1022 and 2^1024", "another")
        if found.size and not (max(least, -_LARGEST) <= found.min() and found.max() <= _LARGEST):
            k = int(np.argmax(~(np.isfinite(found) & (found >= least))))
            wanted = "a finite number" if least < 0 else f"a finite number, at least {least:g}"
            raise self.fault(name, k, wanted, found[k])
        return found, units

    def members_of_set(self, name: str, count: int) -> Mask | None:
        """Return which of `count` elements are in a set."""
        data = self.raw(name)
        if data is None:
            return None
        if count % 64 and int(data[-8:].view("<u8")[0]) >> count % 64:
            raise self.fault(name, count, "zeros behind the last element", "another bit")
        return np.unpackbits(data, count=count, bitorder="little").view(np.bool_)

    def strings(self, folder: str, count: int) -> list[str] | None:
        """Return strings; None where there are none.

        Raises InterchangeError: bytes that are no UTF-8, or one of the two members is missing.
        """
        mapping, texts = f"{folder}/string-mapping.bin", f"{folder}/strings.bin"
        data = self.raw(texts)
        if data is None:
            if self.has(mapping):
                raise self.missing(texts, f"the strings of {mapping}")
            return None
        starts = self.starts(mapping, count, data.size)
        if starts is None:
            raise self.missing(mapping, f"where the strings of {texts} begin")
        content, places = data.tobytes(), starts.tolist()
        found = []
        for k, (start, end) in enumerate(zip(places[:-1], places[1:], strict=True)):
            try:
                found.append(content[start:end].decode("utf-8"))
            except UnicodeDecodeError:
                raise self.fault(
                    mapping, k, "a string in UTF-8", content[start : min(end, start + 40)]
                ) from None
        return found


FOLDER = "valuations/states"
_DATA = f"{FOLDER}/valuations.bin"
_CLASSES = f"{FOLDER}/valuation-to-class.bin"


@dataclass(frozen=True)
class _Layout:
    """The states of one class, and where their bytes begin; None for all states in order."""

    kind: PackedClass
    states: Numbers | None
    starts: Numbers | None


def unpacked(
    arrays: UmbArrays, classes: Sequence[PackedClass], n_states: int
) -> tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]:
    """Return the variables that every state has, and their values.

    `classes`: of the index; empty where states have no valuations. Raises InterchangeError: valuations of the
    wrong length, or values beyond their bounds or beyond 64 bits. Time: O(n_states) a variable and byte of
    it. Returns `variables`: booleans and integers, in the order of the first class. Others (numbers that are
    no integers, strings, options without a value in some state, and variables that some states do not have)
    are left out. `valuations`: dict of str to ndarray of integers or bool, shape (n_states,).
    """
    if not classes:
        return (), {}
    layouts, data = _layouts(arrays, classes, n_states)
    if data is None:
        raise arrays.missing(_DATA, "the valuations of which the index speaks")
    variables, valuations = [], {}
    for field in layouts[0].kind.fields:
        others = [_field(layout.kind, field) for layout in layouts]
        if field.type.name not in ("bool", "int", "uint") or None in others:
            continue
        is_bool = field.type.name == "bool"
        values: NDArray[Any] | None = np.empty(0, dtype=np.bool_ if is_bool else np.int64)
        for layout, other in zip(layouts, others, strict=True):
            assert other is not None and values is not None
            found = _values(arrays, data, layout, other)
            if found is None:
                values = None
                break
            found = found if is_bool else narrowed(found)
            if layout.states is None:
                values = found
                continue
            kind = found.dtype if not values.size else np.promote_types(values.dtype, found.dtype)
            values = values.astype(kind) if values.size else np.zeros(n_states, dtype=kind)
            values[layout.states] = found
        if values is not None:
            low, high = _bounds(others, values, is_bool)
            variables.append(StateVariable(field.name, low, high, is_bool))
            valuations[field.name] = values
    return tuple(variables), valuations


def _layouts(
    arrays: UmbArrays, classes: Sequence[PackedClass], n_states: int
) -> tuple[list[_Layout], Bytes | None]:
    """Return the classes that states have, and the bytes of all valuations."""
    of_state = arrays.small_numbers(_CLASSES, len(classes))
    data = arrays.raw(_DATA)
    if of_state is None:
        needed = n_states * classes[0].n_bytes
        layouts = [_Layout(classes[0], None, None)]
    else:
        sizes = np.array([kind.n_bytes for kind in classes], dtype=np.int64)[of_state]
        starts = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(sizes)))
        needed = int(starts[-1])
        layouts = []
        for number in np.unique(of_state).tolist():
            states = np.flatnonzero(of_state == number)
            layouts.append(_Layout(classes[number], states, starts[states]))
    if data is not None and data.size != needed:
        raise arrays.fault(_DATA, min(data.size, needed), f"{needed} bytes", f"{data.size}")
    return layouts, data


def _field(kind: PackedClass, like: PackedField) -> PackedField | None:
    """Return the variable of this name in a class, if it is as good as the given one."""
    found = next((field for field in kind.fields if field.name == like.name), None)
    if found is None or (found.type.name == "bool") != (like.type.name == "bool"):
        return None
    return found if found.type.name in ("bool", "int", "uint") else None


def _column(data: Bytes, layout: _Layout, number: int) -> Bytes:
    """Return one byte of every state's valuation."""
    if layout.starts is not None:
        column: Bytes = data[layout.starts + number]
        return column
    rows: Bytes = data.reshape(-1, layout.kind.n_bytes)[:, number]
    return rows


def _bits(data: Bytes, layout: _Layout, start: int, count: int) -> NDArray[np.uint64]:
    """Return at most 64 bits of every state's valuation, as a number."""
    first, last = start // 8, (start + count - 1) // 8
    found = _column(data, layout, first).astype(np.uint64) >> np.uint64(start % 8)
    for number in range(first + 1, last + 1):
        found |= _column(data, layout, number).astype(np.uint64) << np.uint64(8 * number - start)
    if count < 64:
        found &= np.uint64((1 << count) - 1)
    return found


def _values(arrays: UmbArrays, data: Bytes, layout: _Layout, field: PackedField) -> NDArray[Any] | None:
    """Return the values of a variable in the states of a class; None if some have none."""
    if field.is_optional and not _bits(data, layout, field.start - 1, 1).all():
        return None
    if field.type.name == "bool":
        truth: NDArray[np.bool_] = np.zeros(len(_column(data, layout, 0)), dtype=np.bool_)
        for start in range(field.start, field.start + field.type.bits, 64):
            truth |= _bits(data, layout, start, min(64, field.start + field.type.bits - start)) != 0
        return truth
    size = field.type.bits
    found = _bits(data, layout, field.start, size)
    if field.type.name == "int" and size < 64:
        sign = np.uint64(1 << (size - 1))
        found = (found ^ sign) - sign
    numbers: Numbers = found.view(np.int64)
    if field.type.name == "uint" and size == 64 and (numbers < 0).any():
        raise _beyond(arrays, layout, field, int(np.argmax(numbers < 0)), "a number below 2^63", found)
    if field.offset:
        moved = numbers + np.int64(field.offset)
        if ((moved < numbers) != (field.offset < 0)).any():
            k = int(np.argmax((moved < numbers) != (field.offset < 0)))
            raise _beyond(arrays, layout, field, k, "a number of 64 bits with the offset", numbers)
        numbers = moved
    for bound, is_beyond in ((field.lower, np.less), (field.upper, np.greater)):
        if bound is not None and is_beyond(numbers, bound).any():
            k = int(np.argmax(is_beyond(numbers, bound)))
            raise _beyond(arrays, layout, field, k, f"values within the bound {bound}", numbers)
    return numbers


def _beyond(
    arrays: UmbArrays, layout: _Layout, field: PackedField, k: int, expected: str, values: NDArray[Any]
) -> InterchangeError:
    state = k if layout.states is None else int(layout.states[k])
    return arrays.fault(_DATA, state, f"{expected} for {field.name[:80]!r}", values[k])


def _bounds(fields: Sequence[PackedField | None], values: NDArray[Any], is_bool: bool) -> tuple[int, int]:
    """Return the least and the largest value: as declared, else as found."""
    if is_bool:
        return 0, 1
    lows = [field.lower for field in fields if field is not None]
    highs = [field.upper for field in fields if field is not None]
    low = int(values.min()) if None in lows else min(b for b in lows if b is not None)
    high = int(values.max()) if None in highs else max(b for b in highs if b is not None)
    return low, high


# ------------------------------------------------------------------ writing


def layout_of(variables: Sequence[StateVariable]) -> list[tuple[str, int]]:
    """Return the type and the bits of every variable.

    An integer from 0 on is stored as it is, without an offset, which not all readers know; one that can be
    negative in two's complement.
    """
    found = []
    for variable in variables:
        if variable.is_bool:
            found.append(("bool", 1))
        elif variable.low >= 0:
            found.append(("uint", max(1, variable.high.bit_length())))
        else:
            bits = max((-variable.low - 1).bit_length(), max(variable.high, 0).bit_length()) + 1
            found.append(("int", bits))
    return found


def packed(
    variables: Sequence[StateVariable], valuations: Mapping[str, NDArray[Any]], n_states: int
) -> Bytes:
    """Return the values of all variables, packed, shape (n_states, bytes a state).

    Raises InterchangeError: a value beyond its variable's bounds.
    """
    layout = layout_of(variables)
    rows = np.zeros((n_states, (sum(bits for _, bits in layout) + 7) // 8), dtype=np.uint8)
    start = 0
    for variable, (_, bits) in zip(variables, layout, strict=True):
        values = valuations[variable.name]
        if not variable.is_bool:
            wrong = (values < variable.low) | (values > variable.high)
            if wrong.any():
                k = int(np.argmax(wrong))
                raise InterchangeError(
                    f"state {k}: expected {variable.name!r} from {variable.low} to {variable.high}, got "
                    f"{values[k]}; widen the variable's bounds"
                )
        whole = values.astype(np.int64).view(np.uint64)
        if bits < 64:
            whole = whole & np.uint64((1 << bits) - 1)
        for number, part in _bytes_of(whole, start, bits):
            rows[:, number] |= part
        start += bits
    return rows


def _bytes_of(whole: NDArray[np.uint64], start: int, bits: int) -> Iterator[tuple[int, Bytes]]:
    """Yield the bytes that a number of so many bits takes from a bit on."""
    for number in range(start // 8, (start + bits - 1) // 8 + 1):
        shift = 8 * number - start
        moved = whole >> np.uint64(shift) if shift >= 0 else whole << np.uint64(-shift)
        yield number, (moved & np.uint64(255)).astype(np.uint8)


_TINY = np.finfo(np.float64).tiny
_ROWS = 1 << 13

# Exit rates are tried so many doubles around the sum of the rates.
_REACH = 32

# Splits a double into two of 26 bits.
_SPLIT = 2.0**27 + 1.0


def rates_of_products(probabilities: Vector, exits: Vector, starts: Numbers) -> tuple[bool, int | None]:
    """Turn probabilities into rates, in place.

    Time: O(n_entries). A product that is not known to be exact counts as rounded. `probabilities` (ndarray of
    float64, shape (n_entries,)): not negative, finite; the rates afterwards. `exits`: ndarray of float64,
    shape (n_states,). `starts`: ndarray of int64, shape (n_states + 1,). Returns `is_exact`: no product was
    rounded. `wrong`: the first entry whose rate is infinite, or is not 0 and below the normal doubles.
    """
    is_exact = True
    wrong = None
    for rows in _chunks(starts):
        own = slice(int(starts[rows.start]), int(starts[rows.stop]))
        left = probabilities[own]
        right = np.repeat(exits[rows], np.diff(starts[rows.start : rows.stop + 1]))
        with np.errstate(over="ignore", under="ignore"):
            rates = left * right
        # lemma: underflow
        bad = ~np.isfinite(rates) | ((rates < _TINY) & (left > 0) & (right > 0))
        if wrong is None and bad.any():
            wrong = own.start + int(np.argmax(bad))
        is_exact = is_exact and wrong is None and not _rounded(left, right, rates).any()
        probabilities[own] = rates
    return is_exact, wrong


def _rounded(left: Vector, right: Vector, product: Vector) -> NDArray[np.bool_]:
    """Return where a product of numbers that are not negative may have been rounded (Dekker's product)."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        high, low = _halves(left)
        top, bottom = _halves(right)
        # lemma: entry-units
        error = ((high * top - product) + high * bottom + low * top) + low * bottom
        # lemma: entry-units
        is_known = (product == 0) | ((product > 2.0**-900) & (np.maximum(left, right) < 2.0**900))
    rounded: NDArray[np.bool_] = (error != 0) | ~is_known
    return rounded


def _halves(numbers: Vector) -> tuple[Vector, Vector]:
    scaled = _SPLIT * numbers
    high = scaled - (scaled - numbers)
    return high, numbers - high


def probabilities_and_exits(rates: Vector, starts: Numbers) -> tuple[Vector, Vector, int | None]:
    """Return probabilities and exit rates whose products are the rates, to the bit wherever that can be had.

    `rates` (ndarray of float64, shape (n_entries,)): not negative, finite. `starts`: ndarray of int64, shape
    (n_states + 1,). Returns `probabilities`: ndarray of float64, shape (n_entries,). `exits` (ndarray of
    float64, shape (n_states,)): at most 32 units in the last place from the sum that was computed of a
    state's rates. `wrong`: the first state whose rates have no such form: their sum, a rate or a quotient is
    no normal double.

    Not every double is a rounded product with a given one: where an exit rate leaves rates out, its
    neighbours are tried. If none will do, the product of the numbers returned is still within one unit of
    2^-53 of the rate, relative, and rounding it gives the rate or a double next to it.

    Time: O(n_entries), and 64 times the entries of such states.
    """
    probabilities = np.zeros_like(rates)
    exits = np.zeros(len(starts) - 1)
    wrong: int | None = None
    for rows in _chunks(starts):
        lengths = np.diff(starts[rows.start : rows.stop + 1])
        own = slice(int(starts[rows.start]), int(starts[rows.stop]))
        filled = np.flatnonzero(lengths)
        sums = np.zeros(len(lengths))
        with np.errstate(over="ignore"):
            if filled.size:
                sums[filled] = np.add.reduceat(rates[own], starts[rows.start + filled] - own.start)
        chosen, is_rate = _quotients(rates[own], np.repeat(sums, lengths))
        row_of = np.repeat(np.arange(len(lengths)), lengths)
        # Among normal doubles, the quotient loses half a unit in the last place; below, more.
        # lemma: underflow
        is_below = (rates[own] > 0) & (rates[own] < _TINY)
        # lemma: underflow
        is_lost = ~np.isfinite(sums)[row_of] | (~is_rate & (chosen < _TINY)) | is_below
        if wrong is None and is_lost.any():
            wrong = rows.start + int(row_of[np.argmax(is_lost)])
        _with_neighbours(rates[own], row_of, sums, chosen, is_rate)
        probabilities[own] = chosen
        exits[rows] = sums
    return probabilities, exits, wrong


def _with_neighbours(
    rates: Vector, row_of: Numbers, sums: Vector, chosen: Vector, is_rate: NDArray[np.bool_]
) -> None:
    """Replace exit rates and probabilities, in place, where neighbours of the exit rate give the rates."""
    is_waiting = np.zeros(len(sums), dtype=np.bool_)
    is_waiting[row_of[~is_rate]] = True
    is_waiting &= np.isfinite(sums)
    entries = np.flatnonzero(is_waiting[row_of])
    for distance in range(1, _REACH + 1):
        for sign in (1, -1):
            if not entries.size:
                return
            # The entries of a state are neighbours, and its sum stays as it is until it is done.
            first = np.flatnonzero(np.diff(row_of[entries], prepend=-1))
            lengths = np.diff(first, append=entries.size)
            tried = sums[row_of[entries[first]]]
            tried = tried + sign * distance * np.spacing(tried)
            found, is_right = _quotients(rates[entries], np.repeat(tried, lengths))
            is_done = np.logical_and.reduceat(is_right, first)
            done = np.repeat(is_done, lengths)
            chosen[entries[done]] = found[done]
            sums[row_of[entries[first[is_done]]]] = tried[is_done]
            entries = entries[~done]


def _quotients(rates: Vector, exits: Vector) -> tuple[Vector, NDArray[np.bool_]]:
    """Return probabilities, and where their product with the exit rate rounds to the rate.

    No other double does where the one next to the quotient does not.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.divide(rates, exits, out=np.zeros_like(rates), where=exits > 0)
        return found, found * exits == rates


def _chunks(starts: Numbers) -> Iterator[slice]:
    """Yield ranges of states."""
    count = len(starts) - 1
    for first in range(0, count, _ROWS):
        yield slice(first, min(first + _ROWS, count))
