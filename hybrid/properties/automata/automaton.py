"""Deterministic automata over infinite words, complete, with marks on their transitions, and smaller ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.base.components import components_from_bottom
from hybrid.base.errors import UnsupportedError
from mtbdd.base.records import Record

# Acceptance conditions of Emerson and Lei: boolean combinations of "mark i again and again".

_OPPOSITE = {"t": "f", "f": "t", "Inf": "Fin", "Fin": "Inf", "&": "|", "|": "&"}


class Acceptance(Record):
    """A condition on the marks that a run meets infinitely often."""

    kind: str  # "t", "f", "Inf", "Fin", "&" or "|", as the HOA format writes them
    mark: int = -1  # of "Inf" and "Fin"; else -1
    parts: tuple[Acceptance, ...] = ()  # of "&" and "|"

    def holds(self, marks: int) -> bool:
        """Return whether a set of marks, bit i for mark i, is accepted as the one met infinitely often."""
        if self.kind in ("t", "f"):
            return self.kind == "t"
        if self.kind in ("Inf", "Fin"):
            return (marks >> self.mark & 1 == 1) == (self.kind == "Inf")
        return (all if self.kind == "&" else any)(part.holds(marks) for part in self.parts)

    @property
    def marks(self) -> int:
        """The marks that occur, as bits."""
        own = 1 << self.mark if self.mark >= 0 else 0
        for part in self.parts:
            own |= part.marks
        return own

    def negated(self) -> Acceptance:
        """Return the complement."""
        return Acceptance(_OPPOSITE[self.kind], self.mark, tuple(part.negated() for part in self.parts))

    def changed(self, atom: Callable[[Acceptance], Acceptance]) -> Acceptance:
        """Return the condition with `atom` applied to every Inf and Fin."""
        if self.kind in ("Inf", "Fin"):
            return atom(self)
        if self.kind in ("&", "|"):
            join = all_accepted if self.kind == "&" else any_accepted
            return join(part.changed(atom) for part in self.parts)
        return self

    def pairs(self) -> list[tuple[int, int]]:
        """Return the condition as generalised Rabin pairs.

        Exponential in the size of the condition at worst: it is its disjunctive normal form. Returns list of
        (int, int): marks to be met finitely often only, and marks to be met again and again each, as bits;
        one pair suffices. Pairs that another one implies are left out.
        """
        return _least(self._all_pairs())

    def _all_pairs(self) -> set[tuple[int, int]]:
        if self.kind == "t":
            return {(0, 0)}
        if self.kind == "f":
            return set()
        if self.kind in ("Inf", "Fin"):
            bit = 1 << self.mark
            return {(0, bit)} if self.kind == "Inf" else {(bit, 0)}
        if self.kind == "|":
            return set().union(*(part._all_pairs() for part in self.parts))
        found = {(0, 0)}
        for part in self.parts:
            own = part._all_pairs()
            joined = {(a | c, b | d) for a, b in found for c, d in own}
            found = set(_least({(a, b) for a, b in joined if not a & b}))
        return found

    def __str__(self) -> str:
        if self.kind in ("t", "f"):
            return self.kind
        if self.kind in ("Inf", "Fin"):
            return f"{self.kind}({self.mark})"
        texts = [f"({p})" if p.kind == "|" and self.kind == "&" else str(p) for p in self.parts]
        return f" {self.kind} ".join(texts)


def _least(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs that no weaker pair makes superfluous, in a fixed order."""
    kept: list[tuple[int, int]] = []
    for a, b in sorted(pairs, key=lambda p: (p[0].bit_count() + p[1].bit_count(), p)):
        if not any(c & a == c and d & b == d for c, d in kept):
            kept.append((a, b))
    return kept


ALL = Acceptance("t")
NONE = Acceptance("f")


def infinitely(mark: int) -> Acceptance:
    """Return "mark again and again"."""
    return Acceptance("Inf", mark)


def finitely(mark: int) -> Acceptance:
    """Return "mark finitely often only"."""
    return Acceptance("Fin", mark)


def all_accepted(parts: Iterable[Acceptance]) -> Acceptance:
    """Return the conjunction, simplified."""
    return _joined("&", parts, ALL, NONE)


def any_accepted(parts: Iterable[Acceptance]) -> Acceptance:
    """Return the disjunction, simplified."""
    return _joined("|", parts, NONE, ALL)


def _joined(kind: str, parts: Iterable[Acceptance], neutral: Acceptance, zero: Acceptance) -> Acceptance:
    flat: dict[Acceptance, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(part.parts if part.kind == kind else (part,)))
    flat.pop(neutral, None)
    opposite = any(p.kind == "Inf" and Acceptance("Fin", p.mark) in flat for p in flat)
    if zero in flat or opposite:
        return zero
    absorbing = _OPPOSITE[kind]
    kept = tuple(p for p in flat if not (p.kind == absorbing and any(q in flat for q in p.parts)))
    if len(kept) <= 1:
        return kept[0] if kept else neutral
    return Acceptance(kind, -1, kept)


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
        The next state by letter; bit i of a letter shows whether proposition i holds.
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

        `prefix`, `loop`: letters; the loop has one at least. Time: O(length of the prefix + n * length of the
        loop).
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

        `propositions`: the other ones, k of them. `values` (sequence of ndarray of bool, shape (2**k,)): of
        each of its own propositions, by letter, whether it holds.
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


