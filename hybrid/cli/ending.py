"""The end of a process that the command line had to itself."""

from __future__ import annotations

import atexit
import os
import sys
import threading


def end(status: int) -> int:
    """End the process with an exit status, without taking apart what the system frees at once.

    The interpreter would free every object and every node one by one, which takes as long as a small model's
    iterations.  What was registered for the end is called, and output is written out.

    Parameters
    ----------
    status : int

    Returns
    -------
    int
        The status, for the interpreter to end with as usual: where others have to hear of the end (MPI, a
        profiler, a debugger, threads at work), or output cannot be written, which it then tells.
    """
    if "mpi4py" in sys.modules or _is_watched() or _has_threads():
        return status
    # What it calls in the usual end; nothing else tells of it.
    atexit._run_exitfuncs()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return status
    os._exit(status)


def _is_watched() -> bool:
    """Tell whether a profiler, a debugger or a measurement of coverage follows the program."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring is not None and any(monitoring.get_tool(number) for number in range(6))


def _has_threads() -> bool:
    """Tell whether some thread has to be waited for."""
    own = threading.current_thread()
    return any(not thread.daemon for thread in threading.enumerate() if thread is not own)
