"""Every condition broken once, by the claim that it is there to refuse."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.base.errors import CertificateError
from hybrid.checking.certificates.archive import Certificate
from tests.hybrid.checking.certificates.helpers import Case, make

# A walk from 0 to the goal 3 or the trap 4; 1 and 2 lead to one another, 5 and 6 stay among themselves.
CHAIN = """dtmc
module m
  x : [0..6];
  [] x=0 -> 1/3:(x'=1) + 1/3:(x'=3) + 1/3:(x'=5);
  [] x=1 -> 0.5:(x'=2) + 0.5:(x'=4);
  [] x=2 -> 0.7:(x'=1) + 0.3:(x'=3);
  [] x=5 -> (x'=6);
  [] x=6 -> (x'=5);
endmodule
init true endinit
rewards x<3 : 2; x>4 : x; endrewards
"""

# The same from 1 on: 0, 5 and 6 are not reached.
STARTED = CHAIN.replace("init true endinit", "").replace("[0..6]", "[0..6] init 1")

# In 0 a scheduler may wait for ever at no cost, go on for 1, or gamble; 3 is the goal, 4 a trap.
MDP = """mdp
module m
  x : [0..4];
  [wait] x=0 -> (x'=1);
  [back] x=1 -> (x'=0);
  [go] x=0 -> (x'=2);
  [gamble] x=1 -> 1/3:(x'=3) + 2/3:(x'=4);
  [on] x=2 -> 0.9:(x'=3) + 0.1:(x'=2);
  [leave] x=2 -> 0.9:(x'=3) + 0.1:(x'=4);
endmodule
init true endinit
rewards [go] true : 1; [on] true : 1; [gamble] true : 5; [leave] true : 1; endrewards
"""


def refused(case: Case, message: str, name: str, **claims: float) -> None:
    """States are written s0, s1, ...; `name` is the vector."""

    def spoil(c: Certificate) -> None:
        for state, value in claims.items():
            getattr(c.parts[0], name)[int(state[1:])] = value

    with pytest.raises(CertificateError, match=message) as caught:
        case.spoilt(spoil)
    assert "state (x=" in str(caught.value)


@pytest.fixture
def chain(tmp_path: Path) -> Callable[..., Case]:
    return lambda prop: make(tmp_path, CHAIN, prop)


@pytest.fixture
def mdp(tmp_path: Path) -> Callable[..., Case]:
    return lambda prop: make(tmp_path, MDP, prop)


# lemma: upper-probability, lower-probability
def test_until(chain: Callable[..., Case]) -> None:
    case = chain("P=? [ x!=2 U x=3 ]")
    assert case.certificate.parts[0].lower.tolist()[1:] == [0, 0, 1, 0, 0, 0]
    refused(case, "l = 0 outside", "lower", s2=0.1)
    refused(case, "l <= f", "lower", s0=0.34)
    refused(case, "l <= f", "lower", s4=1e-300)
    refused(case, "u >= f", "upper", s0=0.33)
    refused(case, "u = 1 in the target", "upper", s3=0.999)
    refused(case, "expected values from 0.0 to 1.0", "lower", s0=-0.5)
    refused(case, "expected values from 0.0 to 1.0", "upper", s0=1.5)
    refused(case, "expected values from 0.0 to 1.0", "lower", s0=math.nan)
    # Where a chain stays for ever any constant satisfies the inequality.
    refused(case, "reached from l > 0", "lower", s5=0.5, s6=0.5)
    case = chain("P=? [ F x=3 ]")
    refused(case, "u >= f", "upper", s2=float(case.certificate.parts[0].lower[2]) - 1e-12)


# lemma: again-and-again
def test_again_and_again(tmp_path: Path) -> None:
    for prop, value in [
        ("P=? [ G F x=5 ]", [1 / 3, 0, 0, 0, 0, 1, 1]),
        ("P=? [ F G x>4 ]", [1 / 3, 0, 0, 0, 0, 1, 1]),
        ("P=? [ F G x=5 ]", [0, 0, 0, 0, 0, 0, 0]),
        ("P=? [ !(F G x=4) ]", [1 - 10 / 39, 3 / 13, 6 / 13, 1, 0, 1, 1]),
    ]:
        case = make(tmp_path, CHAIN, prop)
        part = case.certificate.parts[0]
        turned = [1 - v for v in value] if prop != "P=? [ G F x=5 ]" and "!" not in prop else value
        np.testing.assert_allclose(part.lower, turned, rtol=1e-7)
        np.testing.assert_allclose(part.upper, turned, rtol=1e-7)
        found = case.verify().finding
        assert (found.lower, found.upper) == pytest.approx((min(value), max(value)), abs=1e-8)


def test_least_and_greatest_probabilities(mdp: Callable[..., Case]) -> None:
    case = mdp("Pmax=? [ F x=3 ]")
    assert case.certificate.parts[0].lower.tolist() == [1, 1, 1, 1, 0]
    refused(case, "u >= f", "upper", s0=0.99)
    refused(case, "u >= f", "upper", s0=0.99, s1=0.99)
    case = mdp("Pmax=? [ F x=4 ]")
    # Waiting satisfies l <= f(l) with any constant, and leads nowhere.
    refused(case, "reached from l > 0", "lower", s0=0.9, s1=0.9)
    refused(case, "l <= f", "lower", s2=0.2)
    case = mdp("Pmin=? [ F x=3 ]")
    assert case.certificate.parts[0].lower.tolist()[:2] == [0, 0]
    refused(case, "reached from l > 0", "lower", s0=0.1, s1=0.1)
    refused(case, "l <= f", "lower", s2=0.95)
    refused(case, "u >= f", "upper", s2=0.89)


# lemma: one-step
def test_next_steps(chain: Callable[..., Case], mdp: Callable[..., Case]) -> None:
    case = chain("P=? [ X x=3 ]")
    refused(case, "l <= P", "lower", s0=1 / 3 + 1e-16)
    refused(case, "u >= P", "upper", s2=0.29)
    case = mdp("Pmax=? [ X x=3 ]")
    refused(case, "l <= P", "lower", s2=0.91)
    refused(case, "u >= P", "upper", s1=0.33)
    refused(mdp("Pmin=? [ X x=3 ]"), "l <= P", "lower", s1=0.1)


# lemma: lower-reward
def test_rewards(chain: Callable[..., Case]) -> None:
    case = chain("R=? [ F x=3|x=4 ]")
    found = case.certificate.parts[0]
    assert found.lower.tolist()[4:] == [0, math.inf, math.inf] and found.lower[0] == math.inf
    assert case.verify().finding.upper == math.inf
    refused(case, "u >= r", "upper", s0=1e9)
    refused(case, "u >= 0 in|from 0.0", "upper", s3=-1.0)
    refused(case, "l <= 0 in the target", "lower", s3=0.5)
    refused(case, "u >= r", "upper", s1=float(found.lower[1]) * (1 - 1e-9))
    refused(case, "l <= r", "lower", s1=float(found.upper[1]) * (1 + 1e-9))
    refused(case, "l is infinite", "lower", s1=math.inf)
    # Nothing is earned in the trap, so that the inequality alone would let it pass.
    refused(chain("R=? [ F x=3 ]"), "surely reached", "upper", s1=100.0, s2=100.0, s4=0.0)


def test_refusals_tell_both_sides(chain: Callable[..., Case]) -> None:
    case = chain("R=? [ F x=3|x=4 ]")
    one = float(case.certificate.parts[0].upper[1])
    refused(case, f"the vector has 1.0, one step gives {re.escape(str(2 + 0.7 * one)[:8])}", "upper", s2=1.0)
    case = chain("P=? [ X x=3 ]")
    refused(case, r"the vector has 0.25, one step gives 0.3\d*$", "upper", s2=0.25)
    case = chain("R=? [ S ]")
    refused(case, r"the vector has 5.0, one step gives 5.0; r . P h - h is 5.\d+$", "upper", s5=5.0, s6=5.0)


# lemma: upper-reward
def test_least_and_greatest_rewards(mdp: Callable[..., Case]) -> None:
    case = mdp("Rmin=? [ F x=3 ]")
    low = case.certificate.parts[0].lower
    assert low.tolist()[3:] == [0, math.inf] and 2.11 < low[0] < 2.112
    # Waiting costs nothing: without a way on, no reward is too small a bound.
    refused(case, "surely reached", "upper", s0=0.5, s1=0.5)
    refused(case, "l <= r", "lower", s2=1.2)
    refused(case, "l is infinite", "lower", s0=math.inf)
    case = mdp("Rmax=? [ F x=3 ]")
    assert case.certificate.parts[0].lower.tolist() == [math.inf, math.inf, math.inf, 0, math.inf]
    refused(case, "u >= r", "upper", s2=100.0)
    refused(case, "surely reached", "upper", s0=50.0, s1=50.0, s2=40.0, s4=10.0)
    case = mdp("Rmax=? [ F x=3|x=4 ]")
    refused(case, "surely reached", "upper", s0=50.0, s1=50.0)
    refused(case, "l is infinite", "lower", s2=math.inf)


# lemma: average
def test_averages(chain: Callable[..., Case]) -> None:
    case = chain("R=? [ S ]")
    part = case.certificate.parts[0]
    assert part.lower[3] == part.upper[3] == 0 and 5.499 < part.lower[5] <= part.upper[5] < 5.501
    refused(case, "l <= P l", "lower", s0=3.0)
    refused(case, "l <= P l", "lower", s5=5.4)
    refused(case, "l <= r . P h - h", "lower", s5=5.6, s6=5.6)
    refused(case, "u >= P u", "upper", s0=1.0)
    refused(case, "u >= r . P h - h", "upper", s5=5.4, s6=5.4)
    refused(case, "l <= r . P h - h", "lower", s3=1e-300)
    refused(case, "l is finite|from -inf", "lower", s0=-math.inf)
    refused(case, "h - h|P h", "bias", s5=100.0)
    case = chain("S=? [ x=6 ]")
    refused(case, "l <= r . P h - h", "lower", s5=0.51, s6=0.51)


# Of {1, 2} the average is 4 (least cost 1.5), of {3, 4} 3 (3.5); from 5 a thousand is earned once.
TURNS = """mdp
module m
  x : [0..5];
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=3);
  [] x=1 -> (x'=2);
  [] x=1 -> (x'=3);
  [] x=2 -> (x'=1);
  [] x=3 -> (x'=4);
  [] x=3 -> true;
  [] x=4 -> (x'=3);
  [] x=5 -> true;
  [big] x=5 -> (x'=1);
endmodule
init true endinit
rewards "r" x=1 : 1; x=2 : 7; x=4 : 6; [big] x=5 : 1000; endrewards
rewards "cost" x=1 : 1; x=2 : 2; x=3 : 5; x=4 : 2; x=5 : 1; [big] x=5 : 1; endrewards
"""


# lemma: average
def test_averages_of_decision_processes(tmp_path: Path) -> None:
    case = make(tmp_path, TURNS, 'R{"r"}max=? [ S ]')
    part = case.certificate.parts[0]
    for state, right in enumerate((3.5, 4, 4, 3, 3, 4)):
        assert right - 1e-6 < part.lower[state] <= right <= part.upper[state] < right + 1e-6
    refused(case, "l <= P l", "lower", s0=3.6)
    refused(case, "l <= r . P h - h", "lower", s1=4.1, s2=4.1)
    refused(case, "l <= r . P h - h", "lower", s5=100.0)  # what is earned once, or what never leads on
    refused(case, "u >= P u", "upper", s0=3.4)
    refused(case, "u >= r . P h - h", "upper", s1=3.9, s2=3.9)  # components may be left, and need not be
    refused(case, "u >= r . P h - h", "upper", s3=2.9, s4=2.9)

    def earned_by_turns(c: Certificate) -> None:
        assert c.parts[0].bias is not None
        c.parts[0].lower[1] = c.parts[0].lower[2] = 4.1
        c.parts[0].bias[2] += 1.0

    with pytest.raises(CertificateError, match="l <= r"):
        case.spoilt(earned_by_turns)
    case = make(tmp_path, TURNS, 'R{"cost"}min=? [ S ]')
    part = case.certificate.parts[0]
    for state, right in enumerate((2.5, 1.5, 1.5, 3.5, 3.5, 1)):
        assert right - 1e-6 < part.lower[state] <= right <= part.upper[state] < right + 1e-6
    refused(case, "u >= r . P h - h", "upper", s3=3.4, s4=3.4)
    refused(case, "l <= r . P h - h", "lower", s1=1.6, s2=1.6)
    case = make(tmp_path, TURNS, "Smax=? [ x=2 | x=4 ]")
    assert case.certificate.parts[0].lower[5] == pytest.approx(0.5)
    refused(case, "u >= r . P h - h", "upper", s1=0.4, s2=0.4, s3=0.4, s4=0.4, s0=0.4, s5=0.4)


GAINS = """dtmc
module m
  x : [0..3];
  [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2);
  [] x=1 -> 0.25:(x'=0) + 0.75:(x'=2);
endmodule
init true endinit
rewards x=0 : -3; x=1 : 2; x=3 : 5; endrewards
"""


# lemma: signed-reward
def test_rewards_of_both_signs(tmp_path: Path) -> None:
    case = make(tmp_path, GAINS.replace("x : [0..3]", "x : [0..2]").replace(" x=3 : 5;", ""), "R=? [ F x=2 ]")
    part = case.certificate.parts[0]
    assert part.lower[0] <= -16 / 7 <= part.upper[0]
    refused(case, "l <= r", "lower", s0=-2.2)
    refused(case, "u >= r", "upper", s0=-2.3)
    refused(case, "l > -inf|from -inf|l <= r", "lower", s0=-math.inf)
    refused(case, "no reward below zero|missed", "lower", s0=math.inf)
    refused(case, "u >= 0 in the target", "upper", s2=-1.0)
    refused(case, "l <= 0 in the target", "lower", s2=1.0)
    # With a state that never reaches the set nothing is known of sums of both signs.
    with pytest.raises(AssertionError, match="no reward below zero|every state"):
        make(tmp_path, GAINS, "R=? [ F x=2 ]")
    # In 3, which only leads to itself and earns something, any finite l satisfies the inequality.
    case = make(tmp_path, GAINS, "R=? [ F x=2|x=3 ]")

    def claim(c: Certificate) -> None:
        c.properties = c.property = "R=? [ F x=2 ]"
        c.parts[0].upper[3] = math.inf

    with pytest.raises(CertificateError, match="reached from every state"):
        case.spoilt(claim)


def test_labels_that_every_model_has(tmp_path: Path) -> None:
    found = make(tmp_path, CHAIN, 'filter(min, P=? [ F "deadlock" ], x=0)').verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.lower <= Fraction(2, 3) <= found.upper
    assert found.upper - found.lower < 1e-6
    found = make(tmp_path, STARTED, 'P=? [ X "init" ]').verify().finding
    assert (found.lower, found.upper) == (0.0, 0.0)
    found = make(tmp_path, STARTED, 'filter(state, P=? [ X "init" ], x=2)').verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.lower <= Fraction(7, 10) <= found.upper < 0.7 + 1e-14


# With certainty 3 is reached from 3, and with 16/39, 3/13 and 6/13 from 0, 1 and 2.
FILTERS = [
    ("filter(min, P=? [ F x=3 ], x<3)", 3 / 13, 3 / 13),
    ("filter(max, P=? [ F x=3 ])", 1, 1),
    ("filter(max, P=? [ F x=3 ], x<3)", 6 / 13, 6 / 13),
    ("filter(range, P=? [ F x=3 ], x<3)", 3 / 13, 6 / 13),
    ("filter(avg, P=? [ X x=3 ], x<4)", (1 / 3 + 0.3 + 1) / 4, (1 / 3 + 0.3 + 1) / 4),
    ("filter(sum, P=? [ G x!=3 ], x=1|x=4)", 23 / 13, 23 / 13),
    ("filter(state, P=? [ F x=3 ], x=2)", 6 / 13, 6 / 13),
    ("filter(min, P=? [ F x=3 ], P>0.4 [ F x=3 ] & x<3)", 16 / 39, 16 / 39),
    ("filter(sum, R=? [ F x=3 ])", math.inf, math.inf),
    ("filter(count, P>0.2 [ X x=3 ])", 3, 3),
    # Bounds that are met: from 1 the next state is 4 with probability 0.5.
    ("filter(count, P>0.5 [ X x=4 ], x=1)", 0, 0),
    ("filter(count, P>=0.5 [ X x=4 ], x=1)", 1, 1),
    ("filter(count, P<0.5 [ X x=4 ], x=1)", 0, 0),
    ("filter(count, P<=0.5 [ X x=4 ], x=1)", 1, 1),
    ("filter(count, P<0.6 [ G x!=3 ], x<3)", 2, 2),
    ("filter(count, P<=0.6 [ G x!=3 ], x<3)", 2, 2),
    ("filter(count, P>0.6 [ G x!=3 ], x<3)", 1, 1),
    ("filter(count, P>=0.6 [ G x!=3 ], x<3)", 1, 1),
]


# lemma: comparison, complement
@pytest.mark.parametrize(("prop", "least", "most"), FILTERS)
def test_filters(prop: str, least: float, most: float, tmp_path: Path) -> None:
    found = make(tmp_path, CHAIN, prop).verify().finding
    assert found.truth is None and found.lower is not None and found.upper is not None
    assert found.lower <= least * (1 + 1e-15) and most * (1 - 1e-15) <= found.upper
    assert found.lower == pytest.approx(least, rel=1e-7)
    assert found.upper == pytest.approx(most, rel=1e-7)


@pytest.mark.parametrize(
    ("prop", "truth"),
    [
        ("filter(forall, P>=0.2 [ F x=3 ], x<4)", True),
        ("filter(forall, P>=0.25 [ F x=3 ], x<4)", False),
        ("filter(exists, P>=0.99 [ F x=3 ], x<3)", False),
        ("filter(exists, P>=0.46 [ F x=3 ], x<3)", True),
    ],
)
def test_filters_of_truths(prop: str, truth: bool, tmp_path: Path) -> None:
    case = make(tmp_path, CHAIN, prop)
    assert case.verify().finding.truth is truth is case.made.answer.value


def test_filters_do_not_look_at_listed_states_that_are_not_reachable(tmp_path: Path) -> None:
    case = make(tmp_path, STARTED, "filter(max, P=? [ F x=3 ], x!=3)")
    assert case.certificate.states.tolist() == [1, 2, 3, 4]
    before = case.verify().finding

    def listed(c: Certificate) -> None:
        c.states = np.array([0, *c.states, 5, 6])
        part = c.parts[0]
        part.lower, part.upper = (np.array([0.0, *v, 0.0, 0.0]) for v in (part.lower, part.upper))
        part.upper[[0, 5, 6]] = 1.0

    assert case.spoilt(listed).finding == before


def test_nested_sets_are_certified_first(tmp_path: Path) -> None:
    case = make(tmp_path, CHAIN, "P=? [ F P>=0.25 [ X x=3 ] ]")
    assert len(case.certificate.parts) == 2
    assert case.verify().finding.lower == 0.0  # of the initial states 5 and 6

    def raised(c: Certificate) -> None:
        c.parts[0].lower[1] = 0.3

    with pytest.raises(CertificateError, match="l <= P"):
        case.spoilt(raised)

    def vague(c: Certificate) -> None:
        c.parts[0].lower[2] = 0.2

    with pytest.raises(CertificateError, match="does not decide the comparison"):
        case.spoilt(vague)
    # Also where the state is no initial one.
    case = make(tmp_path, STARTED, "P=? [ F P>=0.25 [ X x=3 ] ]")
    assert case.certificate.states.tolist() == [1, 2, 3, 4]

    def vague_later(c: Certificate) -> None:
        c.parts[0].lower[1] = 0.2

    with pytest.raises(CertificateError, match=r"does not decide the comparison in state \(x=2\)"):
        case.spoilt(vague_later)


def test_truths(tmp_path: Path) -> None:
    for prop, truth in [
        ("P>=0 [ F x=3 ] & !(P>0.99 [ X x=4 ])", False),
        ("P<0.6 [ X x=4 ] => P>=0 [ F x=3 ]", True),
        ("P<0.6 [ X x=4 ] => P>0.99 [ X x=4 ]", False),
        ("P>0.4 [ X x=4 ] => P>0.4 [ X x=4 ]", True),
        ("P<0.5 [ X x=4 ]", False),
        ("P<=1 [ G x!=3 ]", True),
        ("P<1 [ G x!=3 ]", False),
    ]:
        case = make(tmp_path, CHAIN, prop)
        assert case.verify().finding.truth is truth is case.made.answer.value


def test_complements_are_rounded_outward(tmp_path: Path) -> None:
    text = "dtmc module m x:[0..2]; [] x=0 -> 1e-20:(x'=1) + 1-1e-20:(x'=2); endmodule"
    case = make(tmp_path, text, "P=? [ G x!=1 ]")

    def tight(c: Certificate) -> None:
        c.parts[0].lower[0], c.parts[0].upper[0] = 0.9e-20, 1.1e-20

    found = case.spoilt(tight).finding
    assert found.lower == 1 - 2**-53 and found.upper == 1
    found = make(tmp_path, text, "P=? [ G x!=2 ]").verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.lower <= Fraction("1e-20") <= found.upper < 1e-14


# 2 is reached from 1 with 1/4 and from 2 alone with certainty: from 1 on the average is a third.
THIRD = """dtmc
module m
  s : [0..3] init 0;
  [] s=0 -> 0.5:(s'=1) + 0.25:(s'=2) + 0.25:(s'=3);
  [] s=1 -> (s'=3);
  [] s>1 -> true;
endmodule
rewards "far" s=1 : 1; s=2 : 1e-30; endrewards
rewards "huge" s>0 & s<3 : 1e308; endrewards
"""


def test_averages_and_sums_over_states_are_rounded_outward(tmp_path: Path) -> None:
    found = make(tmp_path, THIRD, "filter(avg, P=? [ F s=2 ], s>0)").verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.lower < Fraction(1, 3) < found.upper
    assert found.upper - found.lower < 1e-16
    loop = THIRD.replace("s>1 -> true", "s=2 -> (s'=3); [] s=3 -> true")
    found = make(tmp_path, loop, 'filter(sum, R{"far"}=? [ F s=3 ], s=1|s=2)').verify().finding
    assert found.lower is not None and found.upper is not None
    assert found.lower <= 1 + Fraction("1e-30") <= found.upper
    found = make(tmp_path, loop, 'filter(sum, R{"huge"}=? [ F s=3 ], s=1|s=2)').verify().finding
    assert found.lower is not None
    assert 1.79e308 < found.lower < math.inf
    assert found.upper == math.inf


@pytest.mark.parametrize(("relation", "bound"), [(">", "0.3"), ("<=", "0.3"), (">=", "0.3"), ("<", "0.3")])
def test_comparisons_between_neighbouring_doubles_are_open(relation: str, bound: str, tmp_path: Path) -> None:
    """The probability 3/10 is the bound itself, and lies between two doubles."""
    case = make(tmp_path, CHAIN, f"filter(count, P{relation}0.7 [ X x=3 ], x=2)")
    below = 0.3
    assert Fraction(below) < Fraction(3, 10)

    def tight(c: Certificate) -> None:
        c.property = c.properties = f"filter(count, P{relation}{bound} [ X x=3 ], x=2)"
        c.parts[0].lower[2], c.parts[0].upper[2] = below, math.nextafter(below, 1.0)
        for x in (0, 1, 3, 4, 5, 6):
            c.parts[0].lower[x], c.parts[0].upper[x] = (1 / 3, 0.4) if x == 0 else (float(x == 3),) * 2

    with pytest.raises(CertificateError, match=r"does not decide the comparison in state \(x=2\)"):
        case.spoilt(tight)


def test_a_label_and_a_formula_of_one_name_are_two(tmp_path: Path) -> None:
    text = (
        "dtmc formula f = y=1; module m x:[0..1]; y:[0..1]; "
        "[] true -> 0.25:(x'=1)&(y'=1) + 0.25:(x'=0)&(y'=1) + 0.5:(x'=1)&(y'=0); endmodule "
        'label "f" = x=1;'
    )
    for prop, value in (('f & "f"', 0.25), ('"f" & !f', 0.5), ('f & !"f"', 0.25)):
        found = make(tmp_path, text, f"P=? [ X ({prop}) ]").verify().finding
        assert (found.lower, found.upper) == (value, value)


def test_constants_of_models(tmp_path: Path) -> None:
    text = CHAIN.replace("module m", "const double p;\nmodule m").replace(
        "0.7:(x'=1) + 0.3:", "1-p:(x'=1) + p:"
    )
    case = make(tmp_path, text, "const double q; P>=q [ F x=3 ]", {"p": 0.3, "q": 0.0})
    assert case.verify().finding.truth is True
    case.constants = {"p": 0.3}
    assert case.verify().finding.truth is True
    for constants, message in (({"p": 0.25}, "about the constants p"), ({"p": 0.3, "r": 1}, "leaves r open")):
        case.constants = constants
        with pytest.raises(CertificateError, match=message):
            case.verify()


def test_constants_of_properties(tmp_path: Path) -> None:
    text = 'const int k; const double p; label "far" = x>=k; P>=p [ F "far" ]'
    case = make(tmp_path, CHAIN, text, {"k": 3, "p": 0.0})
    assert case.verify().finding.truth is True
    case.constants = {"k": 4, "p": 0.0}
    with pytest.raises(CertificateError, match="k=3; given is 4"):
        case.verify()
    changes: list[tuple[Callable[[Any], None], str]] = [
        (lambda c: c.property_constants.update(k="3/0"), "whole number"),
        (lambda c: c.property_constants.update(k="x"), "whole number"),
        (lambda c: c.property_constants.update(p="9" * 3999), "too large|must be"),
        (lambda c: c.property_constants.pop("k"), "without a value"),
        (lambda c: setattr(c, "index", 3), "no property number"),
        (lambda c: setattr(c, "property", "P>=0 [ X true ]"), "not the one"),
        (lambda c: setattr(c, "properties", "P>=0 [ X"), "the certificate's property"),
        (lambda c: setattr(c, "properties", "(" * 100_000), "the certificate's property"),
        (lambda c: setattr(c, "parts", []), "vectors of 1 operators, got those of 0"),
        (lambda c: setattr(c.parts[0], "bias", np.zeros(7)), "vector h"),
        (lambda c: setattr(c, "digest", "0" * 64), "digests differ"),
        (lambda c: c.constants.update(q="3"), "about the constants q=3; given are none"),
    ]
    case.constants = {}
    for change, message in changes:
        with pytest.raises(CertificateError, match=message):
            case.spoilt(change)
