"""`hybrid levels`, `explore`, `plot-matrix`: levels of a matrix, the page about them, and its structure."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.console import Console, Screen
from hybrid.app.cli.output_file import OutputFile, output_of, refuse_overwriting
from hybrid.app.experiments import expand_ranges
from hybrid.app.explorer.report import LevelReport, matrix_held, report_levels
from hybrid.base.errors import OptionError
from hybrid.base.figures import check_ending
from hybrid.base.units import bytes_text, seconds_text
from hybrid.matrix.backends import choose_backend
from mtbdd.language import LanguageError, parse_constants

if TYPE_CHECKING:
    from rich.table import Table

    from gpu_kernels.runtime.csr import CsrArrays
    from hybrid.matrix.explicit.density import StructureMeasures
    from hybrid.matrix.parts.plan import MatrixPart, PartPlan
    from mtbdd.build.model import SymbolicModel

# The table of `hybrid levels --parts`: what every part holds and receives.


def part_table(plan: PartPlan, parts: Sequence[MatrixPart]) -> str:
    """Return the parts as lines of text, and how they were cut."""
    heads = ("part", "states", "transitions", "work", "a vector", "receives", "halo/own", "from")
    rows = [
        (
            str(number + 1),
            f"{part.states:,}",
            f"{part.transitions:,}",
            f"{part.share:.3f}",
            bytes_text(8 * part.states),
            bytes_text(8 * part.received),
            f"{part.received / part.states:.3f}" if part.states else "-",
            f"{part.partners}",
        )
        for number, part in enumerate(parts)
    ]
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (heads, *rows)
    ]
    return "\n".join([*lines, "", f"parts: {plan.describe()}"])


# The table of `hybrid levels`: plain text, or drawn as wide as a terminal is.


class _LevelColumn(NamedTuple):
    """A column, and how wide it is at least where nothing is drawn."""

    name: str
    width: int
    cells: list[str]


MARKS = {"min_memory": "least held", "min_memr": "least MemR", "min_time": "least time"}
"""Marks of levels in the table, by their names in `LevelReport.reasons`."""

_POLICIES = {"min_memory": " (min-memory)", "min_memr": "", "min_time": " (min-time)"}
"""Values of `--level` for the marked levels."""

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
    """Return the levels as a table for a terminal, the chosen in colour, with the columns that fit."""
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


def _empty_table(columns: list[_LevelColumn]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    return table


def _columns(report: LevelReport) -> list[_LevelColumn]:
    levels = report.curve.levels
    columns = [
        _LevelColumn("level", 5, [str(c.level) for c in levels]),
        _LevelColumn("nodes", 9, [f"{c.nodes:,}" for c in levels]),
        _LevelColumn("paths", 15, [f"{c.paths:,}" for c in levels]),
        _LevelColumn("instances ≤", 15, [f"{c.instances_worst_case:,}" for c in levels]),
        _LevelColumn("MemR ≤", 10, [bytes_text(c.bytes_worst_case) for c in levels]),
    ]
    if report.representation == "row-types":
        columns.append(_LevelColumn("counted", 10, [bytes_text(c.row_type_bytes) for c in levels]))
    # Quantities that were neither computed nor measured have no column.
    if report.held:
        columns.append(_LevelColumn("held", 10, [bytes_text(report.held.get(c.level)) for c in levels]))
    if report.seconds:
        columns.append(
            _LevelColumn("product", 9, [seconds_text(report.seconds.get(c.level)) for c in levels])
        )
    return columns


def _marks(report: LevelReport) -> list[str]:
    """Return the marks of each level."""
    chosen = {"min_memory": report.min_memory, "min_memr": report.min_memr, "min_time": report.min_time}
    return [
        ", ".join(MARKS[name] for name, level in chosen.items() if level == c.level)
        for c in report.curve.levels
    ]


def legend(report: LevelReport) -> list[str]:
    """Return the legend of the marks and the columns of the table, a line each."""
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


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, count, print and draw; return the exit status."""
    refuse_overwriting(options)
    if options.plot is not None:
        check_ending(options.plot, also=(".html",))
    with output_of(options.plot, "--plot") as plot:
        return _run(options, console, plot)


