"""`hybrid levels`: the level-selection explorer on the command line."""

from __future__ import annotations

import argparse
import json

from hybrid.app.cli.building import built_model
from hybrid.app.cli.console import Console
from hybrid.app.cli.level_table import drawn_levels, legend, plain_levels
from hybrid.app.cli.model_record import model_record, model_text
from hybrid.app.cli.output_file import OutputFile
from hybrid.app.cli.outputs import refuse_overwriting
from hybrid.app.cli.part_table import part_table
from hybrid.app.cli.screen import Screen
from hybrid.app.explorer.model_choices import matrix_held, square_matrices
from hybrid.app.explorer.report import LevelReport, report_levels
from hybrid.base.drawing.figures import check_ending
from hybrid.base.units import bytes_text
from hybrid.matrix.backends import choose_backend


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, count, print and draw; return the exit status."""
    refuse_overwriting(options)
    if options.plot is not None:
        check_ending(options.plot, also=(".html",))
    if options.plot is None:
        return _run(options, console, None)
    with OutputFile(options.plot, "--plot") as plot:
        return _run(options, console, plot)


def _run(options: argparse.Namespace, console: Console, plot: OutputFile | None) -> int:
    """Do it, with a file for the plot if there is to be one."""
    engine = choose_backend(options.backend)
    backend = engine.name
    model = built_model(options, console)
    held = options.representation
    matrix = matrix_held(model, backend, held)
    seconds = None
    if options.measure:
        from hybrid.app.explorer.measure import measure_levels

        seconds = measure_levels(matrix, backend, console.progress, held)
    plan = None
    if options.parts is not None:
        from hybrid.matrix.parts.plan import plan_parts
        from hybrid.matrix.parts.sharing import fields_of

        console.progress("choosing the parts")
        plan = plan_parts(model.index, square_matrices(model), options.parts, fields_of(model))
    # Levels are built for their bytes where that is asked for; all else is counted on the diagram.
    weighed = None
    if options.measure or options.level == "min-memory":
        from hybrid.app.explorer.weigh import weigh_levels

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
                from hybrid.app.explorer.plots import plot_level_curves

                plot_level_curves([report], plot.temporary, f"{model.source.file}  {options.const}")
        plot.publish(console)
    record = model_record(model)
    if options.json:
        parts = {} if plan is None else {"parts": plan.record()}
        console.print(json.dumps({"model": record, **report.record(), **parts}))
    else:
        console.print(model_text(record))
        console.print()
        console.print(_table(report, console.screen))
        if plan is not None:
            console.print()
            console.print(part_table(plan))
    return 0


def _table(report: LevelReport, screen: Screen | None) -> str:
    """Return the levels as a table, what its marks and columns mean, and why a level asked for is chosen."""
    lines = [plain_levels(report) if screen is None else drawn_levels(report, screen)]
    lines.append("")
    lines.append(f"vectors (MemB) {bytes_text(report.base_memory_bytes)}")
    if report.curve.form:
        lines.append(report.curve.form)
    shown = legend(report)
    if report.reason not in report.reasons.values():
        shown.append(report.reason)
    return "\n".join([*lines, *(shown if screen is None else map(screen.drawn, shown))])
