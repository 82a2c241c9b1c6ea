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

    Attributes
    ----------
    places : list of (int, int)
        For every variable its word, and how many bits of it are below.
    widths : list of int
        Bits of every variable.
    words : int

    Notes
    -----
    Up to 62 bits a code is an integer, beyond it is a string of bytes, eight for every further 62 bits.
    """

    def __init__(self, variables: Variables) -> None:
        self._low = variables.low
        self.widths = [
            (high - low).bit_length() for low, high in zip(variables.low, variables.high, strict=True)
        ]
        # Every variable lies in one word; words are filled from the first variable on.
        ends: list[tuple[int, int]] = []
        words: list[int] = [0]
        for width in self.widths:
            if words[-1] + width > _WORD:
                words.append(0)
            words[-1] += width
            ends.append((len(words) - 1, words[-1]))
        self.places = [(word, words[word] - end) for word, end in ends]
        self.words = len(words)

    def of(self, states: Ints) -> Codes:
        """Return the codes of states, shape (count,), from a matrix of shape (variables, count)."""
        words = [np.zeros(states.shape[1], dtype=np.int64) for _ in range(self.words)]
        for row, (word, shift) in enumerate(self.places):
            words[word] |= (states[row] - self._low[row]) << shift
        if len(words) == 1:
            return words[0]
        joined = np.ascontiguousarray(np.stack(words, axis=1).astype(">i8"))
        return joined.view(f"S{8 * len(words)}").reshape(-1)

    def states(self, codes: Codes) -> Ints:
        """Return the matrix of states of some codes, shape (variables, count), in C order."""
        if self.words == 1:
            return self.unpacked(codes.reshape(1, -1))
        return self.unpacked(
            np.ascontiguousarray(codes).view(">i8").reshape(codes.size, -1).T.astype(np.int64)
        )

    def unpacked(self, words: Ints) -> Ints:
        """Return the matrix of states whose codes are given as words, shape (words, count)."""
        found = np.empty((len(self.places), words.shape[1]), dtype=np.int64)
        for row, (word, shift) in enumerate(self.places):
            found[row] = ((words[word] >> shift) & ((1 << self.widths[row]) - 1)) + self._low[row]
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
