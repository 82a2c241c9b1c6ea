"""Functions compiled ahead, by other processes: on the first use alone, and none is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("numba")

from hybrid.__main__ import main
from hybrid.matrix.cpu import threads as ahead
from mtbdd.base.kernel_store import KernelStore, store_of
from tests.source_tree import ROOT


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with four cores, on which no function is kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setattr(ahead, "available_cores", lambda: 4)
    monkeypatch.setattr(ahead, "store_of", KernelStore)
    yield tmp_path / "kept"
    ahead._stop()


def test_what_a_process_compiles_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "available_cores", lambda: 2)
    monkeypatch.setattr(ahead, "_ALONE", ("hybrid.matrix.cpu.vector_kernels",))
    assert ahead.compile_ahead()
    assert [process.wait(120) for process in ahead._started] == [0]
    assert any("add_scaled_rows" in path.name for path in folder.glob("*/*.nbc"))
    assert not ahead.compile_ahead()


@pytest.mark.parametrize("cores", [2, 3, 4, 9])
def test_processes_share_what_compiles_when_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    commands: list[list[str]] = []

    class Begun:
        def __init__(self, command: list[str], **_: object) -> None:
            commands.append(command)

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(subprocess, "Popen", Begun)
    monkeypatch.setattr(ahead, "available_cores", lambda: cores)
    assert ahead.compile_ahead()
    assert len(commands) == min(cores - 1, 3)
    names = [name for command in commands for name in command[-1].removeprefix("import ").split(", ")]
    found = {
        function.__name__
        for name in names
        for function in vars(import_module(name)).values()
        if getattr(function, "nopython_signatures", ())
    }
    assert {"run_parts", "add_scaled_rows", "turn_rows"} <= found
    assert ("sweep_parts" in found) == (cores > 3)
    assert "block_spmv" not in found  # the process itself gets to it at once


def test_it_begins_on_the_first_use_with_cores_to_spare(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(*arguments: object, **options: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", begun)
    with monkeypatch.context() as patch:
        patch.setattr(ahead, "available_cores", lambda: 1)
        assert not ahead.compile_ahead()
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_DISABLE_JIT", "1")
        assert not ahead.compile_ahead()
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        assert not ahead.compile_ahead()
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", "")
        patch.setenv("XDG_CACHE_HOME", "")
        patch.setenv("HOME", "nowhere")
        assert not ahead.compile_ahead()
    assert not folder.exists()
    other = folder / "other"
    other.mkdir(parents=True)
    (other / "some.nbc").write_bytes(b"")
    assert not ahead.compile_ahead()


def test_no_process_outlives_this_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(sleeper))
    assert ahead.compile_ahead()
    assert not ahead.compile_ahead()  # for another check
    started = list(ahead._started)
    ahead._stop()
    assert len(started) == 3 and all(process.poll() is not None for process in started)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "missing"))
    assert not ahead.compile_ahead()


def test_the_first_use_is_remembered(folder: Path) -> None:
    store = store_of(str(folder), "/sources")
    assert store.is_first and store is store_of(str(folder), "/sources")
    store.write("f", "0-0", b"code")
    # Those who ask later are told the same: another process may have been quicker.
    assert store.is_first and not KernelStore(str(folder), "/sources").is_first


@pytest.mark.parametrize(
    ("options", "times"),
    [
        (("--backend", "cpu"), 1),
        ((), 1),
        (("--backend", "reference"), 0),
        (("--backend", "cpu", "--engine", "explicit"), 0),
    ],
)
def test_the_command_line_begins_it(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], times: int
) -> None:
    begun: list[bool] = []
    monkeypatch.setattr("hybrid.app.cli.check.compile_ahead", lambda: begun.append(True))
    assert (
        main(
            ["check", str(ROOT / "examples" / "brp.prism"), "P=? [ F s=5 ]", "--const", "N=2,MAX=1", *options]
        )
        == 0
    )
    assert len(begun) == times
