"""Cores of the machine: threads of products and passes, and processes that compile ahead on a first use."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.base.errors import OptionError
from mtbdd.base.kernel_store import kernel_folder, store_of
from mtbdd.base.memory import cores_of_groups

if TYPE_CHECKING:
    import subprocess

_SERIAL = 20_000
"""Elements, or terms, below which waking other threads costs more than it saves."""

VARIABLE = "HYBRID_NUM_THREADS"
"""Of the environment: the number of threads, unless `set_thread_count` sets it."""

MOST = 1024
"""Threads that the environment may ask for."""

_count: int | None = None


def thread_count() -> int:
    """Return the threads of a product.

    Returns
    -------
    int
        What `set_thread_count` set; otherwise what the environment has in HYBRID_NUM_THREADS; otherwise all
        cores that this process may run on.

    Raises
    ------
    OptionError
        The environment has no number of threads there.
    """
    if _count is not None:
        return _count
    given = os.environ.get(VARIABLE)
    if given:
        return read_thread_count(given)
    return available_cores()


@functools.cache
def available_cores() -> int:
    """Return the cores that this process might use when it was first asked.

    Those that it may run on, or the fewer that its control groups give it the time of, as for a container.
    """
    cores, limit = _cores_to_run_on(), cores_of_groups()
    return cores if limit is None else min(cores, limit)


def is_bound_to_cores() -> bool:
    """Return whether this process may run on some of the machine's cores alone."""
    return _cores_to_run_on() < (os.cpu_count() or 1)


def _cores_to_run_on() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def read_thread_count(text: str) -> int:
    """Return the number of threads that HYBRID_NUM_THREADS stands for.

    Raises
    ------
    OptionError
        It is no number from 1 to `MOST`.
    """
    if text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST:
        return int(text)
    raise OptionError(f"{VARIABLE}: expected a whole number from 1 to {MOST}, got {text!r}")


def threads_for(size: int) -> int:
    """Return the threads that some elements or terms are worth: all, or one where they are few."""
    return thread_count() if size >= _SERIAL else 1


def set_thread_count(count: int | None) -> int | None:
    """Set the number of threads of all products of this process; None means the environment's, or all cores.

    Returns
    -------
    int or None
        What was set before.

    Raises
    ------
    ValueError
        If the count is less than one.
    """
    global _count
    if count is not None and count < 1:
        raise ValueError(
            f"count: expected a number of threads of at least 1 or None for all cores, got {count}"
        )
    before, _count = _count, count
    return before


# Functions compiled ahead: on the first use on a machine, other processes compile what most answers need.
#
# Numba compiles one function at a time, and holds the interpreter meanwhile, so that threads do not help;
# processes do.  They leave their code in the folder where this process looks for it.

_SHARES = (
    ("hybrid.matrix.cpu.pool_code", "hybrid.matrix.cpu.vector_kernels"),
    ("hybrid.matrix.cpu.shadow_kernels",),
    ("hybrid.matrix.cpu.sweep",),
)
"""Modules, a process each; the last ones are left out where there are fewer cores to spare.  What products
need is compiled by this process, which gets to it at once."""

_ALONE = (
    "hybrid.matrix.cpu.pool_code",
    "hybrid.matrix.cpu.vector_kernels",
    "hybrid.matrix.cpu.shadow_kernels",
)
"""The modules of one process, in the order in which an answer gets to them."""

_started: list[subprocess.Popen[bytes]] = []


def compile_ahead() -> bool:
    """Start processes that compile what solutions on the CPU need, and wait for nothing.

    Returns
    -------
    bool
        Whether some were started: where no function is kept yet, and there are cores to spare.

    Notes
    -----
    They end by themselves within seconds, and with this process at the latest; what they have not come to is
    compiled where it is met.
    """
    spare = available_cores() - 1
    if spare < 1 or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    if any(process.poll() is None for process in _started):
        return False  # another check of this process has
    chosen = os.environ.get("NUMBA_CACHE_DIR", "")
    try:
        folder = kernel_folder(chosen)
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    except OSError:
        return False
    if not os.access(there, os.W_OK) or not store_of(chosen, str(Path(__file__).parent)).is_first:
        return False
    for share in _SHARES[:spare] if spare > 1 else (_ALONE,):
        command = [sys.executable, "-c", f"import {', '.join(share)}"]
        import subprocess

        nothing = subprocess.DEVNULL
        try:
            _started.append(subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing))
        except OSError:
            break
    atexit.register(_stop)
    return bool(_started)


def _stop() -> None:
    for process in _started:
        if process.poll() is None:
            process.kill()
            process.wait()
    _started.clear()
