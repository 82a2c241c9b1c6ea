"""What people see: results; and on standard error progress if it is a terminal, warnings and errors."""

from __future__ import annotations

import logging
import os
import sys
import time
from types import TracebackType
from typing import TextIO

from hybrid.cli.signals import Signals

_LOGGERS = ("mtbdd", "gpu_kernels", "hybrid")
"""Names under which the packages log the stages of their work."""


_SPELT = str.maketrans({"µ": "u", "≤": "<=", "×": "x", "–": "-", "²": "^2", "⁶": "^6"})
"""How characters of ours are written where the encoding has none for them."""


class StreamError(Exception):
    """Standard output takes nothing more: its disk is full."""


class Console:
    """One line of progress that rewrites itself, and plain lines for everything else.

    While it is entered, the line shows the stages that the packages log (loggers `mtbdd`, `gpu_kernels` and
    `hybrid`, level INFO), and what they warn of is printed. Streams may be closed, and have any encoding.

    Parameters
    ----------
    quiet : bool
        No progress and no warnings; errors still show.
    signals : Signals, optional
        Looked at whenever progress is told; default nothing.
    """

    def __init__(self, quiet: bool, signals: Signals | None = None) -> None:
        self.quiet = quiet
        self.signals = Signals() if signals is None else signals
        self._live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._width = 0
        self._start = self._last = time.perf_counter()
        self._handler = _Stages(self)
        self._levels: dict[str, int] = {}

    def __enter__(self) -> Console:
        """Begin to show the stages of the work that the packages log."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            if self._live:
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
        self.signals.check()
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
        """Print to standard output at once, where the line of progress does not stand in its way.

        Raises
        ------
        BrokenPipeError
            Nobody reads any more.
        StreamError
            The text cannot be written.
        """
        self._clear()
        if sys.stdout is None:
            return
        try:
            _write(sys.stdout, text + "\n")
        except OSError as error:
            _give_up(sys.stdout)
            if isinstance(error, BrokenPipeError):
                raise
            raise StreamError(f"cannot write to standard output: {error.strerror or error}") from None

    def warn(self, text: str) -> None:
        """Print a warning."""
        if not self.quiet:
            self._say(f"warning: {text}\n")

    def note(self, text: str) -> None:
        """Print what people who wait want to know; nothing if not a terminal."""
        if self._live:
            self._say(f"note: {text}\n")

    def error(self, text: str) -> None:
        """Print an error."""
        self._say(f"error: {text}\n")

    def _show(self, now: float, text: str) -> None:
        """Rewrite the line of progress."""
        line = f"{now - self._start:7.1f} s  {text.splitlines()[0] if text else ''}"[:110]
        width, self._width = self._width, len(line)
        _write_or_drop("\r" + line.ljust(width))

    def _clear(self) -> None:
        """Wipe the line of progress."""
        if self._width:
            width, self._width = self._width, 0
            _write_or_drop("\r" + " " * width + "\r")

    def _say(self, text: str) -> None:
        """Print to standard error."""
        self._clear()
        _write_or_drop(text)


class _Stages(logging.Handler):
    """Shows what the packages log on a console's line of progress."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.INFO)
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record: a warning as such, anything else as a stage."""
        if record.levelno >= logging.WARNING:
            self._console.warn(record.getMessage())
        elif record.levelno > logging.INFO:
            self._console.note(record.getMessage())
        else:
            self._console.stage(record.getMessage())


def _write(stream: TextIO, text: str) -> None:
    """Write a text and let it through at once; characters that the stream's encoding lacks are spelt."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding, stream.errors or "strict")
    except UnicodeEncodeError:
        text = text.translate(_SPELT).encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text)
    stream.flush()


def _write_or_drop(text: str) -> None:
    """Write to standard error; what it does not take is lost, for there is nobody left to tell."""
    if sys.stderr is None:
        return
    try:
        _write(sys.stderr, text)
    except (OSError, ValueError):
        pass


def _give_up(stream: TextIO) -> None:
    """Send what a stream still holds nowhere, so that the interpreter does not fail once more at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass
