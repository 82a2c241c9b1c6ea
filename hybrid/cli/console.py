"""What people see: results; and on standard error progress if it is a terminal, warnings and errors."""

from __future__ import annotations

import logging
import sys
import time
from types import TracebackType

__all__ = ["Console"]

_LOGGERS = ("mtbdd", "gpu_kernels", "hybrid")
"""Names under which the packages log the stages of their work."""


class Console:
    """One line of progress that rewrites itself, and plain lines for everything else.

    While it is entered, the line shows the stages that the packages log (loggers `mtbdd`, `gpu_kernels` and
    `hybrid`, level INFO).

    Parameters
    ----------
    quiet : bool
        No progress and no warnings; errors still show.
    """

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self._live = not quiet and sys.stderr.isatty()
        self._width = 0
        self._start = self._last = time.perf_counter()
        self._handler = _Stages(self)
        self._levels: dict[str, int] = {}

    def __enter__(self) -> Console:
        """Begin to show the stages of the work that the packages log."""
        if self._live:
            for name in _LOGGERS:
                logger = logging.getLogger(name)
                self._levels[name] = logger.level
                logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
                logger.addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, level in self._levels.items():
            logging.getLogger(name).removeHandler(self._handler)
            logging.getLogger(name).setLevel(level)
        self._levels.clear()
        self._clear()

    def progress(self, text: str) -> None:
        """Show a line of progress, at most ten times a second; nothing if not a terminal."""
        if not self._live:
            return
        now = time.perf_counter()
        if now - self._last < 0.1:
            return
        self._last = now
        self._show(now, text)

    def stage(self, text: str) -> None:
        """Show a stage of the work, which may last; nothing if not a terminal."""
        if self._live:
            self._show(time.perf_counter(), text)

    def iteration(self, count: int, difference: float) -> None:
        """Show an iteration's number and difference."""
        self.progress(f"iteration {count}, difference {difference:.3g}")

    def print(self, text: str = "") -> None:
        """Print to standard output, where the line of progress does not stand in its way."""
        self._clear()
        print(text)

    def warn(self, text: str) -> None:
        """Print a warning."""
        if not self.quiet:
            self._clear()
            print(f"warning: {text}", file=sys.stderr)

    def error(self, text: str) -> None:
        """Print an error."""
        self._clear()
        print(f"error: {text}", file=sys.stderr)

    def _show(self, now: float, text: str) -> None:
        """Rewrite the line of progress."""
        line = f"{now - self._start:7.1f} s  {text.splitlines()[0] if text else ''}"[:110]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def _clear(self) -> None:
        """Wipe the line of progress."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0


class _Stages(logging.Handler):
    """Shows what the packages log on a console's line of progress."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record."""
        self._console.stage(record.getMessage())
