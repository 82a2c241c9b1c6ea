"""Where compiled functions are kept, or cannot be: missing, full, cut, shared, used by many at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.processes import ROOT, environment, run, stopped, wait_for

pytest.importorskip("numba")

# A function of one line, and whether it was there already.
FUNCTION = """
from mtbdd.build.walk_kernels import _scatter
print(_scatter(3, 1023), sum(_scatter.stats.cache_hits.values()))
"""

ALONE = "143 "

ANOTHER = """
from hybrid.analysis.exact.modular import inverse_modulo
print(inverse_modulo(3, 7))
"""


def kept(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def process(folder: Path, out: Path) -> subprocess.Popen[str]:
    """Start a process that compiles the function, or finds it in a folder."""
    with out.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-c", FUNCTION],
            cwd=ROOT,
            env=environment(NUMBA_CACHE_DIR=str(folder)),
            stdout=file,
            stderr=subprocess.STDOUT,
            text=True,
        )


def test_r4_without_a_home_functions_work_and_that_is_told_once() -> None:
    nowhere = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": "/proc/nowhere"}
    done = run(code=FUNCTION + ANOTHER, **nowhere)
    assert (done.returncode, done.stdout) == (0, f"{ALONE}0\n5\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("compiled functions cannot be kept")
    assert "/proc/nowhere" in line
    assert "set NUMBA_CACHE_DIR to a folder" in line


def test_r13_the_user_cache_is_used_by_default_and_cut_files_are_made_anew(tmp_path: Path) -> None:
    surroundings = {"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, "HOME": str(tmp_path)}
    for cut, hits in ((True, "0"), (False, "0"), (False, "1")):
        done = run(code=FUNCTION, **surroundings)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, ALONE + hits, "")
        (file,) = kept(tmp_path)
        assert file.is_relative_to(tmp_path / ".cache" / "hybrid-model-checker")
        assert file.stat().st_mode & 0o077 == 0
        if cut:
            file.write_bytes(file.read_bytes()[:5000])


def test_r4_on_a_full_disk_functions_work(tmp_path: Path) -> None:
    # Files may have 512 bytes; what is beyond fails as on a full disk.
    done = run(code=FUNCTION, before="ulimit -f 1", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout.strip()) == (0, ALONE + "0")
    (line,) = done.stderr.splitlines()
    assert "File too large" in line
    assert "NUMBA_CACHE_DIR" in line
    assert kept(tmp_path) == []


def test_two_processes_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    outs = [tmp_path / f"out{number}" for number in range(2)]
    processes = [process(tmp_path / "new", out) for out in outs]
    assert [own.wait(timeout=120) for own in processes] == [0, 0]
    texts = [out.read_text().strip() for out in outs]
    assert [text.removesuffix("0").removesuffix("1") for text in texts] == [ALONE] * 2
    assert [path.suffix for path in kept(tmp_path / "new")] == [".nbc"]


def test_kill_while_compiling_leaves_a_cache_that_works(tmp_path: Path) -> None:
    folder, out = tmp_path / "new", tmp_path / "out"
    own = process(folder, out)
    # The folder is made when the first function is looked for; its compilation takes some tenths of a second.
    wait_for(lambda: any(folder.iterdir()) if folder.exists() else False, own)
    assert stopped(own, signal.SIGKILL, out).returncode == -signal.SIGKILL
    done = run(code=FUNCTION, NUMBA_CACHE_DIR=str(folder))
    assert (done.returncode, done.stdout[:4], done.stderr) == (0, ALONE, "")
