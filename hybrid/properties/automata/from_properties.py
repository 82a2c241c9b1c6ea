"""Path formulas of the property language as formulas of linear temporal logic."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.formulas import Formula, FormulaStore
from hybrid.properties.registry import has_path
from hybrid.properties.tree import Path, RewardBound, TimeBound
from mtbdd.language.syntax import Binary, Expression, Literal, Unary

MOST_STEPS = 1000
"""Steps that a bound inside a formula may look ahead."""

_LOGIC = ("&", "|", "=>", "<=>")


def from_path(
    path: Expression,
    store: FormulaStore,
    proposition: Callable[[Expression], Formula | None],
    continuous: bool = False,
) -> Formula:
    """Return a path formula of the property language as a formula of linear temporal logic.

    Parameters
    ----------
    path : Expression
        Resolved, or without names of constants.
    store : FormulaStore
    proposition : callable
        Returns the literal for a state formula, or None where its connectives are to be looked into.
    continuous : bool
        Whether bounds are on time and not on steps.

    Returns
    -------
    Formula

    Raises
    ------
    UnsupportedError
        A bound on time, or on more than 1000 steps; a formula nested too deeply.
    """

    def of(part: Expression) -> Formula:
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


def _joined(operator: str, left: Formula, right: Formula, store: FormulaStore) -> Formula:
    if operator == "&":
        return store.all_of((left, right))
    if operator == "|":
        return store.any_of((left, right))
    there = store.any_of((store.negation(left), right))
    if operator == "=>":
        return there
    return store.all_of((there, store.any_of((store.negation(right), left))))


def _path(path: Path, store: FormulaStore, of: Callable[[Expression], Formula], continuous: bool) -> Formula:
    left = of(path.left) if path.left is not None else None  # first: propositions come in the text's order
    right = of(path.right)
    if path.operator == "X":
        return store.next(right)
    if isinstance(path.bound, RewardBound):
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
    left: Formula | None,
    right: Formula,
    store: FormulaStore,
    continuous: bool,
) -> Formula:
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


def _and_not(store: FormulaStore, kept: Formula | None, *others: Formula | None) -> Formula:
    return store.all_of(
        ([kept] if kept is not None else []) + [store.negation(o) for o in others if o is not None]
    )


def _until(wait: Formula, goal: Formula, first: int, last: int | None, store: FormulaStore) -> Formula:
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
