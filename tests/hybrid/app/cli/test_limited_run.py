"""Limits on time and memory: their values, and what is left of a check that they end."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import hybrid
from hybrid.__main__ import main
from hybrid.app.cli.arguments import parse_arguments
from hybrid.app.cli.console import Console
from hybrid.app.cli.limited_run import run_limited
from mtbdd.base.budget import Budget, BudgetError, Course, check_budget, spending
from mtbdd.base.errors import on_command_line
from mtbdd.language.limits import Limits, current
from tests.builders.processes import run_python
from tests.faults.processes import processor_seconds

COUNTER = """dtmc
module counter
  x : [0..99999] init 0;
  [] x<99999 -> 0.5:(x'=x+1) + 0.5:(x'=x);
  [] x=99999 -> true;
endmodule
"""
# Thirty counters that must be told apart value by value: the search takes minutes.
SLOW = "dtmc\n" + "\n".join(
    f"module m{i} x{i} : [0..40]; [] x{i}<40 -> (x{i}'=mod(x{i}*7+x{(i + 11) % 30}+1, 41)); endmodule"
    for i in range(30)
)


@pytest.fixture
def counter(tmp_path):
    path = tmp_path / "counter.pm"
    path.write_text(COUNTER)
    return str(path)


@pytest.fixture
def slow(tmp_path):
    path = tmp_path / "slow.pm"
    path.write_text(SLOW)
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "hybrid", *arguments, seconds=240)


def test_a_build_that_takes_too_much_memory_ends_with_a_message(slow):
    done = run("info", slow, "--memory", "1M")
    assert done.returncode == 2
    assert "error: the memory limit of 1048576 bytes is reached" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_within_its_limits_is_as_without(counter, capfd):
    property_ = "P=? [ X x=1 ]"
    assert main(["check", counter, property_, "--json"]) == 0
    plain = json.loads(capfd.readouterr().out)
    done = run("check", counter, property_, "--json", "--timeout", "200", "--memory", "20G")
    assert done.returncode == 0, done.stderr
    bounded = json.loads(done.stdout)
    assert bounded["results"][0]["value"] == plain["results"][0]["value"] == 0.5
    assert bounded["model"]["states"] == plain["model"]["states"]


def options(**given: object) -> argparse.Namespace:
    defaults = {"timeout": None, "memory": None, "limits": [], "json": False, "csv": None}
    return argparse.Namespace(**{**defaults, **given})


@pytest.mark.parametrize("looks", [True, False])
def test_answers_found_are_kept_in_one_object_whoever_ends_the_command(looks, capfd):
    chosen = options(timeout=2.0, json=True)

    def endless() -> int:
        record = {"name": "first", "property": "P=? [ X a ]", "value": 1, "error": None}
        chosen.journal.begin({}, {"states": 3}, [{**record, "value": None}] * 2, True)
        chosen.journal.answer(record)
        while True:
            time.sleep(0.05)
            if looks:
                check_budget()

    with on_command_line(), Console(quiet=True) as console:
        assert run_limited(endless, chosen, console) == 1
    told = capfd.readouterr()
    found = json.loads(told.out)
    assert found["model"] == {"states": 3}
    assert [r["value"] for r in found["results"]] == [1, None]
    assert found["interrupted"] is True
    assert found["results"][1]["interrupted"] is True
    told = found["results"][1]["error"]
    assert told.startswith("the time limit of 2 s is reached") and told.endswith("; give more: --timeout 4")


@pytest.mark.parametrize("is_certified", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_bounds_reached_are_told_when_time_is_up(tmp_path, is_certified):
    path = tmp_path / "walk.pm"
    path.write_text(
        "dtmc\nmodule m\n  s : [0..5000] init 4975;\n"
        "  [] s>0 & s<5000 -> 0.5:(s'=s+1) + 0.5:(s'=s-1);\n  [] s=0 | s=5000 -> true;\nendmodule\n"
    )
    file = tmp_path / "certificate"
    more = ["--certificate", str(file)] if is_certified else []
    asked = "P=? [ F s=5000 ]"
    for seconds in (1.5, 3, 9, 27):  # a machine that is busy has not begun to iterate at first
        limit = ("--timeout", str(seconds))
        slow = ("--backend", "reference", "--method", "interval")
        done = run("check", str(path), asked, "--json", *limit, *slow, *more)
        assert not file.exists()
        if done.returncode == 2:  # nor built the model
            assert "the time limit of" in done.stderr
            continue
        assert done.returncode == 1
        record = json.loads(done.stdout)
        (result,) = record["results"]
        assert record["interrupted"] is result["interrupted"] is True
        assert result["error"].startswith(f"the time limit of {seconds} s is reached")
        assert result["error"].endswith(f"; give more: --timeout {2 * seconds:g}")
        if result["kind"] is not None:
            break
    assert (result["value"], result["kind"]) == (None, "certified")
    assert 0.0 < result["lower"] < 0.995 < result["upper"] <= 1.0


def test_a_command_that_is_ended_without_a_model_has_status_2(capfd):
    with Console(quiet=True) as console:
        assert run_limited(lambda: time.sleep(100) or 0, options(timeout=0.1), console) == 2
    assert "error: the time limit of 0.1 s is reached" in capfd.readouterr().err


def test_a_command_that_hoards_memory_is_ended(capfd):
    def hoard() -> int:
        held = []
        while True:
            held.append(bytearray(os.urandom(1 << 20)) * 8)

    with Console(quiet=True) as console:
        assert run_limited(hoard, options(memory=600 << 20), console) == 2
    assert "error: the memory limit of 629145600 bytes is reached" in capfd.readouterr().err


def test_the_exit_status_of_the_command_is_passed_on():
    with Console(quiet=True) as console:
        for status in (0, 1, 2, 130):
            assert run_limited(lambda status=status: status, options(timeout=60.0), console) == status


def test_limits_of_the_command_line_hold_for_the_command():
    seen = []
    with Console(quiet=True) as console:
        run_limited(
            lambda: seen.append(current()) or 0, options(limits=[("bits", 7), ("values", 8)]), console
        )
    assert seen == [Limits(bits=7, values=8)]
    assert current() == Limits()


def test_the_library_gives_up_building(slow):
    with pytest.raises(BudgetError, match="the time limit of 0.3 s is reached"):
        hybrid.load(slow, timeout=0.3)
    with pytest.raises(BudgetError, match="the memory limit of 1000 bytes is reached"):
        hybrid.load(slow, memory=1000)
    check_budget()  # nothing is left of these


def test_a_budget_holds_inside_its_block_alone():
    with spending(Budget(1.0, None, time.monotonic() - 5)), pytest.raises(BudgetError):
        check_budget()
    check_budget()
    for wrong in ((0.0, None), (float("inf"), None), (None, 0)):
        with pytest.raises(ValueError, match="expected a positive number"):
            Budget.of(*wrong)


COINS = "dtmc\n" + "\n".join(
    f"module m{i} a{i}:bool; [t] true -> 0.{100 + i}:(a{i}'=true)+0.{900 - i}:(a{i}'=false); endmodule"
    for i in range(130)
)
"""Its states are 2^130, and each has as many successors, of different probabilities."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "message"),
    [
        pytest.param("auto", "raise the limit with --limit pair_steps=", marks=pytest.mark.nightly),
        ("symbolic", "raise the limit with --limit pair_steps="),
        ("explicit", "transitions of a state where states are listed, got 1.36e+39; choose --build symbolic"),
    ],
)
def test_f22_what_no_build_can_make_is_refused_soon(tmp_path, capfd, build, message):
    path = tmp_path / "coins.pm"
    path.write_text(COINS)
    started = time.monotonic()
    assert main(["info", str(path), "--build", build, "--quiet"]) == 2
    assert message in capfd.readouterr().err
    assert time.monotonic() - started < 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "limit"),
    [
        ("symbolic", "--timeout"),
        ("explicit", "--timeout"),
        ("symbolic", "--memory"),
        ("auto", "--memory"),
        ("explicit", "SIGINT"),
        ("auto", "SIGINT"),
    ],
)
@pytest.mark.usefixtures("interrupts_are_heard")
def test_f22_limits_and_signals_end_every_build(slow, build, limit):
    given = {"--timeout": ["--timeout", "2"], "--memory": ["--memory", "120M"], "SIGINT": []}[limit]
    command = [sys.executable, "-m", "hybrid", "info", slow, "--build", build, "--quiet", *given]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            if limit == "SIGINT":
                while processor_seconds(process.pid) < 1.5:  # a start takes half of it
                    assert process.poll() is None
                    time.sleep(0.05)
                process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == (130 if limit == "SIGINT" else 2)
    words = {"--timeout": "the time limit", "--memory": "the memory limit", "SIGINT": "interrupted"}
    assert words[limit] in told


