"""Formulas of linear temporal logic in negation normal form, every one of them held once.

Two operators suffice beside next: ``a U b`` (until) and ``a W b`` (weak until). ``F b = true U b``,
``G a = a W false``, ``a R b = b W (a & b)``. Strong release is ``a M b = b U (a & b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hybrid.base.errors import UnsupportedError
from hybrid.properties.registry import has_path
from hybrid.properties.tree import Path, RewardBound, RewardBounds, TimeBound
from mtbdd.language.syntax import Binary, Expression, Literal, Unary


class LtlFormula:
    """A formula; two formulas of one `FormulaStore` are equal if they are the same object.

    Attributes
    ----------
    kind : str
        "true", "false", "literal", "and", "or", "X", "U" or "W".
    parts : tuple of LtlFormula
        The operands; of "and" and "or" by number, without repetitions.
    proposition : int
        Of a literal: the number of its atomic proposition; else -1.
    negated : bool
        Of a literal: whether it is the negation.
    number : int
        In the order in which the store has made its formulas.
    has_until, has_weak : bool
        Whether U, or W, occurs in it.  Without W it is co-safe, without U it is safe.
    until_in_weak, weak_in_until : bool
        Whether U occurs below a W, or W below a U.  Without the first it is in the class Sigma 2, without
        the second in Pi 2.
    limit : bool
        Whether it is a boolean combination of ``G F`` and ``F G``: about what happens in the long run alone.
    """

    __slots__ = (
        "kind", "parts", "proposition", "negated", "number", "has_until", "has_weak", "until_in_weak",
        "weak_in_until", "limit",
    )  # fmt: skip

    has_until: bool
    has_weak: bool
    until_in_weak: bool
    weak_in_until: bool
    limit: bool

    def __init__(
        self, kind: str, parts: tuple[LtlFormula, ...], proposition: int, negated: bool, number: int
    ) -> None:
        self.kind = kind
        self.parts = parts
        self.proposition = proposition
        self.negated = negated
        self.number = number
        below_until = any(p.has_until for p in parts)
        below_weak = any(p.has_weak for p in parts)
        self.has_until = kind == "U" or below_until
        self.has_weak = kind == "W" or below_weak
        self.until_in_weak = any(p.until_in_weak for p in parts) or (kind == "W" and below_until)
        self.weak_in_until = any(p.weak_in_until for p in parts) or (kind == "U" and below_weak)
        if kind in ("and", "or"):
            self.limit = all(p.limit for p in parts)
        elif kind == "U":
            self.limit = parts[0].kind == "true" and is_always(parts[1])
        else:
            self.limit = is_always(self) and is_finally(parts[0])

    def __repr__(self) -> str:
        return formula_text(self, lambda p: f"p{p}")


def is_always(formula: LtlFormula) -> bool:
    """Return whether a formula is ``G`` of another one."""
    return formula.kind == "W" and formula.parts[1].kind == "false"


def is_finally(formula: LtlFormula) -> bool:
    """Return whether a formula is ``F`` of another one."""
    return formula.kind == "U" and formula.parts[0].kind == "true"


def _after(formula: LtlFormula) -> LtlFormula:
    """Return what a formula that begins with X asks of the next step, or a constant."""
    return formula.parts[0] if formula.kind == "X" else formula


def formula_text(formula: LtlFormula, name: object) -> str:
    """Return a formula as text; `name` is called with the numbers of propositions."""
    if formula.kind in ("true", "false"):
        return formula.kind
    if formula.kind == "literal":
        return ("!" if formula.negated else "") + str(name(formula.proposition))  # type: ignore[operator]
    texts = [formula_text(part, name) for part in formula.parts]
    if formula.kind == "X":
        return f"X {texts[0]}"
    sign = {"and": " & ", "or": " | ", "U": " U ", "W": " W "}[formula.kind]
    return "(" + sign.join(texts) + ")"


class FormulaStore:
    """Makes formulas and simplifies them as it does.

    Every rule is an equivalence, such as ``F F a = F a`` or ``a U b = b`` where b is about the long run.
    `keeps_steps`: keep ``X true`` and ``X false``, so that formulas without W have informative prefixes as
    long as before.
    """

    def __init__(self, keeps_steps: bool = False) -> None:
        self._keeps_steps = keeps_steps
        self._known: dict[tuple[str, tuple[int, ...], int, bool], LtlFormula] = {}
        self._negations: dict[LtlFormula, LtlFormula] = {}
        self.true = self._make("true")
        self.false = self._make("false")

    def _make(
        self, kind: str, parts: tuple[LtlFormula, ...] = (), proposition: int = -1, negated: bool = False
    ) -> LtlFormula:
        key = (kind, tuple(p.number for p in parts), proposition, negated)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = LtlFormula(kind, parts, proposition, negated, len(self._known))
        return found

    def literal(self, proposition: int, negated: bool = False) -> LtlFormula:
        """Return an atomic proposition by its number, or its negation."""
        return self._make("literal", (), proposition, negated)

    def all_of(self, parts: Iterable[LtlFormula]) -> LtlFormula:
        """Return the conjunction of some formulas."""
        return self._joined("and", parts, self.true, self.false)

    def any_of(self, parts: Iterable[LtlFormula]) -> LtlFormula:
        """Return the disjunction of some formulas."""
        return self._joined("or", parts, self.false, self.true)

    def _joined(
        self, kind: str, parts: Iterable[LtlFormula], neutral: LtlFormula, zero: LtlFormula
    ) -> LtlFormula:
        flat: set[LtlFormula] = set()
        for part in parts:
            flat |= set(part.parts) if part.kind == kind else {part}
        flat.discard(neutral)
        if zero in flat:
            return zero
        other = "or" if kind == "and" else "and"
        for part in list(flat):
            if part.kind == "literal" and self.literal(part.proposition, not part.negated) in flat:
                return zero
            # Absorption: a & (a | b) = a.
            if part.kind == other and not flat.isdisjoint(part.parts):
                flat.discard(part)
        if not flat:
            return neutral
        chosen = tuple(sorted(flat, key=lambda p: p.number))
        return chosen[0] if len(chosen) == 1 else self._make(kind, chosen)

    def next(self, part: LtlFormula) -> LtlFormula:
        """Return ``X part``."""
        is_constant = part.kind in ("true", "false") and not self._keeps_steps
        return part if is_constant or part.limit else self._make("X", (part,))

    def until(self, left: LtlFormula, right: LtlFormula) -> LtlFormula:
        """Return ``left U right``."""
        left = self._without(left, right)
        if right.kind in ("true", "false") or right.limit or left.kind == "false" or left is right:
            return right
        if left.limit:
            return self.any_of((right, self.all_of((left, self.finally_(right)))))
        if right.kind == "U" and (left.kind == "true" or left is right.parts[0]):
            return self.until(left, right.parts[1])
        if right.kind == "X" and left.kind in ("true", "X"):
            return self.next(self.until(_after(left), _after(right)))
        return self._make("U", (left, right))

    def weak(self, left: LtlFormula, right: LtlFormula) -> LtlFormula:
        """Return ``left W right``."""
        left = self._without(left, right)
        if left.kind in ("true", "false") or right.kind == "true" or left is right:
            return right if left.kind == "false" or left is right else self.true
        if left.limit or right.limit:
            # Formulas about the long run hold at all positions or at none.
            return self.any_of((right, left if left.limit else self.always(left)))
        if right.kind == "false" and left.kind == "W":
            return self.weak(self.any_of(left.parts), self.false)
        if left.kind == "X" and right.kind in ("false", "X"):
            return self.next(self.weak(_after(left), _after(right)))
        return self._make("W", (left, right))

    def _without(self, left: LtlFormula, right: LtlFormula) -> LtlFormula:
        """Return ``left`` without disjuncts that are ``right``: until then they do not hold."""
        if left.kind == "or" and right in left.parts:
            return self.any_of(p for p in left.parts if p is not right)
        return left

    def finally_(self, part: LtlFormula) -> LtlFormula:
        """Return ``F part``."""
        return self.until(self.true, part)

    def always(self, part: LtlFormula) -> LtlFormula:
        """Return ``G part``."""
        return self.weak(part, self.false)

    def release(self, left: LtlFormula, right: LtlFormula) -> LtlFormula:
        """Return ``left R right``."""
        return self.weak(right, self.all_of((left, right)))

    def negation(self, formula: LtlFormula) -> LtlFormula:
        """Return the negation, in negation normal form."""
        known = self._negations.get(formula)
        if known is not None:
            return known
        parts = [self.negation(part) for part in formula.parts]
        kind = formula.kind
        if kind in ("true", "false"):
            result = self.false if kind == "true" else self.true
        elif kind == "literal":
            result = self.literal(formula.proposition, not formula.negated)
        elif kind in ("and", "or"):
            result = self.any_of(parts) if kind == "and" else self.all_of(parts)
        elif kind == "X":
            result = self.next(parts[0])
        else:
            join = self.weak if kind == "U" else self.until
            result = join(parts[1], self.all_of(parts))
        self._negations[formula] = result
        return result

    def rebuilt(self, formula: LtlFormula, parts: list[LtlFormula]) -> LtlFormula:
        """Return a formula of the same kind with other operands."""
        if formula.kind in ("and", "or"):
            return self.all_of(parts) if formula.kind == "and" else self.any_of(parts)
        if formula.kind == "X":
            return self.next(parts[0])
        if formula.kind in ("U", "W"):
            return (self.until if formula.kind == "U" else self.weak)(parts[0], parts[1])
        return formula

    def replaced(self, formula: LtlFormula, changes: dict[LtlFormula, LtlFormula]) -> LtlFormula:
        """Return a formula with subformulas replaced; outermost first."""
        known = dict(changes)

        def of(part: LtlFormula) -> LtlFormula:
            if part not in known:
                known[part] = self.rebuilt(part, [of(p) for p in part.parts]) if part.parts else part
            return known[part]

        return of(formula)


def subformulas(formula: LtlFormula) -> list[LtlFormula]:
    """Return a formula and all below it, each once, operands before what they are operands of."""
    found: dict[LtlFormula, None] = {}

    def visit(part: LtlFormula) -> None:
        if part not in found:
            for p in part.parts:
                visit(p)
            found[part] = None

    visit(formula)
    return list(found)


# Path formulas of the property language as formulas of linear temporal logic.

MOST_STEPS = 1000
"""Steps that a bound inside a formula may look ahead."""

_LOGIC = ("&", "|", "=>", "<=>")


def from_path(
    path: Expression,
    store: FormulaStore,
    proposition: Callable[[Expression], LtlFormula | None],
    continuous: bool = False,
) -> LtlFormula:
    """Return a path formula of the property language as a formula of linear temporal logic.

    `path`: resolved, or without names of constants. `proposition`: returns the literal for a state formula,
    or None where its connectives are to be looked into. `continuous`: whether bounds are on time and not on
    steps. Raises UnsupportedError: a bound on time, or on more than 1000 steps; a formula nested too deeply.
    """

    def of(part: Expression) -> LtlFormula:
        if isinstance(part, Path):
            return _path(part, store, of, continuous)
        if not has_path(part):
            known = proposition(part)
            if known is not None:
                return known
        if isinstance(part, Unary) and part.operator == "!":
            return store.negation(of(part.operand))
        if isinstance(part, Binary) and part.operator in _LOGIC:
            return _joined(part.operator, of(part.left), of(part.right), store)
        if isinstance(part, Literal) and isinstance(part.value, bool):
            return store.true if part.value else store.false
        raise UnsupportedError("LTL: expected path and state formulas joined by !, &, |, => or <=>")

    try:
        return of(path)
    except RecursionError:
        raise UnsupportedError("LTL: expected a formula nested less deeply; split it with labels") from None


def _joined(operator: str, left: LtlFormula, right: LtlFormula, store: FormulaStore) -> LtlFormula:
    if operator == "&":
        return store.all_of((left, right))
    if operator == "|":
        return store.any_of((left, right))
    there = store.any_of((store.negation(left), right))
    if operator == "=>":
        return there
    return store.all_of((there, store.any_of((store.negation(right), left))))


def _path(
    path: Path, store: FormulaStore, of: Callable[[Expression], LtlFormula], continuous: bool
) -> LtlFormula:
    left = of(path.left) if path.left is not None else None  # first: propositions come in the text's order
    right = of(path.right)
    if path.operator == "X":
        return store.next(right)
    if isinstance(path.bound, (RewardBound, RewardBounds)):
        raise UnsupportedError(
            'a bound on a reward stands on a path operator of its own, as in P=? [ F{"x"}<=b a ], without a '
            "scheduler and not inside of LTL, multi(...), R or T nor beside '||'; take the bound out"
        )
    if path.bound is not None:
        return _bounded(path, path.bound, left, right, store, continuous)
    if path.operator == "F":
        return store.finally_(right)
    if path.operator == "G":
        return store.always(right)
    assert left is not None
    return {"U": store.until, "W": store.weak, "R": store.release}[path.operator](left, right)


def _bounded(
    path: Path,
    bound: TimeBound,
    left: LtlFormula | None,
    right: LtlFormula,
    store: FormulaStore,
    continuous: bool,
) -> LtlFormula:
    """Return an operator with a bound on steps, written out with X.

    ``left U[a,b] right``: left holds until, after a to b steps, right does.
    """
    if continuous:
        raise UnsupportedError(
            "LTL: bounds on time stand on a path operator of their own, P=? [ F<=t a ], not "
            "inside of a formula with several, nor below R; take the bound out"
        )
    lower, upper = (_steps(e) for e in (bound.lower, bound.upper))
    first = 0 if lower is None else lower + bound.lower_strict
    last = None if upper is None else upper - bound.upper_strict
    if max(first, last or 0) > MOST_STEPS:
        raise UnsupportedError(
            f"LTL: expected a bound of at most {MOST_STEPS} steps inside of a formula with "
            f"several path operators, got {max(first, last or 0)}"
        )
    operator = path.operator
    if operator in "GWR":
        # The complement of an until with the same window, as without one.
        wait, goal = {
            "G": (store.true, store.negation(right)),
            "W": (_and_not(store, left, right), _and_not(store, store.true, left, right)),
            "R": (store.negation(left) if left else store.true, store.negation(right)),
        }[operator]
        return store.negation(_until(wait, goal, first, last, store))
    return _until(store.true if left is None else left, right, first, last, store)


def _and_not(store: FormulaStore, kept: LtlFormula | None, *others: LtlFormula | None) -> LtlFormula:
    return store.all_of(
        ([kept] if kept is not None else []) + [store.negation(o) for o in others if o is not None]
    )


def _until(
    wait: LtlFormula, goal: LtlFormula, first: int, last: int | None, store: FormulaStore
) -> LtlFormula:
    """Return ``wait U[first,last] goal``."""
    if last is None:
        result = store.until(wait, goal)
    else:
        result = goal if first <= last else store.false
        for _ in range(last - first):
            result = store.any_of((goal, store.all_of((wait, store.next(result)))))
    for _ in range(first):
        result = store.all_of((wait, store.next(result)))
    return result


def _steps(end: Expression | None) -> int | None:
    if end is None:
        return None
    if not isinstance(end, Literal):
        raise UnsupportedError("LTL: expected a number as a bound")
    return int(end.value)


# Progression: what a formula asks of the rest of a word once its first letter is read.
#
# ``af(a U b) = af(b) | af(a) & (a U b)``, and so on ([EKS20] §3).  Formulas are boolean functions of their
# temporal subformulas and literals, so that propositionally equivalent ones are one state.

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
                value(variable), self.substituted(high, value, known), self.substituted(low, value, known)
            )
        return found


class Progression:
    """Steps of formulas as boolean functions.

    A letter is a number whose bit i shows whether proposition i holds.
    """

    def __init__(self, store: FormulaStore) -> None:
        self.store = store
        self.functions = Functions()
        self._variables: dict[LtlFormula, int] = {}
        self._formulas: list[LtlFormula] = []
        self._encoded: dict[LtlFormula, int] = {}
        self._after: dict[int, dict[LtlFormula, int]] = {}
        self._stepped: dict[int, dict[int, int]] = {}
        self._weakened: dict[frozenset[LtlFormula], dict[int, int]] = {}

    def encode(self, formula: LtlFormula) -> int:
        """Return a formula as a function of its outermost temporal subformulas and literals."""
        found = self._encoded.get(formula)
        if found is None:
            found = self._encoded[formula] = self._encode(formula)
        return found

    def _encode(self, formula: LtlFormula) -> int:
        if formula.kind in ("true", "false"):
            return TRUE if formula.kind == "true" else FALSE
        if formula.kind in ("and", "or"):
            return self._joined(formula.kind, [self.encode(part) for part in formula.parts])
        return self._variable(formula)

    def _variable(self, formula: LtlFormula) -> int:
        """Return the function of a single formula."""
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

    def _formula_after(self, formula: LtlFormula, letter: int, known: dict[LtlFormula, int]) -> int:
        found = known.get(formula)
        if found is not None:
            return found
        kind, parts = formula.kind, formula.parts
        if kind == "literal":
            result = TRUE if (letter >> formula.proposition & 1) != formula.negated else FALSE
        elif kind == "X":
            # Formulas about the next letter are decided once it is read.
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

    def made_safe(self, function: int, kept: frozenset[LtlFormula]) -> int:
        """Return a function with every until in `kept` made weak and every other one false.

        The result is safe; it implies the formula on words on which every formula of `kept` holds again and
        again ([SE20] §4).
        """
        known = self._weakened.setdefault(kept, {})
        changed: dict[LtlFormula, LtlFormula] = {}
        return self.functions.substituted(
            function, lambda v: self.encode(self._safe(self._formulas[v], kept, changed)), known
        )

    def _safe(
        self, formula: LtlFormula, kept: frozenset[LtlFormula], known: dict[LtlFormula, LtlFormula]
    ) -> LtlFormula:
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
