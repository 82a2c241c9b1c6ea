"""The first use on a machine is told on a terminal; code from the cache finds what it links to."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.app.cli.console import Console
from tests.faults.processes import ROOT, environment, run

pytest.importorskip("numba")

from mtbdd.base.compiled import NOTICE  # noqa: E402

# The quickest question that needs a compiled function.
QUESTION = ("P=? [ F s=N ]", "--engine", "explicit", "--epsilon", "1e-6")

# A function that hashes a text refers to what Numba alone loads; one that makes arrays, to a memory manager.
HASHING = """
from mtbdd.base.compiled import njit
import numpy as np

@njit(cache=True)
def hashed(text):
    return np.zeros(hash(text) % 1 + 9).size

print(hashed("some"), sum(hashed.stats.cache_hits.values()))
"""


def on_terminal(folder: Path, *arguments: str) -> str:
    """Run the command line with standard error on a terminal; return what it shows there."""
    reading, writing = pty.openpty()
    with open(reading, "rb", buffering=0) as shown:
        process = subprocess.Popen(
            [sys.executable, "-m", "hybrid", *arguments],
            cwd=ROOT,
            env=environment(NUMBA_CACHE_DIR=str(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=writing,
        )
        os.close(writing)
        text = b""
        try:
            while part := shown.read(1 << 12):
                text += part
        except OSError:
            pass  # how the end of a terminal looks
        assert process.wait() == 0, text
    return text.decode()


def test_the_first_use_is_told_on_a_terminal(small: str, tmp_path: Path) -> None:
    first = on_terminal(tmp_path, "check", small, *QUESTION)
    assert first.count("note: first use on this machine") == 1
    assert f"they are kept in {tmp_path}" in first.replace("\r\n", "\n")
    assert "compiling hybrid.matrix.cpu" in first
    assert "first use" not in on_terminal(tmp_path, "check", small, *QUESTION)


@pytest.mark.parametrize(("terminal", "quiet"), [(True, True), (False, False)])
def test_the_first_use_is_not_told_to_files_and_with_quiet(
    terminal: bool, quiet: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.app.cli.console.is_terminal", lambda stream: terminal)
    with Console(quiet):
        logging.getLogger("mtbdd.base.compiled").log(NOTICE, "first use on this machine")
    assert capsys.readouterr().err == ""


def test_kept_code_that_hashes_finds_its_symbols(tmp_path: Path) -> None:
    (tmp_path / "hashing.py").write_text(HASHING)
    for hits in "01":
        done = run(
            code="import hashing", PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}", NUMBA_CACHE_DIR=str(tmp_path)
        )
        assert (done.returncode, done.stdout.split()) == (0, ["9", hits]), done.stderr
