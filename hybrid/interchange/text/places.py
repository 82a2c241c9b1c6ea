"""Where the parts of a model stand in text files."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class TextPlaces:
    """Lines of states, choices and transitions, made from few arrays and only when asked.

    Parameters
    ----------
    source : str
        File of the transitions.
    entries : int or ndarray of int64
        Line of entry 0 where entries stand one below the other, else the lines of all entries.
    row_starts : ndarray of int64, shape (n_choices + 1,)
    choice_starts : ndarray of int64, shape (n_states + 1,), or None
    choices, states : ndarray of int64, optional
        Lines of choices and states that have lines of their own; else the line of their first entry is told.
    fallback : int
        Line for parts that have none: that of the counts.
    """

    def __init__(
        self,
        source: str,
        entries: int | Numbers,
        row_starts: Numbers,
        choice_starts: Numbers | None,
        *,
        choices: Numbers | None = None,
        states: Numbers | None = None,
        fallback: int = 1,
    ) -> None:
        self._source = source
        self._entries = entries
        self._row_starts = row_starts
        self._choice_starts = choice_starts
        self._choices = choices
        self._states = states
        self._fallback = fallback

    def state(self, number: int) -> str:
        """Return where a state stands, or its first transition."""
        if self._states is not None:
            return f"{self._source}:{self._states[number]}"
        if self._choice_starts is None:
            return self.choice(number)
        first, end = (int(k) for k in self._choice_starts[number : number + 2])
        return self.choice(first) if first < end else f"{self._source}:{self._fallback}"

    def choice(self, number: int) -> str:
        """Return where a choice stands, or its first transition."""
        if self._choices is not None:
            return f"{self._source}:{self._choices[number]}"
        first, end = (int(k) for k in self._row_starts[number : number + 2])
        return self.entry(first) if first < end else f"{self._source}:{self._fallback}"

    def entry(self, number: int) -> str:
        """Return where a transition stands."""
        line = self._entries + number if isinstance(self._entries, int) else self._entries[number]
        return f"{self._source}:{line}"
