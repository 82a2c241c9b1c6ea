"""Kernels compiled ahead: what is listed can be made, it happens once, and nothing waits for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_kernels import Tuning, begin_warm_up, compile_as_well, end_warm_up, likely_modules
from gpu_kernels.runtime import compile_queue, warm_up
from gpu_kernels.runtime._loader import SOURCES, kernel_names
from gpu_kernels.runtime.array_operations import (
    CODING,
    LAYOUT,
    LENGTHS,
    MODULES,
    NUMBERS,
    PARTS,
    VECTORS,
    samples,
)
from gpu_kernels.runtime.compile_queue import CompileQueue, Module, Work, items_of, make, taken
from tests.source_tree import ROOT


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache as if CuPy were there."""
    folder = tmp_path / "kernels"
    monkeypatch.setenv("CUPY_CACHE_DIR", str(folder))
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    monkeypatch.setattr(warm_up, "_version", lambda package: "14.2" if package == "cupy" else None)
    monkeypatch.setattr(warm_up, "_MOST_PROCESSES", 2)
    monkeypatch.setattr(warm_up, "_LEAST_PROCESSES", 2)
    monkeypatch.setattr(warm_up, "_tried", set())
    monkeypatch.setattr(warm_up, "_cared_for", set())
    return folder


@pytest.fixture
def queue() -> Iterator[CompileQueue]:
    """A queue that is closed at the end."""
    own = CompileQueue()
    yield own
    own.close()


