"""Answers to properties: levels, methods, bounds, filters, ranges, and what is refused."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import hybrid
from hybrid.app.cli.check import answer_text
from hybrid.base.check_options import METHODS
from hybrid.base.errors import OptionError
from tests.builders.chain_texts import DIE, GAMBLER, MANY_STARTS, QUEUE, load_text
from tests.exploring import each

TIGHT = {"epsilon": 1e-13}


def gambler_wins(start, goal=5, up=Fraction(2, 5)):
    r = (1 - up) / up
    return (1 - r**start) / (1 - r**goal)


LENGTH = sum(k * (2 / 3) ** k for k in range(5)) / sum((2 / 3) ** k for k in range(5))
BACKENDS = ["reference", "cpu"]


@pytest.mark.parametrize(("level", "backend"), each(["auto", "min-memory", "min-time", 0, 2, 4, 6], BACKENDS))
def test_every_level_gives_the_same_answer(level, backend, tmp_path):
    model = load_text(tmp_path, QUEUE)
    answer = hybrid.check(model, 'R{"length"}=? [ S ]', backend=backend, level=level, **TIGHT)
    assert answer.value == pytest.approx(LENGTH, rel=1e-9)
    if isinstance(level, int):
        assert answer.statistics.level == level


@pytest.mark.parametrize(("method", "backend"), each(METHODS, BACKENDS))
def test_every_method_gives_the_same_answer(method, backend, tmp_path):
    model = load_text(tmp_path, GAMBLER)
    answer = hybrid.check(model, "P=? [ F x=goal ]", backend=backend, method=method, **TIGHT)
    assert answer.value == pytest.approx(float(gambler_wins(3)), rel=1e-9)
    assert answer.statistics.method == ("optimistic" if method == "auto" else method)
    assert (answer.lower is None) is (method in ("jacobi", "jor", "power", "gauss-seidel", "bicgstab"))
    assert answer.statistics.residual < 1e-9


def test_values_carry_bounds_and_exact_ones_are_their_own(tmp_path):
    model = load_text(tmp_path, DIE)
    sure = hybrid.check(model, "P=? [ F s=7 ]")
    assert (sure.value, sure.lower, sure.upper) == (1.0, 1.0, 1.0)
    assert sure.statistics.method is None
    computed = hybrid.check(model, "P=? [ F d=1 ]", epsilon=1e-6)
    assert Fraction(computed.lower) < Fraction(1, 6) < Fraction(computed.upper)
    assert computed.upper - computed.lower < 1e-6 * computed.upper
    estimate = hybrid.check(model, "P=? [ F d=1 ]", method="jacobi")
    assert (estimate.lower, estimate.upper) == (None, None)


def test_tiny_probabilities_have_relative_precision(backend, tmp_path):
    text = """
        dtmc module m s : [0..40];
        [] s<20 -> 1e-5 : (s'=s+1) + 0.5 : (s'=0) + 0.49999 : (s'=40);
        [] s>=20 -> true;
        endmodule
    """
    answer = hybrid.check(load_text(tmp_path, text), "P=? [ F s=20 ]", backend=backend)
    # x_k = p x_{k+1} + x_0 / 2 and x_20 = 1 give x_0 (1 - (1 - p^20) / (2 (1 - p))) = p^20.
    p = Fraction("1e-5")
    exact = p**20 / (1 - (1 - p**20) / (2 * (1 - p)))
    assert Fraction(answer.lower) <= exact <= Fraction(answer.upper)
    assert 0 < answer.upper - answer.lower < 2e-8 * float(exact)


def test_a_value_too_close_to_its_bound_is_not_guessed(tmp_path, monkeypatch):
    monkeypatch.setattr("hybrid.analysis.exact.formulas.MAX_UNKNOWN", 0)
    answer = hybrid.check(load_text(tmp_path, DIE), "P>=1/6 [ F d=1 ]", throw=False)
    assert answer.value is None
    assert "P>=0.16666666666666666 is unknown at this precision" in answer.error
    assert "choose a smaller epsilon" in answer.error
    estimate = hybrid.check(load_text(tmp_path, DIE), "P>=1/6 [ F d=1 ]", method="jacobi", throw=False)
    assert "an estimate, without bounds" in estimate.error
    assert (
        hybrid.check(load_text(tmp_path, DIE), "P>=0.166 [ F d=1 ]", method="jacobi", throw=False).lower
        is None
    )


def test_a_close_bound_is_decided_by_a_second_more_precise_attempt(tmp_path):
    model = load_text(tmp_path, DIE)
    answer = hybrid.check(model, "P<0.1666666667 [ F d=1 ]", epsilon=1e-6)
    assert (answer.value, answer.lower) == (True, True)


@pytest.mark.parametrize(
    ("prop", "expected"),
    [
        ('filter(max, R=? [ F x=0 | x=4 ], "init")', 4.0),
        ('filter(min, R=? [ F x=0 | x=4 ], "init")', 3.0),
        ('filter(avg, P=? [ F x=4 ], "init")', 0.5),
        ('filter(sum, P=? [ F x=4 ], "init")', 1.5),
        ("filter(first, P=? [ F x=4 ], x=3)", 0.75),
        ("filter(state, P=? [ F x=4 ], x=1)", 0.25),
        ("filter(max, P=? [ F x=4 ])", 1.0),
        ("filter(count, P>0.3 [ F x=4 ])", 3),
        ('filter(forall, P>0.2 [ F x=4 ], "init")', True),
        ('filter(exists, P>0.9 [ F x=4 ], "init")', False),
        ("filter(max, x)", 4.0),
        ("P=? [ F x=4 {x=2}{max} ]", 0.5),
    ],
)
def test_filters(prop, expected, tmp_path):
    answer = hybrid.check(load_text(tmp_path, MANY_STARTS), prop, **TIGHT, throw=False)
    assert answer.error is None
    assert answer.value == pytest.approx(expected, rel=1e-9)
    assert type(answer.value) is type(expected)


def test_several_initial_states_with_different_values_answer_their_range(tmp_path):
    answer = hybrid.check(load_text(tmp_path, MANY_STARTS), "P=? [ F x=4 ]", throw=False)
    assert answer.error is None
    assert answer.value is None
    assert answer.lower == pytest.approx(0.25, rel=1e-7)
    assert answer.upper == pytest.approx(0.75, rel=1e-7)
    assert answer.lower <= 0.25 < 0.75 <= answer.upper


@pytest.mark.parametrize("bisimulation", [False, True])
def test_f24_a_range_is_told_apart_from_bounds(tmp_path, bisimulation):
    model = load_text(tmp_path, MANY_STARTS)
    answer = hybrid.check(model, "P=? [ F x=4 ]", bisimulation=bisimulation)
    least, greatest = answer.range.least, answer.range.greatest
    assert least.lower <= 0.25 <= least.upper < greatest.lower <= 0.75 <= greatest.upper
    assert (answer.lower, answer.upper) == (least.lower, greatest.upper)
    assert answer.range.states == 3
    assert f"from {least.value!r} to {greatest.value!r} over 3 initial states" in answer_text(answer)
    assert answer.record()["range"] == [
        {"value": end.value, "lower": end.lower, "upper": end.upper} for end in (least, greatest)
    ]
    one = hybrid.check(model, "filter(max, P=? [ F x=4 ])", bisimulation=bisimulation)
    assert one.range is None
    assert "range" not in one.record()


def test_f24_a_range_of_estimates_has_no_bounds(tmp_path):
    answer = hybrid.check(load_text(tmp_path, MANY_STARTS), "P=? [ F x=4 ]", method="jacobi")
    assert answer.kind == "estimate"
    assert (answer.value, answer.lower, answer.upper) == (None, None, None)
    assert answer.range.least[1:] == answer.range.greatest[1:] == (None, None)
    assert answer.range.least.value == pytest.approx(0.25, rel=1e-6)
    assert answer.range.greatest.value == pytest.approx(0.75, rel=1e-6)
    assert "(estimate, without bounds" in answer_text(answer)


def test_f24_ends_of_a_filter_and_infinite_ones(tmp_path):
    found = hybrid.check(load_text(tmp_path, MANY_STARTS), 'filter(range, R{"steps"}=? [ F x=4 ], x>0)')
    assert str(found.range).startswith("from 0.0 to Infinity over ")
    assert str(found.range).endswith(" states")
    assert found.record()["range"][1]["value"] == "Infinity"


def test_not_converged_is_no_number(backend, tmp_path):
    model = load_text(tmp_path, GAMBLER)
    answer = hybrid.check(
        model, "P=? [ F x=goal ]", backend=backend, method="interval", max_iterations=3, throw=False
    )
    assert answer.value is None
    # The bounds reached are told.
    assert 0.0 <= answer.lower < answer.upper <= 1.0
    assert answer.kind == "certified"
    assert "iteration limit" in answer.error
    assert "max_iterations" in answer.error
    assert answer.statistics.iterations == 3


@pytest.mark.parametrize(
    ("text", "prop", "words"),
    [
        (DIE, "P=? [ F (X (F<=2000 d=1)) ]", ""),
        (DIE, "filter(min, P>0.1 [ F d=1 ])", ""),
        (DIE, "filter(range, P=? [ F d=1 ]) > 0.5", ""),
        (DIE, 'P=? [ F "nowhere" ]', "nowhere"),
        (DIE, "filter(max, P=? [ F d=1 ], s=3 & d=4)", "no reachable state"),
        (MANY_STARTS, "filter(state, P=? [ F x=4 ], x>0)", r"\(x=1\).*filter\(min\|max\|avg"),
    ],
)
def test_what_has_no_answer_says_so_and_hides_no_other(text, prop, words, tmp_path):
    answers = hybrid.check_all(load_text(tmp_path, text), f"{prop}; P=? [ X true ]")
    assert answers[0].value is None
    assert answers[0].error
    assert re.search(words, answers[0].error)
    assert answers[1].value == 1.0


def test_constants_of_properties(tmp_path):
    model = load_text(tmp_path, DIE)
    answer = hybrid.check(model, "const int k; P=? [ F d=k ]", {"k": 4})
    assert answer.value == pytest.approx(1 / 6, rel=1e-6)


def test_deadlocks_are_absorbing(tmp_path):
    text = "dtmc module m s : [0..2]; [] s=0 -> 0.3 : (s'=1) + 0.7 : (s'=2); endmodule"
    model = load_text(tmp_path, text)
    assert "2 states have no outgoing transition" in model.warnings[0]
    assert hybrid.check(model, "S=? [ s=1 ]").value == pytest.approx(0.3)
    assert hybrid.check(model, 'P=? [ F "deadlock" ]').value == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "symbolic", "method": "jor"}, "gives bounds"),
        ({"engine": "symbolic", "backend": "reference"}, "runs on the cpu"),
        ({"engine": "diagrams"}, "choose auto, hybrid, explicit or symbolic"),
        ({"backend": "abacus"}, "abacus"),
        ({"engine": "explicit", "backend": "reference"}, "runs on the cpu"),
        ({"method": "magic"}, "magic"),
        ({"omega": 3.0, "method": "jor"}, "between 0 and 2"),
        ({"omega": 0.0}, "between 0 and 2"),
        ({"omega": 0.5, "method": "jacobi"}, "omega belongs to"),
        ({"omega": 2.0, "method": "gauss-seidel"}, "between 0 and 2"),
        ({"omega": 1.0, "method": "optimistic"}, "omega belongs to"),
    ],
)
def test_wrong_options_are_refused(options, message, tmp_path):
    model = load_text(tmp_path, DIE)
    with pytest.raises(OptionError, match=message):
        hybrid.check(model, "P=? [ F d=1 ]", **options)


def test_check_wants_one_property(tmp_path):
    model = load_text(tmp_path, DIE)
    with pytest.raises(ValueError, match="expected one property, got 2"):
        hybrid.check(model, "P=? [ F d=1 ]; P=? [ F d=2 ]")


def test_omega_alone_means_jor(tmp_path):
    answer = hybrid.check(load_text(tmp_path, GAMBLER), "P=? [ F x=goal ]", omega=0.8)
    assert answer.statistics.method == "jor"
    assert answer.value == pytest.approx(float(gambler_wins(3)), rel=1e-6)
