"""Random properties of a model, with their exact answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from tests.attack.disguise import disguised
from tests.attack.evaluate import Evaluator, Expected, UndecidedError
from tests.attack.families import FAMILIES, random_spec
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
    Path,
    Probability,
    Reward,
    Span,
)
from tests.attack.numerals import Numeral, numeral, reward
from tests.attack.processes import schedulers
from tests.attack.spec import Expanded, RewardItem, Spec
from tests.attack.thresholds import threshold_near

__all__ = ["Question", "Writer", "average_questions", "questions"]

_TIMED = 12  # states up to which windows of time are answered
_MOST_SCHEDULERS = 64
_LEFT = ("ends", "ends", "ends", "cycle", "blocks", "modules")  # families in which components are left
_LONG_RUN = 0.85  # share of operators
_AVERAGES = 3
_SIGNED = 0.3  # share of processes with rewards below zero


@dataclass(frozen=True)
class Question:
    """A property and what its answer has to be."""

    formula: Formula
    expected: Expected

    @property
    def text(self) -> str:
        return self.formula.text()


def questions(rng: Random, model: Expanded, structures: int, count: int) -> tuple[list[Question], Evaluator]:
    """Return some properties with their answers."""
    evaluator = Evaluator(model)
    writer = Writer(rng, model, structures, evaluator)
    found: list[Question] = []
    for _ in range(20 * count):
        if len(found) == count:
            break
        try:
            formula = writer.property()
            found.append(Question(formula, evaluator.property(formula)))
        except (UndecidedError, NotImplementedError):
            continue
    return found, evaluator


class Writer:
    """Draws formulas about one model."""

    def __init__(self, rng: Random, model: Expanded, structures: int, evaluator: Evaluator) -> None:
        self.rng, self.model, self.structures, self.evaluator = rng, model, structures, evaluator
        self.is_mdp, self.timed = model.kind == "mdp", model.kind == "ctmc"
        self.few = not self.is_mdp or schedulers(model) <= _MOST_SCHEDULERS
        rows = [c[0].row for c in model.choices]
        self.fastest = max(sum(row.values()) for row in rows)

    def property(self) -> Formula:
        draw = self.rng.random()
        if draw < 0.42:
            return self.operator(None)
        if draw < 0.72:
            return self.compared()
        if draw < 0.88:
            return self.filtered()
        if draw < 0.94:
            return self.joined()
        return self.arithmetic()

    # ------------------------------------------------------------------ state formulas

    def states(self, depth: int = 1) -> Formula:
        """Return a set of states."""
        rng, draw = self.rng, self.rng.random()
        if draw < 0.05:
            return Label(rng.choice(("init", "deadlock")))
        if draw < 0.12:
            return Negation(self.atom())
        if draw < 0.24 and depth > 0:
            return self.compared(depth - 1)
        if draw < 0.27 and depth > 0 and not self.is_mdp:
            inner = self.operator(None, depth - 1)
            return Filtered(rng.choice(("argmin", "argmax")), inner, self.atom(full=True))
        return self.atom()

    def atom(self, full: bool = False) -> Formula:
        """Return a few states by their variables; `full` asks for one at least."""
        rng = self.rng
        if rng.random() < 0.08:
            return Atom(((),)) if full or rng.random() < 0.7 else Atom(())
        if len(self.model.names) == 1 and rng.random() < 0.2:
            value = rng.choice(self.model.states)[0]
            operator = rng.choice((">=", "<=")) if full else rng.choice(("<", ">", ">=", "<=", "!="))
            return Atom((((self.model.names[0], operator, value),),))
        count = min(self.model.size, rng.choice((1, 1, 1, 2, 3)))
        chosen = rng.sample(range(self.model.size), count)
        guards = []
        for s in chosen:
            values = self.model.valuation(s)
            names = list(values) if rng.random() < 0.6 else [rng.choice(list(values))]
            guards.append(tuple((name, "=", values[name]) for name in names))
        return Atom(tuple(guards))

    # ------------------------------------------------------------------ operators

    def operator(self, comparison: str | None, depth: int = 1) -> Bounded:
        """Return P, S or R, without a threshold."""
        rng = self.rng
        optimum = rng.choice(("min", "max")) if self.is_mdp and comparison is None else None
        bound = numeral("0") if comparison else None
        draw = rng.random()
        if draw < (0.68 if self.is_mdp else 0.58):
            return Probability(optimum, comparison, bound, self.path(depth))
        if draw < 0.68:
            return LongRun(optimum, comparison, bound, self.states(depth))
        kinds = (
            ["I", "C"] + (["F", "F", "C", "total"] if self.few else []) + ([] if self.is_mdp else ["S", "S"])
        )
        kind = rng.choice(kinds)
        structure = rng.randrange(self.structures)
        if kind == "F":
            return Reward(optimum, comparison, bound, structure, "F", self.states(depth))
        if kind == "S":
            return Reward(optimum, comparison, bound, structure, "S")
        time = None if kind == "total" else self.moment(40)
        return Reward(optimum, comparison, bound, structure, "I" if kind == "I" else "C", None, time)

    def path(self, depth: int) -> Path:
        rng = self.rng
        operator = rng.choice(("X", "F", "F", "F", "G", "U", "U", "W", "R", "GF", "FG"))
        left = self.states(depth) if operator in ("U", "W", "R") else None
        right = self.states(depth)
        if operator in ("GF", "FG") and not self.few:
            operator = "X"
        span = None
        if operator in ("F", "G", "U", "W", "R") and (rng.random() < 0.45 or not self.few):
            span = self.span()
        return Path(operator, left, right, span, rng.random() < 0.06)

    def moment(self, most: int) -> Numeral:
        """Return a number of steps, or a time that goes with the rates."""
        rng = self.rng
        if not self.timed and most > 20 and not self.is_mdp and self.model.size <= 8 and rng.random() < 0.12:
            return numeral(str(rng.choice((1000, 12345, 10**5, 10**6, 10**7))))
        if not self.timed:
            return numeral(
                str(rng.choice((0, 1, 1, 2, 2, 3, 4, 5, 8, min(most, 12), most if not self.is_mdp else 6)))
            )
        if self.model.size > _TIMED:
            raise NotImplementedError("windows of time on a chain of this size")
        scale = rng.choice((0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 300.0))
        if rng.random() < 0.04:
            scale = rng.choice((1e4, 1e5, 1e6))
        return numeral(f"{float(Fraction(scale) / self.fastest):.2g}" if scale else "0")

    def span(self) -> Span:
        """Return a window."""
        rng = self.rng
        large = not self.is_mdp and not self.timed and self.model.size <= 8 and rng.random() < 0.15
        a = self.moment(20)
        if large:
            a = numeral(str(rng.choice((1000, 10**5, 10**7, 10**9, 10**12))))
        draw = rng.random()
        step = 0 if self.timed else 1
        if draw < 0.4:
            return Span(f"<={a.text}", Fraction(0), a.value)
        if draw < 0.5 and a.value > 0:
            return Span(f"<{a.text}", Fraction(0), a.value - step)
        if draw < 0.6 and self.few:
            return Span(f">={a.text}", a.value, None)
        if draw < 0.66 and self.few:
            return Span(f">{a.text}", a.value + step, None, self.timed)
        if draw < 0.8:
            return Span(f"={a.text}" if rng.random() < 0.5 else f"[{a.text},{a.text}]", a.value, a.value)
        b = self.moment(20)
        a, b = (a, b) if a.value <= b.value else (b, a)
        return Span(f"[{a.text},{b.text}]", a.value, b.value)

    def compared(self, depth: int = 1) -> Formula:
        """Return an operator with a threshold that is near a value, one of them, or far from all."""
        formula = self.operator(self.rng.choice(("<", "<=", ">", ">=")), depth)
        numbers = self.evaluator.numbers(formula)
        some = [
            v for v in numbers if v is not None and isinstance(v[0], Fraction) and isinstance(v[1], Fraction)
        ]
        if not some:
            return replace(formula, threshold=numeral("1"))
        low, _ = self.rng.choice(some)
        near = threshold_near(self.rng, Fraction(low), isinstance(formula, Reward))
        return replace(formula, threshold=near)

    # ------------------------------------------------------------------ what is made of operators

    def filtered(self) -> Formula:
        rng = self.rng
        states = self.atom(full=True)
        if rng.random() < 0.6:
            names = ["min", "max", "sum", "avg", "range", "argmin", "argmax", "first"]
            return Filtered(rng.choice(names), self.operator(None), states)
        return Filtered(rng.choice(("count", "forall", "exists", "first")), self.compared(), states)

    def joined(self) -> Formula:
        """Return truth values joined, or two values compared."""
        rng = self.rng
        if rng.random() < 0.6:
            return Junction(rng.choice(("&", "|", "=>", "<=>")), self.compared(), self.compared())
        operator = rng.choice(("<", "<=", ">", ">=", "=", "!="))
        return Comparison(operator, self.operator(None), self.operator(None))

    def arithmetic(self) -> Formula:
        rng = self.rng
        constant = Constant(numeral(rng.choice(("1", "2", "3", "0.1", "1/3", "1e-9", "7"))))
        if rng.random() < 0.3:
            constant = Constant(disguised(rng, constant.numeral, constants=False))
        operator = rng.choice(("+", "-", "*", "/"))
        if rng.random() < 0.4:
            return Arithmetic(operator, self.operator(None), self.operator(None))
        if operator != "/" and rng.random() < 0.5:
            return Arithmetic(operator, constant, self.operator(None))
        return Arithmetic(operator, self.operator(None), constant)


class _Averages(Writer):
    """Draws formulas most of whose operators ask for averages, all where rewards are `signed`."""

    signed = False

    def operator(self, comparison: str | None, depth: int = 1) -> Bounded:
        rng = self.rng
        if not self.signed and rng.random() > _LONG_RUN:
            return super().operator(comparison, depth)
        asked = rng.choice(("min", "max")) if comparison is None else None, comparison
        bound = numeral("0") if comparison else None
        if rng.random() < 0.4:
            return LongRun(*asked, bound, self.states(depth))
        return Reward(*asked, bound, rng.randrange(self.structures), "S")


def _of_both_signs(rng: Random, items: tuple[RewardItem, ...]) -> tuple[RewardItem, ...]:
    """Return items with rewards of both signs."""
    style = rng.choice(("signed", "signed", "mixed"))
    return tuple(replace(item, value=reward(rng, style)) for item in items)


def average_questions(rng: Random) -> tuple[Spec, Expanded, list[Question], Evaluator]:
    """Return a decision process with questions about averages; the first one has no threshold."""
    while True:
        spec = random_spec(rng, "mdp", rng.choice((*FAMILIES, *_LEFT)))
        model = Expanded.of(spec)
        if schedulers(model) <= _MOST_SCHEDULERS:
            break
    signed = rng.random() < _SIGNED
    if signed:
        spec = replace(spec, structures=tuple(_of_both_signs(rng, items) for items in spec.structures))
        model = Expanded.of(spec)
    evaluator = Evaluator(model)
    writer = _Averages(rng, model, len(spec.structures), evaluator)
    writer.signed = signed
    asked: list[Question] = []
    while len(asked) < _AVERAGES:
        try:
            formula = writer.operator(None) if len(asked) == 0 else writer.property()
            asked.append(Question(formula, evaluator.property(formula)))
        except (UndecidedError, NotImplementedError):
            continue
    return spec, model, asked, evaluator
