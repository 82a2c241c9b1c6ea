"""The bytes of a UMB file as arrays: intervals, numbers, rationals, sets and strings."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.umb.schema import ValueType

# Integers up to here are doubles, so that one division rounds once.
_EXACT = 2**53


def nearest_doubles(data: NDArray[np.uint8], size: int) -> tuple[NDArray[np.float64], float, int | None]:
    """Return the doubles next to rationals.

    `data` (ndarray of uint8, shape (n * size,)): the numerator (signed), then the denominator, `size` / 2
    bytes each, little-endian. `size`: bytes a number, a multiple of 16. Time: O(n) for parts up to 2^53, else
    O(n log n) and a division of long integers for every distinct number.

    Returns
    -------
    values : ndarray of float64, shape (n,)
    units : float
        Relative error of every number, in units of 2^-53: 0 if all are doubles themselves, else 1.
    wrong : int or None
        The first number that has the denominator 0, or whose double is beyond the normal ones.
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


Bytes = NDArray[np.uint8]

Numbers = NDArray[np.int64]

Vector = NDArray[np.float64]

Mask = NDArray[np.bool_]

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
        normal doubles.

        Returns
        -------
        values : ndarray of float64
        units : float
            Relative error of every number, in units of 2^-53.
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
