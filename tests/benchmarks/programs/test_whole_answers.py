"""Whole answers: what counts as a run, what ends one, and whose answers are compared."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import hybrid
from benchmarks.library.peer_runs import peer_runs
from benchmarks.library.whole_cases import Question, questions
from benchmarks.programs import whole_answers
from benchmarks.rendering.whole_answers import whole_answers as section
from tests.benchmarks.support import ROOT

RecordOf = Callable[..., dict[str, Any]]

EXAMPLES = ROOT / "examples"
RELAY = Question(
    "relay 3", 0, EXAMPLES / "relay.prism", EXAMPLES / "relay.props", "H=3,M=2", ("--property", "least"), 1.0
)
KANBAN = Question(
    "kanban 4",
    1,
    EXAMPLES / "kanban.prism",
    EXAMPLES / "kanban.props",
    "t=4",
    ("--property", "throughput"),
    2.0,
)


def test_whole_processes_on_the_cpu(
    record_of: RecordOf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(whole_answers, "questions", lambda models, written: [RELAY])
    record = record_of(whole_answers, "--repeat", "2", "--repeat-seconds", "1000", "--limit", "1000")
    (row,) = record["rows"]
    assert "error" not in row and "peers" not in record
    here = hybrid.check(hybrid.load(RELAY.model, {"H": 3, "M": 2}), 'R{"power"}min=? [ F "over" ]')
    assert (row["value"], row["lower"], row["upper"]) == (here.value, here.lower, here.upper)
    assert (row["states"], row["runs"], len(row["loads"])) == (25, 2, 2)
    assert row["wall_seconds"] == statistics.median(row["all_seconds"])
    assert row["wall_seconds"] > row["check_seconds"] and row["peak_rss_bytes"] > 10_000_000
    assert row["command"] == (
        "hybrid check examples/relay.prism examples/relay.props --const H=3,M=2 --property least "
        "--engine hybrid --backend cpu"
    )
    assert f"| relay 3 | 25 | {row['wall_seconds']:.2f} |" in section(record)


def test_a_process_that_takes_too_long_is_ended() -> None:
    run = whole_answers.check_whole(("check", *KANBAN.check_arguments, "--json"), 0.3)
    assert "printed" not in run and 0.3 <= run["wall_seconds"] < 5.0
    with pytest.raises(RuntimeError, match="ended with 2: .*gone"):
        whole_answers.check_whole(("check", "gone.prism"), 60.0)


# ------------------------------------------------------------------ without processes


def printed(lower: float = 0.5, error: str | None = None) -> dict[str, Any]:
    result = {name: None for name in whole_answers._OF_ANSWER} | {"error": error, "seconds": 0.1}
    if error is None:
        result |= {"value": lower, "lower": lower, "upper": lower + 1e-9, "iterations": 7}
    model = {"states": 200_000, "transitions": 9, "type": "ctmc", "build_seconds": 0.1}
    return {"model": model, "results": [result]}


@pytest.fixture
def runs_of(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, list[Any]]]:
    """Runs the program with what its processes come to, and returns its record and what was asked of them."""

    def run(came: list[dict[str, Any]], *arguments: str) -> tuple[Any, list[Any]]:
        asked: list[Any] = []
        following: Iterator[dict[str, Any]] = iter(came)

        def timed(command: tuple[str, ...], limit: float) -> dict[str, Any]:
            asked.append((command[0], command[command.index("--backend") + 1 :][:1], limit))
            return {
                "load": 0.5,
                "compiled_kernels": 0,
                "peak_rss_bytes": 1,
                "cpu_seconds": 1.0,
                **next(following),
            }

        def info(command: tuple[str, ...], limit: float) -> dict[str, Any]:
            return (
                {"printed": {**printed(), "results": None}} if command[0] == "info" else timed(command, limit)
            )

        monkeypatch.setattr(whole_answers, "check_whole", info)
        monkeypatch.setattr(whole_answers, "questions", lambda models, written: [KANBAN, RELAY])
        monkeypatch.setattr(whole_answers, "require_device", lambda instead: None)
        return record_of(whole_answers, *arguments), asked

    return run


def test_runs_that_compile_do_not_count(runs_of: Any) -> None:
    came = [
        {"wall_seconds": 20.0, "compiled_kernels": 9, "printed": printed()},
        {"wall_seconds": 2.0, "printed": printed()},
        {"wall_seconds": 15.0, "compiled_kernels": 2},
        {"wall_seconds": 3.0, "printed": printed()},
        {"wall_seconds": 4.0, "printed": printed()},
        {"wall_seconds": 5.0, "printed": printed()},
    ]
    record, _ = runs_of(came, "--only", "relay 3", "--backends", "gpu", "gpu-explicit", "--repeat", "2")
    ours, theirs = record["rows"]
    assert (ours["first_seconds"], ours["all_seconds"], ours["wall_seconds"]) == ([20.0], [2.0, 4.0], 3.0)
    assert (theirs["first_seconds"], theirs["all_seconds"]) == ([15.0], [3.0, 5.0])
    assert "over_seconds" not in theirs


def test_every_row_is_measured_before_one_is_repeated_and_long_ones_are_not(runs_of: Any) -> None:
    came = [{"wall_seconds": seconds, "printed": printed()} for seconds in (2.0, 11.0, 4.0, 3.0)]
    record, asked = runs_of(came, "--repeat", "3")
    relay, kanban = record["rows"]
    assert (relay["name"], relay["all_seconds"], relay["wall_seconds"]) == ("relay 3", [2.0, 4.0, 3.0], 3.0)
    assert (kanban["name"], kanban["all_seconds"], kanban["runs"]) == ("kanban 4", [11.0], 1)
    assert len(asked) == 4


def test_what_is_ended_is_told_with_its_limit(runs_of: Any) -> None:
    came = [{"wall_seconds": 9.0, "printed": printed()}, {"wall_seconds": 18.5}]
    arguments = ("--only", "kanban 4", "--backends", "gpu", "gpu-explicit", "--past", "2", "--repeat", "1")
    record, asked = runs_of(came, *arguments)
    assert [limit for *_, limit in asked] == [60.0, 18.0]
    row = record["rows"][1]
    assert row["over_seconds"] == 18.0 and "wall_seconds" not in row and "error" not in row
    assert row["states"] == 200_000
    text = section(record)
    assert r"| kanban 4 | 200,000 | 9.00 | \> 18 | GPU explicit | < 0.50 | yes |" in text


def test_answers_that_are_refused_or_apart_are_told(runs_of: Any) -> None:
    came = [
        {"wall_seconds": 1.0, "printed": printed()},
        {"wall_seconds": 1.5, "printed": printed(error="no room")},
    ]
    arguments = ("--only", "kanban 4", "--backends", "gpu", "gpu-explicit", "--repeat", "2")
    record, _ = runs_of([*came, {"wall_seconds": 1.2, "printed": printed()}], *arguments)
    assert record["rows"][1]["refused"] == "no room" and record["rows"][1]["runs"] == 1
    assert "| 1.10 | no answer |" in section(record)
    came[1] = {"wall_seconds": 1.5, "printed": printed(0.6)}
    record, _ = runs_of([*came, {"wall_seconds": 1.2, "printed": printed()}], *arguments)
    assert record["rows"][1]["error"] == "ArithmeticError: the bounds do not meet those of gpu"


def test_questions_are_those_of_the_tables(tmp_path: Path) -> None:
    own = questions(None, tmp_path)
    assert len(own) == 33 + 2 and all(question.model.is_file() for question in own)
    folder = tmp_path / "models"
    everything = questions(folder, tmp_path)
    assert [question.place for question in everything] == list(range(33 + 12))
    assert {question.name: question.place for question in own}.items() <= {
        question.name: question.place for question in everything
    }.items()
    shown = {question.name: question.shown(folder) for question in everything}
    assert shown["polling-s1 15"] == "polling15.prism examples/polling.props --property s1"
    assert shown["leader 7"] == (
        "mdp/leader_async/leader7.nm mdp/leader_async/leader.pctl --prop 6 --const K=10"
    )
    (brp,) = [question for question in own if question.name == "brp 512"]
    assert brp.info_arguments[1:] == ("--const", "N=512,MAX=50")
    with pytest.raises(SystemExit, match="expected one of fms 6"):
        _main(["--only", "fms 5"])


def _main(arguments: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["whole_answers", *arguments])
        whole_answers.main()


# ------------------------------------------------------------------ other checkers


def test_runs_of_other_checkers_that_came_to_an_end(tmp_path: Path) -> None:
    head = "model,const,prop,flags,wall_s,result,timeout,status,epsilon\n"
    lines = (
        "c/polling/poll15.sm,,c/polling/s1.csl,-hybrid -gs,1.28,0.13,False,converged,1e-6",
        "c/polling/poll15.sm,,c/polling/s1.csl,-hybrid -gs,1.74,0.13,False,converged,1e-12",
        "c/polling/poll18.sm,,c/polling/s1.csl,-sparse,14.7,,False,iteration cap reached,1e-6",
        'd/brp/brp.pm,"N=512,MAX=50",d/brp/p1.pctl,-mtbdd,3.1,0.0,False,converged,1e-6',
        'd/brp/brp.pm,"N=512,MAX=50",d/brp/p1.pctl,-sparse -gs,1.5,3e-76,False,NOT CONVERGED,1e-6',
        'd/brp/brp.pm,"N=512,MAX=50",d/brp/p4.pctl,-hybrid,2.8,1e-87,False,converged,1e-6',
        'd/brp/brp.pm,"N=512,MAX=3",d/brp/p1.pctl,-hybrid,2.8,0.1,False,converged,1e-6',
        'd/brp/brp.pm,"N=512,MAX=50",d/brp/p1.pctl,-sparse -jacobi,9.45,8e-76,False,converged,1e-6',
    )
    prism, storm = tmp_path / "prism.csv", tmp_path / "storm.csv"
    prism.write_text(head + "\n".join(lines))
    lines = (
        "id,engine,method,wall_s,value,status,timeout_s",
        "brp1_512_sparse_default,sparse,default,1.72,7.8e-76,ok,45",
        "brp4_512_sparse_default,sparse,default,1.41,2e-87,ok,45",
        "brp1_512_hybrid_default,hybrid,default,1.0,7.8e-76,ok,45",
        "fms_6_sparse_default,sparse,default,,,timeout at 60 s,60",
        "tandem_511_sparse_default,sparse,default,,,killed by operator,",
    )
    storm.write_text("\n".join(lines))
    assert peer_runs(prism, storm) == {
        "polling-s1 15": {"prism_hybrid": [{"settings": "-hybrid -gs", "seconds": 1.28, "value": 0.13}]},
        "brp 512": {
            "prism_sparse": [{"settings": "-sparse -jacobi", "seconds": 9.45, "value": 8e-76}],
            "storm_sparse": [{"settings": "default", "seconds": 1.72, "value": 7.8e-76}],
        },
        "fms 6": {"storm_sparse": [{"settings": "default", "over_seconds": 60.0, "value": None}]},
    }
    assert peer_runs(None, None) == {}
