"""Several deterministic automata that read one run together, each with its own acceptance condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.acceptance import ALL, Acceptance, any_accepted, infinitely
from hybrid.properties.automata.automaton import DeterministicAutomaton

MOST_JOINED = 20_000
"""States that automata may have together."""

_MOST_MARKS = 62


@dataclass(frozen=True, eq=False)
class JoinedAutomata:
    """What several automata are in when they have read the same letters.

    Attributes
    ----------
    automaton : DeterministicAutomaton
        Its states are those combinations that are reached, the initial one is 0; it has the marks of all
        automata, and accepts where any of them is met again and again.
    states : ndarray, shape (n, k), int64
        By its state the state of each of the k automata.
    conditions : tuple of Acceptance
        Of each automaton, on the marks of the joined one.
    """

    automaton: DeterministicAutomaton
    states: NDArray[np.int64]
    conditions: tuple[Acceptance, ...]


def joined_automata(automata: Sequence[DeterministicAutomaton]) -> JoinedAutomata:
    """Join automata over the same propositions.

    Raises
    ------
    UnsupportedError
        Too many states or marks together.

    Notes
    -----
    Time: O(reachable combinations * letters * k).
    """
    letters = automata[0].successors.shape[1]
    shifts, conditions, n_marks = [], [], 0
    for automaton in automata:
        shift = n_marks
        shifts.append(shift)
        conditions.append(_shifted(automaton.acceptance, shift))
        n_marks += automaton.n_marks
    if n_marks > _MOST_MARKS:
        raise UnsupportedError(
            f"multi: expected at most {_MOST_MARKS} marks of all automata together, got {n_marks}; ask for "
            "fewer objectives"
        )
    first = tuple(a.initial for a in automata)
    numbers = {first: 0}
    waiting = [first]
    rows: list[list[int]] = []
    marks = []
    for state in waiting:
        following = zip(
            *(a.successors[q].tolist() for a, q in zip(automata, state, strict=True)), strict=True
        )
        row = []
        for target in following:
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            row.append(numbers[target])
        if len(numbers) > MOST_JOINED:
            raise UnsupportedError(
                f"multi: expected at most {MOST_JOINED} states of all automata together; ask for fewer "
                "objectives, simpler formulas or smaller bounds on steps"
            )
        rows.append(row)
        met = np.zeros(letters, np.int64)
        for automaton, shift, q in zip(automata, shifts, state, strict=True):
            met |= automaton.marks[q] << shift
        marks.append(met)
    every = any_accepted(infinitely(mark) for mark in range(n_marks))
    automaton = DeterministicAutomaton(
        automata[0].propositions, 0, np.array(rows, np.int64), np.array(marks, np.int64), every
    )
    return JoinedAutomata(automaton, np.array(waiting, np.int64), tuple(conditions))


def _shifted(condition: Acceptance, shift: int) -> Acceptance:
    """Return a condition on marks that come some numbers later."""
    return condition.changed(lambda atom: Acceptance(atom.kind, atom.mark + shift))


def counting_automaton(propositions: Sequence[str], steps: int) -> DeterministicAutomaton:
    """Return an automaton that counts steps: state k after k of them, and the last one from then on."""
    following = np.minimum(np.arange(1, steps + 2), steps)
    successors = np.repeat(following[:, None], 1 << len(propositions), axis=1)
    return DeterministicAutomaton(tuple(propositions), 0, successors, np.zeros_like(successors), ALL)
