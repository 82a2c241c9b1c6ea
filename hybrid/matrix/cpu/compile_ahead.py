"""Functions compiled ahead: on the first use on a machine, other processes compile what most answers need.

Numba compiles one function at a time, and holds the interpreter meanwhile, so that threads do not help;
processes do.  They leave their code in the folder where this process looks for it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from pathlib import Path

from hybrid.matrix.cpu.threads import available_cores
from mtbdd.base.kernel_store import kernel_folder, store_of

_SHARES = (
    ("hybrid.matrix.cpu.pool_code", "hybrid.matrix.cpu.vector_kernels"),
    ("hybrid.matrix.cpu.shadow_kernels", "hybrid.matrix.cpu.single_kernels"),
    ("hybrid.matrix.cpu.sweep_kernels",),
)
"""Modules, a process each; the last ones are left out where there are fewer cores to spare.  What products
need is compiled by this process, which gets to it at once."""

_ALONE = (
    "hybrid.matrix.cpu.pool_code",
    "hybrid.matrix.cpu.vector_kernels",
    "hybrid.matrix.cpu.shadow_kernels",
)
"""The modules of one process, in the order in which an answer gets to them; what long vectors alone need is
left to machines with cores for it."""

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
