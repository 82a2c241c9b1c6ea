"""Long runs of tiny chains by powers of a dense matrix."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hybrid
from hybrid.analysis import transient as evolution
from hybrid.analysis.transient import FEWEST_STEPS, MOST_STATES, DensePowers, dense_powers_pay
from tests.builders.chain_texts import load_text

# Two states that are left for a third ever so slowly.
LEAK = """
ctmc
const double leak;
module m s : [0..2]; [] s=0 -> 1 : (s'=1); [] s=1 -> 1 : (s'=0) + leak : (s'=2); [] s=2 -> true; endmodule
rewards "alive" s<2 : 1; endrewards
rewards "moves" [] s<2 : 1; endrewards
"""

DRIP = """
dtmc
const double p;
module m s : [0..1]; [] s=0 -> p : (s'=1) + 1-p : (s'=0); [] s=1 -> true; endmodule
rewards "alive" s=0 : 2; endrewards
"""


@pytest.fixture
def small(monkeypatch):
    """Let leaps pay from 20 steps on."""
    monkeypatch.setattr("hybrid.analysis.transient.FEWEST_STEPS", 20)
    monkeypatch.setattr(evolution, "FEWEST_STEPS", 20)


def refuse(states, steps):
    return False


@pytest.mark.parametrize("steps", [0, 1, 2, 7, 64, 1000])
def test_powers_are_steps(steps):
    rng = np.random.default_rng(steps)
    a, c, x = rng.random((4, 4)) / 4, rng.random(4), rng.random(4)
    leaps = DensePowers(a.astype(np.longdouble), c.astype(np.longdouble))
    expected, total = x, np.zeros(4)
    term = x
    for _ in range(steps):
        expected = a @ expected + c
        total, term = total + term, a @ term
    np.testing.assert_allclose(leaps.after(x, steps), expected, rtol=1e-13)
    np.testing.assert_allclose(leaps.added_up(x, steps), total, rtol=1e-13, atol=0)


def test_leaps_are_for_tiny_chains_and_long_ways(monkeypatch):
    assert dense_powers_pay(3, FEWEST_STEPS)
    assert not dense_powers_pay(MOST_STATES + 1, FEWEST_STEPS)
    assert not dense_powers_pay(3, FEWEST_STEPS - 1)
    assert not dense_powers_pay(0, FEWEST_STEPS)
    monkeypatch.setattr("hybrid.analysis.transient._PRECISE", 1e-40)
    assert not dense_powers_pay(3, FEWEST_STEPS)


@pytest.mark.parametrize(
    "prop",
    [
        "P=? [ F<=900 s=2 ]",
        "P=? [ F=900 s=0 ]",
        "P=? [ F[400,900] s=2 ]",
        'R{"alive"}=? [ C<=900 ]',
        'R{"moves"}=? [ C<=900 ]',
        'R{"alive"}=? [ I=900 ]',
    ],
)
def test_leaps_answer_as_steps_do(tmp_path, monkeypatch, small, prop):
    model = load_text(tmp_path, LEAK, constants={"leak": 1e-3})
    leapt = hybrid.check(model, prop)
    with monkeypatch.context() as patch:
        patch.setattr(evolution, "dense_powers_pay", refuse)
        stepped = hybrid.check(model, prop)
    assert leapt.statistics.iterations < stepped.statistics.iterations
    assert leapt.value == pytest.approx(stepped.value, rel=1e-10)
    assert leapt.lower <= stepped.upper
    assert stepped.lower <= leapt.upper
    assert leapt.upper - leapt.lower <= 1e-8 * leapt.value


def test_a_million_discrete_steps_are_exact_to_the_bounds(tmp_path):
    model = load_text(tmp_path, DRIP, constants={"p": 2.0**-20})
    steps = 2**20 - 5
    gone = -math.expm1(steps * math.log1p(-(2.0**-20)))
    reached = hybrid.check(model, f"P=? [ F<={steps} s=1 ]")
    assert reached.value == pytest.approx(gone, rel=1e-14)
    assert reached.lower < gone < reached.upper
    assert reached.upper - reached.lower < 1e-8
    assert reached.statistics.iterations < 100
    earned = hybrid.check(model, f'R{{"alive"}}=? [ C<={steps} ]')
    assert earned.value == pytest.approx(2 * gone * 2**20, rel=1e-14)
    assert earned.lower < 2 * gone * 2**20 < earned.upper
    assert earned.upper - earned.lower < 2e-8 * earned.value


def test_settled_chains_are_not_leapt_over(tmp_path):
    # Bounds grow with the steps accounted for: where the rest may be left out soon, it is.
    model = load_text(tmp_path, LEAK, constants={"leak": 1.0})
    answer = hybrid.check(model, "P=? [ F<=10000000 s=2 ]")
    assert answer.statistics.iterations > 32
    assert answer.statistics.iterations < 1000
    assert answer.upper - answer.lower < 1e-7