def _run(options: argparse.Namespace, console: Console, plot: OutputFile | None) -> int:
    """Run the command, with a file for the plot if one is requested."""
    engine = choose_backend(options.backend)
    backend = engine.name
    model = built_model(options, console)
    held = options.representation
    matrix = matrix_held(model, backend, held)
    seconds = None
    if options.measure:
        from hybrid.app.explorer.sheet import measure_levels

        seconds = measure_levels(matrix, backend, console.progress, held)
    plan: PartPlan | None = None
    parts_held: Sequence[MatrixPart] = ()
    if options.parts is not None:
        from hybrid.matrix.parts.plan import measure_parts, plan_parts

        console.progress("choosing the parts")
        plan = plan_parts(model, options.parts)
        parts_held = measure_parts(model, plan)
    # Levels are built for their bytes where that is requested; all else is counted on the diagram.
    weighed = None
    if options.measure or options.level == "min-memory":
        from hybrid.app.explorer.report import weigh_levels

        weighed = weigh_levels(matrix, engine, held)
    report = report_levels(matrix, options.const, options.level, backend, seconds, held, weighed)
    if plot is not None:
        with plot.told():
            if plot.temporary.suffix.lower() == ".html":
                from hybrid.app.explorer.page import write_page
                from hybrid.app.explorer.sheet import model_sheet

                times = None if seconds is None else {held: seconds}
                sheet = model_sheet(model, engine, options.const, times, console.progress)
                write_page([sheet], plot.temporary)
            else:
                from hybrid.app.explorer.blocks import plot_level_curves

                plot_level_curves([report], plot.temporary, f"{model.source.file}  {options.const}")
        plot.publish(console)
    record = model_record(model)
    if options.json:
        parts = {} if plan is None else {"parts": plan.record(parts_held)}
        console.print(json.dumps({"model": record, **report.record(), **parts}))
    else:
        console.print(model_text(record))
        console.print()
        console.print(_table(report, console.screen))
        if plan is not None:
            console.print()
            console.print(part_table(plan, parts_held))
    return 0


def _table(report: LevelReport, screen: Screen | None) -> str:
    """Return the table of levels, its legend, and the reason of a requested level."""
    lines = [plain_levels(report) if screen is None else drawn_levels(report, screen)]
    lines.append("")
    lines.append(f"vectors (MemB) {bytes_text(report.base_memory_bytes)}")
    if report.curve.form:
        lines.append(report.curve.form)
    shown = legend(report)
    if report.reason not in report.reasons.values():
        shown.append(report.reason)
    return "\n".join([*lines, *(shown if screen is None else map(screen.drawn, shown))])


# `hybrid explore`: the page, for one model or several sizes of it.

MOST_MODELS = 50
"""Models of a page; more would make neither buttons nor a page that opens at once."""


def run_explore(options: argparse.Namespace, console: Console) -> int:
    """Build every model, compute its levels and write the page; return the exit status."""
    from hybrid.app.explorer.page import write_page

    if not options.to.lower().endswith((".html", ".htm")):
        raise OptionError(f"--to: the explorer's page is written as .html, got {options.to!r}")
    refuse_overwriting(options)
    combinations = expand_ranges(options.const)
    if len(combinations) > MOST_MODELS:
        raise OptionError(
            f"--const: {len(combinations)} models for one page, expected at most {MOST_MODELS}; "
            "choose larger steps"
        )
    with OutputFile(options.to, "--to") as file:
        sheets, records = _sheets(options, console, combinations)
        with file.told():
            write_page(sheets, file.temporary, options.title)
        file.publish()
    if options.json:
        found = [{"model": record, **sheet} for record, sheet in zip(records, sheets, strict=True)]
        console.print(json.dumps({"page": options.to, "models": found}))
    else:
        for record, sheet in zip(records, sheets, strict=True):
            console.print(f"{model_text(record)}\n{_chosen(sheet)}\n")
        console.print(f"page         {options.to}")
    return int(len(sheets) < len(combinations))


