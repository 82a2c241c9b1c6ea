"""Ctrl-C and SIGTERM: an exception while the command works, the end at once while it is only being loaded.

The module imports nothing but what the interpreter has loaded anyway, so that it is in place before
everything else. `signal` itself brings enumerations and regular expressions, ten milliseconds; `_signal` is
the module that it wraps.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys

# `typing.TYPE_CHECKING` without importing `typing`, which takes long.
TYPE_CHECKING = False


# The end of a process that the command line has to itself.

_INJECTED = ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
"""Variables by which profilers come into a process; they write their records at its end."""


def end(status: int) -> int:
    """End the process with an exit status, without taking apart what the system frees at once.

    The interpreter would free every object and every node one by one, which takes as long as a small model's
    iterations. What was registered for the end is called, and output is written out. The status is returned,
    for the interpreter to end with as usual, where others have to hear of the end: MPI, a profiler, a
    debugger, threads that are not daemons, a user who stays at the prompt (``-i``); and where output cannot
    be written, which the interpreter then reports.
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
        import ctypes

        ctypes.CDLL(None).fflush(None)  # what libraries have written
    os._exit(status)


def _is_watched() -> bool:
    """Return whether a user, a profiler, a debugger or a measurement of coverage follows the program."""
    if sys.flags.inspect or any(name in os.environ for name in _INJECTED):
        return True
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # from Python 3.12 on
    return monitoring is not None and any(monitoring.get_tool(number) for number in range(6))


def _has_threads() -> bool:
    """Return whether some thread has to be waited for."""
    import threading

    own = threading.current_thread()
    return any(not thread.daemon for thread in threading.enumerate() if thread is not own)


if TYPE_CHECKING:
    import signal
    from types import FrameType, TracebackType
else:
    import _signal as signal

_WORDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class Interrupted(KeyboardInterrupt):
    """A signal asked the process to end: its word, "interrupted" or "terminated", and the exit status."""

    def __init__(self, number: int) -> None:
        self.word = _WORDS[number]
        super().__init__(self.word)
        self.status = 128 + number


class Signals:
    """Handlers of SIGINT and SIGTERM while it is entered; signals that are ignored stay so.

    The first signal raises :class:`Interrupted`, the second one ends the process as if there were no handler.
    Outside of the main thread nothing is handled. Where the process ends afterwards (`is_last`), a later
    signal does not change the exit status. `received` is what the first signal raised: code that swallows
    exceptions, such as finalisers and the loading of extension modules, may have lost it.
    """

    def __init__(self, is_last: bool = False) -> None:
        self._is_last = is_last
        self.received: Interrupted | None = None
        self._loading = True
        self._held = 0
        self._before: dict[int, object] = {}

    def __enter__(self) -> Signals:
        defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        for number, default in defaults.items():
            if signal.getsignal(number) == default:
                try:
                    self._before[number] = signal.signal(number, self._handle)
                except ValueError:
                    # Another thread than the main one calls.
                    break
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_IGN if self._is_last else before)  # type: ignore[arg-type]
        self._before.clear()

    def loaded(self) -> None:
        """Raise an exception from now on: there is work that may be worth keeping."""
        self._loading = False

    def check(self) -> None:
        """Raise what a signal raised before, if that was swallowed and nothing is held."""
        if self.received is not None and not self._held:
            raise self.received

    def hold(self, check: bool = True) -> Hold:
        """Return a context in which signals wait; with `check` its end raises what came meanwhile."""
        return Hold(self, check)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        interrupted = Interrupted(number)
        if self._loading:
            # An exception here would pass through imports, which turn it into others; nothing is lost.
            try:
                os.write(2, f"error: {interrupted.word}\n".encode())
            except OSError:
                pass
            os._exit(interrupted.status)
        for each in self._before:
            signal.signal(each, signal.SIG_DFL)
        self.received = interrupted
        if not self._held:
            raise interrupted


class Hold:
    """Lets signals wait while it is entered; see :meth:`Signals.hold`."""

    def __init__(self, signals: Signals, check: bool = True) -> None:
        self._signals, self._check = signals, check

    def __enter__(self) -> None:
        self._signals._held += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals._held -= 1
        if kind is None and self._check:
            self._signals.check()
