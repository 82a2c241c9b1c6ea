"""What the bounds of chains rest on, a test for each: steps left out, truncation, rounding, signs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from hybrid.base.state_values import StateValues
from hybrid.checking.answer import Answer
from hybrid.checking.arithmetic import apply_arithmetic
from hybrid.matrix.operators.inject import inject
from hybrid.matrix.operators.rounding import step_slack
from mtbdd.offset.offset import row_entries
from tests.builders.matrices import from_dense
from tests.builders.models import build

OPERATIONS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def check(text: str, prop: str, **options: object) -> Answer:
    answer = hybrid.check(build(text), prop, backend="cpu", **options, throw=False)
    assert answer.error is None, answer.error
    return answer


def assert_holds(answer: Answer, exact: Fraction, width: float) -> None:
    """Check that bounds hold a value and are no wider than the precision asked for."""
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper), (answer.lower, float(exact))
    assert answer.upper - answer.lower <= width * abs(float(exact))


# ------------------------------------------------------------------ steps left out

# From 0 half stays, a quarter goes to each of the others: 1 is reached within k steps with (1 - 2^-k) / 2.
SLOW = """
dtmc
module m
  s : [0..2];
  [] s=0 -> 0.5 : (s'=0) + 0.25 : (s'=1) + 0.25 : (s'=2);
  [] s>0 -> true;
endmodule
rewards s=0 : 1; endrewards
rewards "where" s=1 : 1; endrewards
"""


@pytest.mark.parametrize("steps", [40, 60, 100])
@pytest.mark.parametrize("epsilon", [1e-3, 1e-6])
def test_steps_that_are_left_out_are_part_of_the_bounds(steps: int, epsilon: float) -> None:
    """The iterate has nearly settled, and is still further from its end than rounding explains."""
    exact = (1 - Fraction(1, 2**steps)) / 2
    for prop, value in {
        f"P=? [ F<={steps} s=1 ]": exact,
        f'R{{"where"}}=? [ I={steps} ]': exact,
        f"R{{1}}=? [ C<={steps} ]": 4 * exact,
    }.items():
        assert_holds(check(SLOW, prop, epsilon=epsilon), value, epsilon)


def test_steps_of_choices_are_left_out_as_those_of_chains_are() -> None:
    slower = "[] s=0 -> 0.75 : (s'=0) + 0.125 : (s'=1) + 0.125 : (s'=2);\n  [] s>0"
    text = SLOW.replace("dtmc", "mdp").replace("[] s>0", slower)
    for steps in (40, 1000):
        exact = (1 - Fraction(1, 2**steps)) / 2
        for prop in (f"Pmax=? [ F<={steps} s=1 ]", f'R{{"where"}}max=? [ I={steps} ]'):
            answer = check(text, prop, epsilon=1e-3)
            assert_holds(answer, exact, 1e-3)
            assert answer.statistics.products < 40


def exponential(x: Fraction) -> Fraction:
    """exp(-x) to more than 40 digits."""
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 300):
        term *= Fraction(x, k)
        total += term
    return 1 / total


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6])
@pytest.mark.parametrize("time", [1, 20, 30])
def test_truncated_and_settled_sums_over_time_are_part_of_the_bounds(time: int, epsilon: float) -> None:
    """From 0 one leaves at rate 2, half of the times to 1: an exponential distribution."""
    text = """
    ctmc
    module m
      s : [0..2];
      [] s=0 -> 1 : (s'=1) + 1 : (s'=2);
    endmodule
    rewards s=0 : 2; endrewards
    """
    left = 1 - exponential(Fraction(2 * time))
    assert_holds(check(text, f"P=? [ F<={time} s=1 ]", epsilon=epsilon), left / 2, epsilon)
    assert_holds(check(text, f"R=? [ C<={time} ]", epsilon=epsilon), left, epsilon)


# ------------------------------------------------------------------ rounding of steps

# Odd numbers over 2^20 with exact doubles; products of several of them are not.
ODD = """
dtmc
module m
  s : [0..3];
  [] s=0 -> 349525/1048576 : (s'=0) + 349527/1048576 : (s'=1) + 349524/1048576 : (s'=3);
  [] s=1 -> 699051/1048576 : (s'=0) + 349525/1048576 : (s'=2);
  [] s>1 -> true;
endmodule
"""


def reached(steps: int) -> Fraction:
    a, b, c, d = (Fraction(n, 2**20) for n in (349525, 349527, 699051, 349525))
    x, y = Fraction(0), Fraction(0)
    for _ in range(steps):
        x, y = a * x + b * y, c * x + d
    return x


@pytest.mark.parametrize("steps", [2, 3, 4, 5, 6, 7, 8, 9, 10])
def test_every_step_adds_its_rounding_to_the_bounds(steps: int) -> None:
    answer = check(ODD, f"P=? [ F<={steps} s=2 ]", epsilon=1e-12)
    assert_holds(answer, reached(steps), 1e-12)
    assert answer.lower < answer.upper


@pytest.mark.parametrize("steps", [60, 150, 300, 450])
def test_the_rounding_of_many_steps_adds_up(steps: int) -> None:
    """A course that does not settle: bounds of a unit or two would not hold its value."""
    stay, cross, back, rest = 1048111, 331, 547, 2**20 - 331 - 547
    text = f"""
    dtmc
    module m
      s : [0..2];
      [] s=0 -> {stay}/1048576 : (s'=0) + {1048576 - stay}/1048576 : (s'=1);
      [] s=1 -> {back}/1048576 : (s'=0) + {rest}/1048576 : (s'=1) + {cross}/1048576 : (s'=2);
      [] s=2 -> true;
    endmodule
    """
    a, b, c = (Fraction(n, 2**20) for n in (stay, back, cross))
    x, y = Fraction(0), Fraction(0)
    for _ in range(steps):
        x, y = a * x + (1 - a) * y, b * x + (1 - b - c) * y + c
    assert_holds(check(text, f"P=? [ F<={steps} s=2 ]"), x, 1e-11)
    # It is not taken for settled if differences count as they are, either.
    answer = check(text, f"P=? [ F<={steps} s=2 ]", absolute=True, epsilon=1e-9, method="optimistic")
    assert_holds(answer, x, 1e-9 / float(x))


def test_the_fixed_point_lies_between_bounds_of_any_width() -> None:
    a, b, c, d = (Fraction(n, 2**20) for n in (349525, 349527, 699051, 349525))
    exact = b * d / (1 - a - b * c)
    for epsilon in (1e-2, 1e-5, 1e-9, 1e-13):
        for method in ("optimistic", "interval"):
            answer = check(ODD, "P=? [ F s=2 ]", epsilon=epsilon, method=method)
            assert_holds(answer, exact, max(epsilon, 1e-12))


# ------------------------------------------------------------------ next steps


# lemma: graph
def test_certain_next_steps_are_exactly_one_and_impossible_ones_zero() -> None:
    text = "dtmc module m s:[0..3]; [] s=0 -> 0.1:(s'=1) + 0.2:(s'=2) + 0.7:(s'=3); [] s>0 -> true; endmodule"
    for prop, value in (("P=? [ X s>0 ]", 1.0), ("P=? [ X s=0 ]", 0.0)):
        answer = check(text, prop)
        assert (answer.lower, answer.upper) == (value, value)
    answer = check(text, "P=? [ X s<3 ]")
    assert answer.lower < answer.upper
    assert answer.lower <= 0.3 <= answer.upper


# ------------------------------------------------------------------ rewards of both signs

GIVING = """
dtmc
module m
  s : [0..3];
  [] s=0 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=1 -> (s'=3);
  [] s=2|s=3 -> true;
endmodule
rewards "inside" s=1 : -1; endrewards
rewards "before" s=0 : -1; endrewards
"""


def test_losing_rewards_inside_the_target_do_not_matter() -> None:
    """The set may be missed, which is worth infinitely much; what is lost in it is not earned before it."""
    assert check(GIVING, 'R{"inside"}=? [ F s=1 ]').value == math.inf


def test_losing_rewards_before_a_set_that_may_be_missed_are_refused() -> None:
    answer = hybrid.check(build(GIVING), 'R{"before"}=? [ F s=1 ]', backend="cpu", throw=False)
    assert answer.value is None
    assert "rewards below zero" in str(answer.error)


def test_gains_and_losses_are_bounded_apart() -> None:
    """Their difference is much smaller than either, and both have rounding errors of their own."""
    text = """
    dtmc
    module m
      s : [0..2];
      [] s=0 -> 349525/1048576 : (s'=0) + 699051/1048576 : (s'=1);
      [] s=1 -> 699051/1048576 : (s'=1) + 349525/1048576 : (s'=2);
      [] s=2 -> true;
    endmodule
    rewards s=0 : 699051; s=1 : -349524; endrewards
    """
    exact = Fraction(2**20) * (1 - Fraction(349524, 349525))
    answer = check(text, "R=? [ F s=2 ]")
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 1e-1


# ------------------------------------------------------------------ arithmetic on results


@pytest.mark.parametrize("operator", OPERATIONS)
def test_bounds_of_results_are_rounded_outward(operator: str) -> None:
    rng = np.random.default_rng(7100)
    sides = []
    for _ in range(2):
        low = rng.random(400) + 0.1
        high = low * (1 + rng.choice([2.0**-50, 1e-9, 0.1], 400))
        sides.append(StateValues(0.5 * (low + high), low, high))
    a, b = sides
    found = apply_arithmetic(operator, a, b)
    exact = OPERATIONS[operator]
    for i in range(400):
        corners = [
            exact(Fraction(float(x)), Fraction(float(y)))
            for x in (a.lower[i], a.upper[i])
            for y in (b.lower[i], b.upper[i])
        ]
        assert Fraction(float(found.lower[i])) <= min(corners)
        assert Fraction(float(found.upper[i])) >= max(corners)


def test_products_of_bounds_of_both_signs_take_all_corners() -> None:
    a = StateValues(np.array([0.5, -0.5]), np.array([-1.0, -2.0]), np.array([2.0, 1.0]))
    b = StateValues(np.array([0.0, 0.0]), np.array([-3.0, -3.0]), np.array([1.0, 1.0]))
    found = apply_arithmetic("*", a, b)
    np.testing.assert_allclose(found.lower, [-6.0, -3.0], rtol=1e-15)
    np.testing.assert_allclose(found.upper, [3.0, 6.0], rtol=1e-15)
    assert (found.lower <= [-6.0, -3.0]).all()
    assert (found.upper >= [3.0, 6.0]).all()


def test_quotients_by_bounds_around_zero_have_no_bounds() -> None:
    one = StateValues(np.ones(3), np.full(3, 0.9), np.full(3, 1.1))
    around = StateValues(np.ones(3), np.array([-1.0, 0.0, 0.5]), np.array([1.0, 1.0, 1.0]))
    found = apply_arithmetic("/", one, around)
    for side in (found.lower, found.upper):
        assert not np.isfinite(side[:2]).all() or (found.upper[:2] - found.lower[:2] > 1e300).all()
    assert found.lower[2] <= 0.9 and found.upper[2] >= 2.2


# ------------------------------------------------------------------ sums of many terms


@pytest.mark.parametrize("count", [49, 97])
def test_sums_of_many_probabilities_are_off_by_as_many_roundings(count: int) -> None:
    """The numbers of the text: k times 1 / count."""
    parts = " + ".join(f"1/{count} : (s'={t})" for t in range(1, count + 1))
    model = build(f"dtmc module m s:[0..{count}]; [] s=0 -> {parts}; [] s>0 -> true; endmodule")
    for k in range(1, count, 5):
        answer = hybrid.check(model, f"P=? [ X s>0 & s<={k} ]", backend="cpu")
        assert_holds(answer, Fraction(k, count), 1e-12)
        answer = hybrid.check(model, f"P=? [ F s>0 & s<={k} ]", backend="cpu")
        assert_holds(answer, Fraction(k, count), 1e-7)


@pytest.mark.parametrize("size", [1, 7, 40, 100])
def test_the_slack_of_a_step_grows_with_the_entries_of_a_row(size: int) -> None:
    rng = np.random.default_rng(7200 + size)
    dense = np.where(rng.random((size, size)) < 0.5, rng.random((size, size)), 0.0)
    dense[size // 2] = rng.random(size) + 0.1
    matrix = from_dense(dense)
    assert row_entries(matrix) >= size
    assert row_entries(from_dense(np.eye(size))) == 1
    assert step_slack(inject(matrix, backend="cpu"), 4) >= (size + 4) * 2.0**-53


# ------------------------------------------------------------------ bounds of bounds

# Into a cycle of three with probability 2/5, or into one of two; each with an average of its own.
CYCLES = """
dtmc
module m
  s : [0..5];
  [] s=0 -> 0.25 : (s'=0) + 0.3 : (s'=1) + 0.45 : (s'=4);
  [] s=1 -> 0.5 : (s'=1) + 0.5 : (s'=2);
  [] s=2 -> 0.75 : (s'=3) + 0.25 : (s'=2);
  [] s=3 -> 0.125 : (s'=3) + 0.875 : (s'=1);
  [] s=4 -> 0.75 : (s'=4) + 0.25 : (s'=5);
  [] s=5 -> 0.5 : (s'=4) + 0.5 : (s'=5);
endmodule
rewards "all" s=1 : 3; s=2 : 1; s=4 : 5; endrewards
rewards "both" s=1 : 3; s=2 : -1; s=4 : -5; endrewards
"""


def cycle_average(gains: dict[int, int]) -> Fraction:
    stays = {1: Fraction(2), 2: Fraction(4, 3), 3: Fraction(8, 7), 4: Fraction(4), 5: Fraction(2)}
    averages = []
    for members in ((1, 2, 3), (4, 5)):
        total = sum(stays[s] for s in members)
        averages.append(sum(stays[s] * gains.get(s, 0) for s in members) / total)
    return Fraction(2, 5) * averages[0] + Fraction(3, 5) * averages[1]


@pytest.mark.parametrize("epsilon", [1e-2, 1e-4, 1e-8])
def test_averages_of_several_components_lie_between_bounds_made_of_bounds(epsilon: float) -> None:
    for name, gains in (("all", {1: 3, 2: 1, 4: 5}), ("both", {1: 3, 2: -1, 4: -5})):
        answer = check(CYCLES, f'R{{"{name}"}}=? [ S ]', epsilon=epsilon)
        exact = cycle_average(gains)
        assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
        assert answer.upper - answer.lower <= 10 * epsilon * abs(float(exact))
    answer = check(CYCLES, "S=? [ s=2|s=5 ]", epsilon=epsilon)
    assert Fraction(answer.lower) <= cycle_average({2: 1, 5: 1}) <= Fraction(answer.upper)


# lemma: classes
@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
@pytest.mark.parametrize("method", ["auto", "interval", "optimistic"])
@pytest.mark.parametrize("reward", ["1e-200", "-1e-200", "1e-300"])
def test_averages_of_components_entered_at_rates_that_underflow_are_not_zero(
    engine: str, method: str, reward: str
) -> None:
    """The product of the rate into a component and of its average is no double above zero."""
    text = f"""
    ctmc
    module m
      s : [0..3];
      [] s=0 -> 1e-200 : (s'=1) + 1 : (s'=2) + 1 : (s'=3);
      [] s=3 -> 1 : (s'=0);
      [] s=1 | s=2 -> 1 : true;
    endmodule
    rewards s=1 : {reward}; endrewards
    """
    answer = check(text, "R=? [ S ]", engine=engine, method=method)
    exact = Fraction(reward) / (1 + 10**200)
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= 2e-290


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-9])
def test_windows_take_upper_bounds_to_upper_bounds(epsilon: float) -> None:
    """What follows a window's begin has bounds that are far apart."""
    a, b, c, d = (Fraction(n, 2**20) for n in (349525, 349527, 699051, 349525))
    x = b * d / (1 - a - b * c)
    after = {0: x, 1: c * x + d, 2: Fraction(1)}
    for _ in range(3):
        after = {0: a * after[0] + b * after[1], 1: c * after[0] + d * after[2], 2: Fraction(1)}
    answer = check(ODD, "P=? [ F>=3 s=2 ]", epsilon=epsilon)
    assert Fraction(answer.lower) <= after[0] <= Fraction(answer.upper)
    assert answer.upper - answer.lower <= max(2 * epsilon, 1e-12)


@pytest.mark.parametrize("epsilon", [1e-2, 1e-5, 1e-9])
def test_differences_take_what_is_lost_at_most_from_what_is_gained_at_least(epsilon: float) -> None:
    text = ODD + "rewards s=0 : 3; s=1 : -2; endrewards"
    a, b, c, _ = (Fraction(n, 2**20) for n in (349525, 349527, 699051, 349525))
    zero = 1 / (1 - a - b * c)  # visits of 0, each followed by b visits of 1
    answer = check(text, "R=? [ F s>1 ]", epsilon=epsilon)
    assert Fraction(answer.lower) <= (3 - 2 * b) * zero <= Fraction(answer.upper)
