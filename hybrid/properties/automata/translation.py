"""From formulas of linear temporal logic to deterministic automata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.acceptance import ALL, NONE, Acceptance, infinitely
from hybrid.properties.automata.automaton import MOST_PROPOSITIONS, DeterministicAutomaton
from hybrid.properties.automata.formulas import Formula, FormulaStore, formula_text
from hybrid.properties.automata.guards import mark_list
from hybrid.properties.automata.normal_form import NormalForm
from hybrid.properties.automata.parts import State
from hybrid.properties.automata.progression import Progression
from hybrid.properties.automata.propositional import TRUE
from hybrid.properties.automata.reduction import merged, numbered, reduced
from mtbdd.base.budget import check_budget

MOST_STATES = 100_000
"""States that a translation may have before it is reduced."""
_MOST_MARKS = 62  # bits of an int64 without its sign, and one to spare

_Key = tuple[Acceptance, tuple[State, ...]]


def translate(store: FormulaStore, formula: Formula, propositions: Sequence[str]) -> DeterministicAutomaton:
    """Return a deterministic automaton that accepts the words of a formula.

    Parameters
    ----------
    store : FormulaStore
        That has made the formula.
    formula : Formula
    propositions : sequence of str
        Names of the atomic propositions, by number.

    Returns
    -------
    DeterministicAutomaton
        Complete and reduced.

    Raises
    ------
    UnsupportedError
        More atomic propositions, states or alternations than are translated; the message says which.

    Notes
    -----
    At worst doubly exponential in the length of the formula, as any translation; for each state one step
    a letter.
    """
    _check_propositions(propositions)
    try:
        found = _Product(store, formula, len(propositions)).automaton(tuple(propositions))
    except RecursionError:
        raise UnsupportedError("LTL: expected a formula nested less deeply") from None
    return replace(found, name=formula_text(formula, lambda p: propositions[p]))


def prefixes(store: FormulaStore, formula: Formula, propositions: Sequence[str]) -> DeterministicAutomaton:
    """Return the automaton that reads a formula without W until a prefix has told that it holds.

    A prefix tells it where every subformula that it rests on has been read, a letter a step: ``X true`` takes
    two letters, though all words satisfy it (the informative prefixes of Kupferman and Vardi, 2001).

    Parameters
    ----------
    store : FormulaStore
        That has made the formula, and keeps steps.
    formula : Formula
    propositions : sequence of str
        Names of the atomic propositions, by number.

    Returns
    -------
    DeterministicAutomaton
        Complete and minimal.  All steps of one state are marked, and no others: there the formula is told.

    Raises
    ------
    UnsupportedError
        More atomic propositions or states than are translated.
    """
    _check_propositions(propositions)
    progression = Progression(store)
    try:
        functions = [progression.encode(formula)]
        numbers = {functions[0]: 0}
        rows: list[list[int]] = []
        for state in range(MOST_STATES + 1):
            if state == len(functions):
                break
            if state % 256 == 0:
                check_budget()
            if state == MOST_STATES:
                raise _too_many_states()
            row = []
            for letter in range(1 << len(propositions)):
                following = progression.step(functions[state], letter)
                number = numbers.setdefault(following, len(functions))
                if number == len(functions):
                    functions.append(following)
                row.append(number)
            rows.append(row)
    except RecursionError:
        raise UnsupportedError("LTL: expected a formula nested less deeply") from None
    successors = np.array(rows, np.int64)
    marks = np.zeros_like(successors)
    marks[[function == TRUE for function in functions]] = 1
    name = formula_text(formula, lambda p: propositions[p])
    whole = DeterministicAutomaton(tuple(propositions), 0, successors, marks, infinitely(0), name)
    return numbered(merged(whole))


def _check_propositions(propositions: Sequence[str]) -> None:
    if len(propositions) > MOST_PROPOSITIONS:
        raise UnsupportedError(
            f"LTL: expected at most {MOST_PROPOSITIONS} different state formulas, got {len(propositions)}; "
            "join some of them by labels, or split the formula"
        )


def _too_many_states() -> UnsupportedError:
    return UnsupportedError(f"LTL: the automaton has more than {MOST_STATES} states; split the formula")


class _Product:
    """The reachable product of the components of a formula.

    A state is the condition that is left once components that are settled are replaced by what they have
    settled to, with the states of the components in it; so components that no longer matter are dropped.
    """

    def __init__(self, store: FormulaStore, formula: Formula, n_propositions: int) -> None:
        self._progression = Progression(store)
        self._formula = formula
        self._parts = NormalForm(self._progression, formula)
        self._letters = range(1 << n_propositions)
        if len(self._parts.components) > _MOST_MARKS:
            raise UnsupportedError(
                f"LTL: the formula falls into {len(self._parts.components)} parts, at most {_MOST_MARKS} are "
                "translated; split it"
            )
        # The marks that stand for a condition's settled components: those true as Inf, those false as Fin.
        self._constant: dict[Acceptance, int] = {self._parts.acceptance: 0}
        self._steps: dict[tuple[int, State, int], tuple[State, bool]] = {}

    def automaton(self, propositions: tuple[str, ...]) -> DeterministicAutomaton:
        """Explore the product and return it reduced."""
        components = self._parts.components
        first = [component.initial for component in components]
        start = self._key(self._parts.acceptance, dict(enumerate(first)))
        numbers: dict[_Key, int] = {start: 0}
        keys = [start]
        rows: list[list[int]] = []
        marks: list[list[int]] = []
        same = _Classes()
        languages = [self._progression.encode(self._formula)]
        for state in range(MOST_STATES + 1):
            if state == len(keys):
                break
            if state % 256 == 0:
                check_budget()
            if state == MOST_STATES:
                raise _too_many_states()
            row, met = [], []
            for letter in self._letters:
                following, mark = self._step(keys[state], letter)
                language = self._progression.step(languages[state], letter)
                number = numbers.setdefault(following, len(keys))
                if number == len(keys):
                    keys.append(following)
                    languages.append(language)
                same.unite(language, languages[number])
                row.append(number)
                met.append(mark)
            rows.append(row)
            marks.append(met)
        classes = np.array([same.find(language) for language in languages], np.int64)
        whole = DeterministicAutomaton(
            propositions, 0, np.array(rows, np.int64), np.array(marks, np.int64), self._parts.acceptance
        )
        return reduced(whole, classes)

    def _step(self, key: _Key, letter: int) -> tuple[_Key, int]:
        condition, states = key
        following: dict[int, State] = {}
        marks = self._constant[condition]
        for number, state in zip(mark_list(condition.marks), states, strict=True):
            step = self._steps.get((number, state, letter))
            if step is None:
                step = self._parts.components[number].step(state, letter)
                self._steps[number, state, letter] = step
            following[number] = step[0]
            marks |= step[1] << number
        return self._key(condition, following), marks

    def _key(self, condition: Acceptance, states: dict[int, State]) -> _Key:
        """Return the state, with what is settled taken out of its condition."""
        settled: dict[int, bool] = {}
        for number, state in states.items():
            accepts = self._parts.components[number].settled(state)
            if accepts is not None:
                # As a mark: whether it is met again and again.
                settled[number] = accepts == self._parts.components[number].infinitely
        if settled:
            before, condition = condition, condition.changed(lambda atom: _known(atom, settled))
            met = self._constant[before]
            for number, marked in settled.items():
                met |= marked << number
            self._constant.setdefault(condition, met)
        return condition, tuple(states[number] for number in mark_list(condition.marks))


def _known(atom: Acceptance, settled: dict[int, bool]) -> Acceptance:
    """Return an Inf or Fin, or what it has become."""
    if atom.mark not in settled:
        return atom
    return ALL if settled[atom.mark] == (atom.kind == "Inf") else NONE


class _Classes:
    """Functions of which some are known to stand for the same language."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def find(self, function: int) -> int:
        """Return the representative of a function's class."""
        while (parent := self._parents.setdefault(function, function)) != function:
            self._parents[function] = self._parents[parent]
            function = parent
        return function

    def unite(self, a: int, b: int) -> None:
        """Note that two functions stand for the same language."""
        self._parents[self.find(a)] = self.find(b)
