"""States as codes that sort as the text orders them, and those that are known already."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.simulation.variables import Ints, Variables

Codes = NDArray[Any]

_WORD = 62
"""Bits of a word, so that a model of one word has codes that are int64."""


class StateCodes:
    """Codes of states: the values of all variables, the first one leading.

    Parameters
    ----------
    variables : Variables

    Notes
    -----
    Up to 62 bits a code is an integer, beyond it is a string of bytes, eight for every further 62 bits.
    """

    def __init__(self, variables: Variables) -> None:
        self._low = variables.low
        widths = [(high - low).bit_length() for low, high in zip(variables.low, variables.high, strict=True)]
        # Every variable lies in one word; words are filled from the first variable on.
        self._places: list[tuple[int, int]] = []
        words: list[int] = [0]
        for width in widths:
            if words[-1] + width > _WORD:
                words.append(0)
            words[-1] += width
            self._places.append((len(words) - 1, words[-1]))
        self._words = words
        self._widths = widths

    def of(self, states: Ints) -> Codes:
        """Return the codes of states, shape (count,), from a matrix of shape (variables, count)."""
        words = [np.zeros(states.shape[1], dtype=np.int64) for _ in self._words]
        for row, (word, end) in enumerate(self._places):
            words[word] |= (states[row] - self._low[row]) << (self._words[word] - end)
        if len(words) == 1:
            return words[0]
        joined = np.ascontiguousarray(np.stack(words, axis=1).astype(">i8"))
        return joined.view(f"S{8 * len(words)}").reshape(-1)

    def states(self, codes: Codes) -> Ints:
        """Return the matrix of states of some codes, shape (variables, count), in C order."""
        if len(self._words) == 1:
            words = codes.reshape(1, -1)
        else:
            words = np.ascontiguousarray(codes).view(">i8").reshape(codes.size, -1).T.astype(np.int64)
        found = np.empty((len(self._places), codes.size), dtype=np.int64)
        for row, (word, end) in enumerate(self._places):
            mask = (1 << self._widths[row]) - 1
            found[row] = ((words[word] >> (self._words[word] - end)) & mask) + self._low[row]
        return found


class KnownStates:
    """A growing set of codes.

    Notes
    -----
    Sorted runs, each more than twice as long as the next: a code is looked up in O(log^2 n), and moves to a
    longer run O(log n) times.
    """

    def __init__(self) -> None:
        self._runs: list[Codes] = []

    def add_new(self, codes: Codes) -> Codes:
        """Add codes; return those that were not there, ascending and once each."""
        new = np.unique(codes)
        for run in self._runs:
            place = np.searchsorted(run, new)
            place[place == run.size] = 0
            new = new[run[place] != new]
        if not new.size:
            return new
        self._runs.append(new)
        while len(self._runs) > 1 and self._runs[-2].size <= 2 * self._runs[-1].size:
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")
        return new

    @property
    def size(self) -> int:
        """Number of codes."""
        return sum(run.size for run in self._runs)

    def all(self) -> Codes:
        """Return all codes, ascending."""
        return np.sort(np.concatenate(self._runs), kind="stable")
