"""Products that are told are those that were made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.matrix.operators.explicit_choices import ExplicitChoices
from hybrid.matrix.space.bounded_solution import UNIT
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.solvers import AverageReward, BiCGStab, Criterion, Interval, Jacobi, Optimistic, Power
from tests.builders.linear_systems import Dense, linear_system
from tests.builders.mdp_texts import SLOW_WAY
from tests.builders.models import build

SLACK = 64 * UNIT
PASSING = "Pmin=? [ true U<=30 x=2 ]"


class Counting(Dense):
    """Counts its products."""

    made = 0

    def multiply(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        self.made += 1
        return super().multiply(x, out)


@pytest.mark.parametrize("method", [Jacobi(), Jacobi(Criterion(), 0.8), BiCGStab(), Power()])
def test_of_methods_without_bounds(rng: np.random.Generator, method: Jacobi | BiCGStab | Power) -> None:
    dense, diagonal, b = linear_system(rng)
    matrix = Counting(dense)
    found = method.solve(matrix, diagonal, b, np.zeros_like(b))
    assert found.products == matrix.made > found.iterations


@pytest.mark.parametrize("method", [Optimistic(), Interval(), Interval(Criterion(1e-3, True))])
@pytest.mark.parametrize("upper_bound", [None, 1000.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_of_methods_with_bounds(
    rng: np.random.Generator, method: Optimistic | Interval, upper_bound: float | None, sparse: bool
) -> None:
    dense, diagonal, b = linear_system(rng)
    if sparse:
        b[3:] = 0.0  # zeros: the graph is searched as well
        dense[:, 20:] = 0.0
    matrix = Counting(dense)
    found = method.solve(matrix, diagonal, b, SLACK, upper_bound)
    assert found.products == matrix.made > found.iterations


def test_of_averages(rng: np.random.Generator) -> None:
    rates = rng.integers(1, 9, (8, 8)) / 8.0
    np.fill_diagonal(rates, 0.0)
    matrix = Counting(rates)
    found = AverageReward().solve(matrix, rates.sum(axis=1), rng.random(8), SLACK)
    assert found.products == matrix.made > found.iterations


@pytest.mark.parametrize("method", ["auto", "interval", "optimistic", "jacobi"])
@pytest.mark.parametrize(
    "prop", ["Pmax=? [ F x=2 ]", "Pmin=? [ F x=2 ]", 'R{"tries"}min=? [ F x>=2 ]', PASSING]
)
def test_of_choices(monkeypatch: pytest.MonkeyPatch, method: str, prop: str) -> None:
    made = []
    monkeypatch.setattr("hybrid.solvers.direct_bounds.FEW", 0)  # solutions by factors count as products
    for name in ("improve", "choose"):
        original = getattr(ChoiceOperator, name)

        def counting(self: ChoiceOperator, *args: Any, _original: Any = original, **options: Any) -> Any:
            made.append(1)
            return _original(self, *args, **options)

        monkeypatch.setattr(ChoiceOperator, name, counting)
    running: list[None] = []  # steps of compiled code, or those of the class in their place
    for kind in (ChoiceOperator, ExplicitChoices):
        steps = kind.improve_repeatedly

        def several(self: Any, pair: Any, done: int, count: int, how: Any, _steps: Any = steps) -> None:
            made.extend([1] * (0 if running else count))
            running.append(None)
            _steps(self, pair, done, count, how)
            running.pop()

        monkeypatch.setattr(kind, "improve_repeatedly", several)
    answer = hybrid.check(build(SLOW_WAY), prop, method="auto" if prop == PASSING else method)
    assert answer.statistics.products == len(made) > 0
    assert answer.record()["products"] == len(made)
