"""A trace hears of every look that an iteration takes, and of every solution."""

from __future__ import annotations

import hybrid
from hybrid.solvers.iteration import Trace
from tests.builders.mdp_texts import SLOW_WAY
from tests.builders.models import build


def test_of_every_solution() -> None:
    trace = Trace()
    answer = hybrid.check(
        build(SLOW_WAY), "Pmax=? [ F x=2 ]", epsilon=1e-6, method="interval", progress=trace
    )
    (looks,) = trace.solutions
    iterations = [iteration for iteration, _ in looks]
    assert iterations == sorted(set(iterations))
    # The look that ends an iteration is not told.
    assert 0.5 * answer.statistics.iterations < iterations[-1] < answer.statistics.iterations
    assert 1e-6 < looks[-1][1] < 1e-4
    hybrid.check(build(SLOW_WAY), "Pmin=? [ true U<=40 x=2 ]", progress=trace)
    assert len(trace.solutions) == 2


def test_of_very_many_looks_every_other_one_goes() -> None:
    trace = Trace()
    trace.begin(1e-8, None)
    for iteration in range(100_000):
        trace.observe(iteration, 1.0 / (iteration + 1))
    (looks,) = trace.solutions
    assert 1 << 13 <= len(looks) < 1 << 14
    assert looks[0] == (0, 1.0)
    assert [i for i, _ in looks] == sorted({i for i, _ in looks})
