"""The tables of 000 (1 to 5) and of 001 (II and III) on one card, and the hybrid engine beside them.

Usage: python benchmarks/paper_tables.py [--only MODEL ...] [--tables spmv,solve,bounded] [--seconds S]
       [--cpu-seconds S] [--quick] [--out FILE.json]

``spmv``: every explicit format of `gpu_kernels.formats.FORMATS` on the original and on the breadth-first
matrix: bytes, time of a product (device events, medians), time of the iterations that 000 counts; measures of
both structures; the hybrid engine's product and bytes.
``solve``: 001's table II, whole solutions of property 1: one core with SciPy's CSR product, the methods M1
and M2, the fastest format, and the hybrid engine on the CPU and on the GPU.
``bounded``: 001's table III, a time-bounded until on tandem, hybrid engine on the CPU and on the GPU.

A matrix is extracted from the diagram on the device; vectors are random. A CPU run that would take longer
than --cpu-seconds is extrapolated from some iterations, and is marked so.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from paper_values import PAPER_II, PAPER_SEGMENTS, PAPER_STANDARD, TABLE_1, TABLE_II, TABLE_III
from runs import Records, example, free_device_memory, has_device

import hybrid
from gpu_kernels import Device, current_device
from gpu_kernels.formats import FORMATS
from hybrid.explicit import CsrArrays, ExplicitOperator, bfs_order, explicit_matrix, measure_structure
from hybrid.solvers import Criterion, Jacobi, Solution
from mtbdd.graph import bottom_components
from mtbdd.offset import OffsetMTBDD
from mtbdd.states import index_states

QUICK = (("herman", 5, 32, 245), ("cluster", 8, 2_772, 100), ("tandem", 15, 496, 100))
TABLE_II_QUICK = (("herman", 5), ("cluster", 8), ("tandem", 15))

BOUNDED = "P=? [ F<=1 sc=c ]"
"""001 names property 3 of tandem's file without printing it; this is a bounded until over the same chain."""

EPSILON = 1e-6
LIMIT = 1_000_000
PROBE = 10


def product_seconds(device: Device, multiply: Callable[[], None]) -> float:
    """Return the median seconds of a product on the device."""
    return device.seconds(multiply, 9)


def measure_formats(device: Device, matrix: CsrArrays, iterations: int) -> dict[str, Any]:
    """Measure every format of one order of the states."""
    xp = device.xp
    x = xp.asarray(np.random.default_rng(7).random(matrix.shape[1]))
    expected, out = None, xp.empty(matrix.shape[0])
    arrays = matrix.row_starts, matrix.columns, matrix.values
    found: dict[str, Any] = {}
    for name, form in FORMATS.items():
        try:
            begin = time.perf_counter()
            stored = form.from_csr(device, *arrays, matrix.shape[1])
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
        free_device_memory()
    return found


def measure_spmv(row: dict[str, Any], name: str, size: int, iterations: int) -> None:
    """Fill a row of 000's tables."""
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
    row["original"]["formats"] = measure_formats(device, matrix, iterations)
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
    row["bfs"]["formats"] = measure_formats(device, permuted, iterations)


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


def system_of(name: str, size: int) -> tuple[OffsetMTBDD, Any, Any, Any, float]:
    """Return matrix, diagonal, right-hand side, start and relaxation of a model's property 1.

    The steady state of cluster and tandem; the expected steps until herman's ring is stable.
    """
    model = example(name, size)
    if name == "herman":
        unknown = index_states(model.manager, model.reachable & ~model.states(_label(model, "stable")))
        matrix = model.submatrix(unknown, unknown, diagonal=False)
        diagonal = model.exit_rates(unknown) - model.self_loops(unknown)
        return matrix, diagonal, np.ones(unknown.size), np.zeros(unknown.size), 1.0
    (component,) = bottom_components(model)
    inside = index_states(model.manager, component)
    matrix = model.submatrix(inside, inside, diagonal=False).transpose()
    diagonal = model.exit_rates(inside) - model.self_loops(inside)
    return matrix, diagonal, None, np.full(inside.size, 1.0 / inside.size), 0.9


def _label(model: hybrid.SymbolicModel, name: str) -> Any:
    return next(label.expression for label in model.source.labels if label.name == name)


