"""Where compiled functions are kept, or cannot be: missing, full, cut, shared, used by many at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import ROOT, environment, run, started, stopped, wait_for

pytest.importorskip("numba")

# The quickest question that needs a compiled function.
QUESTION = ("P=? [ F s=N ]", "--engine", "explicit", "--epsilon", "1e-6")

# A function of one line, and whether it was there already.
FUNCTION = """
from mtbdd.build.walk_kernels import _scatter
print(_scatter(3, 1023), sum(_scatter.stats.cache_hits.values()))
"""

ALONE = "143 "


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_r4_without_a_home_functions_work_and_that_is_told_once(small: str) -> None:
    done = run("check", small, *QUESTION, NUMBA_CACHE_DIR=None, XDG_CACHE_HOME=None, HOME="/proc/nowhere")
    assert done.returncode == 0
    assert "result       0.4166" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: compiled functions cannot be kept")
    assert "/proc/nowhere" in line
    assert "set NUMBA_CACHE_DIR to a folder" in line


def test_the_user_cache_is_used_by_default(tmp_path: Path) -> None:
    surroundings = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": str(tmp_path)}
    for hits in ("0", "1"):
        done = run(code=FUNCTION, **surroundings)
        assert (done.stdout.strip(), done.stderr) == (ALONE + hits, "")
    (file,) = kept(tmp_path)
    assert file.is_relative_to(tmp_path / ".cache" / "hybrid-model-checker")
    assert file.stat().st_mode & 0o077 == 0


def test_r4_on_a_full_disk_functions_work(tmp_path: Path) -> None:
    # Files may have 512 bytes; what is beyond fails as on a full disk.
    done = run(code=FUNCTION, before="ulimit -f 1", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, ALONE + "0")
    (line,) = done.stderr.splitlines()
    assert "File too large" in line
    assert "NUMBA_CACHE_DIR" in line
    assert kept(tmp_path) == []


def test_r13_cut_files_are_made_anew(tmp_path: Path) -> None:
    surroundings = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert run(code=FUNCTION, **surroundings).stdout.strip() == ALONE + "0"
    (file,) = kept(tmp_path)
    whole = file.read_bytes()
    for length in (0, 5000):
        file.write_bytes(whole[:length])
        done = run(code=FUNCTION, **surroundings)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, ALONE + "0", "")
        assert run(code=FUNCTION, **surroundings).stdout.strip() == ALONE + "1"
        assert kept(tmp_path) == [file]


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    done = run(code=FUNCTION, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, ALONE + "0")
    assert f"others may write to {tmp_path} (mode 0777)" in done.stderr
    assert kept(tmp_path) == []


def test_many_processes_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    surroundings, count = environment(NUMBA_CACHE_DIR=str(tmp_path / "new")), 4
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FUNCTION],
            cwd=ROOT,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(count)
    ]
    texts = [process.communicate(timeout=120)[0].strip() for process in processes]
    assert [text.removesuffix("0").removesuffix("1") for text in texts] == [ALONE] * count
    assert [process.returncode for process in processes] == [0] * count
    assert [path.suffix for path in kept(tmp_path)] == [".nbc"]


def test_two_runs_at_once_on_an_empty_cache_give_one_answer(tmp_path: Path, small: str) -> None:
    surroundings = {"NUMBA_CACHE_DIR": str(tmp_path / "new")}
    arguments = ["check", small, *QUESTION, "--quiet"]
    files = [tmp_path / "first", tmp_path / "second"]
    processes = [started(*arguments, out=out, **surroundings) for out in files]
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert errors == ["", ""]
    assert [process.returncode for process in processes] == [0, 0]
    results = {line for out in files for line in out.read_text().splitlines() if "result" in line}
    assert len(results) == 1


def test_kill_while_compiling_leaves_a_cache_that_works(tmp_path: Path, small: str) -> None:
    folder, out = tmp_path / "new", tmp_path / "out"
    arguments = ["check", small, *QUESTION, "--quiet"]
    process = started(*arguments, out=out, NUMBA_CACHE_DIR=str(folder))
    # The folder is made when the first function is looked for; its compilation takes some tenths of a second.
    wait_for(lambda: any(folder.iterdir()) if folder.exists() else False, process)
    assert stopped(process, signal.SIGKILL, out).returncode == -signal.SIGKILL
    done = run(*arguments, NUMBA_CACHE_DIR=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "result       0.4166" in done.stdout
