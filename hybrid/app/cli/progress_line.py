"""A line on a terminal that rewrites itself: seconds, stages done, and how far the present one is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from hybrid.app.cli.advance import Snapshot
from hybrid.app.cli.screen import Screen

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

_ROOM = 16  # columns of a bar or a message beside which stages that are done are named
_LEAST = 6  # columns of a bar or a message beside which they are ticked at all
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
        elif message and room >= min(message.cell_len, _LEAST):
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
        """Return seconds, run and stages, as far as there is room.

        Parameters
        ----------
        width : int
            Columns of the line.
        wanted : int
            Columns for what follows, in favour of which stages that are done lose their names.
        """
        from rich.text import Text

        seconds = f"{time.perf_counter() - self._start:.1f} s"
        named = " ".join(f"✓ {name}" for name in self._done)
        shown: dict[int, Text] = {}
        for place, text, style, kept in (
            (0, seconds, "dim", 0),
            (1, self.run, "", 0),
            (3, self._stage, "bold", 0),
            (2, named, "green", wanted),
            (2, "✓" * len(self._done), "green", min(wanted, _LEAST)),
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

        from hybrid.app.cli.advance import duration

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
