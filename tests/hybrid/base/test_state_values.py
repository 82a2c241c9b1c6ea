"""Values of states: what is known of one minus a number that is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import hybrid
from hybrid.base.state_values import StateValues

SHARES = st.floats(0.0, 1.0) | st.integers(0, 1 << 20).map(lambda k: k / (1 << 20)) | st.just(3.77e-6)


SMALL = np.random.default_rng(7).random(50) * 1e-3
"""Of these one minus a number is rounded, of some up and of others down."""


# lemma: rounding
@given(st.lists(SHARES, min_size=1, max_size=4), st.booleans())
@example(SMALL.tolist(), True)
@example(SMALL.tolist(), False)
def test_bounds_of_complements_hold(values: list[float], is_exact: bool) -> None:
    x = np.array(values)
    known = StateValues.exact(x) if is_exact else StateValues(x, x.copy(), np.nextafter(x, 1.0))
    found = known.complement()
    for k, value in enumerate(values):
        least, greatest = Fraction(float(known.lower[k])), Fraction(float(known.upper[k]))
        assert Fraction(float(found.lower[k])) <= 1 - greatest
        assert 1 - least <= Fraction(float(found.upper[k]))
        if 1 - Fraction(value) == Fraction(1.0 - value) and is_exact:
            assert found.lower[k] == found.upper[k]


def test_exact_values_have_exact_complements_where_doubles_hold_them() -> None:
    assert StateValues.exact(np.array([0.0, 1.0, 0.25])).complement().is_exact
    assert not StateValues.exact(np.array([0.25, 2.0**-60])).complement().is_exact


def test_a_release_in_a_window_is_not_exact() -> None:
    """Found by the attack: eight steps of dyadic numbers are exact, one minus their product is not."""
    text = """dtmc
    module m
      s : [0..2] init 2;
      [] s=0 -> 0.2509765625:(s'=2) + 0.7490234375:(s'=0);
      [] s=1 -> 0.125:(s'=0) + 0.875:(s'=1);
      [] s=2 -> 0.3046875:(s'=1) + 0.546875:(s'=0) + 0.1484375:true;
      [a] s=2 -> 0.1875:true + 0.8125:(s'=1);
    endmodule
    """
    question = "P=? [ (s<=1) R[8,8] (P>1/1 [ (false) W (s=1) ]) ]"
    model = hybrid.parse(text)
    exact = Fraction(99999622775899284222, 10**20)
    found = hybrid.check(model, question, engine="symbolic")
    assert found.lower < found.upper
    assert Fraction(found.lower) <= exact + Fraction(1, 10**19) and exact <= Fraction(found.upper)
