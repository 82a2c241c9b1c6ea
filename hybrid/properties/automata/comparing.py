"""Whether two deterministic automata have one language, and a word that tells them apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.base.components import components_from_bottom
from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.acceptance import Acceptance, all_accepted
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.guards import mark_list
from mtbdd.base.budget import check_budget

MOST_TRANSITIONS = 1 << 22
"""Transitions of two automata side by side, up to which they are compared."""
_MOST_MARKS = 62

Ints = NDArray[np.int64]
Word = tuple[list[int], list[int]]


def distinguishing_word(a: DeterministicAutomaton, b: DeterministicAutomaton) -> Word | None:
    """Return a word that one of two automata accepts and the other does not.

    Parameters
    ----------
    a, b : DeterministicAutomaton
        Over the same propositions in the same order.

    Returns
    -------
    (list of int, list of int) or None
        Letters of a prefix and of what follows again and again; None if the automata have one language.

    Raises
    ------
    UnsupportedError
        They are too large to be compared.
    ValueError
        Their propositions differ.

    Notes
    -----
    One search for strongly connected components of the pairs of states for every generalised Rabin pair of
    "a and not b" and of "b and not a".
    """
    if a.propositions != b.propositions:
        raise ValueError(f"expected the same propositions, got {a.propositions} and {b.propositions}")
    if a.n_marks + b.n_marks > _MOST_MARKS:
        raise UnsupportedError(
            f"automata with {a.n_marks} and {b.n_marks} marks are not compared, at most {_MOST_MARKS}"
        )
    pairs = _Pairs(a, b)
    of_b = b.acceptance.changed(lambda atom: Acceptance(atom.kind, atom.mark + a.n_marks))
    for condition in (
        all_accepted((a.acceptance, of_b.negated())),
        all_accepted((of_b, a.acceptance.negated())),
    ):
        for finite, infinite in condition.pairs():
            check_budget()
            found = pairs.word(finite, infinite)
            if found is not None:
                return found
    return None


class _Pairs:
    """The reachable pairs of states of two automata; pair 0 is the first."""

    def __init__(self, a: DeterministicAutomaton, b: DeterministicAutomaton) -> None:
        letters = a.successors.shape[1]
        numbers = {(a.initial, b.initial): 0}
        order = [(a.initial, b.initial)]
        rows: list[list[int]] = []
        for p, q in order:
            if len(order) * letters > MOST_TRANSITIONS:
                raise UnsupportedError(
                    f"automata of {a.n_states} and {b.n_states} states are too large to be compared"
                )
            if len(rows) % 1024 == 0:
                check_budget()
            row = []
            for pair in zip(a.successors[p].tolist(), b.successors[q].tolist(), strict=True):
                number = numbers.setdefault(pair, len(order))
                if number == len(order):
                    order.append(pair)
                row.append(number)
            rows.append(row)
        self._successors: Ints = np.array(rows, np.int64)
        places = np.array(order, np.int64)
        self._marks: Ints = a.marks[places[:, 0]] | b.marks[places[:, 1]] << a.n_marks

    def word(self, finite: int, infinite: int) -> Word | None:
        """Return a word that meets some marks finitely often only, and some others again and again each."""
        n = len(self._successors)
        allowed = self._marks & finite == 0
        kept = np.where(allowed, self._successors, np.arange(n)[:, None])
        components = components_from_bottom(kept.tolist())
        inner = allowed & (components[self._successors] == components[:, None])
        met = np.zeros(int(components.max()) + 1, np.int64)
        cyclic = np.zeros(len(met), np.bool_)
        states, letters = np.nonzero(inner)
        np.bitwise_or.at(met, components[states], self._marks[states, letters])
        cyclic[components[states]] = True
        good = np.flatnonzero(cyclic & (met & infinite == infinite))
        if good.size == 0:
            return None
        inside = components == good[0]
        start, prefix = 0, list[int]()
        if not inside[0]:
            start, prefix = self._path(0, np.ones_like(allowed), inside[self._successors])
        state, loop = start, list[int]()
        within = inner & inside[:, None]
        met_by = [within & (self._marks >> mark & 1 == 1) for mark in mark_list(infinite)]
        for wanted in met_by or [within]:
            state, part = self._path(state, within, wanted)
            loop += part
        if state != start:
            loop += self._path(state, within, within & (self._successors == start))[1]
        return prefix, loop

    def _path(
        self, start: int, allowed: NDArray[np.bool_], wanted: NDArray[np.bool_]
    ) -> tuple[int, list[int]]:
        """Return a shortest path whose last step is a wanted one: where it ends, and its letters."""
        before: dict[int, tuple[int, int]] = {}
        order = [start]
        for state in order:
            for letter in np.flatnonzero(allowed[state]).tolist():
                then = int(self._successors[state, letter])
                if wanted[state, letter]:
                    letters = [letter]
                    while state != start:
                        state, letter = before[state]
                        letters.append(letter)
                    return then, letters[::-1]
                if then not in before and then != start:
                    before[then] = (state, letter)
                    order.append(then)
        raise AssertionError("a wanted step can be reached")
