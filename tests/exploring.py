"""How many cases random tests draw: fewer in `make test`, more than their own settings in `make nightly`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import hypothesis

__all__ = ["half", "halve_examples", "multiply_examples", "rounds", "some_of", "taken_in_turn"]

_SHARE = 3

T = TypeVar("T")


def rounds(count: int) -> int:
    """Return how many of so many random cases a loop draws: a third, and all where a seed is asked for.

    So `make test`, whose cases are always the same, draws the first third of those of its seed; `make seeds`
    and `make nightly` draw all.
    """
    return count if os.environ.get("HYBRID_TEST_SEED") else -(-count // _SHARE)


def half(count: int) -> int:
    """Return how many of so many cases that take long are drawn: half, and all where a seed is asked for."""
    return count if os.environ.get("HYBRID_TEST_SEED") else -(-count // 2)


def taken_in_turn(values: Sequence[T], turn: int, count: int = 2) -> list[T]:
    """Return so many of some values, others at every turn; all where a seed is asked for.

    Cases that would be a full product share the values among them: as many turns as there are values have
    each value `count` times.
    """
    if os.environ.get("HYBRID_TEST_SEED"):
        return list(values)
    step = 2 if len(values) % 2 else 1
    return [values[(turn + step * k) % len(values)] for k in range(min(count, len(values)))]


def some_of(cases: Iterable[T], step: int, first: int = 0) -> list[T]:
    """Return every so many-th of some cases that show much the same; all where a seed is asked for."""
    return list(cases) if os.environ.get("HYBRID_TEST_SEED") else list(cases)[first::step]


def halve_examples(function: Any) -> None:
    """Let a test of Hypothesis draw half as many examples as its settings say, and all with a seed."""
    own: hypothesis.settings = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = hypothesis.settings(own, max_examples=half(own.max_examples))


def multiply_examples(function: Any, times: int) -> None:
    """Let a test of Hypothesis draw so many times as many examples as its settings say, and keep failures.

    The profile's database comes back, which a seed has taken away.
    """
    own: hypothesis.settings = function._hypothesis_internal_use_settings
    function._hypothesis_internal_use_settings = hypothesis.settings(
        own, max_examples=times * own.max_examples, database=hypothesis.settings.default.database
    )
