"""The field's benchmark set: a small folder in its layout, and tools that are scripts of the test."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from benchmarks.library.field_set import Reference, field_questions
from benchmarks.programs import field
from benchmarks.rendering import field as page
from tests.benchmarks.support import rendered
from tests.source_tree import ROOT

RecordOf = Callable[..., dict[str, Any]]

RUIN = """dtmc
const int N;
const double p = 1/3;
module walk s : [0..N] init 1;
  [] s>0 & s<N -> p : (s'=s+1) + 1-p : (s'=s-1);
  [] s=0 | s=N -> true;
endmodule
label "rich" = s=N;
"""
PROPERTIES = '"rich": P=? [ F "rich" ];\n"sure": P>=1 [ F s=0 | s=N ];\n"other": P=? [ F<=2 "rich" ];\n'


def values(**given: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in given.items()]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with a model, a file of results beside it, and a model without a source that is read."""
    folder = tmp_path / "set" / "dtmc" / "ruin"
    (folder / "results").mkdir(parents=True)
    (folder / "ruin.prism").write_text(RUIN)
    (folder / "ruin.props").write_text(PROPERTIES)
    index = {
        "short": "ruin",
        "type": "DTMC",
        "parameters": [{"name": "N"}],
        "properties": [{"name": "rich"}, {"name": "sure"}, {"name": "other"}],
        "files": [
            {
                "file": "ruin.jani",
                "original-file": ["ruin.prism", "ruin.props"],
                "file-parameter-values": [],
                "open-parameter-values": [
                    {"values": values(N=2), "states": [{"number": 3}]},
                    {"values": values(N=40), "states": [{"order": 9}]},
                ],
            }
        ],
        "results": ["results/exact.json", "results/gone.json"],
    }
    (folder / "index.json").write_text(json.dumps(index))
    results = {
        "file": "../ruin.jani",
        "open-parameter-values": values(N=2),
        "data": [
            {"group": "State space exploration", "values": [{"name": "states", "value": 3}]},
            {"property": "rich", "value": {"approx": 0.333, "num": "1", "den": "3"}},
            {"property": "sure", "value": True},
        ],
    }
    (folder / "results" / "exact.json").write_text(json.dumps(results))
    other = folder.parent / "other"
    other.mkdir()
    (other / "index.json").write_text(json.dumps({**index, "short": "other", "files": [{"file": "o.jani"}]}))
    return folder.parents[1]


def script(folder: Path, text: str) -> Path:
    """A command that runs a text of Python."""
    path = folder / "command"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def test_questions_of_a_folder(models: Path) -> None:
    found = {question.name: question for question in field_questions(models)}
    assert list(found) == [f"ruin {n} {prop}" for n in (2, 40) for prop in ("rich", "sure", "other")]
    rich = found["ruin 2 rich"]
    assert (rich.type, rich.states, rich.constants) == ("dtmc", 3, "N=2")
    assert rich.reference == Reference(Fraction(1, 3), True)
    assert found["ruin 2 sure"].reference == Reference(Fraction(1), True)
    assert found["ruin 40 rich"].reference is None and found["ruin 40 rich"].states == 10**9
    assert rich.shown == "ruin.prism ruin.props --const N=2 --property rich"


def test_questions_about_the_long_run_are_those_of_examples() -> None:
    found = {question.name: question for question in field_questions(ROOT / "benchmarks/library/long_run")}
    assert found["wakeup 14 power"].states == 15**6 and found["servers 1000 fewest"].constants == "N=1000"
    for question in found.values():
        assert question.source.parent.resolve() == ROOT / "examples"
        assert f'"{question.prop}": ' in question.properties.read_text(encoding="utf-8")


def test_questions_to_compare_engines_with_are_those_of_examples_where_no_other_models_are_there() -> None:
    found = field_questions(ROOT / "benchmarks/library/engines")
    own = [question for question in found if question.source.resolve().is_relative_to(ROOT / "examples")]
    assert {question.type for question in own} == {"dtmc", "ctmc", "mdp"}
    for question in own:
        assert f'"{question.prop}": ' in question.properties.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        (0.25, Reference(Fraction(1, 4), False)),
        ("34900/27", Reference(Fraction(34900, 27), True)),
        (10**30, Reference(Fraction(10**30), True)),
        ({"approx": 0.5}, Reference(Fraction(1, 2), False)),
        (float("inf"), None),
        ("inf", None),
    ],
)
def test_values_that_stand_beside_their_constants(tmp_path: Path, value: Any, reference: Any) -> None:
    """A plain folder: a list of models, sources named as files, whose parameters are fixed."""
    (tmp_path / "ruin.pm").write_text(RUIN)
    (tmp_path / "ruin.pctl").write_text(PROPERTIES)
    results = [{"property": "rich", "value": value}, {"property": "other", "value": None}]
    file = {
        "file": "ruin.pm",
        "original-file": "ruin.pctl",
        "file-parameter-values": values(N=2, fast=True),
        "open-parameter-values": [{"results": results}],
    }
    model = {"short": "ruin", "type": "dtmc", "properties": ["rich", "other"], "files": [file]}
    (tmp_path / "index.json").write_text(json.dumps([model]))
    rich, other = field_questions(tmp_path)
    assert (rich.name, rich.constants, rich.reference) == ("ruin 2-true rich", "", reference)
    assert other.reference is None


