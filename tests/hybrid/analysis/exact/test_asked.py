"""Answers that are asked for in rational numbers: `exact=True`, `hybrid check --exact`."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import hybrid
from hybrid.base.errors import OptionError
from hybrid.checking.answer import fraction_text
from tests.builders.command_lines import run
from tests.builders.models import build
from tests.source_tree import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize(
    ("name", "constants", "prop", "expected"),
    [
        ("tandem", {"c": 1}, 'R{"customers"}=? [ S ]', None),
        ("brp", {"N": 2, "MAX": 2}, "P=? [ F s=FAILED ]", None),
        ("herman", {}, 'filter(max, T=? [ F "stable" ])', None),
        ("coin", {"K": 2}, 'Pmin=? [ F "all_heads" ]', Fraction(49, 128)),
        ("coin", {"K": 2}, 'R{"steps"}max=? [ F "decided" ]', Fraction(75)),
        ("jobs", {"N": 2}, 'Tmin=? [ F "done" ]', None),
    ],
)
def test_examples(name: str, constants: dict[str, int], prop: str, expected: Fraction | None) -> None:
    model = hybrid.load(EXAMPLES / f"{name}.prism", constants)
    exact, bounds = hybrid.check(model, prop, exact=True), hybrid.check(model, prop, backend="cpu")
    assert exact.exact is not None and exact.kind == "exact"
    assert bounds.lower <= exact.exact <= bounds.upper
    assert exact.lower <= exact.exact <= exact.upper and exact.value == float(exact.exact)
    assert bounds.exact is None and "exact" not in bounds.record()
    if expected is not None:
        assert exact.exact == expected


WALK = """dtmc
module walk
  s : [0..{n}] init 2;
  [] s>0 & s<{n} -> 1/3 : (s'=s-1) + 2/3 : (s'=s+1);
endmodule
rewards "steps" s>0 & s<{n} : 1; endrewards
"""


def test_ruin_of_a_gambler_beyond_what_ties_are_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.analysis.exact.reading.MAX_TRANSITIONS", 2000)
    n = 1200  # more transitions than are read for ties
    answer = hybrid.check(build(WALK.format(n=n)), f"P=? [ F s={n} ]", exact=True)
    assert answer.exact == (1 - Fraction(1, 4)) / (1 - Fraction(1, 2**n))


@pytest.mark.parametrize(
    ("prop", "expected"),
    [
        ("P=? [ F s=6 ] * 3 - 1", Fraction(9, 7)),
        ("filter(sum, P=? [ X s=6 ])", Fraction(5, 3)),
        ("P=? [ F<=4 s=6 ]", Fraction(16, 81)),
        ('R{"steps",discount=0.9}=? [ C ]', None),
        ('R{"steps"}=? [ C<=3 ]', Fraction(26, 9)),
    ],
)
def test_formulas(prop: str, expected: Fraction | None) -> None:
    answer = hybrid.check(build(WALK.format(n=6)), prop, exact=True)
    bounds = hybrid.check(build(WALK.format(n=6)), prop, backend="cpu")
    assert answer.exact is not None and bounds.lower <= answer.exact <= bounds.upper
    assert expected is None or answer.exact == expected


def test_comparisons_and_nested_formulas() -> None:
    model = build(WALK.format(n=6))
    chance = hybrid.check(model, "P=? [ F s=6 ]", exact=True).exact
    assert chance == Fraction(16, 21)
    assert hybrid.check(model, "P>=16/21 [ F s=6 ]", exact=True).value is True
    assert hybrid.check(model, "P>16/21 [ F s=6 ]", exact=True).value is False
    nested = hybrid.check(model, "P=? [ F P>=16/21 [ F s=6 ] ]", exact=True)
    assert nested.exact == 1
    assert hybrid.check(model, "P>=16/21 [ F s=6 ]", exact=True).exact is None


def test_discounts_of_a_decision_process() -> None:
    text = """mdp module m s : [0..1];
    [a] s=0 -> 1/2 : (s'=1) + 1/2 : (s'=0); [b] s=0 -> (s'=1); [] s=1 -> (s'=0); endmodule
    rewards "r" [a] true : 1; [b] true : 2; endrewards"""
    model = build(text)
    # Always b: v = 2 + d^2 v; always a: v = 1 + d v / 2 + d^2 v / 2.
    d = Fraction(1, 3)
    a, b = 1 / (1 - d / 2 - d * d / 2), 2 / (1 - d * d)
    for optimum, best in (("max", max(a, b)), ("min", min(a, b))):
        assert hybrid.check(model, f'R{{"r",discount=1/3}}{optimum}=? [ C ]', exact=True).exact == best


@pytest.mark.parametrize(
    ("prop", "message"),
    [
        ("P=? [ F (s=6 & (X s=6)) ]", "LTL is not solved exactly"),
        ("P=? [ F s=6 || F s=0 ]", "conditional"),
        ('R{"steps"}=? [ C ]', None),
    ],
)
def test_what_has_no_rational_answer_is_refused(prop: str, message: str | None) -> None:
    answer = hybrid.check(build(WALK.format(n=6)), prop, exact=True, throw=False)
    if message is None:
        assert answer.exact is not None
        return
    assert answer.value is None and message in str(answer.error)
    assert "leave exact out" in str(answer.error) or "exact=" in str(answer.error)


def test_options_that_do_not_go_together() -> None:
    model = build(WALK.format(n=6))
    with pytest.raises(OptionError, match="a method of their own"):
        hybrid.check(model, "P=? [ F s=6 ]", exact=True, method="interval")
    mdp = build("mdp module m s : [0..1]; [] s=0 -> (s'=1); endmodule")
    with pytest.raises(OptionError, match="schedulers come with bounds"):
        hybrid.check(mdp, "Pmax=? [ F s=1 ]", exact=True, scheduler=True)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    model, const = str(EXAMPLES / "coin.prism"), ["--const", "K=2"]
    status, out, _ = run(capsys, "check", model, 'Pmin=? [ F "all_heads" ]', *const, "--exact")
    assert status == 0 and "0.3828125  (exactly 49/128)" in out and "iterations" not in out
    status, out, _ = run(capsys, "check", model, 'Pmin=? [ F "all_heads" ]', *const, "--exact", "--json")
    assert json.loads(out)["results"][0]["exact"] == "49/128"
    walk = ["check", str(EXAMPLES / "kanban.prism"), 'R{"throughput"}=? [ S ]', "--const", "t=1", "--exact"]
    status, out, _ = run(capsys, *walk)
    assert status == 0 and "a fraction whose denominator has" in out and "--json has it" in out
    assert run(capsys, "check", model, "Pmin=? [ F true ]", *const, "--exact", "--certificate", "c")[0] == 2


def test_integers_of_any_length_are_written() -> None:
    assert fraction_text(Fraction(10**5000, 3)) == "1" + "0" * 5000 + "/3"
    assert fraction_text(Fraction(-7)) == "-7"
