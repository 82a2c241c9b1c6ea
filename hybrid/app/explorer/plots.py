"""Plots of the level-selection explorer, drawn with matplotlib (extra `plot`).

`plot_level_curves` is figure 5.2 of the thesis [Tealdi13]. It shows memory of the representation by level on
a logarithmic axis, the base memory as a line, the chosen levels marked. `plot_memory_shares` is its figure
5.3: representation memory as a share of base memory, as bars. Both show the representation that the reports
are of: with ``representation="tasks"`` they are the thesis's. The page of `hybrid.app.explorer.page` shows
the same and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid.app.explorer.report import LevelReport
from hybrid.base.drawing.figures import (
    COLOURS,
    check_ending,
    new_figure,
    save_figure,
    shown_text,
    styled,
    whole_ticks,
)

_MARKS = {
    "min_memory": ("v", COLOURS[0], (0, 8), "least held"),
    "min_memr": (">", COLOURS[2], (-8, 0), "least MemR"),
    "min_time": ("^", COLOURS[1], (0, -8), "least time"),
}
"""Shape, colour, place in points beside what is marked, and name; marks of one level stand side by side."""


def plot_level_curves(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw memory by injection level, one curve a report.

    `path`: ``.png``, ``.svg`` or ``.pdf``. Raises OptionError: another ending, or no matplotlib.
    """
    check_ending(path)
    figure, (axes,) = new_figure(9, 5.5)
    with styled():
        for number, report in enumerate(reports):
            _curve(axes, report, COLOURS[number % len(COLOURS)])
        axes.set_yscale("log")
        axes.set_xlabel("injection level (variables above it)")
        axes.set_ylabel("MB (10⁶ bytes)")
        whole_ticks(axes.xaxis)
        axes.set_title(shown_text(title) or "Memory of the matrix by injection level")
        handles, _ = axes.get_legend_handles_labels()
        axes.legend(handles=[*handles, *_legend(axes)], fontsize=8)
    save_figure(figure, path)


def _curve(axes: Any, report: LevelReport, color: str) -> None:
    """Draw one report: MemR, what is counted or held, vectors, and the chosen levels."""
    curve = report.curve
    levels = [c.level for c in curve.levels]
    worst = [c.bytes_worst_case / 1e6 for c in curve.levels]
    label = shown_text(report.label) or None
    axes.plot(levels, worst, marker=".", markersize=4, color=color, label=label, gid="memr")
    typed = {c.level: c.row_type_bytes / 1e6 for c in curve.levels if c.row_type_bytes is not None}
    if report.representation == "row-types" and typed:
        axes.plot(list(typed), list(typed.values()), color=color, linestyle=":", linewidth=1.2, gid="counted")
    held = {k: size / 1e6 for k, size in sorted(report.held.items())}
    if held:
        axes.plot(
            list(held),
            list(held.values()),
            color=color,
            marker="o",
            markersize=2.5,
            linestyle="none",
            gid="held",
        )
    axes.axhline(
        report.base_memory_bytes / 1e6, color=color, linestyle="--", linewidth=0.8, alpha=0.7, gid="vectors"
    )
    marked = {
        "min_memory": (report.min_memory, report.bytes_at(report.min_memory)),
        "min_memr": (report.min_memr, curve[report.min_memr].bytes_worst_case),
        "min_time": (report.min_time, report.bytes_at(report.min_time)),
    }
    for name, (level, size) in marked.items():
        if size is not None:
            _mark(axes, name, level, size / 1e6)


def _mark(axes: Any, name: str, level: int, height: float) -> None:
    """Draw the mark of a level beside the point that it is of."""
    from matplotlib.transforms import ScaledTranslation

    shape, shade, (across, up), _ = _MARKS[name]
    beside = ScaledTranslation(across / 72, up / 72, axes.figure.dpi_scale_trans)
    axes.plot(
        [level], [height], marker=shape, color=shade, markersize=8, linestyle="none", markeredgecolor="white",
        zorder=5, clip_on=False, transform=axes.transData + beside, gid=name,
    )  # fmt: skip


def _legend(axes: Any) -> list[Any]:
    """Return the legend's entries for the line styles and marks that are drawn, and for no others."""
    from matplotlib.lines import Line2D

    styles: dict[str, tuple[str, dict[str, Any]]] = {
        "memr": ("MemR: submatrices and tasks, worst case", {"color": "gray"}),
        "counted": ("row types, counted", {"color": "gray", "linestyle": ":"}),
        "held": ("held", {"color": "gray", "marker": "o", "markersize": 2.5, "linestyle": "none"}),
        "vectors": ("vectors (MemB)", {"color": "gray", "linestyle": "--"}),
    }
    for name, (shape, shade, _, label) in _MARKS.items():
        styles[name] = label, {"color": shade, "marker": shape, "markersize": 8, "linestyle": "none"}
    drawn = {line.get_gid() for line in axes.get_lines()}
    return [
        Line2D([], [], markeredgecolor="white" if name in _MARKS else None, label=label, **style)
        for name, (label, style) in styles.items()
        if name in drawn
    ]


def memory_shares(report: LevelReport) -> dict[str, float | None]:
    """Return bytes of the matrix as a percentage of those of the vectors, by what they are of.

    They are those of the representation that the report is of, at its levels of least memory and least time;
    and the least MemR, submatrices and tasks in the worst case. None where a level's bytes are not known.
    """
    kind = report.representation.replace("-", " ")
    sizes = {
        f"{kind}, least held": report.bytes_at(report.min_memory),
        f"{kind}, least time": report.bytes_at(report.min_time),
        "least MemR, worst case": report.curve[report.min_memr].bytes_worst_case,
    }
    base = max(report.base_memory_bytes, 1)
    return {name: None if size is None else 100 * size / base for name, size in sizes.items()}


def plot_memory_shares(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw representation memory as a percentage of base memory, the bars of `memory_shares` for each report.

    `path`: ``.png``, ``.svg`` or ``.pdf``. Raises OptionError: another ending, or no matplotlib.
    """
    check_ending(path)
    figure, (axes,) = new_figure(1.8 + 1.5 * len(reports), 4.5)
    shares = [memory_shares(report) for report in reports]
    with styled():
        for place, (name, color) in enumerate(zip(shares[0] if shares else (), COLOURS, strict=False)):
            known = [(i, own[name]) for i, own in enumerate(shares) if own[name] is not None]
            at = [i + 0.27 * (place - 1) for i, _ in known]
            bars = axes.bar(at, [height for _, height in known], 0.25, color=color, label=name)
            axes.bar_label(bars, fmt="%.2g", fontsize=7)
        names = [f"{shown_text(r.label)}\nMemB {r.base_memory_bytes / 1e6:.3g} MB" for r in reports]
        axes.set_xticks(range(len(reports)), names, fontsize=8)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("% of base memory")
        axes.set_title(shown_text(title) or "Memory of the matrix as a share of the vectors'")
        axes.legend(fontsize=8)
    save_figure(figure, path)
