"""Steps of short vectors that follow one another: nothing but the number of calls changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.matrix.space.base import Clock
from hybrid.matrix.space.host import HostSpace
from hybrid.matrix.space.vector_space import VectorSpace
from hybrid.solvers.iteration import Trace
from tests.builders.linear_systems import Dense, linear_system

CASES: dict[str, tuple[str, dict[str, int], str, Any]] = {
    "until": ("brp", {"N": 16, "MAX": 2}, "P=? [ F s=5 ]", "optimistic"),
    "reward": ("tandem", {"c": 15}, 'R{"customers"}=? [ F sc=c ]', "optimistic"),
    "choices": ("coin", {"K": 2}, 'Pmax=? [ F "all_heads" ]', "optimistic"),
    "steps": ("brp", {"N": 16, "MAX": 2}, "P=? [ F<=90 s=5 ]", "auto"),
    "steps of choices": ("coin", {"K": 2}, 'Pmin=? [ F<=150 "decided" ]', "auto"),
    "steps that settle": ("brp", {"N": 4, "MAX": 2}, "P=? [ F<=9000 s=5 ]", "auto"),
}


@pytest.mark.parametrize("ends", [1, 2, 3, 7, None])
def test_steps_end_with_the_one_that_is_over(rng: np.random.Generator, ends: int | None) -> None:
    dense, diagonal, b = linear_system(rng)
    steps = HostSpace(Dense(dense)).system(diagonal, b).relaxation()
    pair, alone = (np.zeros_like(b), np.zeros_like(b)), (np.zeros_like(b), np.zeros_like(b))
    total, expected = np.zeros_like(b), np.zeros_like(b)
    told: list[tuple[float, float]] = []

    def is_over(absolute: float, relative: float) -> bool:
        told.append((absolute, relative))
        return len(told) == ends

    made = steps.sweep_until(pair, 1, 7, is_over, total)
    assert made == (ends or 7)
    changes = []
    for k in range(1, 1 + made):
        steps.sweep(alone, k, 1, expected)
        changes.append(tuple(steps.changes.tolist()))
    # Nobody asks what the last one that may be made has changed: the caller does.
    assert told == changes[:6]
    assert steps.course.tolist() == [1 + made, *changes[-1]]
    np.testing.assert_array_equal(pair, alone)
    np.testing.assert_array_equal(total, expected)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Yield what would be written to a record whenever the clock is looked at."""
    found: list[Any] = []
    tick = Clock.tick

    def offer(self: Clock, state: Any) -> None:
        self._state = state

    def told(self: Clock, iteration: int, difference: float) -> bool:
        if self._state is not None:
            vectors, numbers = self._state()
            held = {name: np.array(vector) for name, vector in vectors.items() if vector is not None}
            found.append((iteration, held, dict(numbers)))
        return tick(self, iteration, difference)

    monkeypatch.setattr(Clock, "offer", offer)
    monkeypatch.setattr(Clock, "tick", told)
    yield found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_answers_traces_and_records_are_those_of_single_steps(
    name: str, backend: Any, states: list[Any], examples_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, constants, prop, method = CASES[name]
    model = hybrid.load(examples_folder / f"{file}.prism", constants)
    found = []
    for ahead in (None, 1, 5):
        if ahead is not None:
            monkeypatch.setattr(VectorSpace, "steps_ahead", lambda _, __, ahead=ahead: ahead)
        trace = Trace()
        answer = hybrid.check(model, prop, backend=backend, method=method, engine="hybrid", progress=trace)
        work = answer.statistics
        seen = {iteration: (held, numbers) for iteration, held, numbers in states}
        states.clear()
        numbers = answer.value, answer.lower, answer.upper, work.iterations, work.products
        found.append((numbers, trace.solutions, seen))
    (numbers, solutions, seen), *others = found
    assert seen
    for their_numbers, their_solutions, theirs in others:
        assert their_numbers == numbers
        assert their_solutions == solutions
        # Before the first steps are through there is nothing to write.
        for iteration in seen.keys() & theirs.keys():
            np.testing.assert_equal(seen[iteration], theirs[iteration])
