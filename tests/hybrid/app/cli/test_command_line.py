"""The command line that hands expect: any order, repeated constants, standard input, places, spellings."""

from __future__ import annotations

import io
import json
import shlex
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.app.cli.arguments import parse_arguments
from hybrid.app.cli.excerpts import SAME
from tests.builders.command_lines import GIVEN, PROPERTIES, WALK, refused, run, values

# ------------------------------------------------------------------ order, constants, standard input


@pytest.mark.parametrize(
    "line",
    [
        "check walk.pm 'P=? [ F<=1 s=1 ]' --const N=3,p=0.5 --json",
        "check walk.pm --const N=3,p=0.5 'P=? [ F<=1 s=1 ]' --json",
        "check --json --const N=3,p=0.5 walk.pm 'P=? [ F<=1 s=1 ]'",
        "check --const N=3 walk.pm --json 'P=? [ F<=1 s=1 ]' --const p=0.5",
        "check -const N=3,p=0.5 walk.pm -pf 'P=? [ F<=1 s=1 ]' --json",
        "check --json --const N=3,p=0.5 -- walk.pm 'P=? [ F<=1 s=1 ]'",
    ],
)
def test_options_and_positions_stand_in_any_order(
    walk: str, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    assert values(run(capsys, *shlex.split(line))) == [0.5]


PIECES: dict[str, list[list[str]]] = {
    "check": [
        *(["m.pm"], ["P=? [ F x ]"], ["--const", "N=1"], ["--json"]),
        *(["-jor"], ["--prop", "1,a"], ["-e", "0.1"]),
    ],
    "levels": [["m.pm"], ["--const=N=1"], ["--measure"], ["--plot", "l.png"], ["--level", "3"]],
    "export": [["m.pm"], ["--const", "N=1"], ["--to", "a.tra"], ["--to", "b.sta"], ["--force"]],
    "simulate": [["m.pm"], ["a.props"], ["--start", "x=1"], ["--steps", "5"], ["-v"], ["--paths", "7"]],
    "verify": [["m.pm"], ["a.cert"], ["--const", "N=1"], ["--threads", "2"], ["--json"]],
    "explore": [["m.pm"], ["--const", "N=1:3"], ["--to", "p.html"], ["--timeout", "5"], ["--memory", "4G"]],
    "graph": [["m.pm"], ["--mec"], ["--scc"], ["--package", "autoref"], ["--order", "force"]],
}


@settings(max_examples=40)
@given(st.data())
def test_every_order_of_every_command_means_the_same(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PIECES)))
    pieces = PIECES[name]
    order = data.draw(st.permutations(pieces))
    # Positions keep theirs among each other.
    positions = iter([piece for piece in pieces if not piece[0].startswith("-")])
    order = [piece if piece[0].startswith("-") else next(positions) for piece in order]
    expected, found = (
        vars(parse_arguments([name, *(word for piece in line for word in piece)])) for line in (pieces, order)
    )
    if name == "export":
        found["to"], expected["to"] = set(found["to"]), set(expected["to"])
    assert found == expected


def test_what_follows_two_dashes_is_a_position(capsys: pytest.CaptureFixture[str]) -> None:
    found = parse_arguments(["check", "--json", "--", "-model.pm", "--list"])
    assert (found.model, found.property, found.list) == ("-model.pm", "--list", False)
    told = refused(capsys, "check", "a", "b", "c")
    assert "unrecognized arguments: c; several properties are one text, with ';' between them" in told


def test_what_is_given_several_times_is_joined() -> None:
    found = parse_arguments(["check", "m.pm", "-pf", "a", "-pf", "b", "--const", "N=1", "-const", "K=2"])
    assert (found.property, found.const) == ("a;\nb", "N=1,K=2")
    assert parse_arguments(["info", "m.pm", "--const", "N=1", "--const", ""]).const == "N=1"
    assert parse_arguments(["simulate", "m.pm", "--start", "x=1", "--start", "y=2"]).start == "x=1,y=2"


@pytest.mark.parametrize(
    "line",
    [
        "m.pm --to a.tra b.sta",
        "--to a.tra b.sta m.pm",
        "--to a.tra --const N=1 m.pm --to b.sta",
        "--to a.tra m.pm --to b.sta",
    ],
)
def test_a_model_is_exported_wherever_it_stands(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = parse_arguments(["export", *line.split()])
    assert (found.model, found.to) == ("m.pm", ["a.tra", "b.sta"])
    found = parse_arguments(["export", "--to", "a.tra", "m.tra"])
    assert (found.model, found.to) == ("m.tra", ["a.tra"])
    assert "export: expected a model as well" in refused(capsys, "export", "--to", "a.tra")


def test_constants_given_twice_are_a_fault(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "check", walk, "P=? [ F s=1 ]", "--const", "N=3,p=0.5", "--const", "N=4")
    assert status == 2 and "N" in err and "twice" in err


@pytest.mark.parametrize("command", ["check", "info", "levels", "graph", "simulate"])
def test_a_model_may_come_on_standard_input(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WALK.encode())))
    status, out, err = run(capsys, command, "-", *GIVEN)
    assert status == 0 and out and not err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"dtmc module")))
    status, _, err = run(capsys, command, "-")
    assert status == 2 and "<stdin>:1:" in err


