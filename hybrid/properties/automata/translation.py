"""From formulas of linear temporal logic to deterministic automata."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.automaton import (
    ALL,
    MOST_PROPOSITIONS,
    NONE,
    Acceptance,
    DeterministicAutomaton,
    all_accepted,
    any_accepted,
    finitely,
    infinitely,
    mark_list,
    merged,
    numbered,
    reduced,
)
from hybrid.properties.automata.formulas import (
    FALSE,
    TRUE,
    FormulaStore,
    LtlFormula,
    Progression,
    formula_text,
    is_always,
    is_finally,
    subformulas,
)
from mtbdd.base.budget import check_budget

# The small deterministic automata that a translation is put together from.
#
# Each reads letters, may mark a step, and accepts by one condition: its mark again and again, or finitely
# often only.

State = Hashable


class AutomatonPart(ABC):
    """A deterministic automaton with Buechi (`infinitely`) or co-Buechi acceptance.

    `infinitely`: whether it accepts if its mark occurs again and again, or if it does not.
    """

    initial: State
    infinitely: bool

    @abstractmethod
    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Return the next state, and whether the step is marked."""

    def settled(self, state: State) -> bool | None:
        """Return whether every word is accepted from a state, or none, or None for neither."""
        return None


class ReachedPart(AutomatonPart):
    """A co-safe formula: it is true from some time on."""

    infinitely = True

    def __init__(self, progression: Progression, formula: LtlFormula) -> None:
        self._progression = progression
        self.initial = progression.encode(formula)

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress; what is true or false stays so."""
        following = self._progression.step(state, letter)  # type: ignore[arg-type]
        return following, following == TRUE

    def settled(self, state: State) -> bool | None:
        """Return what the formula has become."""
        return None if state not in (TRUE, FALSE) else state == TRUE


class RepeatedPart(AutomatonPart):
    """``G F formula`` of a co-safe formula.

    It follows ``F formula`` until this is true, marks the step and begins again.
    """

    infinitely = True

    def __init__(self, progression: Progression, formula: LtlFormula) -> None:
        self._progression = progression
        self.initial = progression.encode(progression.store.finally_(formula))

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress, and begin again at the end."""
        following = self._progression.step(state, letter)  # type: ignore[arg-type]
        return (self.initial, True) if following == TRUE else (following, False)


class BreakpointPart(AutomatonPart):
    """A formula some of whose untils are known to hold again and again.

    It accepts if from some time on the formula, progressed so far and made safe, is never violated.  The
    state is a pair: the formula progressed, and the safe one that is followed at present.  A step is marked
    where the safe one is violated; it is taken afresh then. For a formula in Sigma 2 and no untils kept this
    is the formula itself.  In general it is implied by the formula if `kept` are just those of its untils
    below a weak until that hold again and again, and implies the formula if they all do ([EKS20] Theorem 13,
    [SE20] §4).
    """

    infinitely = False

    def __init__(self, progression: Progression, formula: LtlFormula, kept: frozenset[LtlFormula]) -> None:
        self._progression = progression
        self._kept = kept
        self.initial = self._fresh(progression.encode(formula))

    def _fresh(self, whole: int) -> tuple[int, int]:
        return whole, self._progression.made_safe(whole, self._kept)

    def step(self, state: State, letter: int) -> tuple[State, bool]:
        """Progress both; take the safe formula afresh if it is violated."""
        assert isinstance(state, tuple)
        before, followed = state
        whole: int = self._progression.step(before, letter)
        safe: int = self._progression.step(followed, letter)
        if whole in (TRUE, FALSE):
            return (whole, whole), whole == FALSE
        return (self._fresh(whole), True) if safe == FALSE else ((whole, safe), False)

    def settled(self, state: State) -> bool | None:
        """Return what the formula has become."""
        whole = state[0]  # type: ignore[index]
        return None if whole not in (TRUE, FALSE) else whole == TRUE


# A formula as a boolean combination of small automata: normal form with one alternation of untils.
#
# A formula is split in three ways.  At its connectives.  At a subformula L about the long run alone (``G F``,
# ``F G``), whose truth does not change along a word: ``f[L] = L & f[true] | f[false]``.  And where untils and
# weak untils alternate more than once: one case for every set of untils that may hold again and again ([SE20]
# §4, [EKS20] §6, [ERS24]).

MOST_GUESSES = 12
"""Untils below weak untils in one part of a formula at most; each doubles the number of automata."""


