"""Figures of matplotlib (extra `plot`): their colours, axes and files, the same for every picture.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart. Lines differ in
their dashes and points as well, so that a print in grey is read, too. The ground is white, never transparent.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid.base.errors import OptionError
from hybrid.base.installing import install_command

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#332288", "#1b1f24")
"""One a line, in this order; then again with the next of `DASHES`."""

DASHES = ("-", "--", ":", "-.")
POINTS = ("o", "s", "^", "D", "v", "P", "X", "*")

ENDINGS = (".png", ".svg", ".pdf")
"""What a figure is written as."""

_DPI = 150
_STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7ea",
    "grid.linewidth": 0.8,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    # Texts stay texts, and equal pictures are equal files.
    "svg.fonttype": "none",
    "svg.hashsalt": "hybrid",
}


def check_ending(path: str | Path, what: str = "a plot", also: tuple[str, ...] = ()) -> None:
    """Refuse a file that is not named as a kind of picture, before any work is done.

    Raises
    ------
    OptionError
    """
    offered = (*ENDINGS, *also)
    if Path(path).suffix.lower() not in offered:
        raise OptionError(
            f"{what} is written as {', '.join(offered[:-1])} or {offered[-1]}, got {str(path)!r}"
        )


def new_figure(width: float, height: float, panels: int = 1) -> tuple[Any, list[Any]]:
    """Return an empty figure, so many inches wide and high, and its axes side by side; no display is needed.

    Raises
    ------
    OptionError
        There is no matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError(
            f"plots need matplotlib, which is not installed; run: {install_command('matplotlib')}"
        ) from None
    with styled():
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        return figure, list(figure.subplots(1, panels, squeeze=False)[0])


@contextlib.contextmanager
def styled() -> Iterator[None]:
    """Draw in this style for a while; what the user of matplotlib has set comes back."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def line_style(number: int) -> dict[str, Any]:
    """Return colour, dashes and points of line number 0, 1, ... of a figure."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
        "marker": POINTS[number % len(POINTS)],
    }


def shown_text(text: str) -> str:
    """Return a text of others as matplotlib shows it: a dollar is one, and every character is visible."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return shown.replace("$", r"\$")


def whole_ticks(axis: Any) -> None:
    """Let an axis of whole numbers have ticks at whole numbers alone."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def save_figure(figure: Any, path: str | Path, dpi: int = _DPI) -> None:
    """Write a figure as the ending of the file says, with so many pixels an inch.

    Raises
    ------
    OptionError
        Another ending, or a file that cannot be written.
    """
    check_ending(path)
    ending = Path(path).suffix.lower()[1:]
    # No date and no version of a program, so that the same picture is the same file.
    unnamed: dict[str, dict[str, None]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    drawing = io.BytesIO()
    with styled(), warnings.catch_warnings():
        # Characters that the font lacks become boxes, of which nobody has to be told.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(drawing, format=ending, dpi=dpi, metadata=unnamed[ending])
    try:
        Path(path).write_bytes(drawing.getvalue())
    except OSError as error:
        raise OptionError(f"cannot write the plot {str(path)!r}: {error.strerror}") from None
