"""Plots of the level-selection explorer, drawn with matplotlib (extra `plot`).

`plot_level_curves` is figure 5.2 of the thesis [Tealdi13]: memory of the representation by level on a
logarithmic axis, the base memory as a line, both chosen levels marked.  `plot_memory_shares` is
its figure 5.3: representation memory as a share of base memory, as bars.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hybrid.errors import OptionError
from hybrid.explorer.report import LevelReport

_MEMORY = "#0b6e99"
_TIME = "#c1440e"


def _figure(width: float, height: float) -> tuple[Any, Any]:
    """Return an empty figure and its axes, without a display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise OptionError("plots need matplotlib, which is not installed; install the extra 'plot'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def plot_level_curves(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw memory by injection level, one curve a report.

    Parameters
    ----------
    reports : sequence of LevelReport
    path : path-like
        ``.png`` or ``.html`` (a page that holds the drawing and the figures as a table).
    title : str

    Raises
    ------
    OptionError
        Another ending, or no matplotlib.
    """
    _check_ending(path)
    figure, axes = _figure(9, 5.5)
    for report in reports:
        levels = [c.level for c in report.curve.levels]
        size = [c.bytes_worst_case / 1e6 for c in report.curve.levels]
        (line,) = axes.plot(levels, size, marker=".", markersize=4, label=report.label or "instances")
        color = line.get_color()
        typed = [
            math.nan if c.row_type_bytes is None else c.row_type_bytes / 1e6 for c in report.curve.levels
        ]
        axes.plot(levels, typed, color=color, linestyle=":", linewidth=1.2)
        axes.axhline(report.base_memory_bytes / 1e6, color=color, linestyle="--", linewidth=0.8, alpha=0.7)
        for level, marker, shade in ((report.min_memory, "v", _MEMORY), (report.min_time, "^", _TIME)):
            y = report.curve[level].bytes_worst_case / 1e6
            axes.plot([level], [y], marker=marker, color=shade, markersize=9, linestyle="none", zorder=5)
    axes.set_yscale("log")
    axes.set_xlabel("injection level (variables above it)")
    axes.set_ylabel("MB (10⁶ bytes)")
    axes.set_title(title or "Memory of the matrix by injection level")
    axes.grid(visible=True, which="major", alpha=0.3)
    handles, _ = axes.get_legend_handles_labels()
    handles += _legend()
    axes.legend(handles=handles, fontsize=8)
    _save(figure, path, reports)


def _legend() -> list[Any]:
    """Return the legend's entries for line styles and marks."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color="gray", label="instances, worst case (MemR)"),
        Line2D([], [], color="gray", linestyle=":", label="row types"),
        Line2D([], [], color="gray", linestyle="--", label="vectors (MemB)"),
        Line2D([], [], color=_MEMORY, marker="v", linestyle="none", label="level of minimum memory"),
        Line2D([], [], color=_TIME, marker="^", linestyle="none", label="level of minimum time"),
    ]


def plot_memory_shares(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw representation memory as a percentage of base memory, two or three bars a report.

    Parameters
    ----------
    reports : sequence of LevelReport
    path : path-like
        ``.png`` or ``.html``.
    title : str

    Raises
    ------
    OptionError
        Another ending, or no matplotlib.
    """
    _check_ending(path)
    figure, axes = _figure(1.8 + 1.5 * len(reports), 4.5)
    kinds: tuple[tuple[str, str, Callable[[LevelReport], int | None]], ...] = (
        ("MemR, level of minimum memory", _MEMORY, lambda r: r.curve[r.min_memory].bytes_worst_case),
        ("MemR, level of minimum time", _TIME, lambda r: r.curve[r.min_time].bytes_worst_case),
        ("row types, level of minimum time", "#7a9e1f", lambda r: r.curve[r.min_time].row_type_bytes),
    )
    for place, (label, color, size) in enumerate(kinds):
        heights = [100 * (size(r) or 0) / max(r.base_memory_bytes, 1) for r in reports]
        at = [i + 0.27 * (place - 1) for i in range(len(reports))]
        bars = axes.bar(at, heights, 0.25, color=color, label=label)
        axes.bar_label(bars, fmt="%.2g", fontsize=7)
    names = [f"{r.label}\nMemB {r.base_memory_bytes / 1e6:.3g} MB" for r in reports]
    axes.set_xticks(range(len(reports)), names, fontsize=8)
    axes.set_ylabel("% of base memory")
    axes.set_title(title or "Memory of the matrix as a share of the vectors'")
    axes.legend(fontsize=8)
    _save(figure, path, reports)


def _check_ending(path: str | Path) -> None:
    """Refuse endings that are not offered, before any work is done."""
    if Path(path).suffix.lower() not in (".png", ".html"):
        raise OptionError(f"a plot is written as .png or .html, got {str(path)!r}")


def _save(figure: Any, path: str | Path, reports: Sequence[LevelReport]) -> None:
    """Write the figure, alone or inside a page."""
    target = Path(path)
    try:
        if target.suffix.lower() == ".png":
            figure.savefig(target, dpi=150)
            return
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg")
        svg = drawing.getvalue()
        target.write_text(_page(svg[svg.index("<svg") :], reports), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write the plot {str(path)!r}: {error.strerror}") from None


def _page(svg: str, reports: Sequence[LevelReport]) -> str:
    """Return a page with the drawing and a table for every report."""
    columns = list(reports[0].record()["levels"][0]) if reports else []
    parts = [
        "<!doctype html><meta charset='utf-8'><title>injection levels</title>",
        "<style>body{font-family:sans-serif;margin:2em;max-width:70em}svg{max-width:100%;height:auto}"
        "table{border-collapse:collapse;font-size:.85em}td,th{padding:.15em .7em;text-align:right}"
        "tr:nth-child(even){background:#f3f3f3}tr.chosen{background:#fde9c9}</style>",
        svg,
    ]
    for report in reports:
        head = "".join(f"<th>{c.replace('_', ' ')}</th>" for c in columns)
        parts.append(f"<h2>{html.escape(report.label or 'levels')}</h2><p>{html.escape(report.reason)}</p>")
        parts.append(f"<table><tr>{head}</tr>")
        for row in report.record()["levels"]:
            mark = " class='chosen'" if row["level"] in (report.min_memory, report.min_time) else ""
            cells = "".join(f"<td>{_cell(row[c])}</td>" for c in columns)
            parts.append(f"<tr{mark}>{cells}</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _cell(value: float | int | None) -> str:
    """Return a table cell."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"