def _program(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes run some code instead."""
    program = folder / "program"
    program.write_text(f"#!{sys.executable}\n{code}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


_MODULES: list[Module] = [("tiles.cu", "step_tiles", {"UNIT": k}) for k in range(5)]


def _writing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two processes write down what they take."""
    code = (
        "import json, os\n"
        "from gpu_kernels.runtime.compile_queue import taken\n"
        f"with open({str(folder)!r} + f'/{{os.getpid()}}.lines', 'w') as lines:\n"
        "    for item in taken(0):\n"
        "        lines.write(json.dumps(item) + '\\n')"
    )
    _program(folder, code, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(warm_up.os, "sched_getaffinity", lambda pid: {0, 1, 2})


def _written(folder: Path, processes: int = 2) -> list[str]:
    """Return what so many processes have taken."""
    texts = [path.read_text().splitlines() for path in folder.glob("*.lines")]
    assert len(texts) == processes
    return sorted(line for text in texts for line in text)


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
    assert not warm_up.is_compiled("solutions")
    end_warm_up()
    assert warm_up.is_compiled("solutions")
    assert not warm_up.is_compiled("layouts")
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
    _program(tmp_path, "import time; time.sleep(60)", monkeypatch)
    monkeypatch.setattr(warm_up, "_SECONDS", 0.05)
    assert begin_warm_up("layouts")
    started = list(warm_up._started)
    end_warm_up()
    assert started
    assert all(process.poll() is not None for process in started)
    assert not warm_up._started
    assert not list(cache.iterdir())
    assert not begin_warm_up("layouts")  # they would hang again


def test_processes_take_all_there_is_and_what_is_cared_for_for_later(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    assert begin_warm_up("solutions")
    compile_as_well(_MODULES[:1])
    compile_as_well(_MODULES[1:])
    end_warm_up()
    assert warm_up.is_compiled("solutions")
    found = _written(tmp_path)
    assert found == sorted(json.dumps(item) for item in [*items_of("solutions"), *_MODULES])
    compile_as_well(_MODULES[1:])  # they are there
    assert not warm_up._started


def test_modules_have_processes_started_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    with monkeypatch.context() as few:
        few.setattr(warm_up, "_cared_for", {"solutions"})
        few.setattr(warm_up.os, "sched_getaffinity", lambda pid: {0, 1})
        compile_as_well(_MODULES)  # by one process it would take as long as here
        assert not warm_up._started
    compile_as_well(_MODULES)
    assert not warm_up._started  # nobody has asked for processes
    monkeypatch.setattr(warm_up, "_cared_for", {"solutions"})
    compile_as_well(_MODULES)
    end_warm_up()
    assert _written(tmp_path) == sorted(json.dumps(item) for item in _MODULES)
    (mark,) = cache.iterdir()
    assert mark.name.startswith("warm-modules-14.2-")
    for modules, more in ((_MODULES, 0), (_MODULES[:3], 3)):
        for path in tmp_path.glob("*.lines"):
            path.unlink()
        compile_as_well(modules)
        end_warm_up()
        assert len(_written(tmp_path, 2 if more else 0)) == more


def test_modules_of_another_source_are_others(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = warm_up._mark_of_modules(_MODULES)
    monkeypatch.setattr(warm_up, "source_text", lambda source, macros: "changed")
    assert warm_up._mark_of_modules(_MODULES) != before


def test_modules_that_nobody_has_taken_are_not_marked(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "import time; time.sleep(1)", monkeypatch)
    monkeypatch.setattr(warm_up.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    assert begin_warm_up("solutions")
    compile_as_well(_MODULES)
    end_warm_up()
    (mark,) = cache.iterdir()
    assert mark.name.startswith("warm-solutions-")


def test_others_are_started_where_all_have_ended(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    monkeypatch.setattr(compile_queue, "_IDLE_SECONDS", 0.0)
    assert begin_warm_up("solutions")
    assert warm_up._queue is not None
    warm_up._queue.end()
    for process in warm_up._started:
        process.wait()
    compile_as_well(_MODULES)
    assert warm_up.is_compiled("solutions")
    end_warm_up()
    lines = sorted(line for path in tmp_path.glob("*.lines") for line in path.read_text().splitlines())
    assert lines == sorted(json.dumps(item) for item in [*items_of("solutions"), *_MODULES])


def test_who_leaves_solutions_to_another_process_leaves_modules_as_well(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    mark = warm_up._mark("solutions")
    assert mark is not None
    cache.mkdir()
    warm_up._claim(mark).touch()
    assert not begin_warm_up("solutions")
    compile_as_well(_MODULES)
    assert not warm_up._started


def test_one_process_has_modules_compiled_of_whatever_kind(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    monkeypatch.setattr(warm_up, "_cared_for", {"solutions"})
    other = warm_up._mark_of_modules(_MODULES[:1])
    assert other is not None
    cache.mkdir()
    warm_up._claim(other).touch()
    compile_as_well(_MODULES)
    assert not warm_up._started
    warm_up._claim(other).unlink()
    compile_as_well(_MODULES)
    assert len(warm_up._started) == 2
    end_warm_up()


def test_no_more_processes_are_started_than_there_are_modules(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _writing(tmp_path, monkeypatch)
    monkeypatch.setattr(warm_up, "_cared_for", {"solutions"})
    compile_as_well(_MODULES[:1])
    assert len(warm_up._started) == 1
    end_warm_up()


def test_every_item_fits_a_pipe_at_once(queue: CompileQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_queue, "_IDLE_SECONDS", 0.0)
    tuning = Tuning(threads=128, min_blocks=8, members=4)
    modules = likely_modules(64, tuning, 4, 64, maximise=True)
    for items in ([*items_of("solutions"), *modules], [*items_of("layouts")]):
        assert queue.put(items)
        assert [json.dumps(item) for item in taken(queue.reader)] == [json.dumps(item) for item in items]
    queue.close()
    queue.close()
    assert not queue.put(items)  # into nothing


def test_what_there_is_no_room_for_is_left_out(queue: CompileQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_queue, "_IDLE_SECONDS", 0.0)
    assert not queue.put([("tiles.cu", "step_tiles", {"A" * 600: 1})])
    assert not queue.put([("NUMBERS", number) for number in range(100_000)])
    found = list(taken(queue.reader))
    assert found == [("NUMBERS", number) for number in range(len(found))]
    assert 0 < len(found) < 100_000


def test_those_that_find_nothing_to_do_end(queue: CompileQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_queue, "_IDLE_SECONDS", 0.05)
    begin = time.monotonic()
    assert list(taken(queue.reader)) == []
    assert time.monotonic() - begin >= 0.05


def test_work_that_there_is_no_room_for_leaves_no_mark(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "", monkeypatch)
    monkeypatch.setattr(CompileQueue, "put", lambda self, items: False)
    assert begin_warm_up("layouts")
    end_warm_up()
    assert not list(cache.iterdir())


def test_a_claim_of_others_is_left_alone(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "import time; time.sleep(60)", monkeypatch)
    monkeypatch.setattr(warm_up, "_SECONDS", 0.05)
    assert begin_warm_up("layouts")
    end_warm_up()
    claim = cache / "of another process"
    monkeypatch.setattr(warm_up, "_claim", lambda mark: claim)
    claim.touch()
    warm_up._stop()  # at the end of the process
    assert claim.exists()


def test_no_descriptors_left_is_no_fault(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(compile_queue.os, "pipe", none)
    assert not begin_warm_up("layouts")
    assert not list(cache.iterdir())


def test_an_interrupt_leaves_nobody_at_work(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "import time; time.sleep(60)", monkeypatch)
    own, made = subprocess.Popen, []

    def interrupted(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        if made:
            raise KeyboardInterrupt
        made.append(own(*arguments, **options))  # type: ignore[call-overload]
        return made[0]

    monkeypatch.setattr(warm_up.os, "sched_getaffinity", lambda pid: {0, 1, 2})
    monkeypatch.setattr(warm_up.subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin_warm_up("solutions")
    assert made[0].wait(120) != 0
    assert not warm_up._started and warm_up._queue is None
    assert not list(cache.iterdir())


def test_one_that_has_ended_is_cared_for_in_vain(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(tmp_path, "", monkeypatch)
    assert begin_warm_up("solutions")
    for process in warm_up._started:
        process.wait()
    compile_as_well([("tiles.cu", "step_tiles", {"UNIT": 4})] * 100)
    end_warm_up()
    assert warm_up.is_compiled("solutions")


def test_one_process_has_it_done(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "import time; time.sleep(60)", monkeypatch)
    monkeypatch.setattr(warm_up, "_SECONDS", 0.05)
    assert begin_warm_up("layouts")
    (claim,) = cache.iterdir()
    with monkeypatch.context() as other:
        # As another process would: it has tried nothing yet.
        other.setattr(warm_up, "_tried", set())
        other.setattr(warm_up, "_started", [])
        other.setattr(warm_up, "_queue", None)
        other.setattr(warm_up, "_mark_of_started", None)
        assert not begin_warm_up("layouts")
        # A claim that nobody has given back holds for a while.
        old = time.time() - warm_up._SECONDS_OF_A_CLAIM - 1
        os.utime(claim, (old, old))
        assert begin_warm_up("layouts")
        end_warm_up()
    end_warm_up()
    assert not list(cache.iterdir())


def test_a_claim_is_given_back_where_no_process_can_be_started(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(cache / "not there"))
    assert not begin_warm_up("layouts")
    assert not list(cache.iterdir())


def test_nobody_waits_for_ever_for_those_that_do_not_go(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0

    class Stuck:
        killed = False

        def wait(self, seconds: float) -> int:
            nonlocal now
            now += seconds
            raise subprocess.TimeoutExpired("stuck", seconds)

        def poll(self) -> None:
            return None

        def kill(self) -> None:
            assert now == 100.0  # all are ended before one is waited for
            self.killed = True

    stuck = [Stuck(), Stuck()]
    monkeypatch.setattr(warm_up.time, "monotonic", lambda: now)
    monkeypatch.setattr(warm_up, "_started", list(stuck))
    monkeypatch.setattr(warm_up, "_gone", [])
    monkeypatch.setattr(warm_up, "_mark_of_started", None)
    warm_up._stop()
    assert all(process.killed for process in stuck)
    assert now == 100.0 + warm_up._SECONDS_TO_GO
    assert warm_up._gone == stuck and not warm_up._started


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
def test_operations_can_be_made_on_a_device(work: Work) -> None:
    assert make(items_of(work)) == 0
