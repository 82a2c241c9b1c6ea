"""Faults as the shell shows them: each at its place, none hides another, misspelt things with the nearest."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hybrid.app.cli.arguments import parse_arguments
from hybrid.app.cli.excerpts import advice_on
from tests.builders.command_lines import GIVEN, WALK, refused, run, values


def test_a_fault_hides_no_other_property(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'P=? [ F s=1 ];\nP=? [ F s= ];\n"x": P=? [ G (s<2 ];\nP=? [ F q=1 ];\nP=? [ F<=1 s=1 ]\n'
    Path("bad.props").write_text(text)
    status, out, _ = run(capsys, "check", walk, "bad.props", *GIVEN, "--json")
    results = json.loads(out)["results"]
    assert status == 1
    assert [result["value"] for result in results] == [1.0, None, None, None, 0.5]
    places = ["bad.props:2:12:", "bad.props:3:19:", "bad.props:4:9:"]
    assert all(place in results[1 + k]["error"] for k, place in enumerate(places))
    status, out, _ = run(capsys, "check", walk, "bad.props", *GIVEN)
    assert "      2 | P=? [ F s= ];\n        |            ^\n" in out


def test_a_name_given_twice_hides_no_property(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("two.props").write_text(
        '"a": P=? [ F s=1 ];\n"a": P=? [ F<=1 s=1 ];\n"init": P=? [ F s=1 ];\n'
        'P>=1 [ F "a" ];\nP=? [ F<=1 s=1 ]\n'
    )
    status, out, _ = run(capsys, "check", walk, "two.props", *GIVEN, "--json")
    results = json.loads(out)["results"]
    assert status == 1 and [r["value"] for r in results][:3] == [1.0, None, None]
    assert results[1]["error"].startswith("two.props:2:6: property 'a' is declared a second time")
    assert "built-in label" in results[2]["error"] and results[4]["value"] == 0.5
    assert values(run(capsys, "check", walk, "two.props", *GIVEN, "--prop", "a", "--json")) == [1.0]


def test_several_faults_of_a_property_stand_below_each_other(
    walk: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "check", walk, "P=? [ F s=q & s=r ]", *GIVEN)
    assert "answered: <property>:1:11: unknown name 'q'" in out
    assert "\n  <property>:1:17: unknown name 'r'" in out
    assert "\n      1 | P=? [ F s=q & s=r ]\n        |                 ^" in out


def test_declarations_with_faults_end_the_command(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.props").write_text("const int = 3;\nP=? [ F s= ];\nP=? [ F s=1 ]\n")
    status, _, err = run(capsys, "check", walk, "bad.props", *GIVEN)
    assert status == 2 and "bad.props:1:11:" in err and "bad.props:2:12:" in err


def test_f5_a_comment_in_another_encoding_is_read(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.prism").write_bytes(b"// caf\xe9 (a comment in Latin-1)\n" + Path(walk).read_bytes())
    Path("m.props").write_bytes(b"// caf\xe9\nP=? [ F<=1 s=1 ]")
    assert values(run(capsys, "check", "m.prism", "m.props", *GIVEN, "--json")) == [0.5]
    Path("m.props").write_bytes(b'// caf\xe9\nP=? [ F<=1 "caf\xe9" ]')
    _, out, err = run(capsys, "check", "m.prism", "m.props", *GIVEN)
    assert "m.props:2:16: expected a text in UTF-8, got the byte 0xe9" in out + err
    assert '    2 | P=? [ F<=1 "caf?" ]\n      |                ^' in out + err


@pytest.mark.parametrize("declared", ["const int N = 3;", "const int N;"])
def test_constants_of_both_files_are_told_as_such(
    walk: str, capsys: pytest.CaptureFixture[str], declared: str
) -> None:
    Path("both.props").write_text(f"{declared} P=? [ F s=N ]")
    status, _, err = run(capsys, "check", walk, "both.props", *GIVEN)
    assert status == 2 and "constant 'N' is declared in the model walk.pm, too" in err
    assert "without a value" not in err
    # What the model misses besides is told as before.
    status, _, err = run(capsys, "check", walk, "both.props", "--const", "N=3")
    assert status == 2 and "constants without a value" in err


def test_faults_show_the_line_of_the_text(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.pm").write_text(WALK.replace("s<N ->", "s<<N ->").replace("  []", "\t[]"))
    status, _, err = run(capsys, "check", "bad.pm", *GIVEN)
    message, line, caret = err.splitlines()
    assert status == 2 and message.startswith("error: bad.pm:6:")
    column = int(message.split(":")[3])
    shown = line.index("|") + 2
    # A tab is shown as blanks up to a multiple of four.
    assert line[shown:].startswith("    [] s<<N ->")
    assert caret.index("^") == shown + column - 1 + 3


@pytest.mark.parametrize("name", ["walk.tra", "walk.tra.gz"])
def test_faults_of_listed_states_show_their_line(
    walk: str, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert run(capsys, "export", walk, *GIVEN, "--to", "walk.tra", "walk.lab")[0] == 0
    text = Path("walk.tra").read_bytes().replace(b"0.5", b"0.z", 1)
    Path(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    status, _, err = run(capsys, "info", name, "--type", "dtmc")
    message, line, caret = err.splitlines()
    number = int(message.split(":")[2])
    assert status == 2 and f"{name}:{number}: " in message
    assert line == f"{number:>5} | {text.decode().splitlines()[number - 1]}"
    assert line[caret.index("^") :].startswith("0.z")
    Path("walk.lab").write_text("start\x1b[31m\n")
    status, _, err = run(capsys, "info", "walk.tra", "--type", "dtmc", "--labels", "walk.lab")
    assert status == 2 and "\n    1 | start?[31m\n" in err and "\x1b" not in err


def test_terminals_are_not_driven_by_texts(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "check", walk, "P=? [ F \x1b[31m ]", *GIVEN)
    assert status == 2 and "\x1b" not in out + err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "walk.pmm"], "a model file, but there is no such file; did you mean 'walk.pm'?"),
        (["check", "walk.pm", "walk.prop"], "did you mean 'walk.props'?"),
        (["check", "walk.pm", "walks.txt"], "walks.txt:1:1: expected a properties file, but there is no"),
        (["check", "walk.pm", "no/where.txt"], "no/where.txt:1:1: expected a properties file, but"),
        (["simulate", "walk.pm", "walk.prop"], "did you mean 'walk.props'?"),
        (["info", "walk.umb"], "walk.umb: cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_misspelt_files_are_told_as_such(
    walk: str, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    status, _, err = run(capsys, *arguments)
    assert status == 2 and told in err


def test_a_bare_word_may_be_a_misspelt_file(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", walk, "walkprops", *GIVEN)
    assert status == 1 and "unknown name 'walkprops'" in out
    assert "; there is no file walkprops either; did you mean 'walk.props'?" in out
    assert "no file" not in run(capsys, "check", walk, "-pf", "walkprops", *GIVEN)[1]
    assert values(run(capsys, "check", walk, "s", *GIVEN, "--json")) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["chek"], "or help, got 'chek'; did you mean 'check'?"),
        (["help", "graf"], "did you mean 'graph'?"),
        (["check", "m.pm", "--method", "jro"], "or optimistic, got 'jro'; did you mean 'jor'?"),
        (["check", "m.pm", "--engine", "explict"], "or symbolic, got 'explict'; did you mean 'explicit'?"),
        (["check", "m.pm", "--backend", "referenc"], "got 'referenc'; did you mean 'reference'?"),
        (["check", "m.pm", "--representation", "task"], "got 'task'; did you mean 'tasks'?"),
        (["check", "m.pm", "--level", "min-tiem"], "or a number; did you mean 'min-time'?"),
        (["info", "m.pm", "--package", "cud"], "expected auto, cudd or autoref, got 'cud'"),
    ],
)
def test_misspelt_commands_and_values_are_told_with_the_nearest(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert told in refused(capsys, *arguments)


def test_misspelt_options_are_told_with_the_nearest(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (["--metod", "jor"], ["--metod=jor"]):
        told = refused(capsys, "check", walk, *given)
        assert f"unrecognized arguments: {given[0]}; did you mean '--method'?" in told
    assert "write answers with --csv" in refused(capsys, "check", walk, "-exportresults", "x.csv")
    # Neither `-s im` nor `-e xporttrans`, though there are `-s` and `-e`.
    for option in ("-sim", "-exporttrans"):
        assert f"{option} is no option here: " in refused(capsys, "check", walk, option)
    assert "unrecognized arguments: -mtbd" in refused(capsys, "check", walk, "-mtbdx")
    assert parse_arguments(["plot-matrix", walk, "-om.png"]).output == "m.png"
    assert advice_on("-sim").startswith("estimate with") and not advice_on("sim")


def test_a_label_without_quotes_is_told_with_them(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "check", walk, "P=? [ F end ]", *GIVEN)
    assert "<property>:1:9: unknown name 'end'; a label is written in quotes; write \"end\"" in out


def test_memory_that_does_not_suffice_is_told_with_the_disk(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("mtbdd.base.memory.free_memory_bytes", lambda: 1)
    Path("r.pm").write_text(Path(walk).read_text() + "rewards true : 1; endrewards")
    for asked in ("P=? [ F<=2 s=2 ]", "R=? [ C<=2 ]", "R=? [ F s=2 ]"):
        status, out, _ = run(capsys, "check", "r.pm", asked, *GIVEN)
        assert status == 1 and "out of memory: " in out and "--spill DIR, which has" in out


def test_a_matrix_that_is_not_written_out_names_options_alone(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtbdd.base.memory._SMALL", 0)
    monkeypatch.setattr("hybrid.matrix.explicit.extract.free_memory_bytes", lambda: 1)
    status, out, err = run(capsys, "check", walk, "P=? [ F<=2 s=2 ]", *GIVEN, "--engine", "explicit")
    assert status == 1 and "or --engine hybrid, which compresses it" in out + err
    assert "hybrid.inject" not in out + err


@pytest.mark.parametrize("given", ["-fair", "--fair", "--minmax:method=vi", "-timeout", "--jani"])
def test_f18_options_of_other_tools_are_refused_by_name(
    walk: str, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    told = refused(capsys, "check", walk, "P=? [ F s=1 ]", given, "5")
    assert f"error: {given.partition('=')[0]} is no option here: " in told
    assert "unrecognized" not in told