def test_compiling_is_told_where_it_took_the_time(counter, tmp_path, monkeypatch):
    """With kernels that are not compiled yet most of the first seconds go there."""
    told = r"s is reached while [a-z ]+, after \d+\.\d s of compiling functions, once on this machine"
    for limit in (8, 16, 32):  # a machine that is busy has not begun to compile at first
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / f"kernels{limit}"))
        more = ("--timeout", str(limit), "--backend", "cpu", "--level", "4", "--quiet")
        done = run("check", counter, "P=? [ F<=90000000 x=80000 ]", *more)
        if re.search(told, done.stdout):
            break
    assert done.returncode == 1
    assert re.search(f"limit of {limit} {told}; give more: --timeout {2 * limit}", done.stdout), done.stdout


def test_a_course_tells_stage_and_compiling():
    now = time.monotonic()
    course = Course(stage="iterating", compiled=3.0)
    compiling = "after 3.0 s of compiling functions, once on this machine"
    assert course.text(now - 4.0) == f" while iterating, {compiling}"
    assert course.text(now - 60.0) == " while iterating"
    course.change(compiling="f", since=now - 50.0)
    assert course.text(now - 60.0).startswith(" while iterating, after 53.0 s of compiling")
    assert Course().text(now - 4.0) == ""