def _sheets(
    options: argparse.Namespace, console: Console, combinations: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the page knows of every model that can be built, and their records.

    Where none can be built, the reason of the first is raised.
    """
    from hybrid.app.explorer.sheet import measure_representations, model_sheet  # levels need none

    backend = choose_backend(options.backend)
    sheets: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    failures: list[LanguageError | MemoryError] = []
    for number, text in enumerate(combinations, start=1):
        if len(combinations) > 1:
            console.progress(f"model {number} of {len(combinations)}: {text}")
        try:
            model = built_model(options, console, parse_constants(text))
            seconds = (
                measure_representations(model, backend.name, console.progress) if options.measure else None
            )
            sheets.append(model_sheet(model, backend, text, seconds, console.progress))
            records.append(model_record(model))
        except (LanguageError, MemoryError) as error:
            # A size that cannot be built does not hide the others.
            failures.append(error)
            if len(combinations) > 1:
                console.warn(f"{text}: {str(error) or 'out of memory'}")
    if not sheets:
        raise failures[0]
    return sheets, records


def _chosen(sheet: dict[str, Any]) -> str:
    """Return the two levels of both representations as lines of text."""
    lines = []
    for one in sheet["representations"]:
        for name in ("min_memory", "min_time"):
            reason = "no level can be used" if one[name] is None else one[name]["reason"]
            lines.append(f"{name.replace('_', '-'):<12} {one['title']}: {reason}")
    return "\n".join(lines)


# `hybrid plot-matrix`: structure plots and measures of the matrix, before and after reordering.


def run_plot_matrix(options: argparse.Namespace, console: Console) -> int:
    """Build, count, reorder, measure and draw; return the exit status."""
    refuse_overwriting(options)
    if options.output is not None:
        check_ending(options.output, "a structure plot")
    if options.cells < 1:
        raise OptionError(f"a plot needs at least 1 cell a side, got {options.cells}")
    with output_of(options.output, "--output") as output:
        return _plotted(options, console, output)


def _plotted(options: argparse.Namespace, console: Console, output: OutputFile | None) -> int:
    """Do it, with a file for the plot if there is to be one."""
    from hybrid.matrix.explicit.density import density_of_diagram, density_of_rows, measure_structure
    from hybrid.matrix.explicit.extract import explicit_matrix, renumbered
    from mtbdd.build.state_order import keeps_text

    model = built_model(options, console)
    if getattr(model, "is_mdp", False):
        raise OptionError("plot-matrix: expected a dtmc or ctmc; an MDP has no single matrix")
    grids = []
    by_number = keeps_text(model)
    if output is not None and by_number:
        console.progress("grid of the original order")
        grids.append(("original order", density_of_diagram(model.transitions, options.cells)))
    measures: dict[str, StructureMeasures | None] = {"original": None, "bfs": None}
    reason = None
    try:
        console.progress("explicit matrix")
        matrix = explicit_matrix(model.transitions)
        if model.numbering is not None:
            matrix = renumbered(matrix, model.numbering)
    except MemoryError as error:
        # The plot of the original order needs no explicit matrix; everything else does.
        if options.bfs:
            raise
        reason = str(error)
        if output is not None and not by_number:
            grids.append(("order of the diagram", density_of_diagram(model.transitions, options.cells)))
    else:
        if output is not None and not by_number:
            grids.append(("original order", density_of_rows(matrix, options.cells)))
        console.progress("measures")
        measures["original"] = measure_structure(matrix)
        if options.bfs:
            reordered = _reordered(model, matrix, console)
            measures["bfs"] = measure_structure(reordered)
            if output is not None:
                grids.append(("breadth-first order", density_of_rows(reordered, options.cells)))
    if output is not None:
        from hybrid.matrix.explicit.density import plot_structures

        console.progress("drawing")
        title = f"{model.source.file}  {options.const}".strip()
        with output.told():
            plot_structures(grids, output.temporary, title, model.transitions.shape)
        output.publish(console)
    record = model_record(model)
    if options.json:
        found = {name: None if m is None else m.record() for name, m in measures.items()}
        console.print(json.dumps({"model": record, **found, "reason": reason, "plot": options.output}))
    else:
        console.print(model_text(record))
        console.print()
        console.print(_measure_table(measures, reason))
    return 0


def _reordered(model: SymbolicModel, matrix: CsrArrays, console: Console) -> CsrArrays:
    """Return the matrix in breadth-first order from the initial states."""
    from hybrid.matrix.explicit.density import bfs_order
    from mtbdd.build.state_order import for_users

    console.progress("breadth-first search")
    initial = np.flatnonzero(for_users(model, model.indicator(model.initial)))
    return bfs_order(matrix, initial).permute(matrix)


def _measure_table(measures: dict[str, StructureMeasures | None], reason: str | None) -> str:
    """Return the measures side by side."""
    if reason is not None:
        return f"not measured: {reason}"
    names: dict[str, Any] = {"original": "original", "bfs": "breadth-first"}
    lines = [f"{'order':<14} {'bandwidth':>13} {'mean |r - c|':>14} {'x a warp':>10} {'at least':>10}"]
    for key, found in measures.items():
        if found is not None:
            lines.append(
                f"{names[key]:<14} {found.bandwidth:>13,} {found.mean_distance:>14,.1f} "
                f"{bytes_text(found.bytes_per_warp):>10} {bytes_text(found.least_bytes_per_warp):>10}"
            )
    lines.append("x a warp: bytes of x in the 128-byte lines that 32 consecutive rows read, on average")
    return "\n".join(lines)
