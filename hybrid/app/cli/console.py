"""Output of the command line: results; on standard error warnings, errors, and progress if it is wanted."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TextIO

from hybrid.app.cli.signals import Signals
from mtbdd.base.budget import current_course

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.text import Text


# Progress of an iteration, and an estimate of the time left.

_LEAST_SHARE = 0.02  # share that must be done before the time left is estimated


class Snapshot(NamedTuple):
    """The progress of an iteration at a moment.

    `share` is what is done of it, from 0 to 1, and None while that is not known; `left` are the seconds that
    the rest takes at this pace.
    """

    iteration: int
    difference: float
    share: float | None
    left: float | None

    @property
    def text(self) -> str:
        """The snapshot as one line of plain text."""
        parts = [f"iteration {self.iteration}"]
        if math.isfinite(self.difference):
            parts.append(f"difference {self.difference:.3g}")
        if self.share is not None:
            parts.append(f"{100 * self.share:.0f} %")
        if self.left is not None:
            parts.append(f"about {duration(self.left)} left")
        return ", ".join(parts)


class Advance:
    """The share of an iteration that is done, and the time that is left.

    With a known number of steps the share is ``iteration / steps``, else it is ``log(first / difference) /
    log(first / target)`` with the first difference that was seen, and the one that ends the iteration.
    """

    def __init__(self, target: float | None, steps: int | None) -> None:
        self._target, self._steps = target, steps
        self._start = time.perf_counter()
        self._first: float | None = None
        self._share = 0.0

    def at(self, iteration: int, difference: float) -> Snapshot:
        """Return the snapshot; its share never falls."""
        share = self._share_at(iteration, difference)
        if share is None:
            return Snapshot(iteration, difference, None, None)
        self._share = max(self._share, min(share, 1.0))
        gone = time.perf_counter() - self._start
        left = gone * (1.0 - self._share) / self._share if self._share > _LEAST_SHARE else None
        return Snapshot(iteration, difference, self._share, left)

    def _share_at(self, iteration: int, difference: float) -> float | None:
        if self._steps:
            return iteration / self._steps
        if self._target is None or not 0.0 < difference < math.inf:
            return None
        if self._first is None:
            self._first = difference
        if self._first <= self._target:
            return None
        return math.log(self._first / difference) / math.log(self._first / self._target)


def duration(seconds: float) -> str:
    """Return a duration as people say it: 12 s, 3:04 min, 2:10 h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02} min"
    return f"{whole // 3600}:{whole % 3600 // 60:02} h" if whole < 360_000 else "days"


# Values for people.


def value_text(value: float | int | bool | None) -> str:
    """Return a value as text, all digits kept."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


# Terminals that `rich` draws on, and how wide they are now; it is loaded when there is something to draw.

LEAST_WIDTH = 12  # columns that are drawn on, however narrow a terminal says to be


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal on which lines can be rewritten, and `rich` is there to do it."""
    if stream is None or not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return importlib.util.find_spec("rich") is not None


class Screen:
    """Turns what `rich` draws into text for a terminal.

    Colours are those that the terminal has, out of its own palette; `NO_COLOR` is heeded.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console: RichConsole | None = None

    @property
    def width(self) -> int:
        """Columns of the terminal now; 80 where it is unknown."""
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            width = 0
        return max(width, LEAST_WIDTH) if width else 80

    def drawn(self, shown: RenderableType, width: int | None = None) -> str:
        """Return the text that draws something, without the end of its last line."""
        if self._console is None:
            from rich.console import Console as RichConsole

            self._console = RichConsole(file=self._stream, force_terminal=True, highlight=False)
        self._console.width = self.width if width is None else width
        with self._console.capture() as captured:
            self._console.print(shown, end="")
        return captured.get().removesuffix("\n")


# A line on a terminal that rewrites itself: seconds, stages done, and how far the present one is.

_ROOM = 16  # columns of a bar or a message beside which stages that are done are named
_LEAST_COLUMNS = 6  # columns of a bar or a message beside which they are ticked at all
_MARGIN = 4  # columns kept free: the terminal writes ^C behind the line
_ERASE = "\r\x1b[2K"
_BAR = 24  # columns of a bar at most


class ProgressLine:
    """Nothing is drawn by other threads, and the cursor stays visible.

    A process that is killed leaves nothing behind but this one line. `stream`: a terminal. `write`: writes
    text to it at once. `run`: which of several runs this is; empty where there is one.
    """

    run = ""

    def __init__(self, stream: TextIO, write: Callable[[str], None]) -> None:
        self._screen, self._write = Screen(stream), write
        self._start = time.perf_counter()
        self._done: list[str] = []
        self._stage = ""
        self._is_shown = False

    def enter(self, stage: str) -> None:
        """Note that a stage begins; the one before it is done."""
        if stage == self._stage:
            return
        if self._stage and self._stage not in self._done:
            self._done.append(self._stage)
        if stage in self._done:
            # Another property, another run of an experiment.
            del self._done[self._done.index(stage) :]
        self._stage = stage

    def begin_run(self, which: str) -> None:
        """Note that another of several runs begins, which no stage has been done of."""
        self.run, self._stage = which, ""
        self._done.clear()

    def show(self, text: str, snapshot: Snapshot | None = None) -> None:
        """Rewrite the line; where it is too narrow, the message is cut before anything else is."""
        from rich.table import Table
        from rich.text import Text

        width = self._screen.width - _MARGIN
        message = Text(" ".join(text.split("\n", 1)[0].split()))
        has_bar = snapshot is not None and snapshot.share is not None
        cells: list[RenderableType] = []
        cells += self._head(width, _ROOM if has_bar else min(message.cell_len, _ROOM))
        room = width - sum(cell.cell_len + 1 for cell in cells if isinstance(cell, Text))
        if snapshot is not None and snapshot.share is not None:
            cells += self._bar(snapshot, snapshot.share, room)
        elif message and room >= min(message.cell_len, _LEAST_COLUMNS):
            message.truncate(room, overflow="ellipsis")
            cells.append(message)
        line = Table.grid(padding=(0, 1, 0, 0))
        for _ in cells:
            line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(*cells)
        self._write(_ERASE + self._screen.drawn(line, width).split("\n")[0].rstrip())
        self._is_shown = True

    def clear(self, always: bool = False) -> None:
        """Wipe the line, if there is one, or if there may be one of another process."""
        if self._is_shown or always:
            self._is_shown = False
            self._write(_ERASE)

    def _head(self, width: int, wanted: int) -> list[Text]:
        """Return seconds, run and stages; those done lose their names where `wanted` columns lack room."""
        from rich.text import Text

        seconds = f"{time.perf_counter() - self._start:.1f} s"
        named = " ".join(f"✓ {name}" for name in self._done)
        shown: dict[int, Text] = {}
        for place, text, style, kept in (
            (0, seconds, "dim", 0),
            (1, self.run, "", 0),
            (3, self._stage, "bold", 0),
            (2, named, "green", wanted),
            (2, "✓" * len(self._done), "green", min(wanted, _LEAST_COLUMNS)),
        ):
            cell = Text(text, style=style)
            if text and place not in shown and cell.cell_len + 1 + kept <= width:
                shown[place] = cell
                width -= cell.cell_len + 1
        return [cell for _, cell in sorted(shown.items())]

    def _bar(self, snapshot: Snapshot, share: float, room: int) -> list[RenderableType]:
        """Return a bar with its share, and the time left, as far as there is room."""
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        told = [f"{100 * share:3.0f} %"]
        if snapshot.left is not None:
            told.append(f"{duration(snapshot.left)} left")

        def beside() -> int:
            return room - sum(len(part) + 1 for part in told) - 1

        while told and beside() < (8 if len(told) > 1 else -1):
            told.pop()
        bar: list[RenderableType] = []
        if told and beside() >= 4:
            bar.append(ProgressBar(1.0, share, min(beside(), _BAR), style="dim", complete_style="green"))
        return [*bar, *(Text(part) for part in told)]


_LOGGERS = ("mtbdd", "gpu_kernels", "hybrid")
"""Names under which the packages log the stages of their work."""

_STAGES = {
    "mtbdd": "build",
    "hybrid.app.explorer": "level",
    "hybrid.matrix.levels": "level",
    "hybrid.matrix.operators": "set-up",
    "hybrid.matrix.explicit": "set-up",
    "gpu_kernels": "set-up",
}
"""Which stage a part of the packages belongs to, by its logger."""

_DOING = {
    "parse": "reading the model",
    "build": "building the model",
    "level": "choosing the level",
    "set-up": "setting up the solution",
    "iterate": "iterating",
}
"""Names of the stages in messages."""

_PAUSE = 0.1  # seconds between two pictures of the line
_LINE_PAUSE = 5.0  # seconds between two plain lines about one iteration

_SPELT = str.maketrans(
    {"µ": "u", "≤": "<=", "×": "x", "–": "-", "²": "^2", "⁶": "^6"}
    | {"✓": "*", "━": "=", "╸": "-", "╺": "-", "…": "~", "±": "+-", "←": "<-"}
)
"""Replacements of our characters in encodings without them."""


class StreamError(Exception):
    """Standard output takes nothing more: its disk is full."""


class Console:
    """One line of progress that rewrites itself, and plain lines for everything else.

    While it is entered, the line shows the stages that the packages log (loggers `mtbdd`, `gpu_kernels` and
    `hybrid`, level INFO), and what they warn of is printed. Streams may be closed, and have any encoding.
    Where standard error is no terminal, or a dumb one, nothing is reported of progress, or with `verbose`
    plain lines. A `quiet` one shows errors alone. `signals` are checked whenever progress is shown.
    """

    def __init__(self, quiet: bool, signals: Signals | None = None, verbose: bool = False) -> None:
        self.quiet = quiet
        self.signals = Signals() if signals is None else signals
        self._line: ProgressLine | None = None
        if not quiet and sys.stderr is not None and is_terminal(sys.stderr):
            self._line = ProgressLine(sys.stderr, _write_or_drop)
        self._screen = Screen(sys.stdout) if sys.stdout is not None and is_terminal(sys.stdout) else None
        self._is_plain = verbose and not quiet and self._line is None
        self._start = self._last = time.perf_counter()
        self._advance = Advance(None, None)
        self._runs = 1, 1
        self._handler = _Stages(self)
        self._levels: dict[str, int] = {}

    def __enter__(self) -> Console:
        """Begin to show the stages of the work that the packages log."""
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))  # for the stage in messages
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

    @property
    def screen(self) -> Screen | None:
        """The screen that draws on standard output; None for plain text, where that is no terminal."""
        return self._screen

    def enter(self, stage: str) -> None:
        """Note that a stage begins, and that the one before it is done."""
        _note(_DOING[stage])
        if self._line is not None:
            self._line.enter(stage)

    def progress(self, text: str) -> None:
        """Show the present stage, at most ten times a second."""
        self.signals.check()
        now = time.perf_counter()
        if self._line is not None and now - self._last >= _PAUSE:
            self._last = now
            self._line.show(text)
        elif self._is_plain and now - self._last >= _LINE_PAUSE:
            self._last = now
            self._tell(text)

    def run(self, number: int, count: int, given: str) -> None:
        """Report which of several runs begins, with the constants as they were given."""
        self._runs = number, count
        if self._line is not None:
            self._line.begin_run(f"{number}/{count}")
        self.progress(f"run {number} of {count}: {given}")

    def ended(self, reason: str) -> None:
        """Report why the command ends early, and how many of several runs have not begun."""
        number, count = self._runs
        left = f"; of {count} runs {count - number} had not begun" if number < count else ""
        self.error(reason + left)

    def stage(self, text: str) -> None:
        """Announce a part of the work that may take long."""
        if self._line is not None:
            self._line.show(text)
        elif self._is_plain:
            self._last = time.perf_counter()
            self._tell(text)

    def begin(self, target: float | None, steps: int | None) -> None:
        """Note that an iteration begins; see `hybrid.matrix.space.base.ProgressMonitor.begin`."""
        self._advance = Advance(target, steps)
        self.enter("iterate")

    def iteration(self, count: int, difference: float) -> None:
        """Show an iteration's number, difference and progress."""
        self.signals.check()
        now = time.perf_counter()
        snapshot = self._advance.at(count, difference)
        if self._line is not None and now - self._last >= _PAUSE:
            self._last = now
            self._line.show(snapshot.text, snapshot)
        elif self._is_plain and now - self._last >= _LINE_PAUSE:
            self._last = now
            self._tell(snapshot.text)

    def wipe(self) -> None:
        """Wipe the line of progress that a process which was killed may have left."""
        if self._line is not None:
            self._line.clear(always=True)

    def print(self, text: str = "") -> None:
        """Print to standard output at once, where the line of progress does not stand in its way.

        Raises `BrokenPipeError` where the reader has closed the pipe, `StreamError` where the text cannot be
        written.
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
        if self._line is not None or self._is_plain:
            self._say(f"note: {text}\n")

    def tell(self, text: str, failed: bool) -> None:
        """Warn of what failed, or note what was found."""
        if failed:
            self.warn(text)
        else:
            self.note(text)

    def wrote(self, path: str) -> None:
        """Report that a file was written."""
        if not self.quiet:
            self._say(f"wrote {path}\n")

    def error(self, text: str) -> None:
        """Print an error."""
        self._say(f"error: {text}\n")

    def _tell(self, text: str) -> None:
        """Print a plain line of progress."""
        line = text.splitlines()[0] if text else ""
        _write_or_drop(f"{time.perf_counter() - self._start:7.1f} s  {line}\n")

    def _clear(self) -> None:
        """Wipe the line of progress."""
        if self._line is not None:
            self._line.clear()

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
            if record.name.startswith("hybrid.checking"):
                _note("checking a property")
            for name, stage in _STAGES.items():
                if f"{record.name}.".startswith(f"{name}."):
                    self._console.enter(stage)
            self._console.stage(record.getMessage())


def _note(doing: str) -> None:
    """Note what is being done, for the message of a limit that is reached."""
    course = current_course()
    if course is not None and course.stage != doing:
        course.change(stage=doing)


def _write(stream: TextIO, text: str) -> None:
    """Write a text and let it through at once; characters that the stream's encoding lacks are spelt."""
    encoding = stream.encoding or "utf-8"
    if not _is_written(text, encoding):
        text = text.translate(
            {own: spelt for own, spelt in _SPELT.items() if not _is_written(chr(own), encoding)}
        )
    if not _is_written(text, encoding, stream.errors or "strict"):
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    stream.write(text)
    stream.flush()


def _is_written(text: str, encoding: str, errors: str = "strict") -> bool:
    """Return whether an encoding has all characters of a text, or a way to write them."""
    try:
        text.encode(encoding, errors)
    except UnicodeEncodeError:
        return False
    return True


def _write_or_drop(text: str) -> None:
    """Write to standard error; text that it does not take is lost."""
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
