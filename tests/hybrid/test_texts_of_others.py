"""Models and properties as other programs and their users write them are answered."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.checking.simulation import estimate

BLANKS = """dtmc
module m
  s:[0..3];
  [] s=0 -> 0.2:(s'=1)+0.8:(s'=2);
  [] s=1 -> 0.25:(s'=0)+0.75:(s'=3);
  [] s>1 -> true;
endmodule
label " out " = s=2;
rewards " steps" s<2 : 1; endrewards
"""

WORDS = """@type: DTMC
@parameters

@reward_models
steps
@nr_states
3
@nr_choices
3
@model
state 0 [1] init
\taction 0 [0]
\t\t1 : 0.25
\t\t2 : 0.75
state 1 [1] "two words"
\taction 0 [0]
\t\t1 : 1
state 2 [0] "x=1 & y"
\taction 0 [0]
\t\t2 : 1
"""


def test_f5_a_comment_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_bytes(
        b"// caf\xe9\ndtmc\nmodule m s:[0..2]; [] s=0 -> 0.25:(s'=1)+0.75:(s'=2); [] s>0 -> true; endmodule"
    )
    assert hybrid.check(hybrid.load(path), "P=? [ F s=1 ]").value == pytest.approx(0.25)


def test_f8_a_scheduler_that_prism_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "adversary.tra"
    path.write_text("2 3\n0 0 1 0.5 a\n0 0 0 0.5 a\n1 0 1 1 b\n")
    (tmp_path / "adversary.sta").write_text("(s)\n0:(3) begins\n1:(7)\n")
    assert main(["check", str(path), "Pmin=? [ F<=2 s=7 ]", "--json", "--quiet"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["value"] == pytest.approx(0.75)


OPEN = """dtmc
const double q;
module m s:[0..2]; [] s=0 -> q:(s'=1)+1-q:(s'=2); [] s>0 -> true; endmodule
"""


@pytest.mark.parametrize(("given", "expected"), [("1/2", 0.5), ("1.", 1.0), ("1-0.75", 0.25)])
def test_f7_constants_of_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, expected: float
) -> None:
    path = tmp_path / "m.prism"
    path.write_text(OPEN)
    assert main(["check", str(path), "P=? [ F s=1 ]", "--const", f"q={given}", "--json", "--quiet"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["value"] == pytest.approx(expected)


def test_f7_ranges_stand_beside_expressions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.prism"
    path.write_text(OPEN.replace("const", "const int N; const int K; const"))
    command = ["check", str(path), "P=? [ F<=K s=1 ]", "--json", "--quiet", "--const"]
    for given, expected in [
        ("q=1/4,K=min(1,2),N=0:2", [0.25] * 3),
        ("K=1,N=true?1:2,q=0:0.25:0.5", [0.0, 0.25, 0.5]),
        ("K=1,N=0,q=0:1/4:1/2", [0.0, 0.25, 0.5]),
    ]:
        assert main([*command, given]) == 0
        found = [record["results"][0]["value"] for record in json.loads(capsys.readouterr().out)]
        assert found == pytest.approx(expected)


def test_f7_exact_answers_know_the_number_of_a_constant() -> None:
    for given in ("1/3", Fraction(1, 3), "1-2/3", "0.5*2/3"):
        model = hybrid.parse(OPEN, constants={"q": given})
        for bound in (">=", "<="):
            assert hybrid.check(model, f"P{bound}1/3 [ F s=1 ]", exact=True).value is True


def test_f7_constants_of_the_library_may_be_texts_and_fractions(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(OPEN)
    for given in ("1/4", Fraction(1, 4), Decimal("0.25"), 0.25):
        assert hybrid.check(hybrid.load(path, constants={"q": given}), "P=? [ F s=1 ]").value == 0.25
        table = hybrid.experiment(path, "P=? [ F s=1 ]", constants={"q": given})
        assert [(record["q"], record["value"]) for record in table] == [(0.25, 0.25)]
    table = hybrid.experiment(path, "P=? [ F s=1 ]", constants={"q": ["1/4", Fraction(1, 2), 1]})
    assert [record["value"] for record in table] == [0.25, 0.5, 1.0]
    with pytest.raises(hybrid.HybridError, match="like 1/2, true or false for 'q', got 'half'"):
        hybrid.experiment(path, "P=? [ F s=1 ]", constants={"q": "half"})


COIN = """dtmc
const double q;
module m s:[0..2]; [] s<2 -> q:(s'=s+1)+1-q:true; [] s=2 -> true; endmodule
formula T0 = 2;
"""


def test_f17_a_constant_that_is_given_need_not_be_declared(tmp_path: Path) -> None:
    path = tmp_path / "m.prism"
    path.write_text(COIN)
    table = hybrid.experiment(path, "P=? [ F<=T s=2 ]", constants={"T": [1, 2, 3], "q": 0.5})
    assert [r["T"] for r in table] == [1, 2, 3]
    assert [r["value"] for r in table] == pytest.approx([0.0, 0.25, 0.5])
    table = hybrid.experiment(path, "P=? [ F<=T s=2 ]", constants={"T": 2, "q": [0.5, 1.0]})
    assert [r["value"] for r in table] == pytest.approx([0.25, 1.0])
    model = hybrid.load(path, constants={"q": 0.5})
    table = hybrid.experiment(model, "P=? [ F<=T s=2 ]", constants={"T": range(1, 4)})
    assert [r["value"] for r in table] == pytest.approx([0.0, 0.25, 0.5])
    assert hybrid.check(model, "P>p [ F<=T+1 s=2 ]", {"T": 1, "p": "1/5"}).value is True
    both = "P=? [ F<=T s=2 ]; P>=1 [ F a ? s=2 : true ]"
    assert [answer.value for answer in hybrid.check_all(model, both, {"T": 2, "a": True})] == [0.25, True]
    found = estimate(path, "P=? [ F<=T s=2 ]", constants={"q": 1.0, "T": 2}, paths=10)
    assert found.value == 1.0


def test_f17_a_constant_of_the_command_line_need_not_be_declared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.prism"
    path.write_text(COIN)

    def found(*arguments: str) -> list[float]:
        assert main(["check", str(path), *arguments, "--json", "--quiet"]) == 0
        records = json.loads(capsys.readouterr().out)
        return [r["results"][0]["value"] for r in (records if isinstance(records, list) else [records])]

    assert found("P=? [ F<=T s=2 ]", "--const", "q=0.5,T=2") == [0.25]
    assert found("P=? [ F<=T s=2 ]", "--const", "T=1:3,q=0.5") == pytest.approx([0.0, 0.25, 0.5])
    assert found("P=? [ F<=T s=2 ]", "--const", "T=2,q=0.5:0.5:1") == pytest.approx([0.25, 1.0])
    (tmp_path / "m.props").write_text('label "end" = s=goal; P=? [ F<=2 "end" ]')
    assert found(str(tmp_path / "m.props"), "--const", "q=0.5,goal=1") == [0.75]


@pytest.mark.parametrize(
    ("asked", "given", "message"),
    [
        ("P=? [ F<=T s=2 ]", {"q": 0.5, "t": 2}, "unknown constant 't' was given"),
        ("P=? [ F<=2 s=2 ]", {"q": 0.5, "T": 2}, "unknown constant 'T' was given"),
        ("P=? [ F<=T0 s=2 ]", {"q": 0.5, "T0": 2}, "unknown constant 'T0' was given"),
        ("P=? [ F<=s s=2 ]", {"q": 0.5, "s": 2}, "unknown constant 's' was given"),
        ("P=? [ F<=T s=2 ]", {"q": 0.5}, "unknown name 'T'"),
        ("P=? [ F<=T s=2 ]", {"q": 0.5, "T": 0.5}, "must be an int"),
    ],
)
def test_f17_other_constants_are_refused(tmp_path: Path, asked: str, given: dict, message: str) -> None:
    path = tmp_path / "m.prism"
    path.write_text(COIN)
    with pytest.raises(hybrid.HybridError, match=message):
        raise hybrid.HybridError(hybrid.experiment(path, asked, constants=given)[0]["error"])


@pytest.mark.parametrize("asked", ['"out"', '" out"', '"\tout  "'])
def test_f6_blanks_around_names_in_quotes(asked: str) -> None:
    model = hybrid.parse(BLANKS)
    assert hybrid.check(model, f"P=? [ F {asked} ]").value == pytest.approx(16 / 19)
    assert hybrid.check(model, f'"found ": P=? [ F {asked} ]').value == pytest.approx(16 / 19)
    assert hybrid.check(model, 'R{"steps "}=? [ F s>1 ]').value == pytest.approx(24 / 19)


def test_f6_labels_of_files_may_be_any_text(tmp_path: Path) -> None:
    path = tmp_path / "m.drn"
    path.write_text(WORDS)
    model = hybrid.load(path)
    assert hybrid.check(model, 'P=? [ F "two words" ]').value == pytest.approx(0.25)
    assert hybrid.check(model, 'P=? [ F "x=1 & y" & !"two words" ]').value == pytest.approx(0.75)
    with pytest.raises(hybrid.HybridError, match='unknown label "two word"; did you mean'):
        hybrid.check(model, 'P=? [ F "two word" ]')
