"""Kernels compiled ahead: what is listed can be made, it happens once, and nothing waits for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_kernels import begin_warm_up, end_warm_up, warm_up
from gpu_kernels._loader import SOURCES, kernel_names
from gpu_kernels.array_operations import CODING, LAYOUT, LENGTHS, MODULES, NUMBERS, PARTS, VECTORS, samples


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache as if CuPy were there."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    monkeypatch.setattr(warm_up, "_version", lambda package: "14.2" if package == "cupy" else None)
    monkeypatch.setattr(warm_up, "_MOST_PROCESSES", 2)
    return folder


@pytest.mark.parametrize("length", LENGTHS)
def test_operations_can_be_made(length: int) -> None:
    with np.errstate(all="ignore"):
        for operations in (VECTORS, CODING, NUMBERS, LAYOUT, PARTS):
            arrays = samples(np, length)
            for operation in operations:
                operation(np, arrays)


def test_modules_name_kernels_and_macros_that_there_are() -> None:
    for source, name, special in MODULES:
        assert source in SOURCES
        assert name in kernel_names(source)
        assert all(isinstance(value, int) for value in special.values())


def test_it_happens_once_a_version(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert begin_warm_up("solutions")
    end_warm_up()
    (mark,) = cache.iterdir()
    assert mark.name.startswith("warm-solutions-14.2-")
    assert not begin_warm_up("solutions")
    assert begin_warm_up("layouts")
    end_warm_up()
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(warm_up, "_version", lambda package: "15.0" if package == "cupy" else None)
    assert begin_warm_up("solutions")
    end_warm_up()


def test_nothing_is_started_without_cupy_or_its_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    assert not begin_warm_up("solutions")
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY")
    monkeypatch.setattr(warm_up, "_version", lambda package: None)
    assert not begin_warm_up("solutions")
    end_warm_up()
    assert not cache.exists()


def test_processes_that_hang_are_ended(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = tmp_path / "sleeper"
    sleeper.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(60)\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(sleeper))
    monkeypatch.setattr(warm_up, "_SECONDS", 0.05)
    assert begin_warm_up("layouts")
    started = list(warm_up._started)
    end_warm_up()
    assert started
    assert all(process.poll() is not None for process in started)
    assert not warm_up._started
    assert not cache.exists()


def test_all_are_waited_for_together(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    class Hanging:
        def wait(self, seconds: float) -> int:
            nonlocal now
            now += seconds
            raise subprocess.TimeoutExpired("hanging", seconds)

        def poll(self) -> int:
            return 0

    monkeypatch.setattr(warm_up.time, "monotonic", lambda: now)
    monkeypatch.setattr(warm_up, "_started", [Hanging(), Hanging(), Hanging()])
    monkeypatch.setattr(warm_up, "_mark_of_started", cache / "warm")
    end_warm_up()
    assert now == 100.0 + warm_up._SECONDS
    assert not cache.exists()


def test_nothing_is_compiled_for_a_cache_that_cannot_be_written_to(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up.os, "access", lambda path, mode: False)
    assert not begin_warm_up("solutions")
    monkeypatch.undo()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(cache))
    monkeypatch.setattr(warm_up, "_version", lambda package: "14.2")
    cache.write_text("in the way")
    assert not begin_warm_up("solutions")


@pytest.mark.gpu
@pytest.mark.parametrize("work", ["solutions", "layouts"])
def test_operations_can_be_made_on_a_device(work: str) -> None:
    assert warm_up.main([work, "0", "1"]) == 0
