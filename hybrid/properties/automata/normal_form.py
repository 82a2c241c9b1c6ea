"""A formula as a boolean combination of small automata: normal form with one alternation of untils.

A formula is split in three ways.  At its connectives.  At a subformula L about the long run alone (``G F``,
``F G``), whose truth does not change along a word: ``f[L] = L & f[true] | f[false]``.  And where untils and
weak untils alternate more than once: one case for every set of untils that may hold again and again ([SE20]
4, [EKS20] 6, [ERS24]).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.acceptance import (
    ALL,
    NONE,
    Acceptance,
    all_accepted,
    any_accepted,
    finitely,
    infinitely,
)
from hybrid.properties.automata.formulas import Formula, FormulaStore, is_always, is_finally, subformulas
from hybrid.properties.automata.parts import AutomatonPart, BreakpointPart, ReachedPart, RepeatedPart
from hybrid.properties.automata.progression import Progression

MOST_GUESSES = 12
"""Untils below weak untils in one part of a formula at most; each doubles the number of automata."""


class NormalForm:
    """The small automata that a formula is made of, its components, and the condition on their marks.

    Parameters
    ----------
    progression : Progression
    formula : Formula

    Attributes
    ----------
    components : list of AutomatonPart
        Component i marks its steps with mark i.
    acceptance : Acceptance
        Over the marks of all components.

    Raises
    ------
    UnsupportedError
        The formula alternates too often between until and weak until.
    """

    def __init__(self, progression: Progression, formula: Formula) -> None:
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

    def _split(self, formula: Formula) -> Acceptance:
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

    def _connective(self, formula: Formula) -> Acceptance:
        """Split a conjunction or disjunction; co-safe operands share one component, safe ones another."""
        store = self._store
        joined = store.all_of if formula.kind == "and" else store.any_of
        cosafe = [p for p in formula.parts if not p.has_weak]
        safe = [p for p in formula.parts if p.has_weak and not p.has_until]
        others = [p for p in formula.parts if p.has_weak and p.has_until]
        conditions = [self._split(joined(group)) for group in (cosafe, safe) if group]
        conditions += [self._split(part) for part in others]
        return all_accepted(conditions) if formula.kind == "and" else any_accepted(conditions)

    def _pushed(self, formula: Formula) -> Formula:
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

    def _limit_within(self, formula: Formula) -> Formula | None:
        """Return a subformula about the long run alone, a smallest one, or None."""
        for part in subformulas(formula):
            if part.limit and part is not formula and part.kind not in ("and", "or"):
                return part
        return None

    def _taken_out(
        self, formula: Formula, inner: Formula, then: Callable[[Formula], Acceptance]
    ) -> Acceptance:
        """Split by the truth of a subformula L about the long run: ``L & f[true] | f[false]``."""
        store = self._store
        held = then(store.replaced(formula, {inner: store.true}))
        not_held = then(store.replaced(formula, {inner: store.false}))
        return any_accepted((all_accepted((self._limit(inner), held)), not_held))

    def _alternating(self, formula: Formula) -> Acceptance:
        """Return the condition of a formula that is neither safe nor co-safe, nor about the long run."""
        opposite = self._store.negation(formula)
        own, other = self._guessed(formula), self._guessed(opposite)
        if len(other) < len(own):
            return self._breakpoints(opposite, other).negated()
        return self._breakpoints(formula, own)

    def _breakpoints(self, formula: Formula, guessed: list[Formula]) -> Acceptance:
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

    def _maker(self, formula: Formula, kept: frozenset[Formula]) -> Callable[[], AutomatonPart]:
        return lambda: BreakpointPart(self._progression, formula, kept)

    def _guessed(self, formula: Formula) -> list[Formula]:
        """Return the untils below weak untils; of each it is guessed whether it holds again and again."""
        found: dict[Formula, None] = {}
        for part in subformulas(formula):
            if part.kind == "W":
                found.update((u, None) for u in subformulas(part) if u.kind == "U")
        return list(found)

    # ------------------------------------------------------------------ the long run

    def _limit(self, formula: Formula) -> Acceptance:
        """Return the condition of a formula about the long run alone."""
        if formula.kind in ("and", "or"):
            conditions = [self._limit(part) for part in formula.parts]
            return all_accepted(conditions) if formula.kind == "and" else any_accepted(conditions)
        if formula.kind == "W":
            return self._again_and_again(formula.parts[0])
        return self._from_some_time(formula.parts[1])

    def _again_and_again(self, formula: Formula) -> Acceptance:
        """Return the condition of ``G F formula``."""
        store, kind = self._store, formula.kind
        if kind in ("true", "false"):
            return ALL if kind == "true" else NONE
        if formula.limit:
            return self._limit(formula)
        if kind == "or":
            # What is about one letter alone stays together, with one mark.
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

    def _recurrence(self, formula: Formula) -> Acceptance:
        return self._atom(("again", formula), lambda: RepeatedPart(self._progression, formula))

    def _from_some_time(self, formula: Formula) -> Acceptance:
        """Return the condition of ``F G formula``, the mirror image of ``G F``."""
        return self._again_and_again(self._store.negation(formula)).negated()


def _is_of_one_letter(formula: Formula) -> bool:
    """Return whether a formula is about the first letter alone."""
    return all(part.kind in ("literal", "and", "or") for part in subformulas(formula))