# Several deterministic automata that read one run together, each with its own acceptance condition.

MOST_JOINED = 20_000
"""States that automata may have together."""

_MOST_MARKS = 62


class JoinedAutomata(Record, eq=False):
    """The synchronous product of several automata that read the same letters.

    `automaton`: its states are those combinations that are reached, the initial one is 0; it has the marks of
    all automata, and accepts where any of them is met again and again. `states` (ndarray, shape (n, k),
    int64): by its state the state of each of the k automata. `conditions`: of each automaton, on the marks of
    the joined one.
    """

    automaton: DeterministicAutomaton
    states: NDArray[np.int64]
    conditions: tuple[Acceptance, ...]


def joined_automata(automata: Sequence[DeterministicAutomaton]) -> JoinedAutomata:
    """Join automata over the same propositions.

    Raises UnsupportedError: too many states or marks together. Time: O(reachable combinations * letters * k).
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


# Sets of letters as short boolean expressions over propositions.

Cube = tuple[int, int]


def cubes(letters: Iterable[int], n_propositions: int) -> list[Cube]:
    """Return a set of letters as a disjunction without superfluous terms.

    The method of S. Minato (Fast generation of irredundant sum-of-products forms from binary decision
    diagrams, SASIMI 1992) on sets of letters as numbers. Returns list of (int, int): of each term the
    propositions that hold, and those that do not, as bits.
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


# Smaller automata with the same language.

Ints = NDArray[np.int64]


def reduced(automaton: DeterministicAutomaton, classes: Ints | None = None) -> DeterministicAutomaton:
    """Return an automaton with the same language and no more states.

    `classes` (ndarray, shape (n,), int64): states with equal numbers are known to have the same language.
    Returns DeterministicAutomaton: minimal if every strongly connected component accepts all runs in it or
    none. Time: O(n m log n) for n states and m letters, the condition evaluated once a component and set of
    marks.
    """
    if classes is not None:
        automaton = _lowest(automaton, classes)
    automaton = numbered(automaton)
    while True:
        # Marks that turn out equal may make the condition simpler, which may let more states merge.
        before = automaton.n_states, automaton.acceptance
        automaton = _pass(automaton)
        if before == (automaton.n_states, automaton.acceptance):
            return automaton


