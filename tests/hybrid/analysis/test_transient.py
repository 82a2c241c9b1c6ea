"""Bounds of what a CTMC earns in times so short that hardly anything happens, against exact series."""

from __future__ import annotations

from fractions import Fraction
from math import factorial

import pytest

import hybrid
from tests.builders.models import build

# Two events of rate 1, one after the other; the reward is that of the third state.
TWO_EVENTS = """
ctmc
module m
  x : [0..2] init 0;
  [] x<2 -> 1:(x'=x+1);
endmodule
rewards "late"
  x=2 : 9e290;
endrewards
"""


def late_reward(time: Fraction) -> Fraction:
    """The integral of ``1 - (1 + s) exp(-s)`` up to a time below 1, times the rate of the reward."""
    terms = (Fraction((-1) ** k * (k - 1), factorial(k)) * time ** (k + 1) / (k + 1) for k in range(2, 20))
    return Fraction(9 * 10**290) * sum(terms)


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
@pytest.mark.parametrize("time", ["1.1e-12", "1e-10", "3e-9", "1e-8", "1e-6", "1e-4", "0.01"])
def test_rewards_of_what_hardly_happens(time: str, engine: str) -> None:
    answer = hybrid.check(build(TWO_EVENTS), f'R{{"late"}}=? [ C<={time} ]', backend="cpu", engine=engine)
    exact = late_reward(Fraction(time))
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 2e-8 * answer.value


# A ring that loses a part on every round: from 1e-323 on rounding keeps what is left from becoming zero.
RING = """
dtmc
module m
  s : [0..5] init 2;
  [] s<4 -> (s'=s+1);
  [] s=4 -> 0.382:(s'=5) + 0.618:(s'=0);
  [] s=5 -> true;
endmodule
"""


def test_steps_end_where_only_the_least_doubles_change() -> None:
    answer = hybrid.check(build(RING), "P=? [ F=10000000 (s=1) ]", backend="cpu", epsilon=1e-12)
    assert answer.statistics.iterations < 50_000
    assert answer.lower == 0.0 and 0.0 < answer.upper < 1e-290
