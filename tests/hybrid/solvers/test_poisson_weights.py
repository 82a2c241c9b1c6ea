"""Poisson weights at their borders: means so small that hardly anything happens."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hybrid
from hybrid.solvers.poisson import poisson_weights

NORMAL = 2.0**-1022


@pytest.mark.parametrize("mean", [1e-248, 1e-160, 1e-100, 1e-9, 0.5])
def test_the_probability_that_anything_happens_keeps_its_digits(mean):
    above = poisson_weights(mean).above()
    # 1 - exp(-mean) lies between mean - mean^2 / 2 and mean.
    assert mean * (1 - mean / 2) * (1 - 1e-13) <= above[0]
    assert above[0] <= mean * (1 + 1e-13)


@pytest.mark.parametrize("mean", [1e-300, 4e-160, 1e-100])
def test_weights_without_digits_belong_to_the_tail(mean):
    found = poisson_weights(mean)
    assert found.weights.min() > NORMAL
    tail = Fraction(mean) ** (found.right + 1)
    for factor in range(1, found.right + 2):
        tail /= factor
    assert Fraction(found.right_tail) >= tail
    assert Fraction(found.excess) >= tail


def test_rewards_over_a_time_that_is_no_double_lie_within_their_bounds(tmp_path):
    path = tmp_path / "short.prism"
    path.write_text("ctmc module m s:[0..1] init 1; [] s=1 -> 6e-100:(s'=0); [] s=0 -> 1:(s'=1); endmodule\n")
    path.write_text(path.read_text() + "rewards s=1 : 0.5; endrewards")
    answer = hybrid.check(hybrid.load(path), "R=? [ C<=1.7e-149 ]")
    exact = Fraction(1, 2) * Fraction("1.7e-149")  # less the chance to leave, 1e-248 of it
    assert Fraction(answer.lower) <= exact * (1 - Fraction(1, 10**200))
    assert Fraction(answer.upper) >= exact
    assert answer.upper - answer.lower < 1e-10 * answer.upper
