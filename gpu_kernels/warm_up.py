"""Kernels compiled ahead: other processes make the operations that this one will make, all at once.

CuPy writes a kernel for every operation and kind of array, and compiles it when it is first met: on a fresh
machine some hundred, one after the other.  Threads do not help, for the compiler works for one of them at a
time; processes do.  They leave their kernels in CuPy's cache on disk, where this process finds them, and it
leaves a mark beside them: all of this happens once a machine and version.  Where many processes begin on an
empty cache, one of them has it done: a dozen processes for each would take all cores and much of the card.
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
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from gpu_kernels._loader import raw_kernel
from gpu_kernels.array_operations import (
    CODING,
    LAYOUT,
    LENGTHS,
    LONG,
    MODULES,
    NUMBERS,
    PARTS,
    VECTORS,
    samples,
)

Work = Literal["solutions", "layouts"]
Module = tuple[str, str, dict[str, int]]
"""A source of our own, a kernel of it, and the macros of a specialisation."""

_MOST_PROCESSES = 12
_SECONDS = 30.0
"""After so long nobody waits for them any more."""

_SECONDS_OF_A_CLAIM = 2 * _SECONDS
"""A claim that is older was left by a process that was killed."""

_SECONDS_TO_GO = 5.0
"""A process that is ended may wait for its card."""

_LONG_BYTES = 64 << 30
"""Free memory from which long vectors are tried: all processes together take less than half of it."""

_EXCLUSIVE = 1, 2, 3
"""Compute modes in which a second process is not welcome."""

_PACKAGES = ("cupy-cuda13x", "cupy-cuda12x", "cupy")

_started: list[subprocess.Popen[bytes]] = []
_gone: list[subprocess.Popen[bytes]] = []
"""Those that were ended and had not gone in time."""

_mark_of_started: Path | None = None
"""Where the mark of their work belongs."""

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
    Only worth calling where a device will be used. They end by themselves within seconds, and with this
    process at the latest; what they fail at is compiled later, where it is met.
    """
    global _mark_of_started
    mark = _mark(work)
    if mark is None or mark in _tried or mark.exists() or not _can_be_kept(mark):
        return False
    end_warm_up()
    if not _claimed(mark):
        return False
    _tried.add(mark)
    count = min(_MOST_PROCESSES, max(1, len(os.sched_getaffinity(0)) - 1))
    for share in range(count):
        command = [sys.executable, "-m", "gpu_kernels.warm_up", work, str(share), str(count)]
        nothing = subprocess.DEVNULL
        try:
            _started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing))
        except OSError:
            break
    _mark_of_started = mark
    if not _started:
        _give_back(mark)
        return False
    atexit.unregister(_stop)
    atexit.register(_stop)
    return True


def compile_as_well(modules: Sequence[Module]) -> None:
    """Have processes that are at work compile modules too, after what they began with; wait for nothing.

    Parameters
    ----------
    modules : sequence of (str, str, dict)
        As :func:`gpu_kernels._loader.raw_kernel` takes them: a source, a kernel and macros.

    Notes
    -----
    Does nothing where no processes were started. Modules are dealt out, so that none is compiled twice.
    """
    for number, module in enumerate(modules if _started else ()):
        pipe = _started[number % len(_started)].stdin
        # One that has ended compiles nothing more; the module is compiled where it is met.
        with contextlib.suppress(OSError, ValueError):
            if pipe is not None:
                pipe.write(json.dumps(module).encode() + b"\n")
                pipe.flush()


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
    Called before that memory is asked for. Does nothing where none were started.
    """
    if not _started or _mark_of_started is None:
        return
    for process in _started:
        _close(process)
    deadline = time.monotonic() + _SECONDS
    done = [_has_ended(process, deadline) for process in _started]
    _stop()
    if all(done):
        # A cache that is full is asked again next time.
        with contextlib.suppress(OSError):
            _mark_of_started.touch()


def _close(process: subprocess.Popen[bytes]) -> None:
    """Tell a process that no more modules come."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()


def _has_ended(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        process.wait(max(deadline - time.monotonic(), 0.0))
    except subprocess.TimeoutExpired:
        return False
    return True


def _stop() -> None:
    """End those that are not done, all at once, and give up the claim."""
    running = [process for process in _started if process.poll() is None]
    for process in running:
        process.kill()
    for process in _started:
        _close(process)
    deadline = time.monotonic() + _SECONDS_TO_GO
    _gone.extend(process for process in running if not _has_ended(process, deadline))
    if _started and _mark_of_started is not None:
        _give_back(_mark_of_started)
    _started.clear()


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
    return mark.with_name(f"{mark.name}.begun")


def _mark(work: Work) -> Path | None:
    """Return the file that says that this version's operations have been compiled; None without a cache."""
    if os.environ.get("CUPY_CACHE_IN_MEMORY", "0") not in ("", "0"):
        return None
    number = next((found for found in map(_version, _PACKAGES) if found is not None), None)
    if number is None:
        return None
    listed = Path(__file__).with_name("array_operations.py").read_bytes()
    known = zlib.crc32(listed + Path(__file__).read_bytes())
    folder = os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache"
    return Path(folder) / f"warm-{work}-{number}-{known:08x}"


def _can_be_kept(mark: Path) -> bool:
    """Whether the cache is a folder that can be written to, or can be made."""
    folder = next(parent for parent in mark.parents if parent.exists())
    return folder.is_dir() and os.access(folder, os.W_OK)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main(arguments: Sequence[str], more: Iterable[str] = ()) -> int:
    """Make every n-th operation of some work: ``python -m gpu_kernels.warm_up WORK SHARE OF``.

    Then the modules of `more`: lines of :func:`compile_as_well`.
    """
    work, share, shares = arguments[0], int(arguments[1]), int(arguments[2])
    import cupy

    mode = cupy.cuda.runtime.deviceGetAttribute(cupy.cuda.runtime.cudaDevAttrComputeMode, 0)
    if mode in _EXCLUSIVE:
        return 0
    chosen = (LAYOUT,) if work == "layouts" else (VECTORS, CODING, NUMBERS)
    for operations in chosen:
        for length in LENGTHS:
            arrays = samples(cupy, length)
            for operation in operations[share::shares]:
                operation(cupy, arrays)
    if work == "solutions":
        # From the other end: those who had an operation more have a module less.
        for source, name, special in MODULES[::-1][share::shares]:
            raw_kernel(0, source, name, tuple(sorted(special.items())))
    elif cupy.cuda.runtime.memGetInfo()[0] > _LONG_BYTES:
        # Where layouts are large vectors may be long.
        arrays.f = cupy.ones(LONG)
        for operation in (*VECTORS, *PARTS)[share::shares]:
            operation(cupy, arrays)
    cupy.cuda.get_current_stream().synchronize()
    for line in more:
        source, name, special = json.loads(line)
        raw_kernel(0, source, name, tuple(sorted(special.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin))
