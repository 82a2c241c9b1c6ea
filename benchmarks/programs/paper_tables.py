"""The tables of [WB13] (1 to 5) and of [BESW10] (II and III) on one card, and the hybrid engine beside them.

``spmv``: [WB13]'s formats and those of today that are fastest on its models, on the original and on the
breadth-first matrix: bytes, time of a product (device events, medians), time of the iterations that [WB13]
counts; measures of both structures; the hybrid engine's product and bytes.
``solve``: [BESW10] table II, whole solutions of property 1: one core with SciPy's CSR product, the methods M1
and M2, the format that the explicit engine takes, cuSPARSE, and the hybrid engine on the CPU and on the GPU.
``bounded``: [BESW10] table III, a time-bounded until on tandem: the hybrid engine on CPU and GPU, the
explicit engine on the GPU.

A matrix is extracted from the diagram on the device; vectors are random. A solution that would take longer
than --run-seconds is extrapolated from some iterations, and is marked so; only those of the hybrid engine on
the GPU always run to their end. The record is written after every row, and --resume goes on with it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.formats import measure_formats, product_seconds
from benchmarks.library.models import example
from benchmarks.library.paper_solutions import EPSILON, measure_bounded, measure_solve
from benchmarks.library.records import Records, Row
from benchmarks.published.spmv_papers import (
    PAPER_II,
    PAPER_SEGMENTS,
    PAPER_STANDARD,
    TABLE_1,
    TABLE_II,
    TABLE_III,
)
from gpu_kernels import Device, current_device
from gpu_kernels.explicit import FORMATS
from hybrid.matrix.explicit import CsrArrays, bfs_order, explicit_matrix, measure_structure
from mtbdd.offset.offset import OffsetMTBDD

QUICK = (("herman", 5, 32, 245), ("cluster", 8, 2_772, 100), ("tandem", 15, 496, 100))
TABLE_II_QUICK = (("herman", 5), ("cluster", 8), ("tandem", 15))

PAPER_FORMATS = ("msr", "cmsr", "msr-wl", "msr-hwl", "cmsr-wl", "cmsr-hwl", "cmsr-stream", "csell",
                 "cusparse")  # fmt: skip
"""[WB13]'s formats, and those that were fastest on one of its models."""


def formats_of_order(
    device: Device, matrix: CsrArrays, iterations: int, names: Sequence[str]
) -> dict[str, Row]:
    """Measure formats of one order of the states; one that cannot be measured has an error."""
    x = device.xp.asarray(np.random.default_rng(7).random(matrix.shape[1]))
    expected = device.xp.empty(matrix.shape[0])
    arrays = matrix.row_starts, matrix.columns, matrix.values
    FORMATS["msr"].from_csr(device, *arrays, matrix.shape[1]).multiply(device, x, expected)
    found = {row.pop("format"): row for row in measure_formats(device, arrays, x, expected, names)}
    for row in found.values():
        if "seconds" in row:
            row["table_seconds"] = row["seconds"] * iterations
    # By its fastest algorithm.
    library = [found.pop(name) for name in [*found] if name.startswith("cusparse ")]
    return found | ({"cusparse": min(library, key=lambda row: float(row["seconds"]))} if library else {})


def measure_spmv(row: dict[str, Any], name: str, size: int, iterations: int) -> None:
    """Fill a row of [WB13]'s tables."""
    device = current_device()
    model = example(name, size)
    transitions = model.transitions
    row.update(states=model.n_states, entries=model.n_transitions)
    row["hybrid"] = measure_hybrid(device, transitions, iterations)
    begin = time.perf_counter()
    matrix = explicit_matrix(transitions, "gpu")
    device.synchronise()
    row["extract_seconds"] = time.perf_counter() - begin
    row["original"] = {"structure": measure_structure(matrix).record()}
    row["original"]["formats"] = formats_of_order(device, matrix, iterations, PAPER_FORMATS)
    initial = np.flatnonzero(model.indicator(model.initial))
    on_host = matrix.to_host()
    # The first search of a process compiles.
    bfs_order(CsrArrays((0, 0), on_host.row_starts[:1], on_host.columns[:0], on_host.values[:0]))
    begin = time.perf_counter()
    reordered = bfs_order(on_host, initial)
    row["bfs_seconds"] = time.perf_counter() - begin
    permuted = type(reordered)(device.xp.asarray(reordered.order)).permute(matrix)
    del matrix
    row["bfs"] = {"structure": measure_structure(permuted).record()}
    row["bfs"]["formats"] = formats_of_order(device, permuted, iterations, PAPER_FORMATS)


def measure_hybrid(device: Device, transitions: OffsetMTBDD, iterations: int) -> dict[str, Any]:
    """Measure the hybrid engine's product."""
    begin = time.perf_counter()
    operator = hybrid.inject(transitions, "min-time", "gpu")
    memory = operator.nbytes
    device.synchronise()
    built = time.perf_counter() - begin
    xp = device.xp
    x = xp.asarray(np.random.default_rng(7).random(transitions.n_columns))
    out = xp.empty(transitions.n_rows)
    seconds = product_seconds(device, lambda: operator.product.multiply(x, out))
    return {"level": operator.level, "bytes": memory, "seconds": seconds,
            "table_seconds": seconds * iterations, "build_seconds": built}  # fmt: skip


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument("--tables", default="spmv,solve,bounded", help="which tables, separated by commas")
    arguments.add_argument(
        "--run-seconds", type=float, default=15.0, help="longest solution that is not extrapolated"
    )
    options = arguments.parse_args()
    require_device()
    run(options)


def run(options: argparse.Namespace) -> Records:
    """Measure all tables that are asked for, on the current device."""
    records = Records(
        "paper_tables", options, epsilon=EPSILON, run_seconds=options.run_seconds,
    )  # fmt: skip

    def wanted(name: str) -> bool:
        return options.only is None or name in options.only

    chosen = options.tables.split(",")
    if "spmv" in chosen:
        for name, size, states, iterations in QUICK if options.quick else TABLE_1:
            if wanted(name):
                identity = {
                    "table": "spmv", "model": name, "size": size, "paper_states": states,
                    "paper_iterations": iterations, "paper_standard": PAPER_STANDARD.get((name, size)),
                    "paper_segments": PAPER_SEGMENTS.get((name, size)),
                }  # fmt: skip
                records.run(identity, measure_spmv, name, size, iterations)
    if "solve" in chosen:
        for name, size in TABLE_II_QUICK if options.quick else TABLE_II:
            if wanted(name):
                identity = {
                    "table": "solve",
                    "model": name,
                    "size": size,
                    "paper_seconds": PAPER_II[name] if (name, size) in TABLE_II else None,
                }
                records.run(identity, measure_solve, name, size, options.run_seconds)
    if "bounded" in chosen and wanted("tandem"):
        for size, paper in {15: None}.items() if options.quick else TABLE_III.items():
            identity = {"table": "bounded", "model": "tandem", "size": size, "paper_seconds": paper}
            records.run(identity, measure_bounded, size, options.run_seconds)
    records.show()
    return records


if __name__ == "__main__":
    main()
