"""The tables of [WB13] (1 to 5) and of [BESW10] (II and III) on one card, and the hybrid engine beside them.

Usage: python benchmarks/paper_tables.py [--only MODEL ...] [--tables spmv,solve,bounded] [--all-formats]
       [--seconds S] [--run-seconds S] [--quick] [--resume] [--out FILE.json]

``spmv``: [WB13]'s formats and those of today that are fastest on its models, on the original and on the
breadth-first matrix: bytes, time of a product (device events, medians), time of the iterations that [WB13]
counts; measures of both structures; the hybrid engine's product and bytes. --all-formats measures the rest
of `gpu_kernels.formats.FORMATS`, too.
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
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from device_timing import best_seconds
from paper_solutions import EPSILON, measure_bounded, measure_solve
from paper_values import PAPER_II, PAPER_SEGMENTS, PAPER_STANDARD, TABLE_1, TABLE_II, TABLE_III
from runs import Records, example, free_device_memory, has_device

import hybrid
from gpu_kernels import Device, current_device
from gpu_kernels.formats import FORMATS
from hybrid.explicit import CsrArrays, bfs_order, explicit_matrix, measure_structure
from mtbdd.offset import OffsetMTBDD

QUICK = (("herman", 5, 32, 245), ("cluster", 8, 2_772, 100), ("tandem", 15, 496, 100))
TABLE_II_QUICK = (("herman", 5), ("cluster", 8), ("tandem", 15))

PAPER_FORMATS = ("msr", "cmsr", "msr-wl", "msr-hwl", "cmsr-wl", "cmsr-hwl", "cmsr-stream", "csell",
                 "csell-sorted", "delta-csell", "cusparse")  # fmt: skip
"""[WB13]'s formats, and those that were fastest on one of its models."""


def product_seconds(device: Device, multiply: Callable[[], None]) -> float:
    """Return the median seconds of a product on the device, launches hidden."""
    return device.seconds(multiply, 3) if device.xp is np else best_seconds(device.xp, multiply)


def measure_formats(
    device: Device, matrix: CsrArrays, iterations: int, names: Sequence[str]
) -> dict[str, Any]:
    """Measure formats of one order of the states; one that cannot be measured has an error."""
    xp = device.xp
    x = xp.asarray(np.random.default_rng(7).random(matrix.shape[1]))
    expected, out = None, xp.empty(matrix.shape[0])
    arrays = matrix.row_starts, matrix.columns, matrix.values
    found: dict[str, Any] = {}
    for name in names:
        try:
            begin = time.perf_counter()
            stored = FORMATS[name].from_csr(device, *arrays, matrix.shape[1])
            device.synchronise()
            converted = time.perf_counter() - begin
            stored.multiply(device, x, out)
            if expected is None:
                expected = out.copy()
            seconds = product_seconds(device, lambda s=stored: s.multiply(device, x, out))
            found[name] = {
                "bytes": stored.nbytes,
                "seconds": seconds,
                "table_seconds": seconds * iterations,
                "convert_seconds": converted,
                "difference": float(abs(out - expected).max() / abs(expected).max()),
            }
            del stored
        except Exception as error:
            found[name] = {"error": f"{type(error).__name__}: {error}"}
        free_device_memory(collect=False)
    return found


def measure_spmv(
    row: dict[str, Any], name: str, size: int, iterations: int, names: Sequence[str] = PAPER_FORMATS
) -> None:
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
    row["original"]["formats"] = measure_formats(device, matrix, iterations, names)
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
    row["bfs"]["formats"] = measure_formats(device, permuted, iterations, names)


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="this model only; may be repeated")
    parser.add_argument("--tables", default="spmv,solve,bounded", help="which tables, separated by commas")
    parser.add_argument("--seconds", type=float, help="begin no row after this time")
    parser.add_argument(
        "--run-seconds", type=float, default=15.0, help="longest solution that is not extrapolated"
    )
    parser.add_argument("--all-formats", action="store_true", help="all that there are")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--resume", action="store_true", help="keep the finished rows of --out")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    if not has_device():
        raise SystemExit("no CUDA device: these tables are measured on a card")
    run(options)


def run(options: argparse.Namespace) -> Records:
    """Measure all tables that are asked for, on the current device."""
    records = Records(
        "paper_tables", options.out, options.seconds, resume=options.resume, epsilon=EPSILON,
        run_seconds=options.run_seconds,
    )  # fmt: skip
    names = tuple(FORMATS) if options.all_formats else PAPER_FORMATS

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
                show(records.run(identity, lambda r, a=(name, size, iterations, names): measure_spmv(r, *a)))
    if "solve" in chosen:
        for name, size in TABLE_II_QUICK if options.quick else TABLE_II:
            if wanted(name):
                identity = {
                    "table": "solve",
                    "model": name,
                    "size": size,
                    "paper_seconds": PAPER_II[name] if (name, size) in TABLE_II else None,
                }
                show(
                    records.run(identity, lambda r, a=(name, size): measure_solve(r, *a, options.run_seconds))
                )
    if "bounded" in chosen and wanted("tandem"):
        for size, paper in {15: None}.items() if options.quick else TABLE_III.items():
            identity = {"table": "bounded", "model": "tandem", "size": size, "paper_seconds": paper}
            show(records.run(identity, lambda r, n=size: measure_bounded(r, n, options.run_seconds)))
    return records


def show(row: dict[str, Any]) -> None:
    """Print a row for people."""
    head = f"{row['table']:8} {row['model']} {row['size']}"
    if "error" in row:
        print(f"{head}: {row['error']}", flush=True)
        return
    if row["table"] == "spmv":
        times = [("hybrid", row["hybrid"]["seconds"])]
        times += [(n, f["seconds"]) for n, f in row["original"]["formats"].items() if "seconds" in f]
    else:
        times = [(n, r["seconds"]) for n, r in row.items() if isinstance(r, dict) and "seconds" in r]
    best = sorted(times, key=lambda pair: pair[1])
    print(f"{head}: " + ", ".join(f"{n} {t * 1e3:.3f} ms" for n, t in best), flush=True)


if __name__ == "__main__":
    main()
