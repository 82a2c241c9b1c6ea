"""A line on a terminal that rewrites itself: seconds, stages done, and how far the present one is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from hybrid.cli.advance import Snapshot
from hybrid.cli.screen import Screen

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDE = 70  # columns from which stages that are done are named
_MARGIN = 4  # columns kept free: the terminal writes ^C behind the line
_ERASE = "\r\x1b[2K"
_BAR = 24  # columns of a bar at most


class ProgressLine:
    """Nothing is drawn by other threads, and the cursor stays visible.

    A process that is killed leaves nothing behind but this one line.

    Parameters
    ----------
    stream : file
        A terminal.
    write : callable
        Writes text to it at once.

    Attributes
    ----------
    run : str
        Which of several runs this is; empty where there is one.
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

    def show(self, text: str, snapshot: Snapshot | None = None) -> None:
        """Rewrite the line."""
        from rich.table import Table
        from rich.text import Text

        width = self._screen.width - _MARGIN
        seconds = f"{time.perf_counter() - self._start:.1f} s"
        cells: list[RenderableType] = [Text(seconds, style="dim")]
        if self.run:
            cells.append(Text(self.run))
        if self._done:
            named = width >= _WIDE - _MARGIN
            ticks = " ".join(f"✓ {name}" for name in self._done) if named else "✓" * len(self._done)
            cells.append(Text(ticks, style="green"))
        if self._stage:
            cells.append(Text(self._stage, style="bold"))
        if snapshot is not None and snapshot.share is not None:
            cells += self._bar(snapshot, width, sum(len(str(cell)) + 1 for cell in cells))
        elif text:
            cells.append(Text(text.splitlines()[0]))
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

    def _bar(self, snapshot: Snapshot, width: int, taken: int) -> list[RenderableType]:
        """Return a bar with its share, and the time left, as far as there is room."""
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        from hybrid.cli.advance import duration

        share = snapshot.share or 0.0
        told = [f"{100 * share:3.0f} %"]
        if snapshot.left is not None:
            told.append(f"{duration(snapshot.left)} left")
        while len(told) > 1 and width - taken - sum(len(part) + 1 for part in told) < 8:
            told.pop()
        room = width - taken - sum(len(part) + 1 for part in told) - 1
        bar: list[RenderableType] = []
        if room >= 4:
            wide = min(room, _BAR)
            bar.append(ProgressBar(1.0, share, wide, style="dim", complete_style="green"))
        return [*bar, *(Text(part) for part in told)]
