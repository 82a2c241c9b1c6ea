"""Words in texts: which are equal, and texts without them, found with array operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_WIDTH = 8

_MASKS = np.array([(1 << (8 * k)) - 1 for k in range(_WIDTH + 1)], dtype=np.uint64)


class Dictionary:
    """Words with numbers, in the order in which they were met."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The words by number."""
        return tuple(self._known)

    def numbers(self, data: Bytes, starts: Numbers, stops: Numbers) -> Numbers:
        """Return the numbers of words, new ones for new words.

        Parameters
        ----------
        data : ndarray of uint8
        starts, stops : ndarray of int64, shape (n,)
            Word k is ``data[starts[k]:stops[k]]``, UTF-8.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        codes, first = distinct_words(data, starts, stops)
        found = np.empty(first.size, dtype=np.int64)
        for code in np.argsort(first, kind="stable").tolist():
            k = int(first[code])
            word = data[int(starts[k]) : int(stops[k])].tobytes().decode("utf-8")
            found[code] = self._known.setdefault(word, len(self._known))
        return found[codes]


def distinct_words(data: Bytes, starts: Numbers, stops: Numbers) -> tuple[Numbers, Numbers]:
    """Tell which words are equal.

    Parameters
    ----------
    data : ndarray of uint8
    starts, stops : ndarray of int64, shape (n,)

    Returns
    -------
    codes : ndarray of int64, shape (n,)
        Equal for equal words, from 0 without gaps.
    first : ndarray of int64, shape (n_codes,)
        Where each code is met first.

    Notes
    -----
    Eight bytes of all words are compared together. Time: O(n log n) for every eight bytes of the longest.
    """
    n = starts.size
    codes = np.zeros(n, dtype=np.int64)
    if not n:
        return codes, codes
    lengths = stops - starts
    # Words of different lengths differ, so that zeros after a word need no thought.
    _, codes = _numbered(lengths)
    padded = np.concatenate([data, np.zeros(_WIDTH, np.uint8)])
    for offset in range(0, int(lengths.max()), _WIDTH):
        live = np.flatnonzero(lengths > offset)
        at = starts[live] + offset
        taken = np.minimum(lengths[live] - offset, _WIDTH)
        parts = _eight_bytes(padded, at) & _MASKS[taken]
        n_parts, part_codes = _numbered(parts)
        n_codes = int(codes.max()) + 1
        # Codes stay below n, as do those of the parts: their product fits as long as n does.
        joined = codes * (n_parts + 1)
        joined[live] += part_codes + 1
        if n_codes * (n_parts + 1) >= 1 << 62:
            raise MemoryError(f"{n} words are too many to compare")
        _, codes = _numbered(joined)
    first = np.full(int(codes.max()) + 1, n, dtype=np.int64)
    np.minimum.at(first, codes, np.arange(n))
    return codes, first


def _eight_bytes(padded: Bytes, at: Numbers) -> NDArray[np.uint64]:
    """Return eight bytes from every position on as one number."""
    windows: NDArray[np.uint64] = np.ndarray(
        (padded.size - _WIDTH + 1,), dtype="<u8", buffer=padded, strides=(1,)
    )
    return windows[at].astype(np.uint64)


def _numbered(values: NDArray[Any]) -> tuple[int, Numbers]:
    """Return how many values there are, and the rank of each."""
    known = np.unique(values)
    return known.size, np.searchsorted(known, values).astype(np.int64)


def ragged(starts: Numbers, lengths: Numbers) -> Numbers:
    """Return the positions ``starts[k] .. starts[k] + lengths[k]`` of all k, one after the other."""
    total = int(lengths.sum())
    before = np.cumsum(lengths) - lengths
    positions: Numbers = np.arange(total, dtype=np.int64) + np.repeat(starts - before, lengths)
    return positions


def blanked(data: Bytes, starts: Numbers, stops: Numbers) -> Bytes:
    """Return a copy of a text with spaces in the place of words."""
    copy = data.copy()
    copy[ragged(starts, stops - starts)] = 32
    return copy
