"""Models built for their questions: what settles them, fewer states, the same answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.models.settled_states import ended_in, is_settled_in, settled_states
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.build import build_model
from mtbdd.language import parse_model, resolve
from mtbdd.language.expression_parser import to_text
from tests.attack.cases import draw_case
from tests.attack.directed import run_directed
from tests.builders.command_lines import run
from tests.exploring import rounds

WALK = """
dtmc
const int n = 50;
module walk
  s : [0..n] init 3;
  [] s>0 & s<n -> 0.4 : (s'=s+1) + 0.6 : (s'=s-1);
  [] s=0 | s=n -> true;
endmodule
label "high" = s>=10;
label "end" = "high" & s=n;
rewards true : 1; endrewards
"""
SOURCE = resolve(parse_model(WALK, "walk.pm"), {})


def settling(*texts: str) -> str | None:
    props = resolve_properties(parse_properties("; ".join(texts)), SOURCE).properties
    found = settled_states(SOURCE, [p.formula for p in props])
    return None if found is None else to_text(found)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (['P=? [ F "high" ]'], "s>=10"),
        (["P=? [ F s=7 ]"], "s=7"),
        (["P=? [ G s<7 ]"], "!s<7"),
        (["P=? [ s<9 U s=7 ]"], "s=7 | !s<9"),
        (["P=? [ s<9 W s=7 ]"], "s=7 | !s<9"),
        (["P=? [ s=7 R s<9 ]"], "s=7 | !s<9"),
        (["P=? [ F<=12 s=7 ]"], "s=7"),
        (["R=? [ F s=7 ]"], "s=7"),
        (["R{1}<=20 [ F s=7 ]"], "s=7"),
        (["A [ F s=7 ]"], "s=7"),
        (['filter(max, P=? [ F s=7 ], "init")'], "s=7"),
        (["P=? [ F s=7 ] / P=? [ F s=8 ]"], "s=7 & s=8"),
        (["P>=0.1 [ F s=7 ] & s=3"], "s=7"),
        (["P=? [ F s=7 ]", "R=? [ F s=7 ]"], "s=7"),
        (["P=? [ F s=7 ]", "P=? [ F s<2 ]"], "s=7 & s<2"),
    ],
)
def test_states_that_settle(texts: list[str], expected: str) -> None:
    found = settling(*texts)
    assert found is not None
    plain = found.replace("(", "").replace(")", "").replace(" ", "")
    assert plain == expected.replace(" ", "")


@pytest.mark.parametrize(
    "text",
    [
        "P=? [ X s=7 ]",
        "P=? [ F[3,9] s=7 ]",
        "P=? [ F P>=0.5 [ F s=7 ] ]",
        "P=? [ G F s=7 ]",
        "P=? [ (F s=7) & (F s=9) ]",
        'P=? [ F "deadlock" ]',
        'P=? [ F "init" & s=3 ]',
        "R=? [ C<=5 ]",
        "R=? [ I=5 ]",
        "R=? [ C ]",
        "R=? [ S ]",
        "S=? [ s=0 ]",
        "filter(max, P=? [ F s=7 ])",
        "filter(max, P=? [ F s=7 ], s<9)",
        "s=3",
    ],
)
def test_questions_that_nothing_settles_have_the_whole_model(text: str) -> None:
    assert settling(text) is None
    assert settling("P=? [ F s=7 ]", text) is None
    assert ended_in(SOURCE, None) is SOURCE


def test_states_behind_are_not_found() -> None:
    (prop,) = resolve_properties(parse_properties("P=? [ F s=7 ]"), SOURCE).properties
    settled = settled_states(SOURCE, [prop.formula])
    model = build_model(ended_in(SOURCE, settled))
    assert model.n_states == 8 and not model.warnings
    assert is_settled_in(model.source, settled) and not is_settled_in(model.source, None)
    assert is_settled_in(SOURCE, None) and not is_settled_in(SOURCE, settled)
    answer, whole = (hybrid.check(m, "P=? [ F s=7 ]") for m in (model, build_model(SOURCE)))
    assert answer.lower <= whole.upper and whole.lower <= answer.upper


@pytest.fixture
def walk(tmp_path: Path) -> str:
    path = tmp_path / "walk.pm"
    path.write_text(WALK)
    return str(path)


@pytest.mark.parametrize(
    ("options", "states"),
    [
        (["P=? [ F s=7 ]"], 8),
        (["P=? [ F s=7 ]", "--build", "explicit"], 8),
        (["P=? [ F s=7 ]", "--build-full"], 51),
        (["P=? [ F s=7 ]", "--no-fix-deadlocks"], 51),
        (["P=? [ F s=7 ]; S=? [ s=0 ]"], 51),
        (["P=? [ F s=7 ]; S=? [ s=0 ]", "--prop", "1"], 8),
    ],
)
def test_the_command_builds_for_its_questions(
    walk: str, options: list[str], states: int, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, "check", walk, *options, "--json")
    record = json.loads(out)
    assert (status, record["model"]["states"]) == (0, states)
    is_whole = states == 51
    assert record["model"]["built"] == ("whole" if is_whole else "for the question")
    assert record["results"][0]["value"] == pytest.approx((1.5**3 - 1) / (1.5**7 - 1), rel=1e-6)


def test_the_command_tells_it(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    for more, is_told in (["-v"], True), ([], False), (["-v", "--build-full"], False):
        assert main(["check", walk, "P=? [ F s=7 ]", *more]) == 0
        assert ("note: built for the question" in capsys.readouterr().err) == is_told


def test_values_of_all_states_have_the_whole_model(
    walk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "values.csv"
    assert run(capsys, "check", walk, "P=? [ F s=7 ]", "--values", str(path))[0] == 0
    assert len(path.read_text().splitlines()) == 52


def test_runs_share_a_build_while_the_same_states_settle_them(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hybrid.app.cli import check

    built, build = [], check.built_model

    def counted(*arguments: object) -> object:
        built.append(1)
        return build(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(check, "built_model", counted)
    for text, count in (("P=? [ F<=k s=7 ]", 1), ("P=? [ F s=k ]", 3)):
        built.clear()
        status, out, _ = run(capsys, "check", walk, text, "--const", "k=5:7", "--json-lines")
        assert status == 0 and len(built) == count
    sizes = [json.loads(line)["model"]["states"] for line in out.splitlines()]
    assert sizes == [6, 7, 8]


@pytest.mark.parametrize("number", range(rounds(20)))
def test_random_models(number: int) -> None:
    record = run_directed(draw_case(20261128, number))
    assert not record.findings, record.findings[0].report()
