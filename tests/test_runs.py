"""Runs are appended to records, and pages are rendered from them, whether there are many, few or none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rendering import ages, render
from tests import sanitizers
from tests.attack.__main__ import main as attack
from tests.logic.__main__ import main as logic
from tests.mutants import run as mutants
from tests.mutants.run import Verdict
from tests.runs import append_run, read_runs
from tests.source_tree import ROOT

BLOCKS = {
    block: renderer for (page, block), (_, renderer) in render.BLOCKS.items() if page == "reliability.md"
}


def shown(block: str, *runs: dict[str, Any]) -> str:
    """A table of runs as the page has it."""
    return BLOCKS[block]({"file": "record", "runs": [json.loads(json.dumps(run)) for run in runs]})


def last_row(text: str) -> list[str]:
    """The cells of the last line of a table, without the commit's."""
    row = [line for line in text.splitlines() if line.startswith("|")][-1]
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


@pytest.fixture(autouse=True)
def commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHMARK_COMMIT", "abc123")


@pytest.mark.parametrize("block", BLOCKS)
def test_a_record_without_runs_is_rendered(block: str) -> None:
    assert shown(block).startswith("No run is recorded yet.")


def test_runs_are_appended_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "seeds.json"
    append_run(path, seed=1)
    append_run(path, seed=2)
    assert [run["seed"] for run in read_runs(path)] == [1, 2]
    assert {run["commit"] for run in read_runs(path)} == {"abc123"}
    assert len(path.read_text().splitlines()) == 4
    assert [file.name for file in path.parent.iterdir()] == ["seeds.json"]


def test_the_attack_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "attack.json"
    assert attack(["--cases", "1", "--seed", "5", "--first", "3", "--record", str(path)]) == 0
    (run,) = read_runs(path)
    assert (run["seed"], run["first"], run["cases"], run["whole"], run["failures"]) == (5, 3, 1, False, [])
    seed, _, backend, cases, values, wrong, *_ = last_row(shown("attack", run))
    assert (seed, backend, cases, values, wrong) == ("5", "cpu and reference", "1", str(run["values"]), "0")


def test_formulas_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logic.json"
    assert logic(["--formulas", "2", "--models", "1", "--words", "2", "--record", str(path)]) == 0
    (run,) = read_runs(path)
    assert last_row(shown("formulas", run))[:3] == ["1", "2", "0"]


def test_mutations_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [
        Verdict("a-01", "a.py", "killed", 1.0, "", None),
        Verdict("a-02", "a.py", "survived", 1.0, "", None),
    ]
    monkeypatch.setattr(mutants, "run", lambda *_: verdicts)
    path = tmp_path / "mutants.json"
    monkeypatch.setattr(sys, "argv", ["run", "--only", "cpu-0*", "--record", str(path)])
    assert mutants.main() == 1
    (run,) = read_runs(path)
    assert "verdicts" not in run
    assert last_row(shown("mutants", run))[:6] == ["`cpu-0*`", "2", "1", "1: a-02", "0", "0"]


@pytest.mark.slow
def test_a_session_of_pytest_is_recorded(tmp_path: Path) -> None:
    path, case = tmp_path / "seeds.json", "tests/mtbdd/test_units.py"
    command = [sys.executable, *f"-m pytest -q -n 2 {case}".split(), "-m", "not gpu", f"--record-to={path}"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "HYBRID_TEST_SEED": "7"}, check=True, timeout=120)
    (run,) = read_runs(path)
    assert (run["seed"], run["chosen"], run["failed"], run["error"]) == (7, [case], 0, 0)
    assert run["passed"] > 0
    second = {**run, "seed": 9, "failed": 1}
    assert last_row(shown("seeds", run, second))[:4] == ["7, 9", f"`{case}`", f"{2 * run['passed']}", "1"]
    assert last_row(shown("device lane", run))[:2] == ["none", f"`{case}`"]


CHECKER = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.runs import append_run
words = sys.argv
Path(words[words.index("--log-file") + 1]).write_text({log!r})
(path,) = (Path(word.partition("=")[2]) for word in words if word.startswith("--record-to="))
if {through}:
    append_run(path, chosen=["tests/gpu_kernels"], device="a card", passed=3, failed=0, error=0, skipped=0,
               kernels=["tiles.cu"], seconds=1.0)
