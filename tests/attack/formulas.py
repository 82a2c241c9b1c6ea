"""Formulas of the property language as trees that print themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.attack.numerals import Numeral
from tests.attack.spec import Guard

__all__ = [
    "Arithmetic", "Atom", "Comparison", "Constant", "Filtered", "Formula", "Junction", "Label", "LongRun",
    "Negation", "OwnValues", "Path", "Probability", "Reward", "Span", "subformulas",
]  # fmt: skip


class Formula:
    """A state formula: a truth value or a number in every state."""

    def text(self) -> str:
        """Return the formula in the property language."""
        raise NotImplementedError

    def parts(self) -> tuple[Formula, ...]:
        return ()


@dataclass(frozen=True)
class Atom(Formula):
    """A disjunction of guards."""

    guards: tuple[Guard, ...]

    def text(self) -> str:
        if not self.guards:
            return "false"
        some = [" & ".join(f"{n}{o}{v}" for n, o, v in g) or "true" for g in self.guards]
        return some[0] if len(some) == 1 and len(self.guards[0]) <= 1 else "(" + " | ".join(some) + ")"


@dataclass(frozen=True)
class Label(Formula):
    """``"init"`` or ``"deadlock"``."""

    name: str

    def text(self) -> str:
        return f'"{self.name}"'


@dataclass(frozen=True)
class Negation(Formula):
    inner: Formula

    def text(self) -> str:
        return f"!({self.inner.text()})"

    def parts(self) -> tuple[Formula, ...]:
        return (self.inner,)


@dataclass(frozen=True)
class Junction(Formula):
    """Truth values joined by & | => or <=>."""

    operator: str
    left: Formula
    right: Formula

    def text(self) -> str:
        return f"(({self.left.text()}) {self.operator} ({self.right.text()}))"

    def parts(self) -> tuple[Formula, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Constant(Formula):
    numeral: Numeral

    def text(self) -> str:
        return self.numeral.text


@dataclass(frozen=True)
class Arithmetic(Formula):
    """Numbers joined by + - * or /."""

    operator: str
    left: Formula
    right: Formula

    def text(self) -> str:
        return f"(({self.left.text()}) {self.operator} ({self.right.text()}))"

    def parts(self) -> tuple[Formula, ...]:
        return self.left, self.right


@dataclass(frozen=True)
class Comparison(Formula):
    """Numbers compared."""

    operator: str
    left: Formula
    right: Formula

    def text(self) -> str:
        return f"(({self.left.text()}) {self.operator} ({self.right.text()}))"

    def parts(self) -> tuple[Formula, ...]:
        return self.left, self.right


# ------------------------------------------------------------------ operators


@dataclass(frozen=True)
class Span:
    """A window as it is written, with its ends; `upper` None is without end."""

    text: str
    lower: Fraction
    upper: Fraction | None
    positive: bool = False


@dataclass(frozen=True)
class Path:
    """X, F, G, U, W, R, or "GF" and "FG", with an optional window and an optional ``!`` before it."""

    operator: str
    left: Formula | None
    right: Formula
    span: Span | None = None
    negated: bool = False

    def text(self) -> str:
        span = self.span.text if self.span else ""
        if self.operator in ("GF", "FG"):
            body = f"{self.operator[0]} {self.operator[1]} ({self.right.text()})"
        elif self.left is None:
            body = f"{self.operator}{span} ({self.right.text()})"
        else:
            body = f"({self.left.text()}) {self.operator}{span} ({self.right.text()})"
        return f"!({body})" if self.negated else body


@dataclass(frozen=True)
class Bounded(Formula):
    """What P, S and R share: an optimum (min, max or none), and a comparison with a threshold or none."""

    optimum: str | None
    comparison: str | None
    threshold: Numeral | None

    def _head(self, letter: str) -> str:
        if self.comparison is None:
            return f"{letter}{self.optimum or ''}=?"
        assert self.threshold is not None
        return f"{letter}{self.comparison}{self.threshold.text}"


@dataclass(frozen=True)
class Probability(Bounded):
    path: Path

    def text(self) -> str:
        return f"{self._head('P')} [ {self.path.text()} ]"

    def parts(self) -> tuple[Formula, ...]:
        return tuple(f for f in (self.path.left, self.path.right) if f is not None)


@dataclass(frozen=True)
class LongRun(Bounded):
    states: Formula

    def text(self) -> str:
        return f"{self._head('S')} [ {self.states.text()} ]"

    def parts(self) -> tuple[Formula, ...]:
        return (self.states,)


@dataclass(frozen=True)
class Reward(Bounded):
    """R with the kind "F" (of a formula), "C" (up to a time or in all), "I" or "S"."""

    structure: int
    kind: str
    target: Formula | None = None
    time: Numeral | None = None

    def text(self) -> str:
        what = {
            "F": lambda: f"F ({self.target.text()})",
            "C": lambda: "C" if self.time is None else f"C<={self.time.text}",
            "I": lambda: f"I={self.time.text}",
            "S": lambda: "S",
        }[self.kind]()
        letter = f'R{{"r{self.structure}"}}'
        return f"{self._head(letter)} [ {what} ]"

    def parts(self) -> tuple[Formula, ...]:
        return () if self.target is None else (self.target,)


class OwnValues(Bounded):
    """An operator that knows its exact values by itself."""

    def values(self, evaluator: Any, largest: bool) -> list[Any]:
        """Return the enclosure of its value in every state; `largest`: the optimum of a decision process."""
        raise NotImplementedError


@dataclass(frozen=True)
class Filtered(Formula):
    """``filter(operator, inner, states)``."""

    operator: str
    inner: Formula
    states: Formula

    def text(self) -> str:
        return f"filter({self.operator}, {self.inner.text()}, {self.states.text()})"

    def parts(self) -> tuple[Formula, ...]:
        return self.inner, self.states


def subformulas(formula: Formula) -> Iterator[Formula]:
    """Return a formula and all that it is made of."""
    yield formula
    for part in formula.parts():
        yield from subformulas(part)
