"""Deterministic automata over infinite words, complete, with marks on their transitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.properties.automata.acceptance import Acceptance

MOST_PROPOSITIONS = 12
"""Atomic propositions of an automaton; it has a transition for each of their valuations."""


@dataclass(frozen=True)
class DeterministicAutomaton:
    """A complete deterministic automaton with transition-based Emerson-Lei acceptance.

    Attributes
    ----------
    propositions : tuple of str
        Names of the atomic propositions.
    initial : int
        The initial state.
    successors : ndarray, shape (n, 2**k), int64
        The next state by letter; bit i of a letter tells whether proposition i holds.
    marks : ndarray, shape (n, 2**k), int64
        The marks of the transition as bits, at most 62, all of them of the condition.
    acceptance : Acceptance
        On the marks that a run meets infinitely often.
    name : str
        What it accepts, for people.
    """

    propositions: tuple[str, ...]
    initial: int
    successors: NDArray[np.int64]
    marks: NDArray[np.int64]
    acceptance: Acceptance
    name: str = ""

    def __post_init__(self) -> None:
        shape = self.successors.shape
        if shape != self.marks.shape or shape[1:] != (1 << len(self.propositions),):
            raise ValueError(
                f"successors, marks: expected a row a state and {1 << len(self.propositions)} letters, got "
                f"the shapes {shape} and {self.marks.shape}"
            )

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.successors)

    @property
    def n_marks(self) -> int:
        """One more than the greatest mark of the acceptance condition."""
        return self.acceptance.marks.bit_length()

    def accepts(self, prefix: Sequence[int], loop: Sequence[int]) -> bool:
        """Return whether the word "prefix, then loop for ever" is accepted.

        Parameters
        ----------
        prefix, loop : sequence of int
            Letters; the loop has one at least.

        Notes
        -----
        Time: O(length of the prefix + n * length of the loop).
        """
        state = self.initial
        for letter in prefix:
            state = int(self.successors[state, letter])
        rounds: list[int] = []
        seen: dict[int, int] = {}
        while state not in seen:
            seen[state] = len(rounds)
            met = 0
            for letter in loop:
                met |= int(self.marks[state, letter])
                state = int(self.successors[state, letter])
            rounds.append(met)
        always = 0
        for met in rounds[seen[state] :]:
            always |= met
        return self.acceptance.holds(always)

    def reading(
        self, propositions: Sequence[str], values: Sequence[NDArray[np.bool_]]
    ) -> DeterministicAutomaton:
        """Return the automaton that reads letters over other propositions.

        Parameters
        ----------
        propositions : sequence of str
            The other ones, k of them.
        values : sequence of ndarray of bool, shape (2**k,)
            Of each of its own propositions, by letter, whether it holds.
        """
        letters = np.zeros(1 << len(propositions), np.int64)
        for i, holds in enumerate(values):
            letters |= holds.astype(np.int64) << i
        return replace(
            self,
            propositions=tuple(propositions),
            successors=self.successors[:, letters],
            marks=self.marks[:, letters],
        )
