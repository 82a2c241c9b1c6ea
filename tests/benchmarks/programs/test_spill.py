"""The program on vectors in files: one process of its own, and rows of what several come to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs import spill
from tests.benchmarks.support import ROOT, rendered

pytest.importorskip("numba")

RecordOf = Callable[..., dict[str, Any]]
QUESTION = ("examples/kanban.prism", "--const", "t=1", *spill._WINDOW)


@pytest.mark.nightly
def test_a_process_and_what_it_held(tmp_path: Path) -> None:
    found = spill.checked(QUESTION, tmp_path, 1 << 30)
    assert found["error"] is None and found["lower"] <= found["value"] <= found["upper"]
    assert (found["states"], found["disk_bytes"]) == (160, 0)
    assert 1 << 20 < found["anonymous_bytes"] < found["data_bytes"] < 1 << 30
    with pytest.raises(RuntimeError, match="ended with 2: error: --spill: no file can be made"):
        spill.checked(QUESTION, ROOT / "none", None)
    assert spill.looked_at(os.getpid())["data_bytes"] > 1 << 20 and spill.looked_at(1 << 30) == {}


def process(command: tuple[str, ...], folder: Path | None, limit: int | None) -> dict[str, Any]:
    """What a process comes to that allocates five megabytes, if it may."""
    is_refused = folder is None and limit is not None
    error = "the iteration limit was reached" if "--max-iters" in command else None
    told = {"error": "out of memory" if is_refused else error, "states": 9, "iteration_seconds": 0.5}
    told |= {
        "value": 0.5,
        "lower": 0.25,
        "upper": 1.0,
        "iterations": 3,
        "vector_bytes": 7,
        "wall_seconds": 8.0,
    }
    told |= {"data_bytes": 5_000_000, "anonymous_bytes": 4, "file_bytes": 3, "disk_read_bytes": 0}
    return told if folder is None else told | {"disk_bytes": 6_000_000_000}


def test_rows_have_both_forms(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "checked", lambda command, folder, limit: process(command, folder, limit))
    record = record_of(spill, "--data", "1000000000")
    both, alone, left = record["rows"]
    assert "error" not in left and left["disk"]["value"] == 0.5
    assert both["limited_error"] == "out of memory" and "memory" in both and "memory" not in alone
    assert both["available_bytes"] > 1 << 20 and record["data_limit_bytes"] == 10**9
    shown = rendered("spill", record)
    assert (
        "data limited to 1.00 GB" in shown
        and "| 6.0 | 0.0 | 0.01 | 0.01 | 0.50 | 0.50 | 8.0 | 8.0 |" in shown
    )


def test_forms_that_differ_are_no_row(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(command: Any, folder: Path | None, limit: int | None) -> dict[str, Any]:
        return process(command, folder, limit) | {"value": 0.5 if folder is None else 0.75}

    monkeypatch.setattr(spill, "checked", other)
    record = record_of(spill, "--only", "kanban t=7")
    assert "the answers differ" in record["rows"][0]["error"]


def test_a_check_that_ends_otherwise_is_no_row(record_of: RecordOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        spill, "checked", lambda command, folder, limit: process(("--max-iters",), folder, limit)
    )
    record = record_of(spill, "--only", "kanban t=9")
    assert "or there is none" in record["rows"][0]["error"]
