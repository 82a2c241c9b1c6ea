"""The level-selection explorer: memory of every injection level for several sizes of one model.

    python examples/explore_levels.py examples/kanban.prism t=3,4,5 --curves curves.png --shares shares.png
    python examples/explore_levels.py examples/brp.prism N=64,256 --const MAX=5 --curves curves.svg
    python examples/explore_levels.py examples/kanban.prism t=3,4,5 --representation tasks --shares shares.png
    python examples/explore_levels.py examples/coin.prism K=4,16 --curves curves.png

One parameter takes several values; the others are given with --const.  The first plot shows the
memory of the representation by level (thesis figure 5.2), the second what share of the vectors'
memory it is at the chosen levels (figure 5.3).  With `--representation tasks` both are of the thesis's own
representation.  No matrix is expanded: sizes of 10^9 states take seconds.  `hybrid explore` makes one page
of all of this, to look at level by level.
"""

from __future__ import annotations

import argparse
import sys

from hybrid import LanguageError, load
from hybrid.app.explorer import LevelReport, matrix_held, report_levels
from hybrid.app.explorer.blocks import plot_level_curves, plot_memory_shares
from hybrid.base.errors import OptionError
from mtbdd.language import parse_constants


def explore(
    model: str, parameter: str, values: list[str], others: str, representation: str
) -> list[LevelReport]:
    """Build the model at every value and count."""
    reports = []
    for value in values:
        constants = parse_constants(",".join(part for part in (others, f"{parameter}={value}") if part))
        built = load(model, constants)
        matrix = matrix_held(built, "cpu", representation)
        report = report_levels(matrix, f"{parameter}={value}", representation=representation)
        reports.append(report)
        least_memr = report.curve[report.min_memr].bytes_worst_case
        marked = [
            ("least held", report.min_memory, report.bytes_at(report.min_memory)),
            ("least time", report.min_time, report.bytes_at(report.min_time)),
            ("least MemR", report.min_memr, least_memr),
        ]
        print(
            f"{report.label:10} {built.n_states:>13,} states {built.n_transitions:>15,} transitions   "
            f"MemB {report.base_memory_bytes / 1e6:10,.1f} MB"
        )
        for name, level, size in marked:
            kind = "in the worst case" if name == "least MemR" else f"in {representation.replace('-', ' ')}"
            print(f"    {name}: level {level:3}, {'-' if size is None else f'{size / 1e6:,.3f} MB'} {kind}")
    return reports


def main(arguments: list[str] | None = None) -> int:
    """Run the explorer."""
    parser = argparse.ArgumentParser(description="memory by injection level for several sizes of a model")
    parser.add_argument("model", help="model file")
    parser.add_argument("parameter", help="one constant and its values, for example t=3,4,5")
    parser.add_argument("--const", default="", help="values of the other constants")
    parser.add_argument("--curves", help="where to draw memory by level (.png, .svg or .pdf)")
    parser.add_argument(
        "--shares", help="where to draw memory as a share of the vectors' (.png, .svg or .pdf)"
    )
    parser.add_argument(
        "--representation", choices=("row-types", "tasks"), default="row-types", help="how matrices are held"
    )
    options = parser.parse_args(arguments)
    name, equals, listed = options.parameter.partition("=")
    if not equals or not listed:
        parser.error(f"expected a constant and its values such as t=3,4,5, got {options.parameter!r}")
    try:
        reports = explore(options.model, name, listed.split(","), options.const, options.representation)
        if options.curves:
            plot_level_curves(reports, options.curves, options.model)
        if options.shares:
            plot_memory_shares(reports, options.shares, options.model)
    except (LanguageError, OptionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