def test_properties_may_come_on_standard_input(
    walk: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PROPERTIES.encode())))
    assert values(run(capsys, "check", walk, "-", *GIVEN, "--json")) == [0.25, 1.0, 0.5]
    assert "standard input is one text" in refused(capsys, "check", "-", "-")


# ------------------------------------------------------------------ which properties


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (["--prop", "1"], [0.25]),
        (["-prop", "3"], [0.5]),
        (["--prop", "named"], [1.0]),
        (["--prop", "3,1"], [0.5, 0.25]),
        (["--property", "0"], [0.25]),
        (["--property", "2", "--prop", "2"], [0.5, 1.0]),
    ],
)
def test_places_count_from_one_or_from_zero(
    walk: str, capsys: pytest.CaptureFixture[str], chosen: list[str], expected: list[float]
) -> None:
    assert values(run(capsys, "check", walk, "walk.props", *GIVEN, *chosen, "--json")) == expected


def test_places_that_do_not_exist_are_refused(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "check", walk, "walk.props", *GIVEN, "--prop", "4")
    assert status == 2 and "--prop: expected a place from 1 to 3, or a name of named, got 4" in err
    status, _, err = run(capsys, "check", walk, "walk.props", *GIVEN, "--prop", "namd")
    assert status == 2 and "a name of named, got 'namd'; did you mean 'named'?" in err
    status, _, err = run(capsys, "check", walk, "walk.props", *GIVEN, "--property", "3")
    assert status == 2 and "--property: expected a place from 0 to 2 (--prop counts from 1), or" in err
    assert "--property counts from 0" in refused(capsys, "check", walk, "walk.props", "--prop", "0")


def test_properties_are_listed_without_a_model(walk: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "check", "nothing.pm", "walk.props", "--list")
    assert status == 0
    assert out.splitlines() == [
        "1  P=? [ F<=2 s=2 ]",
        '2  "named": P=? [ F "end" ]',
        "3  P=? [ F<=1 s=1 ]",
    ]
    status, out, _ = run(capsys, "check", "nothing.pm", "walk.props", "--list", "--prop", "named", "--json")
    assert json.loads(out)["properties"][0] == {
        "number": 2, "name": "named", "property": 'P=? [ F "end" ]', "error": None,
    }  # fmt: skip
    status, out, _ = run(capsys, "check", "nothing.pm", "walk.props", "--list", "--json-lines")
    assert [json.loads(line)["number"] for line in out.splitlines()] == [1, 2, 3]
    assert run(capsys, "check", walk, "--list")[0] == 2


# ------------------------------------------------------------------ PRISM's spellings


@pytest.mark.parametrize(
    ("spelt", "name", "value"),
    [
        ("-epsilon 1e-3", "epsilon", 1e-3),
        ("-e 1e-3", "epsilon", 1e-3),
        ("-abs", "absolute", True),
        ("--absolute -relative", "absolute", False),
        ("-maxiters 7", "max_iters", 7),
        ("-exact", "exact", True),
        ("-paretoepsilon 0.1", "pareto_epsilon", 0.1),
        ("-jor -omega 0.8", "omega", 0.8),
        ("-jor", "method", "jor"),
        ("-gaussseidel", "method", "gauss-seidel"),
        ("-intervaliter", "method", "interval"),
        ("-ii", "method", "interval"),
        ("-gs", "method", "gauss-seidel"),
        ("-sparse", "engine", "explicit"),
        ("-ex", "engine", "explicit"),
        ("-hybrid", "engine", "hybrid"),
        ("-m", "engine", "symbolic"),
        ("-nofixdl", "no_fix_deadlocks", True),
        ("-const N=2 -const p=1", "const", "N=2,p=1"),
        ("-pctl true", "property", "true"),
        ("-property 2", "chosen", [1]),
    ],
)
def test_spellings_of_prism(spelt: str, name: str, value: object) -> None:
    assert getattr(parse_arguments(["check", "m.pm", *spelt.split()]), name) == value


def test_every_spelling_that_is_told_is_taken() -> None:
    taking = "-const -pf -pctl -csl -prop -property -epsilon -e -paretoepsilon -maxiters -omega".split()
    for names in SAME:
        for name in names.split(", "):
            parse_arguments(["check", "m.pm", name, *(["1"] if name in taking else [])])