def test_runs_that_had_not_begun_are_counted(slow, tmp_path):
    path = tmp_path / "sized.pm"
    path.write_text((tmp_path / "slow.pm").read_text().replace("dtmc", "dtmc const int N;", 1))
    for limit in (4, 16, 64):  # a machine that is busy has not begun to build at first
        done = run("check", str(path), "P=? [ F x1=N ]", "--const", "N=1:4", "--timeout", str(limit))
        assert (done.returncode, done.stdout) == (2, "")
        if "while building" in done.stderr:
            break
    message = f"while building the model; give more: --timeout {2 * limit}; of 4 runs 3 had not begun"
    assert done.stderr == f"error: the time limit of {limit} s is reached {message}\n"
    console = Console(quiet=True)
    console.run(4, 4, "N=4")
    told = []
    console.error = told.append
    console.ended("interrupted")
    assert told == ["interrupted"]


def test_a_time_limit_with_a_unit_ends_a_command(slow, capfd):
    assert main(["info", slow, "--package", "autoref", "--quiet", "--timeout", "0.05m"]) == 2
    assert capfd.readouterr().err == (
        "error: the time limit of 3 s is reached while building the model; give more: --timeout 6\n"
    )


# ------------------------------------------------------------------ values of the options

NO_DURATIONS = (
    ["0", "0m", "-5", "-5m", "nan", "inf", "infm", "1e400", "1e308h", "", "m", "1d", "1ms", "1 m", " 1", "5M"]
    + ["1m30s", "1_0", "0x10", "\N{ARABIC-INDIC DIGIT THREE}m", "1e", "1..5", ".", "1,5h", "9" * 5000 + "x"]
)  # fmt: skip
REFUSED = [
    *(
        ("--timeout", text, "argument --timeout: expected a positive number of seconds")
        for text in NO_DURATIONS
    ),
    ("--memory", "1_0G", "argument --memory: expected a positive number of bytes"),
    ("--memory", "lots", "expected a positive number of bytes, like 4G or 500M, got 'lots'"),
    ("--memory", "-1G", "expected a positive number of bytes"),
    ("--memory", "1e400", "argument --memory: expected a positive number of bytes"),
    ("--limit", "bits=" + "9" * 5000, "a whole number of at most 18 digits, got 'bits=999"),
    ("--limit", "bits=\N{SUPERSCRIPT TWO}", "a whole number of at most 18 digits, got 'bits="),
    ("--limit", "bits", "a whole number of at most 18 digits, got 'bits'"),
    ("--limit", "width=3", "unknown limit 'width': expected one of source_bytes, tokens, variables"),
    ("--limit", "bits=-3", "limit bits: expected an integer of at least 1, got -3"),
]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("90s", 90.0),
        ("2.5", 2.5),
        (".5m", 30.0),
        ("5m", 300.0),
        ("1.5h", 5400.0),
        ("1e3s", 1000.0),
    ],
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert parse_arguments(["info", "m.pm", "--timeout", text]).timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("4k", 4096), ("1.5M", 3 << 19), ("2G", 2 << 30), ("1e3", 1000)]
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert parse_arguments(["info", "m.pm", "--memory", text]).memory == size


@pytest.mark.parametrize(
    ("option", "value", "message"), REFUSED, ids=[f"{o} {v[:12]!r}" for o, v, _ in REFUSED]
)
def test_senseless_values_are_refused_by_name(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["info", "m.pm", f"{option}={value}"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told) < 400