def _pass(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Simplify marks and merge states once."""
    components, fates = component_fates(automaton)
    if all(fate is not None for fate in fates):
        automaton = _weak(automaton, components, fates)
    else:
        automaton = _local_marks(automaton, components, fates)
    return _renumbered_marks(numbered(merged(automaton)))


def component_fates(automaton: DeterministicAutomaton) -> tuple[Ints, list[bool | None]]:
    """Return the strongly connected component of every state, and whether all runs in it are accepted.

    Returns `components` (ndarray, shape (n,), int64): numbered from the bottom. `fates`: by component: all
    runs that stay in it are accepted, none is, or None: it differs, as far as the marks that occur decide it.
    """
    components = components_from_bottom(automaton.successors.tolist())
    return components, _fates(automaton, components)


def _lowest(automaton: DeterministicAutomaton, classes: Ints) -> DeterministicAutomaton:
    """Let transitions between components lead to the lowest state with the same language.

    Components are numbered from the bottom, so that every run still ends in one, and from where it enters
    that its fate is the language's.
    """
    components = components_from_bottom(automaton.successors.tolist())
    order = np.argsort(components, kind="stable")[::-1]
    representative = np.zeros(int(classes.max()) + 1, np.int64)
    representative[classes[order]] = order
    successors = automaton.successors
    crossing = components[successors] != components[:, None]
    redirected = np.where(crossing, representative[classes[successors]], successors)
    initial = int(representative[classes[automaton.initial]])
    return replace(automaton, initial=initial, successors=redirected)


def numbered(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Drop states that no word leads to, number the others as a search finds them."""
    numbers = {automaton.initial: 0}
    order = [automaton.initial]
    for state in order:
        for following in automaton.successors[state].tolist():
            if following not in numbers:
                numbers[following] = len(order)
                order.append(following)
    new = np.zeros(automaton.n_states, np.int64)
    new[order] = np.arange(len(order))
    return replace(
        automaton, initial=0, successors=new[automaton.successors[order]], marks=automaton.marks[order]
    )


def _inner(automaton: DeterministicAutomaton, components: Ints) -> NDArray[np.bool_]:
    """Return which transitions stay within their component."""
    inner: NDArray[np.bool_] = components[automaton.successors] == components[:, None]
    return inner


def _fates(automaton: DeterministicAutomaton, components: Ints) -> list[bool | None]:
    """Return for every component whether all runs in it are accepted, or none; None: it differs.

    Decided by the marks that occur: None also where it does not differ.  Components without a cycle
    count as not accepting.
    """
    inner = _inner(automaton, components)
    fates: list[bool | None] = []
    for number in range(int(components.max()) + 1):
        rows = components == number
        met = automaton.marks[rows][inner[rows]]
        if met.size == 0:
            fates.append(False)
            continue
        some, every = int(np.bitwise_or.reduce(met)), int(np.bitwise_and.reduce(met))
        left = automaton.acceptance.changed(lambda atom, s=some, e=every: _within(atom, s, e))  # type: ignore[misc]
        fates.append({"t": True, "f": False}.get(left.kind))
    return fates


def _within(atom: Acceptance, some: int, every: int) -> Acceptance:
    """Return what an Inf or Fin comes to if marks `some` occur, and `every` on all transitions."""
    if every >> atom.mark & 1:
        return ALL if atom.kind == "Inf" else NONE
    if not some >> atom.mark & 1:
        return NONE if atom.kind == "Inf" else ALL
    return atom


def _weak(
    automaton: DeterministicAutomaton, components: Ints, fates: list[bool | None]
) -> DeterministicAutomaton:
    """Return an automaton whose components accept all or nothing with one mark, ready to be merged.

    Components without a cycle take the colour that lets most states merge (C. Loeding, Efficient minimization
    of deterministic weak omega-automata, Information Processing Letters 79(3), 2001, pp. 105-109).
    """
    count = len(fates)
    inner = _inner(automaton, components)
    colours = np.zeros(count, np.int64)
    for number in range(count):  # from the bottom
        rows = components == number
        below = components[automaton.successors[rows][~inner[rows]]]
        least = int(colours[below].min()) if below.size else 2 * count + 2
        cyclic = bool(inner[rows].any())
        odd = least % 2 == 1
        colours[number] = least if not cyclic or odd != fates[number] else least - 1
    accepting = colours[components] % 2 == 0
    marks = np.repeat(accepting[:, None], automaton.successors.shape[1], axis=1).astype(np.int64)
    return replace(automaton, marks=marks, acceptance=infinitely(0))


def _local_marks(
    automaton: DeterministicAutomaton, components: Ints, fates: list[bool | None]
) -> DeterministicAutomaton:
    """Clear marks where they do not matter: between components, and where all or nothing is accepted."""
    marks = np.where(_inner(automaton, components), automaton.marks, 0)
    for fate in (False, True):
        chosen = _some_marks(automaton.acceptance, fate)
        if chosen is not None:
            uniform = np.array([f is fate for f in fates])[components]
            marks[uniform] = chosen
    return replace(automaton, marks=marks)


def _some_marks(acceptance: Acceptance, accepted: bool) -> int | None:
    """Return a small set of marks that is accepted, or not."""
    pairs = (acceptance if accepted else acceptance.negated()).pairs()
    return pairs[0][1] if pairs else None


def merged(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Merge states that no word distinguishes by marks."""
    _, kinds = np.unique(automaton.marks, axis=0, return_inverse=True)
    blocks = kinds.reshape(-1)
    count = int(blocks.max()) + 1
    while True:
        rows = np.column_stack((blocks, blocks[automaton.successors]))
        _, finer = np.unique(rows, axis=0, return_inverse=True)
        blocks = finer.reshape(-1)
        found = int(blocks.max()) + 1
        if found == count:
            break
        count = found
    _, first = np.unique(blocks, return_index=True)
    return replace(
        automaton,
        initial=int(blocks[automaton.initial]),
        successors=blocks[automaton.successors[first]],
        marks=automaton.marks[first],
    )


def _renumbered_marks(automaton: DeterministicAutomaton) -> DeterministicAutomaton:
    """Leave out redundant marks, and give equal ones one number."""
    components = components_from_bottom(automaton.successors.tolist())
    inner = _inner(automaton, components)
    met = automaton.marks[inner]
    some = int(np.bitwise_or.reduce(met))
    every = int(np.bitwise_and.reduce(met))
    acceptance = automaton.acceptance.changed(lambda atom: _within(atom, some, every))
    numbers: dict[bytes, int] = {}
    new: dict[int, int] = {}
    marks = np.zeros_like(automaton.marks)
    for mark in range(acceptance.marks.bit_length()):
        if acceptance.marks >> mark & 1:
            column = automaton.marks >> mark & 1
            new[mark] = numbers.setdefault(column.tobytes(), len(numbers))
            marks |= column << new[mark]
    acceptance = acceptance.changed(lambda atom: Acceptance(atom.kind, new[atom.mark]))
    return replace(automaton, marks=marks, acceptance=acceptance)
