"""What an answer says of itself: exact, certified, or an estimate with the residual that it reached."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid
from hybrid.analysis.run.options import CheckOptions
from hybrid.checking.checker import Checker
from hybrid.properties import parse_properties, resolve_properties

# From the start the end is seldom reached: 1e-36, and BiCGStab stops at 0 long before it knows.
SELDOM = """
dtmc
module m
  s : [0..13] init 0;
  [] s<12 -> 0.001:(s'=s+1) + 0.999:(s'=13);
  [] s>=12 -> true;
endmodule
rewards
  s<12 : 1;
endrewards
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("kinds") / "seldom.prism"
    path.write_text(SELDOM)
    return hybrid.load(path)


@pytest.mark.parametrize(
    ("prop", "method", "kind"),
    [
        ("P=? [ F s=12 ]", "auto", "certified"),
        ("P=? [ F s=12 ]", "jacobi", "estimate"),
        ("P=? [ F s=12 ]", "bicgstab", "estimate"),
        ("P>0.5 [ F s=12 ]", "jacobi", "estimate"),
        ("P>0.5 [ F s=12 ]", "auto", "certified"),
        ("P=? [ F<=3 s=2 ]", "jacobi", "certified"),
        ("P=? [ F s<=12 ]", "jacobi", "exact"),
        ("P>=1 [ F s<=12 ]", "auto", "exact"),
        ("(P=? [ F s<=12 ])/3", "auto", "certified"),
        ("filter(range, P=? [ F s=12 ])", "jacobi", "estimate"),
        ("filter(range, P=? [ F s=12 ])", "auto", "certified"),
        ("P=? [ F unknown ]", "auto", None),
    ],
)
def test_answers_say_what_they_are(model, prop, method, kind):
    try:
        answer = hybrid.check(model, prop, method=method)
    except hybrid.LanguageError:
        assert kind is None
        return
    assert answer.kind == kind
    assert answer.record()["kind"] == kind
    assert (answer.statistics.component_residual is not None) == (kind == "estimate")


def test_sets_of_estimates_leave_no_bounds_in_any_state(model):
    # The set is the one of an estimate, and the graph decides all the rest.
    checker = Checker(model, CheckOptions.of(method="jacobi"))
    text = "P=? [ G F (P>0.5 [ F s=12 ]) ]"
    (prop,) = resolve_properties(parse_properties(text), model.source).properties
    found = checker.evaluate(prop.formula)
    assert np.isnan(found.lower).all() and np.isnan(found.upper).all()
    (prop,) = resolve_properties(parse_properties(text.replace("=?", ">0.5", 1)), model.source).properties
    assert checker.evaluate(prop.formula).unproven.all()
    # What does not rest upon it keeps its bounds.
    (prop,) = resolve_properties(parse_properties("P=? [ F s<=12 ]"), model.source).properties
    assert not np.isnan(checker.evaluate(prop.formula).lower).any()


def test_the_residual_of_an_estimate_is_that_of_its_worst_component(model):
    good = hybrid.check(model, "P=? [ F s=12 ]", method="jacobi")
    assert good.value == pytest.approx(1e-36, rel=1e-6)
    assert good.statistics.component_residual < 1e-6
    bad = hybrid.check(model, "P=? [ F s=12 ]", method="bicgstab")
    assert bad.kind == "estimate"
    off = abs(bad.value / 1e-36 - 1.0)
    assert off < 1e-6 or bad.statistics.component_residual > 1e-3
