"""Kernels compiled ahead: other processes make the operations that this one will make, all at once.

CuPy writes a kernel for every operation and kind of array, and compiles it on its first use. On a fresh
machine that is some hundred, one after the other. Threads do not help, for the compiler works for one of them
at a time; processes do. They leave their kernels in CuPy's cache on disk, where this process finds them, and
it leaves a mark beside them of the attempt. All of this happens once a machine and version. Where many
processes begin on an empty cache, one of them does it. Several processes for each would take all cores and
much of the card.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpu_kernels.runtime import array_operations, compile_queue
from gpu_kernels.runtime._loader import source_text
from gpu_kernels.runtime.compile_queue import CompileQueue, Item, Module, Work, items_of

_MOST_PROCESSES = 8
"""The driver makes their contexts one after the other, an eighth of a second each."""

_LEAST_PROCESSES = 4
"""Fewer helpers get no further modules: waiting for them would take longer than compiling here."""

_SECONDS = 30.0
"""Seconds after which they are no longer waited for."""

_SECONDS_OF_A_CLAIM = 2 * _SECONDS
"""A claim that is older was left by a process that was killed."""

_SECONDS_TO_GO = 5.0
"""A process that is ended may wait for its card."""

_MODULES = "warm-modules"
"""Prefix of the marks of modules."""

_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")

_started: list[subprocess.Popen[bytes]] = []
_gone: list[subprocess.Popen[bytes]] = []
"""Those that were ended and had not gone in time."""

_queue: CompileQueue | None = None
"""The file that helpers at work read."""

_mark_of_started: Path | None = None
"""Path of the mark of their work; None without helpers at work."""

_marks_as_well: list[Path] = []
"""Files of modules that helpers at work were given later."""

_is_whole = True
"""Whether the queue had room for all of the work."""

_cared_for: set[Work] = set()
"""Work that `begin_warm_up` was called for in this process, and that no other process is at."""

_tried: set[Path] = set()
"""Marks of work that this process has begun: what fails once is not begun again."""


def begin_warm_up(work: Work) -> bool:
    """Start processes that compile what some work needs, unless the cache on disk has it; wait for nothing.

    Parameters
    ----------
    work : {'solutions', 'layouts'}
        Solutions of most models, or layouts that are made on the device.

    Returns
    -------
    bool
        Whether some were started; False as well where another process has begun with it.

    Notes
    -----
    Only worth calling where a device will be used. They end by themselves, some seconds after all is done,
    and with this process at the latest; what they fail at is compiled later, where it is met.
    """
    mark = _mark(work)
    found = _begin(mark, items_of(work))
    if found or (mark is not None and mark.exists()):
        _cared_for.add(work)
    return found


def _begin(mark: Path | None, items: Iterable[Item]) -> bool:
    """Start processes for items, unless their mark is there; see `begin_warm_up`."""
    global _mark_of_started
    if mark is None or mark in _tried or mark.exists() or not _can_be_kept(mark):
        return False
    end_warm_up()
    if not _claimed(mark):
        return False
    _tried.add(mark)
    _mark_of_started = mark
    atexit.unregister(_stop)
    atexit.register(_stop)
    try:
        _start(items)
    except OSError:
        pass  # those that could be started have all there is
    except BaseException:
        _stop()
        raise
    if not _started:
        _stop()
    return bool(_started)


def _start(items: Iterable[Item]) -> None:
    """Start processes with a queue of items."""
    global _queue, _is_whole
    _queue, listed = CompileQueue(), list(items)
    _is_whole = _queue.put(listed)
    command, nothing = [sys.executable, "-m", "gpu_kernels.runtime.compile_queue"], subprocess.DEVNULL
    for _ in range(min(_processes(), len(listed))):
        _started.append(subprocess.Popen(command, stdin=_queue.reader, stdout=nothing, stderr=nothing))


def _processes() -> int:
    """Return how many processes there are cores for."""
    return min(_MOST_PROCESSES, max(1, len(os.sched_getaffinity(0)) - 1))


def compile_as_well(modules: Sequence[Module]) -> None:
    """Have processes compile modules, too, unless there is a mark of just these; wait for nothing.

    Parameters
    ----------
    modules : sequence of (str, str, dict)
        As :func:`gpu_kernels.runtime._loader.raw_kernel` takes them: a source, a kernel and macros.

    Notes
    -----
    Processes that are at work take them after what they began with. If none is at work, some are started, in
    a process that has called `begin_warm_up` for solutions, as commands do. Does nothing where there are few
    cores.
    """
    if _processes() < _LEAST_PROCESSES:
        return
    mark = _mark_of_modules(modules)
    if mark is None or mark.exists():
        return
    if _started and all(process.poll() is not None for process in _started):
        end_warm_up()  # they have found nothing to do for a while
    if not _started:
        if "solutions" in _cared_for:
            _begin(mark, modules)
    elif len(_started) >= _LEAST_PROCESSES and _queue is not None and _queue.put(modules):
        _marks_as_well.append(mark)


def is_compiled(work: Work) -> bool:
    """Return whether the cache on disk is known to have what some work needs.

    Notes
    -----
    Looks for a file; compiles nothing.
    """
    mark = _mark(work)
    return mark is not None and mark.exists()


def end_warm_up() -> None:
    """Wait until the processes are done; they hold memory of the device until then.

    Notes
    -----
    Called before that memory is requested. Does nothing where none were started.
    """
    mark = _mark_of_started
    if not _started or mark is None:
        return
    if _queue is not None:
        _queue.end()
    deadline = time.monotonic() + _SECONDS
    done = [_has_ended(process, deadline) for process in _started]
    # They may have ended, with nothing to do, before they were given more.
    as_well = [*_marks_as_well] if _queue is not None and _queue.is_empty() else []
    _stop()
    if all(done) and _is_whole:
        for found in (mark, *as_well):
            # A cache that is full is asked again next time.
            with contextlib.suppress(OSError):
                found.touch()


def _has_ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(deadline - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop() -> None:
    """End those that are not done, all at once, and give up the claim."""
    global _queue, _mark_of_started
    running = [process for process in _started if process.poll() is None]
    for process in running:
        process.kill()
    if _queue is not None:
        _queue.close()
        _queue = None
    deadline = time.monotonic() + _SECONDS_TO_GO
    _gone.extend(process for process in running if not _has_ended(process, deadline))
    if _mark_of_started is not None:
        _give_back(_mark_of_started)
        _mark_of_started = None
    _started.clear()
    _marks_as_well.clear()


def _claimed(mark: Path) -> bool:
    """Claim some work for this process, unless another one has."""
    claim = _claim(mark)
    with contextlib.suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        if claim.exists() and time.time() - claim.stat().st_mtime > _SECONDS_OF_A_CLAIM:
            claim.unlink(missing_ok=True)
        claim.touch(exist_ok=False)
        return True
    return False


def _give_back(mark: Path) -> None:
    with contextlib.suppress(OSError):
        _claim(mark).unlink(missing_ok=True)


def _claim(mark: Path) -> Path:
    """Return the file that says that a process has some work done; one for modules of all kinds."""
    name = _MODULES if mark.name.startswith(_MODULES) else mark.name
    return mark.with_name(f"{name}.begun")


def _mark(work: Work) -> Path | None:
    """Return the file that says that this version's operations have been compiled; None without a cache."""
    listed = Path(array_operations.__file__).read_bytes()
    return _mark_named(f"warm-{work}", listed + Path(compile_queue.__file__).read_bytes())


def _mark_of_modules(modules: Sequence[Module]) -> Path | None:
    """Return the file that says that all of some modules have been compiled; None without a cache."""
    texts = [source_text(source, ()) for source in sorted({source for source, _, _ in modules})]
    return _mark_named(_MODULES, json.dumps([texts, modules], sort_keys=True, default=int).encode())


def _mark_named(name: str, known: bytes) -> Path | None:
    """Return the file for some work; `known` are bytes that change whenever the work does."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") not in ("", "0"):
        return None
    number = next((found for found in map(_version, _PACKAGES) if found is not None), None)
    if number is None:
        return None
    folder = os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache"
    return Path(folder) / f"{name}-{number}-{zlib.crc32(known):08x}"


def _can_be_kept(mark: Path) -> bool:
    """Return whether the cache is a folder that can be written to, or can be made."""
    folder = next(parent for parent in mark.parents if parent.exists())
    return folder.is_dir() and os.access(folder, os.W_OK)


def _version(package: str) -> str | None:
    # It takes longer to import than some commands run, which compile nothing.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
