"""Plots of the level-selection explorer, drawn with matplotlib (extra `plot`).

`plot_level_curves` is figure 5.2 of the thesis [Tealdi13]: memory of the representation by level on a
logarithmic axis, the base memory as a line, both chosen levels marked.  `plot_memory_shares` is
its figure 5.3: representation memory as a share of base memory, as bars.  The page of `hybrid.explorer.page`
shows the same and more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hybrid.drawing.figures import (
    COLOURS,
    check_ending,
    new_figure,
    save_figure,
    shown_text,
    styled,
    whole_ticks,
)
from hybrid.explorer.report import LevelReport

_MEMORY, _TIME = COLOURS[0], COLOURS[1]


def plot_level_curves(reports: Sequence[LevelReport], path: str | Path, title: str = "") -> None:
    """Draw memory by injection level, one curve a report.

    Parameters
    ----------
    reports : sequence of LevelReport
    path : path-like
        ``.png``, ``.svg`` or ``.pdf``.
    title : str

    Raises
    ------
    OptionError
        Another ending, or no matplotlib.
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
        axes.legend(handles=[*handles, *_legend()], fontsize=8)
    save_figure(figure, path)


def _curve(axes: Any, report: LevelReport, color: str) -> None:
    """Draw one report: instances, row types, vectors, and the two levels."""
    curve = report.curve
    levels = [c.level for c in curve.levels]
    size = [c.bytes_worst_case / 1e6 for c in curve.levels]
    typed = [math.nan if c.row_type_bytes is None else c.row_type_bytes / 1e6 for c in curve.levels]
    axes.plot(
        levels, size, marker=".", markersize=4, color=color, label=shown_text(report.label) or "instances"
    )
    axes.plot(levels, typed, color=color, linestyle=":", linewidth=1.2)
    built = {k: held / 1e6 for k, held in sorted(report.held.items())} if not math.isnan(typed[0]) else {}
    axes.plot(list(built), list(built.values()), color=color, marker="o", markersize=2.5, linestyle="none")
    axes.axhline(report.base_memory_bytes / 1e6, color=color, linestyle="--", linewidth=0.8, alpha=0.7)
    for level, marker, shade in ((report.min_memory, "v", _MEMORY), (report.min_time, "^", _TIME)):
        # On the curve of the representation that the levels are chosen for.
        counted = size[level] if math.isnan(typed[level]) else typed[level]
        height = built.get(level, counted)
        axes.plot(
            [level], [height], marker=marker, color=shade, markersize=9, linestyle="none",
            markeredgecolor="white", zorder=5,
        )  # fmt: skip


def _legend() -> list[Any]:
    """Return the legend's entries for line styles and marks."""
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color="gray", label="instances, worst case (MemR)"),
        Line2D([], [], color="gray", linestyle=":", label="row types, counted"),
        Line2D([], [], color="gray", marker="o", markersize=2.5, linestyle="none", label="row types, built"),
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
        ``.png``, ``.svg`` or ``.pdf``.
    title : str

    Raises
    ------
    OptionError
        Another ending, or no matplotlib.
    """
    check_ending(path)
    figure, (axes,) = new_figure(1.8 + 1.5 * len(reports), 4.5)
    kinds: tuple[tuple[str, str, Callable[[LevelReport], int | None]], ...] = (
        ("MemR, level of minimum memory", _MEMORY, lambda r: r.curve[r.min_memory].bytes_worst_case),
        ("MemR, level of minimum time", _TIME, lambda r: r.curve[r.min_time].bytes_worst_case),
        ("row types, level of minimum time", COLOURS[2], lambda r: r.curve[r.min_time].row_type_bytes),
    )
    with styled():
        for place, (label, color, size) in enumerate(kinds):
            heights = [100 * (size(r) or 0) / max(r.base_memory_bytes, 1) for r in reports]
            at = [i + 0.27 * (place - 1) for i in range(len(reports))]
            bars = axes.bar(at, heights, 0.25, color=color, label=label)
            axes.bar_label(bars, fmt="%.2g", fontsize=7)
        names = [f"{shown_text(r.label)}\nMemB {r.base_memory_bytes / 1e6:.3g} MB" for r in reports]
        axes.set_xticks(range(len(reports)), names, fontsize=8)
        axes.grid(visible=False, axis="x")
        axes.set_ylabel("% of base memory")
        axes.set_title(shown_text(title) or "Memory of the matrix as a share of the vectors'")
        axes.legend(fontsize=8)
    save_figure(figure, path)
