"""Arguments of compiled functions as words of 64 bits: a number's bits, an array's address and shape."""

# mypy: disable-error-code="misc, no-untyped-call"
# Much of Numba has no types.

from __future__ import annotations

import struct
import weakref
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype
from numpy.typing import NDArray

Words = NDArray[np.int64]

_ACCEPTED: dict[type, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (float, int, np.floating),
    bool: (bool, np.bool_),
}
_KNOWN = 64
"""Arrays whose words are remembered, of each argument."""

_DOUBLE, _WORD = struct.Struct("d"), struct.Struct("q")


class Mismatch(Exception):
    """Arguments are not those that a function was compiled for."""


class NumberWords:
    """An argument of 64 bits, or a truth value.

    Attributes
    ----------
    count : int
        Words that it takes.
    """

    count = 1

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self._accepted = _ACCEPTED[kind]

    def words(self, argument: Any) -> list[int]:
        """Return the word of an argument."""
        if type(argument) not in self._accepted and not isinstance(argument, self._accepted[1:]):
            raise Mismatch
        return list(_WORD.unpack(_DOUBLE.pack(argument))) if self._kind is float else [int(argument)]

    def words_of_parts(self, values: Any) -> Words:
        """Return the words of whole numbers, one a part, shape (parts, 1)."""
        numbers = np.asarray(values)
        if self._kind is not int or numbers.dtype.kind not in "iu":
            raise Mismatch
        return numbers.astype(np.int64)[:, None]


class ArrayWords:
    """A C-contiguous array; its words are its address and its shape."""

    def __init__(self, element: str, dimensions: int, written: bool) -> None:
        self._element, self._dimensions, self._written = element, dimensions, written
        self.count = 1 + dimensions
        self._known: dict[int, tuple[weakref.ref[Any], list[int]]] = {}

    def words(self, argument: Any) -> list[int]:
        """Return the words of an array; they are remembered as long as it is there."""
        known = self._known.get(id(argument))
        if known is not None and known[0]() is argument:
            return known[1]
        words = self._words(argument)
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[id(argument)] = weakref.ref(argument), words
        return words

    def _words(self, argument: Any) -> list[int]:
        if not isinstance(argument, np.ndarray):
            raise Mismatch
        about = argument.__array_interface__
        shape, (address, read_only) = about["shape"], about["data"]
        if (
            about["strides"] is not None
            or about["typestr"] != self._element
            or len(shape) != self._dimensions
            or (read_only and self._written)
            or not argument.flags.aligned
        ):
            raise Mismatch
        return [address, *shape]

    def words_of_parts(self, values: Any) -> Words:
        """Return the words of the rows of an array, one a part, shape (parts, count)."""
        words = np.empty((len(values), self.count), np.int64)
        words[:] = self.words(values[0])
        words[:, 0] += np.arange(0, values.nbytes, values.strides[0])
        return words

    def fields(self, word: int, lines: list[str]) -> list[str]:
        """Return what Numba passes for an array, whose words are those from `word` on; add what computes it.

        Two words of an owner, of which there is none, elements, bytes of one, address, shape, strides.
        """
        bytes_ = str(np.dtype(self._element).itemsize)
        shape = [f"%w{word + 1 + k}" for k in range(self._dimensions)]
        size, strides = "1", [bytes_]
        for k, length in enumerate(shape):
            lines.append(f"%n{word}.{k} = mul i64 {size}, {length}")
            size = f"%n{word}.{k}"
        for k, length in enumerate(shape[:0:-1]):
            lines.append(f"%s{word}.{k} = mul i64 {strides[0]}, {length}")
            strides.insert(0, f"%s{word}.{k}")
        return ["0", "0", size, bytes_, f"%w{word}", *shape, *strides]


WordsOf = NumberWords | ArrayWords
NO_ARGUMENT = ArrayWords("", -1, False)
"""Of an argument too many."""


def words_of(argument: Any) -> WordsOf:
    """Return what finds the words of arguments of a type.

    Parameters
    ----------
    argument : numba.core.types.Type

    Raises
    ------
    Mismatch
        Of another type than C-contiguous arrays, numbers of 64 bits and truth values.
    """
    if isinstance(argument, types.Array) and argument.layout == "C" and argument.aligned:
        return ArrayWords(as_dtype(argument.dtype).str, argument.ndim, argument.mutable)
    for kind, number in ((types.int64, int), (types.float64, float), (types.boolean, bool)):
        if argument == kind:
            return NumberWords(number)
    raise Mismatch