def test_folders_that_are_no_set(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected an index\.json"):
        field_questions(tmp_path)
    (tmp_path / "index.json").write_text('{"short": "ruin"}')
    with pytest.raises(ValueError, match=r"expected the description of a model: KeyError\('files'\)"):
        field_questions(tmp_path)


PRISM = """import sys
print("Version: 4.9")
if "other" in sys.argv:
    print("Error: no such property."); raise SystemExit(1)
print("Result: 0.3334 (approximate)" if "N=2" in sys.argv else "Result: [1e-13,2e-13]")
"""


def test_ours_and_others_in_turn(record_of: RecordOf, models: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    runs = [
        {"name": "ruin 2 sure", "tool": "PRISM 4", "wall_seconds": 25.5, "value": 1.0},
        {"name": "ruin 2 rich", "tool": "PRISM 4", "over_seconds": 200.0, "note": "built in 18 s"},
    ]
    elsewhere.write_text(json.dumps({"where": "A machine of 2008", "rows": runs}))
    arguments = ["--models", str(models), "--prism", str(script(tmp_path, PRISM)), "--repeat", "1"]
    arguments += ["--elsewhere", str(elsewhere), "--only", "ruin 2 *"]
    record = record_of(field, *arguments)
    rich, sure, other = record["rows"]
    answer, theirs = rich["answers"]["auto"], rich["answers"]["prism"]
    assert answer["inside"] and answer["lower"] <= 1 / 3 <= answer["upper"] and answer["states"] == 3
    assert answer["cpu_seconds"] > 0 and len(answer["loads"]) == len(theirs["all_wall_seconds"]) == 1
    assert (theirs["value"], theirs["version"], theirs["inside"]) == (0.3334, "4.9", None)
    assert theirs["off"] == pytest.approx(2e-4)
    assert rich["command"] == "hybrid check ruin.prism ruin.props --const N=2 --property rich"
    assert sure["answers"]["auto"]["value"] is True and sure["answers"]["auto"]["off"] == 0.0
    assert "| true | 1.0 | yes |" in rendered("field", record)
    assert other["answers"]["prism"]["refused"] == "no such property."
    text = rendered("field", record)
    assert "| `auto` | 3 | 3 | 3 | 0 | 3 |" in text and "| PRISM | 3 | 2 | 0 | 2 | 0 |" in text
    assert "| PRISM 4 \\> 200 (built in 18 s) |" in text and "| PRISM 4 25.5 |" in text
    assert "were not made beside ours.  A machine of 2008." in text
    assert "this record knows: **ruin 2 other**." in text and "Each was run once." in text
    assert page.first_answered(record["rows"]) == ["ruin 2 other"]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Result: 0.5 (+/- 1.0E-6 estimated; rel err 2.0E-6)", 0.5),
        ("Result (maximum expected reward): 1.5E3 (value in the initial state)", 1500.0),
        ("Result: [0.25,0.75]", 0.25),
        ("Result: 1/4", 0.25),
        ("Result: true (property satisfied)", 1.0),
        ("Result: Infinity", math.inf),
    ],
)
def test_what_prism_prints(models: Path, tmp_path: Path, line: str, value: float) -> None:
    found = field.prism(script(tmp_path, f"print({line!r})"), "", field_questions(models)[0], 60.0)
    assert found["value"] == value and found["wall_seconds"] > 0


def test_tools_take_turns(models: Path) -> None:
    """Medians count, a tool that takes long is asked once, and so is one that has no answer."""
    asked: list[str] = []
    seconds = {"quick": [1.0, 3.0, 2.0], "slow": [11.0], "ended": [None]}

    def tool(name: str) -> field.Tool:
        def answer(question: Any, limit: float) -> dict[str, Any]:
            took = seconds[name][asked.count(name)]
            asked.append(name)
            if took is None:
                return {"over_seconds": limit}
            bounds = (0.3, 0.4) if name == "quick" else (0.35, 0.45)
            memory = int(10 * took) if name == "quick" else None
            found = {"value": 1 / 3, "lower": bounds[0], "upper": bounds[1], "peak_rss_bytes": memory}
            return found | {"wall_seconds": took, "cpu_seconds": took / 2, "load": 0.5}

        return answer

    question, options = field_questions(models)[0], Namespace(repeat=3, repeat_seconds=10.0, limit=60.0)
    row: dict[str, Any] = {"name": question.name}
    field.measure(row, question, {name: tool(name) for name in seconds}, options)
    assert asked == ["quick", "slow", "ended", "quick", "quick"]
    quick, slow = row["answers"]["quick"], row["answers"]["slow"]
    assert (quick["wall_seconds"], quick["cpu_seconds"], quick["peak_rss_bytes"]) == (2.0, 1.0, 30)
    assert (quick["inside"], slow["inside"], slow["peak_rss_bytes"]) == (True, False, None)
    assert row["answers"]["ended"]["over_seconds"] == 60.0 and row["bounds_meet"] is True


