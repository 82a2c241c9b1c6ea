"""Averages of end components: one step of any vector bounds them, whatever the step is off by."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hybrid.matrix.gpu.device_space import DeviceSpace
from hybrid.matrix.operators.device_choices import refuse_product
from hybrid.matrix.operators.hybrid_choices import EmptyMatrix
from hybrid.matrix.space.choice_operator import ChoiceOperator, ChoiceProblem
from hybrid.matrix.space.host import HostSpace
from hybrid.solvers import Criterion, Status
from hybrid.solvers.component_averages import AverageIteration
from tests.gpu_kernels.host_device import HostDevice

Rows = list[list[tuple[float, list[float]]]]


class Perturbed(ChoiceOperator):
    """Choices written out densely, whose steps are off by all that they may be off by."""

    def __init__(
        self,
        rows: list[list[tuple[float, list[float]]]],
        maximise: bool,
        slack: float,
        lost: float,
        on_device: bool = False,
    ):
        size = len(rows)
        space = DeviceSpace(HostDevice(), refuse_product) if on_device else HostSpace(EmptyMatrix(size))
        super().__init__(ChoiceProblem(size, maximise, None, slack), space)
        self.underflow, self._rows, self._rng = lost, rows, np.random.default_rng(1)

    def exact(self, x: np.ndarray) -> list[Fraction]:
        """The values of a step, without errors."""
        pick = max if self.maximise else min
        known = [Fraction(v) for v in x.tolist()]
        return [
            pick(
                Fraction(r) + sum(Fraction(p) * v for p, v in zip(row, known, strict=True)) for r, row in own
            )
            for own in self._rows
        ]

    def improve(self, x: Any, out: Any, factor: float = 1.0, **_: Any) -> None:
        true = np.array([float(v) for v in self.exact(x)])
        sign = self._rng.choice([-1.0, 1.0], self.size)
        out[...] = factor * (true * (1.0 + 0.99 * sign * self.slack) + 0.99 * sign * self.underflow)

    def _best(self, *_: Any) -> None:
        raise NotImplementedError

    def _choices(self, x: Any) -> Any:
        raise NotImplementedError

    def _finish(self, *_: Any) -> None:
        raise NotImplementedError


ROWS = [
    [(1.0, [0.5, 0.5, 0.0]), (3.0, [0.0, 0.25, 0.75])],
    [(2.0, [0.0, 0.0, 1.0])],
    [(0.0, [0.25, 0.75, 0.0]), (5.0, [1.0, 0.0, 0.0])],
]


# lemma: end-component-averages, directed-steps, underflow
@pytest.mark.parametrize(("slack", "lost"), [(0.01, 0.0), (1e-9, 0.05), (0.02, 0.01)])
@pytest.mark.parametrize("maximise", [False, True])
@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_what_a_step_is_off_by_is_taken_off_the_bounds(
    on_device: bool, maximise: bool, slack: float, lost: float
) -> None:
    """Of vectors of both signs, too: a step over numbers below zero would be off in the other direction."""
    rng = np.random.default_rng(7)
    for k in range(40):
        operator = Perturbed(ROWS, maximise, slack, lost, on_device)
        method = AverageIteration(
            operator, np.zeros(3, np.int64), np.array([-1e3]), np.array([1e3]), Criterion(1e-6)
        )
        x = rng.normal(0.0, 10.0 ** rng.integers(-2, 3), 3)
        if k == 0:
            x = np.zeros(3)
        exact = [y - Fraction(v) for y, v in zip(operator.exact(x), x.tolist(), strict=True)]
        method._measure(x)
        assert x.min() == 0.0
        # The vector is moved by a constant, which rounds it.
        assert Fraction(float(method._lower[0])) <= min(exact) + Fraction(1e-9)
        assert Fraction(float(method._upper[0])) >= max(exact) - Fraction(1e-9)


class Given(Perturbed):
    """Steps whose results are given."""

    def __init__(self, values: np.ndarray, lost: float, on_device: bool) -> None:
        super().__init__([[(0.0, [0.0] * values.size)]] * values.size, True, 0.0, lost, on_device)
        self._values = values

    def improve(self, x: Any, out: Any, factor: float = 1.0, **_: Any) -> None:
        out[...] = self._values


# lemma: end-component-averages
@pytest.mark.parametrize("lost", [0.0, 2.0**-54])
@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_differences_are_rounded_outward(on_device: bool, lost: float) -> None:
    rng = np.random.default_rng(11)
    for _ in range(200):
        x, y = rng.random(4) * 10.0 ** rng.integers(-9, 1, 4), rng.random(4)
        component = np.array([0, 0, 1, 1])
        x -= np.repeat([x[:2].min(), x[2:].min()], 2)
        operator = Given(y, lost, on_device)
        method = AverageIteration(operator, component, np.full(2, -9.0), np.full(2, 9.0), Criterion())
        method._measure(x)
        exact = [Fraction(a) - Fraction(b) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
        for k in range(2):
            own = exact[2 * k : 2 * k + 2]
            assert Fraction(float(method._lower[2 * k])) <= min(own) - Fraction(lost)
            assert Fraction(float(method._upper[2 * k])) >= max(own) + Fraction(lost)


# lemma: end-component-averages
@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("on_device", [False, True], ids=["host", "device"])
def test_a_step_that_overflows_tells_nothing(on_device: bool, value: float) -> None:
    operator = Given(np.array([value, value, 3.0, 2.0]), 0.0, on_device)
    component = np.array([0, 0, 1, 1])
    method = AverageIteration(operator, component, np.full(2, -9.0), np.full(2, 9.0), Criterion())
    with np.errstate(invalid="ignore"):
        method._measure(np.zeros(4))
    lower, upper = method._lower.tolist(), method._upper.tolist()
    assert (lower[0], upper[0]) == (-9.0, 9.0)
    assert 2.0 - 1e-14 < lower[2] <= 2.0 and 3.0 <= upper[2] < 3.0 + 1e-14


@pytest.mark.parametrize("slack", [1e-12, 1e-2])
def test_iterations_end_where_rounding_keeps_bounds_apart(slack: float) -> None:
    operator = Perturbed(ROWS, True, slack, 0.0)
    method = AverageIteration(operator, np.zeros(3, np.int64), np.zeros(1), np.full(1, 5.0), Criterion(1e-15))
    found = method.solve()
    assert found.status is (Status.CONVERGED if slack < 1e-6 else Status.NO_BOUND)
    # The third state's second choice and the first one's second: 3, 5 and 2 in turn.
    assert found.lower[0] <= found.upper[0] <= found.lower[0] + 1e3 * slack