sys.exit({status})
"""


def test_a_missing_checker_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        sanitizers.main([])
    assert ended.value.code == 2 and "compute-sanitizer is not on PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("log", "through", "status", "expected"),
    [
        ("========= ERROR SUMMARY: 0 errors\n", True, 0, "0 errors"),
        ("========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n", True, 9, "2 hazards"),
        ("========= ERROR SUMMARY: 1 error\n========= ERROR SUMMARY: 2 errors\n", True, 9, "3 errors"),
        ("", True, 0, None),
        ("========= ERROR SUMMARY: 0 errors\n", False, 2, None),
    ],
)
def test_checkers_are_recorded(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
    through: bool,
    status: int,
    expected: str | None,
) -> None:
    tool = tmp_path / "compute-sanitizer"
    text = CHECKER.format(python=sys.executable, root=str(ROOT), log=log, through=through, status=status)
    tool.write_text(text)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    path = tmp_path / "sanitizers.json"
    assert sanitizers.main(["--tool", "memcheck", "--record", str(path)]) == (status or (expected is None))
    assert len(read_runs(path)) == (expected is not None)
    if expected is not None:
        (run,) = read_runs(path)
        row = last_row(shown("sanitizers", run, {**run, "kernels": ["pairs.cu"], "passed": 4}))
        assert row[:5] == ["memcheck", "a card", "`tests/gpu_kernels`", "7", "0"]
        assert row[5].startswith("2 of ") and row[6].split()[1] == expected.split()[1]


# ------------------------------------------------------------------ ages


def test_every_record_names_the_sources_that_it_measures() -> None:
    records = {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")}
    # A section may be there before its first record.
    assert records <= set(ages.MEASURED) <= records | set(render.SECTIONS)
    # A folder counts for the sources in it: one may be left behind with bytecode alone.
    for paths in ages.MEASURED.values():
        assert [path for path in paths if not has_sources(ROOT / path)] == []


def has_sources(path: Path) -> bool:
    return path.is_file() or any(own.is_file() and own.suffix != ".pyc" for own in path.rglob("*"))


def record_of(commit: str) -> dict[str, Any]:
    return {"file": "lumping", "environment": {"commit": commit}}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Three commits, the second of which changes what the record of quotients measures."""
    monkeypatch.setattr(ages, "ROOT", tmp_path)

    def git(*words: str) -> str:
        user = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *user, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    commits = []
    for name in ("README", "hybrid/models/lumping/quotient.py", "hybrid/other.py"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text")
        git("add", ".")
        git("commit", "-q", "-m", name)
        commits.append(git("rev-parse", "HEAD"))
    return commits


def test_a_record_says_how_many_commits_changed_what_it_measures(repository: list[str]) -> None:
    first, second, third = repository
    assert ages.history_is_here()
    assert ages.age(record_of(first + "+changes")) == "  Since then 1 commit changed what it measures."
    assert ages.age(record_of(second)) == ages.age(record_of(third)) == ""
    assert ages.age(record_of("0" * 12)) == "  Its commit is not in this repository."
    assert ages.age({"file": "seeds", "runs": []}) == ""
    assert ages.age({"file": "lumping", "runs": [{"commit": third}, {"commit": first}]}) != ""


def test_the_check_leaves_ages_aside() -> None:
    for commit in ("470c262", "0" * 12):
        told = ages.age(record_of(commit)) or "  Since then 1,234 commits changed what it measures."
        assert ages.without_ages(f"2026, Python 3.11.{told}\n\n") == "2026, Python 3.11.\n\n"


def test_without_a_history_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ages, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert not ages.history_is_here()


@pytest.mark.skipif(not ages.history_is_here(), reason="no repository with all of its commits")
def test_recorded_runs_name_commits_of_this_repository() -> None:
    for name in ("attack", "device_lane", "logic", "mutants", "sanitizers", "seeds"):
        for run in read_runs(ROOT / f"benchmarks/results/{name}.json"):
            for commit in run.get("commits", [run["commit"]]):
                whole = f"{commit.removesuffix('+changes')}^{{commit}}"
                done = subprocess.run(["git", "cat-file", "-e", whole], cwd=ROOT, capture_output=True)
                assert done.returncode == 0, f"{name}: {commit}"
