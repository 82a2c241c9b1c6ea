"""Sets of letters as short boolean expressions over propositions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hybrid.properties.automata.automaton import DeterministicAutomaton

Cube = tuple[int, int]


def cubes(letters: Iterable[int], n_propositions: int) -> list[Cube]:
    """Return a set of letters as a disjunction without superfluous terms.

    The method of S. Minato (Fast generation of irredundant sum-of-products forms from binary decision
    diagrams, SASIMI 1992) on sets of letters as numbers.

    Returns
    -------
    list of (int, int)
        Of each term the propositions that hold, and those that do not, as bits.
    """
    members = 0
    for letter in letters:
        members |= 1 << letter
    return _cover(members, members, n_propositions)[0]


def _cover(least: int, most: int, k: int) -> tuple[list[Cube], int]:
    """Return terms that cover `least` within `most`, sets of letters of k propositions, and their union."""
    if least == 0:
        return [], 0
    whole = (1 << (1 << k)) - 1
    if most == whole:
        return [(0, 0)], whole
    half = 1 << (k - 1)
    low = (1 << half) - 1
    least0, least1, most0, most1 = least & low, least >> half, most & low, most >> half
    terms0, covered0 = _cover(least0 & ~most1, most0, k - 1)
    terms1, covered1 = _cover(least1 & ~most0, most1, k - 1)
    rest = (least0 & ~covered0) | (least1 & ~covered1)
    both, covered = _cover(rest, most0 & most1, k - 1)
    terms = [(p, n | 1 << (k - 1)) for p, n in terms0]
    terms += [(p | 1 << (k - 1), n) for p, n in terms1]
    return terms + both, (covered0 | covered) | (covered1 | covered) << half


def guard_text(letters: Iterable[int], n_propositions: int, name: Callable[[int], str]) -> str:
    """Return a non-empty set of letters as text; `name` is called with the numbers of propositions."""
    terms = []
    for positive, negative in cubes(letters, n_propositions):
        literals = [
            name(i) if positive >> i & 1 else f"!{name(i)}"
            for i in range(n_propositions)
            if (positive | negative) >> i & 1
        ]
        terms.append("&".join(literals) or "t")
    return " | ".join(terms)


def edges(automaton: DeterministicAutomaton, state: int) -> list[tuple[list[int], int, int]]:
    """Return the transitions of a state: letters, next state and marks, in the order of first letters."""
    found: dict[tuple[int, int], list[int]] = {}
    following, marks = automaton.successors[state].tolist(), automaton.marks[state].tolist()
    for letter, key in enumerate(zip(following, marks, strict=True)):
        found.setdefault(key, []).append(letter)
    return [(letters, target, met) for (target, met), letters in found.items()]


def mark_list(marks: int) -> list[int]:
    """Return marks held as bits in increasing order."""
    return [i for i in range(marks.bit_length()) if marks >> i & 1]
