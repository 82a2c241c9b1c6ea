"""Smaller automata with the same language."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hybrid.base.components import components_from_bottom
from hybrid.properties.automata.automaton import ALL, NONE, Acceptance, DeterministicAutomaton, infinitely

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

    Returns
    -------
    components : ndarray, shape (n,), int64
        Numbered from the bottom.
    fates : list of (bool or None)
        By component: all runs that stay in it are accepted, none is, or None: it differs, as far as the
        marks that occur decide it.
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