class NormalForm:
    """The small automata that a formula is made of, its components, and the condition on their marks.

    Raises UnsupportedError: the formula alternates too often between until and weak until. `components`:
    component i marks its steps with mark i. `acceptance`: over the marks of all components.
    """

    def __init__(self, progression: Progression, formula: LtlFormula) -> None:
        self._progression = progression
        self._store: FormulaStore = progression.store
        self._numbers: dict[object, int] = {}
        self.components: list[AutomatonPart] = []
        self.acceptance = self._split(formula)

    def _atom(self, key: object, make: Callable[[], AutomatonPart]) -> Acceptance:
        """Return the condition "this component accepts"; make the component unless its key is known."""
        if key not in self._numbers:
            self._numbers[key] = len(self.components)
            self.components.append(make())
        number = self._numbers[key]
        return infinitely(number) if self.components[number].infinitely else finitely(number)

    # ------------------------------------------------------------------ connectives

    def _split(self, formula: LtlFormula) -> Acceptance:
        """Return the condition of any formula."""
        if formula.kind in ("true", "false"):
            return ALL if formula.kind == "true" else NONE
        if not formula.has_weak:
            return self._atom(("reach", formula), lambda: ReachedPart(self._progression, formula))
        if not formula.has_until:
            return self._split(self._store.negation(formula)).negated()
        if formula.limit:
            return self._limit(formula)
        pushed = self._pushed(formula)
        if pushed.kind in ("and", "or"):
            return self._connective(pushed)
        if pushed is not formula:
            return self._split(pushed)
        inner = self._limit_within(formula)
        if inner is not None:
            return self._taken_out(formula, inner, self._split)
        return self._alternating(formula)

    def _connective(self, formula: LtlFormula) -> Acceptance:
        """Split a conjunction or disjunction; co-safe operands share one component, safe ones another."""
        store = self._store
        joined = store.all_of if formula.kind == "and" else store.any_of
        cosafe = [p for p in formula.parts if not p.has_weak]
        safe = [p for p in formula.parts if p.has_weak and not p.has_until]
        others = [p for p in formula.parts if p.has_weak and p.has_until]
        conditions = [self._split(joined(group)) for group in (cosafe, safe) if group]
        conditions += [self._split(part) for part in others]
        return all_accepted(conditions) if formula.kind == "and" else any_accepted(conditions)

    def _pushed(self, formula: LtlFormula) -> LtlFormula:
        """Push X, F and G inwards where they distribute."""
        store = self._store
        inner = formula.parts[0]
        if formula.kind == "X" and inner.kind in ("and", "or"):
            return store.rebuilt(inner, [store.next(p) for p in inner.parts])
        if is_always(formula) and inner.kind == "and":
            return store.all_of(store.always(p) for p in inner.parts)
        if is_finally(formula) and formula.parts[1].kind == "or":
            return store.any_of(store.finally_(p) for p in formula.parts[1].parts)
        return formula

    def _limit_within(self, formula: LtlFormula) -> LtlFormula | None:
        """Return a subformula about the long run alone, a smallest one, or None."""
        for part in subformulas(formula):
            if part.limit and part is not formula and part.kind not in ("and", "or"):
                return part
        return None

    def _taken_out(
        self, formula: LtlFormula, inner: LtlFormula, then: Callable[[LtlFormula], Acceptance]
    ) -> Acceptance:
        """Split by the truth of a subformula L about the long run: ``L & f[true] | f[false]``."""
        store = self._store
        held = then(store.replaced(formula, {inner: store.true}))
        not_held = then(store.replaced(formula, {inner: store.false}))
        return any_accepted((all_accepted((self._limit(inner), held)), not_held))

    def _alternating(self, formula: LtlFormula) -> Acceptance:
        """Return the condition of a formula that is neither safe nor co-safe, nor about the long run."""
        opposite = self._store.negation(formula)
        own, other = self._guessed(formula), self._guessed(opposite)
        if len(other) < len(own):
            return self._breakpoints(opposite, other).negated()
        return self._breakpoints(formula, own)

    def _breakpoints(self, formula: LtlFormula, guessed: list[LtlFormula]) -> Acceptance:
        """Return the condition by cases: which of the guessed untils hold again and again."""
        if len(guessed) > MOST_GUESSES:
            raise UnsupportedError(
                f"LTL: a part of the formula alternates between until and weak until in {len(guessed)} "
                f"places, at most {MOST_GUESSES} are translated; split the formula"
            )
        cases = []
        for size in range(len(guessed) + 1):
            for chosen in combinations(guessed, size):
                kept = frozenset(chosen)
                own = self._atom(("breakpoints", formula, kept), self._maker(formula, kept))
                cases.append(all_accepted([own, *(self._again_and_again(u) for u in chosen)]))
        return any_accepted(cases)

    def _maker(self, formula: LtlFormula, kept: frozenset[LtlFormula]) -> Callable[[], AutomatonPart]:
        return lambda: BreakpointPart(self._progression, formula, kept)

    def _guessed(self, formula: LtlFormula) -> list[LtlFormula]:
        """Return the untils below weak untils; of each it is guessed whether it holds again and again."""
        found: dict[LtlFormula, None] = {}
        for part in subformulas(formula):
            if part.kind == "W":
                found.update((u, None) for u in subformulas(part) if u.kind == "U")
        return list(found)

    # ------------------------------------------------------------------ the long run

    def _limit(self, formula: LtlFormula) -> Acceptance:
        """Return the condition of a formula about the long run alone."""
        if formula.kind in ("and", "or"):
            conditions = [self._limit(part) for part in formula.parts]
            return all_accepted(conditions) if formula.kind == "and" else any_accepted(conditions)
        if formula.kind == "W":
            return self._again_and_again(formula.parts[0])
        return self._from_some_time(formula.parts[1])

    def _again_and_again(self, formula: LtlFormula) -> Acceptance:
        """Return the condition of ``G F formula``."""
        store, kind = self._store, formula.kind
        if kind in ("true", "false"):
            return ALL if kind == "true" else NONE
        if formula.limit:
            return self._limit(formula)
        if kind == "or":
            # Subformulas about one letter stay together, with one mark.
            now = [part for part in formula.parts if _is_of_one_letter(part)]
            if len(now) == len(formula.parts):
                return self._recurrence(formula)
            later = [part for part in formula.parts if part not in now]
            return any_accepted(self._again_and_again(part) for part in [self._store.any_of(now), *later])
        if kind == "X":
            return self._again_and_again(formula.parts[0])
        if kind == "U":
            return self._again_and_again(formula.parts[1])
        if kind == "W":
            left, right = formula.parts
            return any_accepted((self._again_and_again(right), self._from_some_time(left)))
        inner = self._limit_within(formula)
        if inner is not None:
            return self._taken_out(formula, inner, self._again_and_again)
        weak = next((part for part in subformulas(formula) if part.kind == "W"), None)
        if weak is None:
            return self._recurrence(formula)
        # Either the weak until holds from some time on, or its left side never does for ever.
        held = store.replaced(formula, {weak: store.true})
        not_held = store.replaced(formula, {weak: store.until(*weak.parts)})
        return any_accepted(
            (
                all_accepted((self._from_some_time(weak), self._again_and_again(held))),
                self._again_and_again(not_held),
            )
        )

    def _recurrence(self, formula: LtlFormula) -> Acceptance:
        return self._atom(("again", formula), lambda: RepeatedPart(self._progression, formula))

    def _from_some_time(self, formula: LtlFormula) -> Acceptance:
        """Return the condition of ``F G formula``, the mirror image of ``G F``."""
        return self._again_and_again(self._store.negation(formula)).negated()


