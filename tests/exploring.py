"""Which cases run: pairs of parameters instead of all products, and how many random cases a loop draws."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import hypothesis
import pytest

__all__ = ["each", "is_seeded", "multiply_examples", "pairs", "rounds", "shorten_examples"]

_SHARE = 3


def is_seeded() -> bool:
    """Return whether a seed is asked for, as `make seeds` and `make nightly` do."""
    return bool(os.environ.get("HYBRID_TEST_SEED"))


def rounds(count: int) -> int:
    """Return how many of so many random cases a loop draws: a third, and all where a seed is asked for.

    So `make test`, whose cases are always the same, draws the first third of those of its seed.
    """
    return count if is_seeded() else -(-count // _SHARE)


def each(*parameters: Iterable[Any]) -> list[Any]:
    """Return cases in which each value of each parameter is in some case; a tuple is several parameters.

    As many as the longest has values: for parameters that do not depend on one another.
    """
    lists = [list(values) for values in parameters]
    return [_case([own[k % len(own)] for own in lists]) for k in range(max(map(len, lists)))]


def pairs(*parameters: Iterable[Any]) -> list[Any]:
    """Return cases in which each value of each parameter meets each of every other one.

    Of three parameters and more these are far fewer than their product; few faults need three of them.
    """
    lists = [list(values) for values in parameters]
    columns = list(combinations(range(len(lists)), 2))
    left = list(product(*(range(len(own)) for own in lists)))
    missing = {(i, j, case[i], case[j]) for case in left for i, j in columns}
    found = []
    while missing:
        best = max(left, key=lambda case: sum((i, j, case[i], case[j]) in missing for i, j in columns))
        missing -= {(i, j, best[i], best[j]) for i, j in columns}
        found.append(_case([own[k] for own, k in zip(lists, best, strict=True)]))
    return found


def _case(chosen: list[Any]) -> Any:
    """Return one case of some values, of which each may be a tuple or a `pytest.param` of several."""
    values: list[Any] = []
    marks: list[Any] = []
    for value in chosen:
        values += value.values if hasattr(value, "marks") else value if isinstance(value, tuple) else (value,)
        marks += getattr(value, "marks", ())
    if not any(getattr(value, "id", None) for value in chosen):
        return pytest.param(*values, marks=marks)
    names = (str(getattr(value, "id", None) or getattr(value, "__name__", value)) for value in chosen)
    return pytest.param(*values, marks=marks, id="-".join(names))


def shorten_examples(function: Any) -> None:
    """Let a test of Hypothesis draw a third of the examples of its settings, and all with a seed."""
    own: hypothesis.settings = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = hypothesis.settings(
        own, max_examples=rounds(own.max_examples)
    )


def multiply_examples(function: Any, times: int) -> None:
    """Let a test of Hypothesis draw so many times as many examples as its settings say, and keep failures.

    The profile's database comes back, which a seed has taken away.
    """
    own: hypothesis.settings = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = hypothesis.settings(
        own, max_examples=times * own.max_examples, database=hypothesis.settings.default.database
    )
