"""Solutions that a benchmark repeats, stops or extrapolates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import hybrid
from benchmarks.library.repeated_solves import LinearTrial, WarmThenCounted, WithinSeconds, answer
from hybrid.matrix.space.base import Solution
from hybrid.properties import load_properties, resolve_properties
from hybrid.solvers import Criterion, Status
from tests.benchmarks.support import ROOT


@dataclass(frozen=True)
class Invented:
    """A method that takes a second for every iteration, and needs 500 of them."""

    criterion: Criterion = Criterion()
    runs: list[int] = field(default_factory=list)
    needed: int = 500

    def solve(self, *operands: Any) -> Solution:
        made = min(self.needed, self.criterion.max_iterations)
        self.runs.append(made)
        status = Status.CONVERGED if made == self.needed else Status.MAX_ITERATIONS
        return Solution(np.ones(1), status, made, 1.0 * made, 0.1, 0.0)


OPERANDS = (None, np.ones(1), None, np.ones(1))


@pytest.mark.parametrize(
    ("seconds", "needed", "made", "status"),
    [
        (500.0, 500, [10, 500], Status.CONVERGED),
        (499.0, 500, [10, 49], Status.MAX_ITERATIONS),
        (1.0, 500, [10, 20], Status.MAX_ITERATIONS),
        # A short solution is not made twice.
        (0.0, 7, [7], Status.CONVERGED),
    ],
)
def test_a_solution_within_seconds(seconds: float, needed: int, made: list[int], status: Status) -> None:
    method = Invented(needed=needed)
    found = WithinSeconds(seconds, expected=needed)(LinearTrial(method, OPERANDS))
    assert (method.runs, found.status) == (made, status)


def test_a_warm_run_goes_before_and_does_not_count() -> None:
    method, trial = Invented(), WarmThenCounted(40)
    assert trial(LinearTrial(method, OPERANDS)).iterations == 500
    assert trial.again() == 500.0
    assert method.runs == [40, 500, 500]


def test_an_answer_is_that_of_a_plain_check() -> None:
    model = hybrid.load(ROOT / "examples" / "kanban.prism", {"t": 1})
    prop = resolve_properties(load_properties(ROOT / "examples" / "kanban.props"), model.source).properties[0]
    plain = hybrid.check(model, prop.text, backend="cpu", method="jor")
    trial = WarmThenCounted(3)
    found = answer(model, prop, trial, backend="cpu", method="jor")
    assert found.value == plain.value
    assert found.statistics.iterations == plain.statistics.iterations
    assert len(trial.systems) == 1
    assert trial.warm_seconds > 0
    with pytest.raises(ValueError, match="expected a method without bounds"):
        answer(model, prop, trial, backend="cpu")
