"""The verdict on an answer, by exact comparisons with what it has to be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hybrid.checking.answer import Answer
from tests.attack.evaluate import Expected
from tests.attack.formulas import Bounded, Formula

__all__ = ["BEYOND_DOUBLES", "ENCLOSING", "FAILURES", "VERDICTS", "Verdict", "judge", "judge_number"]

ENCLOSING = ("auto", "optimistic", "interval")  # methods that promise bounds

# What may be said of a property; the last ones are failures.
VERDICTS = (
    "right", "wide", "estimate", "unknown", "missed", "not converged", "refused", "warned", "wrong", "crash",
)  # fmt: skip
FAILURES = ("warned", "wrong", "crash")

_UNKNOWN = re.compile(r"unknown at this precision")
_NOT_CONVERGED = re.compile(
    "iteration limit was reached|no upper bound could be verified|no longer finite|broke down"
    "|no longer comes closer"
)
# What doubles cannot hold, told as such: of a model when it is built, and of rewards.
BEYOND_DOUBLES = re.compile(
    "less than 1.79e308|at least 2.23e-308|rewards of both signs cancel|infinite values that cancel"
    "|too small a double to be written out|a value is beyond 1.79e308"
)
_INAPPLICABLE = re.compile("averages in the long run have none|not answered by the engine symbolic")
_REFUSED = re.compile(r"rewards below zero that may be earned for ever")


@dataclass(frozen=True)
class Verdict:
    """One of `VERDICTS`, and what was expected and found."""

    kind: str
    detail: str = ""


def judge(expected: Expected, answer: Answer, formula: Formula, options: Mapping[str, Any]) -> Verdict:
    """Return the verdict on the answer to a property."""
    if answer.error is not None:
        return _judge_error(expected, answer.error, formula)
    if expected.kind == "none":
        return Verdict("wrong", f"expected an error, got {answer.value!r}")
    if answer.kind == "estimate":
        promised = options["method"] in ENCLOSING
        return Verdict("wrong", "an estimate by a method with bounds") if promised else Verdict("estimate")
    if expected.kind in ("truth", "count"):
        kind = bool if expected.kind == "truth" else int
        good = type(answer.value) is kind and answer.value == expected.truth
        return (
            Verdict("right") if good else Verdict("wrong", f"expected {expected.truth}, got {answer.value!r}")
        )
    return judge_number(expected, answer.value, answer.lower, answer.upper, options)


def judge_number(
    expected: Expected, value: Any, lower: Any, upper: Any, options: Mapping[str, Any]
) -> Verdict:
    """Return the verdict on a number, or on a range, with its bounds."""
    told = f"got {value!r} in [{lower!r}, {upper!r}]"
    if any(isinstance(v, float) and math.isnan(v) for v in (value, lower, upper)):
        return Verdict("wrong", f"not a number: {told}")
    if (lower is None) != (upper is None):
        return Verdict("wrong", f"one bound: {told}")
    if lower is None:
        if options["method"] in ENCLOSING:
            return Verdict("wrong", f"no bounds by a method that promises them: {told}")
        return Verdict("estimate")
    if value is None and expected.kind == "number":
        return Verdict("wrong", f"no value: {told}")
    if value is not None and not lower <= value <= upper:
        return Verdict("wrong", f"the value lies outside of its bounds: {told}")
    low, high = _rational(lower), _rational(upper)
    least, greatest = (expected.low, expected.high), (expected.low, expected.high)
    if expected.kind == "range":
        greatest = expected.end
    if low > least[1] or high < greatest[0]:
        wanted = show(least) if expected.kind == "number" else f"{show(least)} to {show(greatest)}"
        return Verdict("wrong", f"exact {wanted}, {told}, outside by {_outside(low, high, least, greatest)}")
    if least[0] == math.inf and low != math.inf:
        return Verdict("missed", f"infinite: {told}")
    return (
        Verdict("wide", told)
        if expected.kind == "number" and _is_wide(low, high, options)
        else Verdict("right")
    )


def _judge_error(expected: Expected, error: str, formula: Formula) -> Verdict:
    """Return the verdict on an answer that is an error: it has to be one that is documented."""
    if _UNKNOWN.search(error):
        trivial = (
            isinstance(formula, Bounded)
            and formula.threshold is not None
            and formula.threshold.value in (0, 1)
        )
        graph = trivial and not error.startswith("R")
        return Verdict("missed" if graph else "unknown", error)
    if _NOT_CONVERGED.search(error):
        return Verdict("not converged", error)
    if BEYOND_DOUBLES.search(error):
        return Verdict("refused", error)
    if _INAPPLICABLE.search(error):
        return Verdict("refused", error)
    if _REFUSED.search(error):
        # The refusal is for all states together: also for an infinite value beside one that does not exist.
        allowed = expected.kind == "none" or math.inf in (expected.low, expected.high, *expected.end)
        return Verdict("refused" if allowed else "wrong", f"expected {expected}, got the error: {error}")
    if expected.kind == "none":
        return Verdict("refused", error)
    return Verdict("wrong", f"an error that is not documented: {error}")


def _outside(
    low: Fraction | float,
    high: Fraction | float,
    least: tuple[Fraction | float, Fraction | float],
    greatest: tuple[Fraction | float, Fraction | float],
) -> str:
    """Return how far bounds are on the wrong side of a value, relatively, in words."""
    bound, exact = (low, least[1]) if low > least[1] else (high, greatest[0])
    if isinstance(bound, float) or isinstance(exact, float):
        return "infinitely much"
    ratio = abs(bound - exact) / max(abs(bound), abs(exact))
    return "less than 1e-300" if ratio < Fraction(1, 10**300) else f"{float(ratio):.1e} of it"


def _is_wide(low: Fraction | float, high: Fraction | float, options: Mapping[str, Any]) -> bool:
    """Return whether bounds are further apart than asked."""
    if math.inf in (low, high):
        return low != high
    allowed = 2 * Fraction(options["epsilon"])
    if not options["absolute"]:
        allowed *= max(abs(low), abs(high))
    return high - low > allowed


def _rational(number: float | int) -> Fraction | float:
    return number if isinstance(number, float) and math.isinf(number) else Fraction(number)


def show(value: tuple[Fraction | float, Fraction | float]) -> str:
    """Return an enclosure in words, with 20 digits."""
    return _digits(value[0])


def _digits(value: Fraction | float) -> str:
    from tests.attack.thresholds import decimal_near

    if value == 0 or isinstance(value, float):
        return str(value)
    short = str(value) if max(abs(value.numerator), value.denominator) < 10**12 else ""
    return short or decimal_near(value, 20).text
