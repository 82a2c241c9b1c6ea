"""Progression: what a formula asks of the rest of a word once its first letter is read.

``af(a U b) = af(b) | af(a) & (a U b)``, and so on ([EKS20] §3).  Formulas are boolean functions of their
temporal subformulas and literals, so that propositionally equivalent ones are one state.
"""

from __future__ import annotations

from collections.abc import Callable

from hybrid.properties.automata.formulas import Formula, FormulaStore

# Boolean functions of numbered variables as binary decision diagrams: equal functions are equal numbers.

FALSE, TRUE = 0, 1


class Functions:
    """Nodes of reduced ordered decision diagrams; a function is the number of its node.

    Used for formulas as functions of their temporal subformulas, which are few; for sets of states there is
    `mtbdd.diagrams.manager`.
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = [(1 << 60, 0, 0), (1 << 60, 1, 1)]
        self._known: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}

    def node(self, variable: int, low: int, high: int) -> int:
        """Return "if variable then high else low", whose variables come after this one."""
        if low == high:
            return low
        key = (variable, low, high)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def parts(self, function: int) -> tuple[int, int, int]:
        """Return the first variable of a function and what is left where it is false, and true."""
        return self._nodes[function]

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """Return "if condition then `then` else `otherwise`".  Time: at most the product of the sizes."""
        if condition == TRUE or then == otherwise:
            return then
        if condition == FALSE:
            return otherwise
        if then == TRUE and otherwise == FALSE:
            return condition
        key = (condition, then, otherwise)
        found = self._choices.get(key)
        if found is None:
            first = min(self._nodes[part][0] for part in key)
            low, high = (
                self.choose(*(self._cofactor(part, first, side) for part in key)) for side in (False, True)
            )
            found = self._choices[key] = self.node(first, low, high)
        return found

    def _cofactor(self, function: int, variable: int, side: bool) -> int:
        own, low, high = self._nodes[function]
        return function if own != variable else high if side else low

    def both(self, a: int, b: int) -> int:
        """Return the conjunction."""
        return self.choose(a, b, FALSE)

    def either(self, a: int, b: int) -> int:
        """Return the disjunction."""
        return self.choose(a, TRUE, b)

    def substituted(self, function: int, value: Callable[[int], int], known: dict[int, int]) -> int:
        """Return a function with other functions in place of its variables.

        `value`: returns the function in place of a variable. `known`: results so far under the same `value`,
        kept by the caller.
        """
        if function <= TRUE:
            return function
        found = known.get(function)
        if found is None:
            variable, low, high = self._nodes[function]
            found = known[function] = self.choose(
                value(variable),
                self.substituted(high, value, known),
                self.substituted(low, value, known),
            )
        return found


class Progression:
    """Steps of formulas as boolean functions.

    A letter is a number whose bit i tells whether proposition i holds.
    """

    def __init__(self, store: FormulaStore) -> None:
        self.store = store
        self.functions = Functions()
        self._variables: dict[Formula, int] = {}
        self._formulas: list[Formula] = []
        self._encoded: dict[Formula, int] = {}
        self._after: dict[int, dict[Formula, int]] = {}
        self._stepped: dict[int, dict[int, int]] = {}
        self._weakened: dict[frozenset[Formula], dict[int, int]] = {}

    def encode(self, formula: Formula) -> int:
        """Return a formula as a function of its outermost temporal subformulas and literals."""
        found = self._encoded.get(formula)
        if found is None:
            found = self._encoded[formula] = self._encode(formula)
        return found

    def _encode(self, formula: Formula) -> int:
        if formula.kind in ("true", "false"):
            return TRUE if formula.kind == "true" else FALSE
        if formula.kind in ("and", "or"):
            return self._joined(formula.kind, [self.encode(part) for part in formula.parts])
        return self._variable(formula)

    def _variable(self, formula: Formula) -> int:
        """Return the function that is a formula by itself."""
        if formula not in self._variables:
            self._variables[formula] = len(self._formulas)
            self._formulas.append(formula)
        return self.functions.node(self._variables[formula], FALSE, TRUE)

    def _joined(self, kind: str, parts: list[int]) -> int:
        join, result = (self.functions.both, TRUE) if kind == "and" else (self.functions.either, FALSE)
        for part in parts:
            result = join(result, part)
        return result

    def step(self, function: int, letter: int) -> int:
        """Return what is asked of the rest after a letter."""
        after = self._after.setdefault(letter, {})
        known = self._stepped.setdefault(letter, {})
        return self.functions.substituted(
            function, lambda v: self._formula_after(self._formulas[v], letter, after), known
        )

    def _formula_after(self, formula: Formula, letter: int, known: dict[Formula, int]) -> int:
        found = known.get(formula)
        if found is not None:
            return found
        kind, parts = formula.kind, formula.parts
        if kind == "literal":
            result = TRUE if (letter >> formula.proposition & 1) != formula.negated else FALSE
        elif kind == "X":
            # What is true of the next letter is known once it is read.
            result = self._variable(parts[0]) if parts[0].kind == "true" else self.encode(parts[0])
        elif kind in ("U", "W"):
            left, right = (self._formula_after(part, letter, known) for part in parts)
            again = self.functions.both(left, self.encode(formula))
            result = self.functions.either(right, again)
        elif kind in ("and", "or"):
            result = self._joined(kind, [self._formula_after(part, letter, known) for part in parts])
        else:
            result = self.encode(formula)
        known[formula] = result
        return result

    def made_safe(self, function: int, kept: frozenset[Formula]) -> int:
        """Return a function with every until in `kept` made weak and every other one false.

        The result is safe; it implies the formula on words on which every formula of `kept` holds again and
        again ([SE20] §4).
        """
        known = self._weakened.setdefault(kept, {})
        changed: dict[Formula, Formula] = {}
        return self.functions.substituted(
            function, lambda v: self.encode(self._safe(self._formulas[v], kept, changed)), known
        )

    def _safe(self, formula: Formula, kept: frozenset[Formula], known: dict[Formula, Formula]) -> Formula:
        if not formula.has_until:
            return formula
        if formula not in known:
            if formula.kind == "U" and formula not in kept:
                known[formula] = self.store.false
            else:
                parts = [self._safe(part, kept, known) for part in formula.parts]
                if formula.kind == "U":
                    known[formula] = self.store.weak(*parts)
                else:
                    known[formula] = self.store.rebuilt(formula, parts)
        return known[formula]
