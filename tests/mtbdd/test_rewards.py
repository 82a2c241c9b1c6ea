"""Reward vectors: state and transition rewards, narrow and wide expressions, subsets, faults."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mtbdd.build import rewards
from mtbdd.build.rewards import enclosed_rewards, expression_enclosure, reward_rates
from mtbdd.language.errors import BuildError
from mtbdd.offset.states import index_states
from tests.builders.diagram_packages import DIAGRAM_PACKAGES
from tests.builders.models import build, build_both, state_set
from tests.exploring import pairs
from tests.oracles.expressions import evaluate_exactly

CTMC = """
    ctmc module m x : [1..5]; b : bool;
    [] x<5 -> 2:(x'=x+1); [a] x>1 -> x:(x'=x-1) + 0.5:(b'=!b); [a] x=3 -> 0.125:(b'=true); endmodule
    module n y : [-1..2]; [a] y<2 -> 0.3:(y'=y+1); [a] y=2 -> 0.7:(y'=-1); [c] y=0 -> 3:(y'=1); endmodule
    rewards "states" true : 1; x>2 : x*y; b : 0.5; endrewards
    rewards "moves" [a] true : x; [] y>0 : 3; [c] true : -1; [a] b : y/4; endrewards
    rewards "mixed" x+y>3 : x; [c] x<4 : 2; [a] x<2 : 100; endrewards
    rewards "nothing" x>5 : 7; [c] y>1 : 3; endrewards
    rewards "cancelling" x>2 : 0.5; x>2 : -0.5; endrewards"""

DTMC = """
    dtmc module m x : [0..4]; b : bool;
    [] x<4 -> 0.5:(x'=x+1) + 0.5:(x'=0); [a] x>0 -> 1:(x'=x-1); [a] x=2 -> 0.25:(x'=4) + 0.75:(b'=!b);
    [c] b -> 1:(b'=false); endmodule
    module n y : [0..2]; [a] true -> (y'=mod(y+1, 3)); [a] y=1 -> (y'=0); endmodule
    rewards "steps" true : 1; endrewards
    rewards "moves" [a] true : x+1; [] true : 1; [c] y>0 : 0.1; endrewards"""


@pytest.mark.parametrize(
    ("symbolic_bits", "text", "package"),
    pairs([-1, 3, 12], [pytest.param(CTMC, id="ctmc"), pytest.param(DTMC, id="dtmc")], DIAGRAM_PACKAGES),
)
def test_rewards_equal_explicit(
    text: str, package: str, symbolic_bits: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All items evaluated state by state, some, or none."""
    monkeypatch.setattr("mtbdd.build.rewards._SYMBOLIC_BITS", symbolic_bits)
    model, explicit = build_both(text, package)
    n = explicit.n_states
    for structure in range(len(model.source.rewards)):
        expected = np.array([float(r) for r in explicit.rewards(structure)])
        found = reward_rates(model, structure, model.index)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
        chosen = np.flatnonzero(rng.random(n) < 0.4).tolist()
        within = index_states(model.manager, state_set(model, explicit, chosen))
        found = reward_rates(model, structure, within)
        np.testing.assert_allclose(found, expected[chosen], rtol=1e-12, atol=1e-14)
        nothing = index_states(model.manager, model.manager.false)
        assert reward_rates(model, structure, nothing).shape == (0,)


def test_rewards_with_hardly_a_state_a_value_are_evaluated_state_by_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over 7 bits, that is; where many states share a value it has a set."""
    text = """dtmc module m x : [0..99]; {more} [] true -> (x'=mod(x+1, 100)); endmodule
        rewards true : x/8; endrewards"""
    wide: list[int] = []
    monkeypatch.setattr(rewards, "_wide", lambda *_: wide.append(1) or [])
    for more, times in (("y : [0..15]; [] true -> (y'=mod(y+1, 16));", 0), ("", 1)):
        wide.clear()
        model = build(text.replace("{more}", more))
        found = reward_rates(model, 0, model.index)
        assert (len(wide), found.any()) == (times, not times)


def test_rewards_of_self_loops_added_to_deadlocks_are_state_rewards_alone() -> None:
    model = build("""dtmc module m x : [0..1]; [] x=0 -> (x'=1); endmodule
        rewards [] true : 5; true : 2; endrewards""")
    assert reward_rates(model, 0, model.index).tolist() == [7.0, 2.0]


@pytest.mark.parametrize("symbolic_bits", [-1, 12])
@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("true : 1/x;", "the reward is inf in state (x=0, b=false)"),
        ("true : 0/x;", "the reward is nan in state (x=0, b=false)"),
        ("[] b : -1/x;", "the reward is -inf in state (x=0, b=true)"),
    ],
)
def test_rewards_refuse_infinity_where_it_counts(
    item: str, message: str, symbolic_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtbdd.build.rewards._SYMBOLIC_BITS", symbolic_bits)
    module = "module m x : [0..2]; b : bool; [] true -> 1:(x'=mod(x+1, 3)) + 1:(b'=!b); endmodule"
    text = f"ctmc {module}\nrewards {{}} endrewards"
    model = build(text.format(item))
    with pytest.raises(BuildError) as caught:
        reward_rates(model, 0, model.index)
    assert message in str(caught.value)
    assert [fault.position.line for fault in caught.value.faults] == [2]
    positive = model.translator.states(build(text.format("x>0 : 1;")).source.rewards[0].items[0].guard)
    within = index_states(model.manager, positive & model.reachable)
    assert np.isfinite(reward_rates(model, 0, within)).all()
    guarded = build(text.format(item.replace("true :", "x>0 :").replace("b :", "b & x>0 :")))
    assert np.isfinite(reward_rates(guarded, 0, guarded.index)).all()


@pytest.mark.parametrize("package", DIAGRAM_PACKAGES)
def test_expression_values_equal_exact_ones(package: str) -> None:
    text = CTMC + " formula f = x*y + (b ? 0.5 : 2); formula g = 3; formula h = b ? x : y; formula k = -y;"
    model, explicit = build_both(text, package)
    for formula in model.source.formulas:
        found = expression_enclosure(model, formula.expression, model.index)[0]
        values = [evaluate_exactly(formula.expression, explicit.valuation(i)) for i in range(len(found))]
        expected = [float(value) for value in values]
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_rewards_of_a_single_valued_variable() -> None:
    model = build("""ctmc module m z : [4..4]; x : [0..1]; [] true -> 1:(x'=1-x); endmodule
        rewards true : z*x + z; endrewards""")
    assert reward_rates(model, 0, model.index).tolist() == [4.0, 8.0]


# The variable has more values than are worth a set each: its reward is a vector of doubles.
WIDE = """dtmc module m x : [0..20000] init 3; [] true -> (x'=x); endmodule
    rewards "tenth" true : x*0.1; endrewards
    rewards "moved" [] true : x*0.1; endrewards
    rewards "nothing" true : x*0.1; true : -0.3; endrewards
    rewards "cubed" true : x*x*x*0.1; true : -2.7; endrewards"""


@pytest.mark.parametrize("structure", [0, 1])
def test_rewards_of_wide_expressions_are_off_by_no_more_than_is_told(structure: int) -> None:
    """Three times 0.1 is not the double next to 0.3."""
    model = build(WIDE)
    (value,), error = enclosed_rewards(model, structure, model.index)
    assert Fraction(float(value)) != Fraction(3, 10)
    assert error is not None
    assert abs(Fraction(float(value)) - Fraction(3, 10)) <= Fraction(float(error[0]))


@pytest.mark.parametrize("structure", [2, 3])
def test_what_rounding_leaves_of_rewards_that_cancel_has_no_sign(structure: int) -> None:
    """On paper nothing is left; in doubles something is, of either sign."""
    model = build(WIDE)
    with pytest.raises(BuildError, match="it is not known whether anything is left, in state"):
        reward_rates(model, structure, model.index)


@pytest.mark.parametrize("number", [2**53 - 1, 2**53 + 1, 2**60 + 1])
def test_integers_that_no_double_holds_are_not_told_exact(number: int) -> None:
    """2^53 + 1 becomes 2^53: that is the first integer that is rounded."""
    text = f"""dtmc module m x:[0..20000] init 1; [] true -> (x'=x); endmodule
        rewards true : {number}*x; endrewards"""
    model = build(text)
    (value,), error = enclosed_rewards(model, 0, model.index)
    off = abs(Fraction(float(value)) - number)
    assert off == 0 if error is None else off <= Fraction(float(error[0]))
    assert (error is None) == (number < 2**53)
