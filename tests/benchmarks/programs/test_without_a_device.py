"""Programs that need a card, or files that are not in the repository, say so in one line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks.library import device
from tests.benchmarks.support import ROOT
from tests.builders.processes import run_python

PROGRAMS = sorted(p.stem for p in (ROOT / "benchmarks" / "programs").glob("*.py") if p.stem != "__init__")
ON_A_CARD = [
    "explicit_formats", "gpu_product", "kernel_counters", "mdp_sweep", "paper_tables", "scc_mec",
    "streamed_parts", "thesis_tables", "whole_run", "density_sweep", "first_use --backend gpu",
    "certified_pairs --backend gpu --base .", "whole_answers --backends cpu gpu",
]  # fmt: skip
WITH_FILES = ["agreement --models {} --values {}", "mdp_agreement --models {}", "certified_pairs --base {}",
              "symbolic_build --models {} --prism {}", "cpu_iteration --prism {}", "scc_mec --models {}",
              "thesis_tables --cpu-values {}", "whole_answers --models {}",
              "whole_answers --prism {}", "same_answers --values {}"]  # fmt: skip


def run(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    name, *arguments = command.split()
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    importlib.import_module(f"benchmarks.programs.{name}").main()


@pytest.mark.parametrize("command", ON_A_CARD)
def test_no_device_is_told(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.setattr(device, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="^no CUDA device, or no CuPy to reach it") as told:
        run(monkeypatch, command)
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize("command", WITH_FILES)
def test_files_that_are_not_there_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, tmp_path: Path
) -> None:
    with pytest.raises(SystemExit) as told:
        run(monkeypatch, command.replace("{}", str(tmp_path / "gone")))
    assert told.value.code == 2
    assert "gone; it is not in the repository" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_has_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as told:
        run(monkeypatch, f"{name} --help")
    assert told.value.code == 0
    printed = capsys.readouterr().out
    assert "--out FILE.json" in printed
    doc = importlib.import_module(f"benchmarks.programs.{name}").__doc__
    assert doc is not None and doc.splitlines()[0] in printed


def test_a_program_ends_with_its_line_and_status_1() -> None:
    command = "import sys, benchmarks.library.device as d; d.is_available = lambda: False; d.require_device()"
    done = run_python("-c", command)
    assert (done.returncode, done.stderr) == (1, "no CUDA device, or no CuPy to reach it\n")
