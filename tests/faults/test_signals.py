"""Ctrl-C and SIGTERM at any moment: a message, the status of the signal, and all answers found so far."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import pytest

from tests.exploring import each
from tests.faults.models import SLOW_QUESTION
from tests.faults.processes import Done, processor_seconds, run, started, stopped, wait_for

QUESTIONS = f"P=? [ X s=1 ]; {SLOW_QUESTION}; P=? [ X s=0 ]"
OPTIONS = ("--backend", "reference", "--quiet")


def stopped_at_work(tmp_path: Path, slow: str, number: signal.Signals, *options: str) -> tuple[Done, Path]:
    """Stop the command line while it works on the second of three questions."""
    table, out = tmp_path / "table.csv", tmp_path / "out"
    process = started("check", slow, QUESTIONS, *OPTIONS, "--csv", str(table), *options, out=out)
    # An answer is added to the table first, then told.
    wait_for(table.exists if options else lambda: "result" in out.read_text(), process)
    # Until the steps of the second one have begun.
    enough = processor_seconds(process.pid) + 0.7
    wait_for(lambda: processor_seconds(process.pid) >= enough, process)
    return stopped(process, number, out), table


def test_answers_found_stay(tmp_path: Path, slow: str) -> None:
    done, table = stopped_at_work(tmp_path, slow, signal.SIGINT)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")
    assert "P=? [ X s=1 ]\n  result       0.5" in done.stdout
    assert f"{SLOW_QUESTION}\n  result       interrupted; between 0.0 and 1.0 so far\n" in done.stdout
    assert "P=? [ X s=0 ]" not in done.stdout
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(row["property"], row["value"], row["lower"], row["upper"], row["error"]) for row in rows] == [
        ("P=? [ X s=1 ]", "0.5", rows[0]["lower"], rows[0]["upper"], ""),
        (SLOW_QUESTION, "", "0.0", "1.0", "interrupted"),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "slow.pm", "table.csv"]


def test_json_is_one_object_all_the_same(tmp_path: Path, slow: str) -> None:
    done, _ = stopped_at_work(tmp_path, slow, signal.SIGTERM, "--json")
    assert (done.returncode, done.stderr) == (143, "error: terminated\n")
    record = json.loads(done.stdout)
    assert set(record) == {"model", "results", "interrupted"}
    assert record["interrupted"] is True
    assert record["model"]["states"] == 20_001
    assert [r["property"] for r in record["results"]] == QUESTIONS.split("; ")
    assert [r["error"] for r in record["results"]] == [None, "terminated", "terminated"]
    assert [r["value"] for r in record["results"]] == [0.5, None, None]
    assert [r.get("interrupted", False) for r in record["results"]] == [False, True, True]
    assert [(r["lower"], r["upper"]) for r in record["results"][1:]] == [(0.0, 1.0), (None, None)]


def test_json_lines_are_whole(tmp_path: Path, slow: str) -> None:
    done, _ = stopped_at_work(tmp_path, slow, signal.SIGINT, "--json-lines")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [r["property"] for r in records] == QUESTIONS.split("; ")
    assert [r["value"] for r in records] == [0.5, None, None]
    assert [r["error"] for r in records] == [None, "interrupted", "interrupted"]
    assert all(r["model"]["states"] == 20_001 and r["constants"] == {} for r in records)


# A signal that the process sends to itself when it begins to import a module.
AT_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder())
from hybrid.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


MODULES = [
    "argparse",
    "numpy",
    "dd.cudd",
    "hybrid.matrix.cpu.product",
    pytest.param("hybrid.app.cli.console", marks=pytest.mark.nightly),
    pytest.param("hybrid.app.cli.check", marks=pytest.mark.nightly),
]
SIGNALS = [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]


@pytest.mark.parametrize(("module", "number", "status", "word"), each(MODULES, SIGNALS))
def test_there_is_no_traceback_however_early(
    small: str, module: str, number: signal.Signals, status: int, word: str
) -> None:
    code = AT_IMPORT.format(module=module, number=int(number))
    done = run("check", small, "P=? [ F<=3 s=N ]", "--backend", "cpu", code=code)
    assert (done.returncode, done.stderr) == (status, f"error: {word}\n")


# The signal comes while something that swallows exceptions runs: a finaliser, at every answer.
SWALLOWED = """
import os, signal, sys
from hybrid.checking.checker import Checker
from hybrid.__main__ import main
class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass
answer = Checker.answer
def deaf(self, prop):
    Last()
    return answer(self, prop)
Checker.answer = deaf
sys.unraisablehook = lambda found: None
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_that_was_swallowed_is_not_forgotten(small: str) -> None:
    done = run("check", small, "P=? [ F<=3 s=N ]", "--backend", "reference", "--json", code=SWALLOWED)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")
    assert json.loads(done.stdout)["interrupted"] is True


IGNORED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
from hybrid.checking.checker import Checker
from hybrid.__main__ import main
answer = Checker.answer
def noisy(self, prop):
    os.kill(os.getpid(), signal.SIGINT)
    return answer(self, prop)
Checker.answer = noisy
sys.exit(main(sys.argv[1:]))
"""


def test_signals_that_are_ignored_stay_so(small: str) -> None:
    """As ``nohup`` and shells in the background leave them."""
    done = run("check", small, "P=? [ X s=1 ]", "--backend", "reference", code=IGNORED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "result       0.5" in done.stdout


def test_kill_leaves_whole_rows_and_the_older_file(tmp_path: Path, slow: str) -> None:
    table, out = tmp_path / "table.csv", tmp_path / "out"
    table.write_text("of another run\n")
    process = started("check", slow, SLOW_QUESTION, *OPTIONS, "--csv", str(table), out=out)
    wait_for(lambda: len(list(tmp_path.glob(".table.*.csv"))) == 1, process)
    assert stopped(process, signal.SIGKILL, out).returncode == -signal.SIGKILL
    assert table.read_text() == "of another run\n"

    process = started("check", slow, QUESTIONS, *OPTIONS, "--csv", str(table), out=out)
    wait_for(lambda: "P=?" in table.read_text(), process)
    assert stopped(process, signal.SIGKILL, out).returncode == -signal.SIGKILL
    lines = table.read_text().splitlines(keepends=True)
    assert [line[-1] for line in lines] == ["\n", "\n"]
    assert lines[1].startswith(",P=? [ X s=1 ],0.5,")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)])
def test_a_signal_after_all_is_told_changes_nothing(number: int) -> None:
    code = (
        "import atexit, os, sys\n"
        "from hybrid.__main__ import main\n"
        f"atexit.register(lambda: os.kill(os.getpid(), {int(number)}))\n"
        "sys.argv = ['hybrid', '--version']\n"
        "sys.exit(main())\n"
    )
    done = run(code=code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hybrid")
