"""The table of `hybrid levels`: plain text, or drawn as wide as a terminal is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hybrid.app.cli.screen import Screen
from hybrid.app.explorer.report import LevelReport
from hybrid.base.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from rich.table import Table


class _Column(NamedTuple):
    """A column, and how wide it is at least where nothing is drawn."""

    name: str
    width: int
    cells: list[str]


MARKS = {"min_memory": "least held", "min_memr": "least MemR", "min_time": "least time"}
"""What a level is marked with, by the name of the mark in `LevelReport.reasons`."""

_POLICIES = {"min_memory": " (min-memory)", "min_memr": "", "min_time": " (min-time)"}
"""How `--level` asks for a marked level."""

# Columns that a narrow terminal goes without, the first one first.
_SPARED = ("instances ≤", "paths", "nodes", "MemR ≤", "counted", "product")


def plain_levels(report: LevelReport) -> str:
    """Return the levels as lines of text, the chosen ones marked."""
    columns, marks = _columns(report), _marks(report)
    lines = [" ".join(c.name.rjust(c.width) for c in columns)]
    for number, mark in enumerate(marks):
        row = " ".join(c.cells[number].rjust(c.width) for c in columns)
        lines.append(f"{row}  <- {mark}" if mark else row)
    return "\n".join(lines)


def drawn_levels(report: LevelReport, screen: Screen) -> str:
    """Return the levels as a table for a terminal, the chosen in colour; what does not fit is left out."""
    from rich.text import Text

    columns, marks = _columns(report), _marks(report)
    room = screen.width - 2 - max(map(len, marks))
    for name in _SPARED:
        if sum(max(map(len, (c.name, *c.cells))) + 2 for c in columns) > room:
            columns = [c for c in columns if c.name != name]
    table = _empty_table(columns)
    for number, mark in enumerate(marks):
        cells = [c.cells[number] for c in columns]
        table.add_row(*cells, Text(f"← {mark}" if mark else ""), style="bold green" if mark else None)
    return screen.drawn(table)


def _empty_table(columns: list[_Column]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    return table


def _columns(report: LevelReport) -> list[_Column]:
    levels = report.curve.levels
    columns = [
        _Column("level", 5, [str(c.level) for c in levels]),
        _Column("nodes", 9, [f"{c.nodes:,}" for c in levels]),
        _Column("paths", 15, [f"{c.paths:,}" for c in levels]),
        _Column("instances ≤", 15, [f"{c.instances_worst_case:,}" for c in levels]),
        _Column("MemR ≤", 10, [bytes_text(c.bytes_worst_case) for c in levels]),
    ]
    if report.representation == "row-types":
        columns.append(_Column("counted", 10, [bytes_text(c.row_type_bytes) for c in levels]))
    # What was neither weighed nor measured has no column.
    if report.held:
        columns.append(_Column("held", 10, [bytes_text(report.held.get(c.level)) for c in levels]))
    if report.seconds:
        columns.append(_Column("product", 9, [seconds_text(report.seconds.get(c.level)) for c in levels]))
    return columns


def _marks(report: LevelReport) -> list[str]:
    """Return what each level was chosen for."""
    chosen = {"min_memory": report.min_memory, "min_memr": report.min_memr, "min_time": report.min_time}
    return [
        ", ".join(MARKS[name] for name, level in chosen.items() if level == c.level)
        for c in report.curve.levels
    ]


def legend(report: LevelReport) -> list[str]:
    """Return what the marks and the columns of the table mean, a line each."""
    kind = report.representation.replace("-", " ")
    columns = [
        ("nodes, paths", "submatrices of the level, and the paths from the root to them"),
        ("instances ≤", "paths cut at every 256 rows, in the worst case"),
        ("MemR ≤", "bytes of submatrices and of these instances in tasks, in the worst case"),
    ]
    if report.representation == "row-types":
        columns.append(
            (
                "counted",
                "bytes of row types before any is built; --level min-memory builds some to weigh them",
            )
        )
    if report.held:
        columns.append(("held", f"bytes in {kind} as the backend holds them"))
    if report.seconds:
        columns.append(("product", "median time of a product"))
    marks = [(MARKS[name] + _POLICIES[name], reason) for name, reason in report.reasons.items()]
    width = max(len(name) for name, _ in (*marks, *columns))
    return [f"{name.ljust(width)}  {text}" for name, text in (*marks, *columns)]