def test_questions_that_the_folder_does_not_have(models: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"where": "", "rows": [{"name": "ruin 3 rich"}]}')
    with pytest.raises(SystemExit, match="no question 'ruin 3 rich'; there are ruin 2 rich"):
        field.taken_over(elsewhere, ["ruin 2 rich"])


def test_what_is_ended_or_fails(models: Path, tmp_path: Path) -> None:
    question = field_questions(models)[0]
    sleeper = script(tmp_path, "import time; time.sleep(60)")
    assert field.prism(sleeper, "", question, 0.2) == {"over_seconds": 0.2}
    assert field.storm(str(sleeper), question, 0.2) == {"over_seconds": 0.2}
    failing = script(tmp_path, "import sys; sys.exit('no such thing')")
    assert field.storm(str(failing), question, 60.0)["refused"] == "no such thing"
    assert field.prism(failing, "-mtbdd", question, 60.0)["refused"] == "no such thing"
    answering = script(tmp_path, """print('noise\\n{"value": 0.3, "lower": 0.2, "upper": null}')""")
    found = field.storm(str(answering), question, 60.0)
    assert (found["value"], found["lower"], found["upper"]) == (0.3, 0.2, None)


def answered(value: Any, lower: Any = None, upper: Any = None, seconds: float = 1.0, **more: Any) -> Any:
    found = {"value": value, "lower": lower, "upper": upper, "cpu_seconds": seconds, "wall_seconds": seconds}
    return found | {"loads": [0.5], "inside": None, "off": 0.0, "peak_rss_bytes": 100_000_000} | more


def row(name: str, reference: float | None, exact: bool | None = True, **answers: Any) -> dict[str, Any]:
    told = {
        "name": name,
        "type": "mdp",
        "states": 2 * 10**8,
        "reference": reference,
        "reference_exact": exact,
    }
    return told | {"answers": answers}


def test_the_engine_that_is_chosen_beside_the_best() -> None:
    def took(seconds: float, **more: Any) -> Any:
        return answered(0.5, 0.4, 0.6, seconds, **more)

    ended, refused = {"over_seconds": 60.0, "loads": []}, {"refused": "no", "loads": []}
    rows = [
        row("a", None, auto=took(3.0, engine="hybrid"), hybrid=took(2.0), symbolic=took(9.0)),
        row("b", None, auto=took(1.0, engine="explicit"), hybrid=refused, symbolic=took(1.5)),
        row("c", None, auto=ended, hybrid=took(1.5)),
    ]
    where = {"date": "2026-01-01", "commit": "abc", "processor": "a processor", "cores": 2}
    record = {"benchmark": "field", "environment": where, "device": None, "epsilon": 1e-6, "rows": rows}
    text = page.engines(record)
    assert "of 2 questions: geometric mean 1.00, at most 1.50 (a)" in text
    assert "| 3.00 (3.00), 100 MB | 2.00 (2.00), 100 MB | 9.00 (9.00), 100 MB | hybrid | 1.50 |" in text
    assert "| explicit | 0.67 |" in text and "| \\> 60 | 1.50 (1.50), 100 MB |  |  |  |" in text
    assert "Storm" not in text and "inside" not in text


def test_places_and_ratios() -> None:
    apart, ended = answered(0.4, 0.3, 0.45, inside=False), {"over_seconds": 60.0, "loads": []}
    rows = [
        row("a", 0.5, auto=answered(0.5, 0.49, 0.51, 2.0, inside=True), storm=apart),
        row("b", None, None, auto=answered(0.5, 0.49, 0.51, 2.0), storm=answered(0.5, 0.4, 0.6, 1.0)),
        row("c", None, None, auto=answered(0.5, 0.49, 0.51, 8.0), storm=answered(0.6, seconds=1.0)),
        row("d", 0.6, False, auto=answered(0.5, 0.49, 0.51, 8.0, inside=False, off=0.2), storm=ended),
        row("e", None, None, auto={"refused": "no room", "loads": [1.0]}),
    ]  # fmt: skip
    where = {"date": "2026-01-01", "commit": "abc", "processor": "a processor", "cores": 2}
    record = {"benchmark": "field", "environment": where, "device": None, "epsilon": 1e-6, "rows": rows}
    text = page.field(record)
    assert "| `auto` | 5 | 4 | 4 | 0 | 3 |" in text and "| Storm, sound | 4 | 3 | 2 | 2 | 1 |" in text
    assert "| Storm, sound | 3.17 (3) |  |  | 3.17 (3) | 3.17 (3) |" in text
    assert "| no answer |" in text and "| \\> 60 |" in text and "| 2e-01 off |" in text
    assert page.first_answered(rows) == []
    short = page.huge(record)
    assert "| d | 200,000,000 | 8.00 | 8.00 | 100 | 0.49, 0.51 | about 0.6 |  |" in short
    assert "| e |" not in short
