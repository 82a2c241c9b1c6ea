"""`hybrid plot-matrix`: structure plots and measures of the matrix, before and after reordering."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from hybrid.app.cli.building import built_model, model_record, model_text
from hybrid.app.cli.console import Console
from hybrid.app.cli.output_file import OutputFile, output_of, refuse_overwriting
from hybrid.base.errors import OptionError
from hybrid.base.figures import check_ending
from hybrid.base.units import bytes_text
from hybrid.matrix.explicit.density import (
    StructureMeasures,
    bfs_order,
    density_of_diagram,
    density_of_rows,
    measure_structure,
)
from hybrid.matrix.explicit.extract import explicit_matrix, renumbered
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_users, keeps_text


def run(options: argparse.Namespace, console: Console) -> int:
    """Build, count, reorder, measure and draw; return the exit status."""
    refuse_overwriting(options)
    if options.output is not None:
        check_ending(options.output, "a structure plot")
    if options.cells < 1:
        raise OptionError(f"a plot needs at least 1 cell a side, got {options.cells}")
    with output_of(options.output, "--output") as output:
        return _run(options, console, output)


def _run(options: argparse.Namespace, console: Console, output: OutputFile | None) -> int:
    """Do it, with a file for the plot if there is to be one."""
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
        console.print(_table(measures, reason))
    return 0


def _reordered(model: SymbolicModel, matrix: CsrArrays, console: Console) -> CsrArrays:
    """Return the matrix in breadth-first order from the initial states."""
    console.progress("breadth-first search")
    initial = np.flatnonzero(for_users(model, model.indicator(model.initial)))
    return bfs_order(matrix, initial).permute(matrix)


def _table(measures: dict[str, StructureMeasures | None], reason: str | None) -> str:
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
