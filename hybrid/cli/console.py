"""What goes to standard error: progress on terminals, warnings, errors."""

from __future__ import annotations

import sys
import time
from types import TracebackType

__all__ = ["Console"]


class Console:
    """One line of progress that rewrites itself, and plain lines for everything else.

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

    def __enter__(self) -> Console:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()

    def progress(self, text: str) -> None:
        """Show a line of progress, at most ten times a second; nothing if not a terminal."""
        if not self._live:
            return
        now = time.perf_counter()
        if now - self._last < 0.1:
            return
        self._last = now
        line = f"{now - self._start:7.1f} s  {text}"[:110]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)

    def iteration(self, count: int, difference: float) -> None:
        """Show an iteration's number and difference."""
        self.progress(f"iteration {count}, difference {difference:.3g}")

    def warn(self, text: str) -> None:
        """Print a warning."""
        if not self.quiet:
            self._clear()
            print(f"warning: {text}", file=sys.stderr)

    def error(self, text: str) -> None:
        """Print an error."""
        self._clear()
        print(f"error: {text}", file=sys.stderr)

    def _clear(self) -> None:
        """Wipe the line of progress."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0
