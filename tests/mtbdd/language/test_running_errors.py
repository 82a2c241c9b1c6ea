"""Running errors, operator by operator: what doubles leave out is told before anything is put right."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mtbdd.language.enclosing import Approximation, RunningErrors
from mtbdd.language.evaluate import evaluate
from mtbdd.language.expression_parser import parse_expression
from mtbdd.language.reals import bounds, real_of

X = np.arange(1, 8)
TENTH = f"{Decimal(0.1)}"
"""The double next to 0.1, as it is: no error but that of what is made of it."""
THIRD = f"{Decimal(1 / 3)}"
HALF = f"{Decimal(0.49999999999999994)}"
"""Less than a half; a half added to it is one, in doubles."""
SMALL = f"{Decimal(2.0**-1060):e}"
NOTHING = "(0.1*x - 0.30000000000000004)"
"""At three this is zero in doubles, and less on paper."""
HARDLY = "(0.1*x - 0.3)"
"""At three this is more than zero in doubles, and zero on paper."""


def computed(text: str) -> tuple[Approximation, list[Any]]:
    """A value in doubles for every x, and the numbers that are meant."""
    expression = parse_expression(text)
    with np.errstate(all="ignore"):
        found = RunningErrors({"x": X})(expression)
    return found, [evaluate(expression, {"x": x}) for x in X.tolist()]


# lemma: interval-sum
@pytest.mark.parametrize(
    "text",
    [
        "0.1*x",
        "0.1 + 0.7*x",
        f"{TENTH} + {THIRD} + x/8",
        f"{TENTH} - {THIRD}*x",
        f"{TENTH}*{THIRD} + 0*x",
        f"{TENTH}*x*{THIRD}",
        f"{TENTH}/{THIRD} + 0*x",
        f"x/{THIRD}",
        f"{SMALL}*{THIRD}*x",
        "x*1e-200*1e-150",
        "x*1e-200/1e150",
        NOTHING,
        HARDLY,
        f"{NOTHING}*{NOTHING}",
        f"{NOTHING}*7.3",
        f"7.3*{NOTHING}",
        f"{HARDLY}*{HARDLY}*x",
        f"{HARDLY}/7",
        f"{NOTHING}/7",
        f"7 / (3 + {NOTHING})",
        "1 / (1 - x*0.0999999999)",
        f"7.3 / (0.5 + {HARDLY})",
        f"{HARDLY} + {NOTHING}",
        f"{HARDLY} - {NOTHING}",
        f"-{HARDLY}",
        f"max({HARDLY}, {NOTHING})",
        f"max(1e-30, {HARDLY})",
        f"min({HARDLY}, 1e-30, {NOTHING})",
        f"x > 2 ? {HARDLY} : 2",
        "9007199254740993*x + 0.1",
        "9007199254740992.0 + 1.0*x",
        "3.0*3002399751580331.0 + 0*x",
        "9007199254740990.0*x - 1.5",
        f"pow({TENTH}, 2) + 0*x",
        "pow(1 - x*0.0999999999, 3)",
        "pow(2, 0.1*x)",
        "pow(x, 0.5) * 1.0",
        "log(2 + 0.1*x, 3)",
        f"log(2 + {HARDLY}, 7)",
        "log(1.0000000001 - 0.1428571428*x, 3)",
    ],
)
def test_numbers_are_within_their_running_errors(text: str) -> None:
    found, exact = computed(text)
    values, errors = (np.broadcast_to(part, X.shape).tolist() for part in (found.value, found.error))
    for value, error, wanted in zip(values, errors, exact, strict=True):
        if error == np.inf or not np.isfinite(value):
            continue
        low, high = bounds(real_of(wanted))
        assert max(abs(Fraction(value) - low), abs(Fraction(value) - high)) <= Fraction(error)


@pytest.mark.parametrize(
    "text",
    [
        "0.1*x <= 0.3",
        "0.1*x = 0.3",
        f"{NOTHING} >= 0",
        f"{HARDLY} > 0",
        "floor(0.1*x/0.3)",
        "ceil(0.1*x*10)",
        f"round({HALF}*x)",
        "round(0.1*x/0.6)",
        "9007199254740993*x > 9007199254740992.0",
        "9007199254740992.0 + 1.0*x > 9007199254740992.0",
        "3.0*3002399751580331.0 + 0*x > 9007199254740992.0",
        "(0.1*x = 0.3 ? 1 : 2)",
    ],
)
def test_what_may_be_decided_otherwise_is_in_doubt(text: str) -> None:
    found, exact = computed(text)
    doubts = np.broadcast_to(found.doubt, X.shape).tolist()
    for value, doubt, wanted in zip(found.value.tolist(), doubts, exact, strict=True):
        assert doubt or value == wanted


@pytest.mark.parametrize(
    "text", ["x/1", "x*0.5", "x + 0.5", "1*x*1.0", f"1*{TENTH} + 0*x", "0*0.1*x", f"0.25*{TENTH}*x"]
)
def test_what_rounds_nothing_is_exact_or_told(text: str) -> None:
    found, exact = computed(text)
    values, errors = (np.broadcast_to(part, X.shape).tolist() for part in (found.value, found.error))
    for value, error, wanted in zip(values, errors, exact, strict=True):
        assert abs(Fraction(value) - real_of(wanted)) <= Fraction(error)
        if "+ 0.5" not in text:
            assert error <= abs(value) * 2.0**-51