def measure_solve(row: dict[str, Any], name: str, size: int, cpu_seconds: float) -> None:
    """Fill a row of 001's table II."""
    device = current_device()
    matrix, diagonal, b, start, omega = system_of(name, size)
    row.update(states=matrix.n_rows, method="jor" if omega != 1.0 else "jacobi", epsilon=EPSILON)

    def solve(operator: Any, limit: int = LIMIT) -> Solution:
        return Jacobi(Criterion(EPSILON, max_iterations=limit), omega).solve(operator, diagonal, b, start)

    operator = hybrid.inject(matrix, "min-time", "gpu")
    _ = operator.product
    reference = solve(operator)
    row["hybrid_gpu"] = solved(reference, operator.nbytes)
    del operator
    explicit = explicit_matrix(matrix, "gpu")
    for storage in ("msr", "msr-scan", "cmsr-wl", "delta-csell", "csell-sorted", "cusparse"):
        try:
            held = ExplicitOperator(explicit, device, storage)
            run = solve(held)
            row[storage] = solved(run, held.nbytes) | {"difference": _apart(run, reference)}
            del held
        except Exception as error:
            row[storage] = {"error": f"{type(error).__name__}: {error}"}
        free_device_memory()
    on_host = explicit.to_host()
    del explicit
    for label, held in (
        ("hybrid_cpu", hybrid.inject(matrix, "min-time", "cpu")),
        ("scipy_csr_one_core", ExplicitOperator(on_host)),
    ):
        _ = held.nbytes
        row[label] = within(lambda k, o=held: solve(o, k), reference, held.nbytes, cpu_seconds)


def solved(run: Solution, memory: int) -> dict[str, Any]:
    """Return what is kept of a solution."""
    return {
        "seconds": run.seconds,
        "iterations": run.iterations,
        "status": run.status.name.lower(),
        "residual": run.residual,
        "bytes": memory,
    }


def _apart(run: Solution, reference: Solution) -> float:
    return float(np.abs(run.values - reference.values).max() / np.abs(reference.values).max())


def within(
    solve: Callable[[int], Solution], reference: Solution, memory: int, seconds: float
) -> dict[str, Any]:
    """Solve to the end where there is time for it; otherwise extrapolate from some iterations."""
    solve(2)
    probe = solve(PROBE)
    each = probe.seconds / max(probe.iterations, 1)
    if each * reference.iterations <= seconds:
        run = solve(LIMIT)
        return solved(run, memory) | {"extrapolated": False, "difference": _apart(run, reference)}
    return {"seconds": each * reference.iterations, "iterations": reference.iterations, "bytes": memory,
            "measured_iterations": probe.iterations, "extrapolated": True}  # fmt: skip


def measure_bounded(row: dict[str, Any], size: int, cpu_seconds: float) -> None:
    """Fill a row of 001's table III."""
    model = example("tandem", size)
    row.update(states=model.n_states, property=BOUNDED)
    for name, backend in (("hybrid_gpu", "gpu"), ("hybrid_cpu", "cpu")):
        if (
            name == "hybrid_cpu"
            and row["hybrid_gpu"]["iterations"] * model.n_transitions * 1e-9 > cpu_seconds
        ):
            row[name] = {"error": "not run: it would take longer than --cpu-seconds"}
            continue
        begin = time.perf_counter()
        answer = hybrid.check(model, BOUNDED, backend=backend, epsilon=EPSILON)
        row[name] = {
            "total_seconds": time.perf_counter() - begin,
            "seconds": answer.statistics.seconds,
            "iterations": answer.statistics.iterations,
            "value": answer.value,
            "error": answer.error,
        }


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", help="this model only; may be repeated")
    parser.add_argument("--tables", default="spmv,solve,bounded", help="which tables, separated by commas")
    parser.add_argument("--seconds", type=float, help="begin no row after this time")
    parser.add_argument("--cpu-seconds", type=float, default=20.0, help="longest whole run on the CPU")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, help="where to write the JSON record")
    options = parser.parse_args()
    if not has_device():
        raise SystemExit("no CUDA device: these tables are measured on a card")
    run(options)


def run(options: argparse.Namespace) -> Records:
    """Measure all tables that are asked for, on the current device."""
    records = Records("paper_tables", options.out, options.seconds, epsilon=EPSILON)

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
                show(records.run(identity, lambda r, a=(name, size, iterations): measure_spmv(r, *a)))
    if "solve" in chosen:
        for name, size in TABLE_II_QUICK if options.quick else TABLE_II:
            if wanted(name):
                identity = {"table": "solve", "model": name, "size": size, "paper_seconds": PAPER_II[name]}
                show(
                    records.run(identity, lambda r, a=(name, size): measure_solve(r, *a, options.cpu_seconds))
                )
    if "bounded" in chosen and wanted("tandem"):
        for size, paper in {15: None}.items() if options.quick else TABLE_III.items():
            identity = {"table": "bounded", "model": "tandem", "size": size, "paper_seconds": paper}
            show(records.run(identity, lambda r, n=size: measure_bounded(r, n, options.cpu_seconds)))
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
