"""Terminals that `rich` draws on, and how wide they are now; it is loaded when there is something to draw."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType

LEAST_WIDTH = 12  # columns that are drawn on, however narrow a terminal says to be


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal on which lines can be rewritten, and `rich` is there to do it."""
    if stream is None or not stream.isatty() or os.environ.get("TERM") in ("dumb", "unknown"):
        return False
    return importlib.util.find_spec("rich") is not None


class Screen:
    """Turns what `rich` draws into text for a terminal.

    Colours are those that the terminal has, out of its own palette; `NO_COLOR` is heeded.

    Parameters
    ----------
    stream : file
        A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console: RichConsole | None = None

    @property
    def width(self) -> int:
        """Columns of the terminal now; 80 where it does not tell."""
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
