"""The end of a process that the command line has to itself."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading

_INJECTED = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
"""Variables by which profilers come into a process; they write their records at its end."""


def end(status: int) -> int:
    """End the process with an exit status, without taking apart what the system frees at once.

    The interpreter would free every object and every node one by one, which takes as long as a small model's
    iterations. What was registered for the end is called, and output is written out.

    Parameters
    ----------
    status : int

    Returns
    -------
    int
        The status, for the interpreter to end with as usual. It does so where others have to hear of the end:
        MPI, a profiler, a debugger, threads that are not daemons, a user who stays at the prompt (``-i``);
        and where output cannot be written, which the interpreter then reports.
    """
    # The interpreter calls this function, too; there is no public name for it.
    call_registered = getattr(atexit, "_run_exitfuncs", None)
    if call_registered is None or "mpi4py" in sys.modules or _is_watched() or _has_threads():
        return status
    call_registered()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return status
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)  # what libraries have written
    os._exit(status)


def _is_watched() -> bool:
    """Tell whether a user, a profiler, a debugger or a measurement of coverage follows the program."""
    if sys.flags.inspect or any(name in os.environ for name in _INJECTED):
        return True
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring is not None and any(monitoring.get_tool(number) for number in range(6))


def _has_threads() -> bool:
    """Tell whether some thread has to be waited for."""
    own = threading.current_thread()
    return any(not thread.daemon for thread in threading.enumerate() if thread is not own)
