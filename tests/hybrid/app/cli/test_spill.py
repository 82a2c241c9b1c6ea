"""`hybrid check --spill`: what is told, and what is refused."""

from __future__ import annotations

import errno
import json
from argparse import Namespace
from pathlib import Path

import pytest

from hybrid.app.cli.console import Console
from hybrid.app.cli.limited_run import _Watched
from tests.builders.command_lines import run

pytest.importorskip("numba")

from hybrid.base import disk

TANDEM = str(Path(__file__).resolve().parents[4] / "examples" / "tandem.prism")
ASKED = ("check", TANDEM, "R=? [ F sc=15 ]", "--const", "c=15")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a small model are long enough for files."""
    monkeypatch.setattr(disk, "LEAST_BYTES", 1024)


def test_bytes_on_the_disk_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (*ASKED, "--method", "optimistic")  # of itself, auto solves few equations by factors
    status, out, err = run(capsys, *asked, "--spill", str(tmp_path))
    assert status == 0 and "  disk         arrays " in out and err == ""
    status, out, _ = run(capsys, *asked, "--spill", str(tmp_path), "--json")
    (found,) = json.loads(out)["results"]
    status, out, _ = run(capsys, *asked, "--json", "--backend", "cpu")
    (expected,) = json.loads(out)["results"]
    assert found.pop("disk_bytes") > 1024 and "disk_bytes" not in expected
    assert found["value"] == expected["value"] and found["lower"] == expected["lower"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("most", [0, 1 << 14], ids=["at once", "later"])
def test_a_full_disk_is_told_with_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(disk, "MOST_BYTES", most)
    status, out, err = run(capsys, *ASKED, "--spill", str(tmp_path))
    told = (out + err).replace("\n", " ")
    assert status == 1
    assert f"{tmp_path} has no room for an array of" in told and "or give --spill another folder" in told
    assert "out of memory" not in told


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *ASKED, "--spill", str(tmp_path / "none"))
    assert (status, out) == (2, "")
    assert (
        f"--spill: no file can be made in {tmp_path / 'none'}: it is not there; give a folder that is there"
        in err
    )


@pytest.mark.parametrize("more", [("--engine", "explicit"), ("--backend", "reference"), ("--exact",)])
def test_other_engines_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, *ASKED, "--spill", str(tmp_path), *more)
    assert (status, out) == (2, "") and f"leave {more[0]} out, or --spill" in err


@pytest.mark.parametrize("more", [("--distributed",), ("--certificate", "file"), ("--bisimulation",)])
def test_work_that_lies_elsewhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, *ASKED, "--spill", str(tmp_path), *more)
    assert (status, out) == (2, "") and f"--spill: {more[0]} is not offered with it" in err


def test_a_limit_of_memory_does_not_count_pages_of_files(tmp_path: Path) -> None:
    for spill, counted in ((None, True), (str(tmp_path), False)):
        options = Namespace(timeout=None, memory=1 << 30, spill=spill)
        assert _Watched(options, Console(quiet=True))._budget.files is counted


def test_nothing_is_told_that_rests_on_what_the_disk_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "note_lost", lambda state, row: state.__setitem__(disk.LOST, errno.EIO))
    status, out, err = run(capsys, *ASKED, "--spill", str(tmp_path))
    assert status == 1 and "not answered: " in out and "between" not in out
    assert (
        "the disk did not keep what was written there (Input/output error)" in out and "give --spill" in err
    )
