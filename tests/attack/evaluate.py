"""The exact meaning of formulas, state by state, and of whole properties."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.attack.chains import ChainOracle, Enclosure, Window, complement
from tests.attack.formulas import (
    Arithmetic,
    Atom,
    Bounded,
    Comparison,
    Constant,
    Filtered,
    Formula,
    Junction,
    Label,
    LongRun,
    Negation,
    OwnValues,
    Path,
    Probability,
    Reward,
)
from tests.attack.processes import ProcessOracle
from tests.attack.spec import Expanded, holds

__all__ = ["Evaluator", "Expected", "UndecidedError"]

_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class UndecidedError(Exception):
    """The enclosures of the oracle are too wide to tell a truth value."""


@dataclass(frozen=True)
class Expected:
    """What a property's answer has to be.

    Attributes
    ----------
    kind : {"number", "truth", "count", "range", "none"}
        "none" is no value at all: an error is due.
    low, high : Fraction or float
        Enclosure of a number; of a range, that of its lower end.
    truth : bool or int
        A truth value or a count.
    end : tuple
        Enclosure of a range's upper end.
    """

    kind: str
    low: Fraction | float = 0
    high: Fraction | float = 0
    truth: int = False
    end: tuple[Fraction | float, Fraction | float] = (0, 0)


class Evaluator:
    """Evaluates formulas over the states of a model."""

    def __init__(self, model: Expanded) -> None:
        self.model = model
        self.oracle: ChainOracle | ProcessOracle = (
            ProcessOracle(model) if model.kind == "mdp" else ChainOracle(model)
        )
        self._known: dict[Formula, list[bool] | list[Enclosure]] = {}

    def property(self, formula: Formula) -> Expected:
        """Return the answer that a property has."""
        if isinstance(formula, Filtered):
            return self._filtered(formula)
        found = self.values(formula)
        return self._initial([found[s] for s in self.model.initial])

    def is_truth(self, formula: Formula) -> bool:
        return bool(self.values(formula)) and isinstance(self.values(formula)[0], bool)

    def states(self, formula: Formula) -> set[int]:
        """Return the states in which a truth value holds."""
        if isinstance(formula, Filtered) and formula.operator in ("argmin", "argmax"):
            return self._extreme(formula)
        return {s for s, truth in enumerate(self.values(formula)) if truth}

    def values(self, formula: Formula) -> list[bool] | list[Enclosure]:
        """Return a truth value or an enclosure for every state."""
        if formula not in self._known:
            self._known[formula] = self._values(formula)
        return self._known[formula]

    # ------------------------------------------------------------------ formulas

    def _values(self, formula: Formula) -> list[bool] | list[Enclosure]:
        n = self.model.size
        if isinstance(formula, Atom):
            return [any(holds(g, self.model.valuation(s)) for g in formula.guards) for s in range(n)]
        if isinstance(formula, Label):
            inside = self.model.deadlocks if formula.name == "deadlock" else set(self.model.initial)
            return [s in inside for s in range(n)]
        if isinstance(formula, Negation):
            return [not v for v in self.values(formula.inner)]
        if isinstance(formula, Junction):
            joined = {
                "&": lambda a, b: a and b,
                "|": lambda a, b: a or b,
                "=>": lambda a, b: not a or b,
                "<=>": lambda a, b: a == b,
            }[formula.operator]
            pairs = zip(self.values(formula.left), self.values(formula.right), strict=True)
            return [bool(joined(a, b)) for a, b in pairs]
        if isinstance(formula, Constant):
            return [(formula.numeral.value,) * 2] * n
        if isinstance(formula, (Arithmetic, Comparison)):
            function = _arithmetic if isinstance(formula, Arithmetic) else _decide
            pairs = zip(self.values(formula.left), self.values(formula.right), strict=True)
            return [function(formula.operator, a, b) for a, b in pairs]
        if isinstance(formula, Filtered):
            if formula.operator in ("argmin", "argmax"):
                best = self._extreme(formula)
                return [s in best for s in range(n)]
            found = self._filtered(formula)
            if found.kind == "truth":
                return [bool(found.truth)] * n
            if found.kind == "count":
                return [(Fraction(found.truth),) * 2] * n
            return [None if found.kind == "none" else (found.low, found.high)] * n
        assert isinstance(formula, Bounded)
        numbers = self.numbers(formula)
        if formula.comparison is None:
            return numbers
        assert formula.threshold is not None
        bound = (formula.threshold.value,) * 2
        return [_decide(formula.comparison, v, bound) for v in numbers]

    def numbers(self, formula: Bounded) -> list[Enclosure]:
        """Return the values of P, S or R, whatever they are compared with."""
        largest = formula.optimum == "max" or (formula.optimum is None and formula.comparison in ("<", "<="))
        if isinstance(formula, OwnValues):
            return formula.values(self, largest)
        if isinstance(formula, Probability):
            return self._path(formula.path, largest)
        if isinstance(formula, LongRun):
            return self.oracle.steady(self.states(formula.states), largest)
        assert isinstance(formula, Reward)
        argument: set[int] | Fraction | None = None
        if formula.kind == "F":
            assert formula.target is not None
            argument = self.states(formula.target)
        elif formula.time is not None:
            argument = formula.time.value
        return self.oracle.reward(formula.structure, formula.kind, argument, largest)

    def _path(self, path: Path, largest: bool) -> list[Enclosure]:
        """Return the probability of a path; the dual operators are one minus what they exclude."""
        if path.negated:
            inner = Path(path.operator, path.left, path.right, path.span)
            return complement(self._path(inner, not largest))
        every = set(range(self.model.size))
        right = self.states(path.right)
        if path.operator in ("GF", "FG"):
            return self.oracle.repeated(right, path.operator == "FG", largest)
        if path.operator == "X":
            return self.oracle.next(right, largest)
        window = None if path.span is None else Window(path.span.lower, path.span.upper, path.span.positive)
        left = every if path.left is None else self.states(path.left)
        if path.operator in ("F", "U"):
            return self.oracle.until(left, right, window, largest)
        if path.operator == "G":
            return complement(self.oracle.until(every, every - right, window, not largest))
        if path.operator == "W":
            against = left - right, every - left - right
        else:
            against = every - left, every - right
        return complement(self.oracle.until(*against, window, not largest))

    # ------------------------------------------------------------------ filters

    def _extreme(self, formula: Filtered) -> set[int]:
        """Return the states that attain an extreme."""
        found = self.values(formula.inner)
        some = sorted(self.states(formula.states))
        if not some or any(found[s] is None or found[s][0] != found[s][1] for s in some):
            raise UndecidedError
        pick = min if formula.operator == "argmin" else max
        best = pick(found[s][0] for s in some)
        return {s for s in some if found[s][0] == best}

    def _filtered(self, formula: Filtered) -> Expected:
        some = sorted(self.states(formula.states))
        found = [self.values(formula.inner)[s] for s in some]
        if not some or any(v is None for v in found):
            return Expected("none")
        name = formula.operator
        if name in ("forall", "exists"):
            return Expected("truth", truth=all(found) if name == "forall" else any(found))
        if name == "count":
            return Expected("count", truth=sum(map(bool, found)))
        if name == "first":
            return self._initial(found[:1])
        low, high = ([v[i] for v in found] for i in (0, 1))
        if name in ("min", "argmin"):
            return Expected("number", min(low), min(high))
        if name in ("max", "argmax"):
            return Expected("number", max(low), max(high))
        if name == "range":
            return Expected("range", min(low), min(high), end=(max(low), max(high)))
        share = 1 if name == "sum" else len(some)
        return Expected("number", _sum(low) / share, _sum(high) / share)

    def _initial(self, found: Sequence[bool | Enclosure]) -> Expected:
        """Return what initial states make of their values."""
        if any(v is None for v in found):
            return Expected("none")
        if isinstance(found[0], bool):
            return Expected("truth", truth=all(found))
        low, high = ([v[i] for v in found] for i in (0, 1))
        if len(found) == 1:
            return Expected("number", low[0], high[0])
        return Expected("range", min(low), min(high), end=(max(low), max(high)))


def _sum(values: Sequence[Fraction | float]) -> Fraction | float:
    return math.inf if math.inf in values else sum(values, Fraction(0))


def _arithmetic(name: str, a: Enclosure, b: Enclosure) -> Enclosure:
    if a is None or b is None:
        return None
    if math.inf in (*a, *b):
        raise UndecidedError
    if name == "+":
        return a[0] + b[0], a[1] + b[1]
    if name == "-":
        return a[0] - b[1], a[1] - b[0]
    if name == "/":
        if b[0] <= 0 <= b[1]:
            raise UndecidedError
        b = 1 / b[1], 1 / b[0]
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _decide(name: str, a: Enclosure, b: Enclosure) -> bool:
    """Return whether a number stands in a relation to another one."""
    if a is None or b is None:
        raise UndecidedError
    if name in ("=", "!="):
        if a[1] < b[0] or b[1] < a[0]:
            return name == "!="
        if a[0] == a[1] == b[0] == b[1]:
            return name == "="
        raise UndecidedError
    compare = _COMPARE[name]
    some = {compare(x, y) for x, y in ((a[0], b[1]), (a[1], b[0]))}
    if len(some) == 2:
        raise UndecidedError
    return some.pop()