def _is_of_one_letter(formula: LtlFormula) -> bool:
    """Return whether a formula is about the first letter alone."""
    return all(part.kind in ("literal", "and", "or") for part in subformulas(formula))


MOST_STATES = 100_000
"""States that a translation may have before it is reduced."""
_MOST_MARKS = 62  # bits of an int64 without its sign, and one to spare
_Key = tuple[Acceptance, tuple[State, ...]]


def translate(
    store: FormulaStore, formula: LtlFormula, propositions: Sequence[str]
) -> DeterministicAutomaton:
    """Return a deterministic automaton that accepts the words of a formula.

    `store`: that has made the formula. `propositions`: names of the atomic propositions, by number. Returns
    DeterministicAutomaton: complete and reduced. Raises UnsupportedError: more atomic propositions, states or
    alternations than are translated; the message says which. At worst doubly exponential in the length of the
    formula, as any translation; for each state one step a letter.
    """
    _check_propositions(propositions)
    try:
        found = _ProductAutomaton(store, formula, len(propositions)).automaton(tuple(propositions))
    except RecursionError:
        raise UnsupportedError("LTL: expected a formula nested less deeply") from None
    return replace(found, name=formula_text(formula, lambda p: propositions[p]))


def prefixes(store: FormulaStore, formula: LtlFormula, propositions: Sequence[str]) -> DeterministicAutomaton:
    """Return the automaton that reads a formula without W until an informative prefix.

    A prefix is informative where every subformula that it rests on has been read, a letter a step: ``X
    true`` takes two letters, though all words satisfy it (the informative prefixes of Kupferman and Vardi,
    2001). `store`: that has made the formula, and keeps steps. `propositions`: names of the atomic
    propositions, by number. Returns DeterministicAutomaton: complete and minimal.  All steps of one state
    are marked, and no others: there the formula holds. Raises UnsupportedError: more atomic propositions or
    states than are translated.
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


class _ProductAutomaton:
    """The reachable product of the components of a formula.

    A state is the condition that is left once components that are settled are replaced by what they have
    settled to, with the states of the components in it; so components that no longer matter are dropped.
    """

    def __init__(self, store: FormulaStore, formula: LtlFormula, n_propositions: int) -> None:
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
