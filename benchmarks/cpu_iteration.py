"""Time of one iteration on the CPU backend, beside SciPy's CSR product on the same matrix in the same run.

Usage: python benchmarks/cpu_iteration.py [MODEL:SIZE ...] [--transposed] [--prism CSV] [--out JSON]

For every model: the product ``M @ x`` and the fused relaxation step of the CPU backend on all cores and on
one, and SciPy's CSR product, which uses one. The explicit matrix exists for SciPy alone and is expanded
from the same diagram. Timings take turns; the median of each counts, the best is recorded too. Compilation
and building are timed apart. The mean is geometric, over the models with more than a million transitions.
With ``--prism`` the times of PRISM's hybrid and sparse engines stand beside, in ns a transition.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "examples")]

import generate  # noqa: E402
from record import environment  # noqa: E402

import hybrid  # noqa: E402
from hybrid.cpu.threads import set_thread_count, thread_count  # noqa: E402
from hybrid.injection.injected import inject_level  # noqa: E402
from hybrid.operators.inject import HybridMatrix  # noqa: E402
from mtbdd.offset import OffsetMTBDD  # noqa: E402

DEFAULT = (
    "kanban:4", "kanban:5", "kanban:6", "fms:5", "fms:6", "fms:7", "fms:8",
    "cluster:128", "cluster:256", "cluster:512", "polling:13", "polling:15", "polling:16", "polling:18",
    "herman:13", "herman:15", "tandem:511", "tandem:1023", "brp:1024",
)  # fmt: skip
CONSTANTS = {"kanban": "t", "fms": "n", "cluster": "N", "tandem": "c", "brp": "N"}
MILLION = 1_000_000


def transitions(name: str, size: int) -> OffsetMTBDD:
    """Build the transition matrix of an example model."""
    if name in CONSTANTS:
        constants = {CONSTANTS[name]: size} | ({"MAX": 50} if name == "brp" else {})
        return hybrid.load(ROOT / "examples" / f"{name}.prism", constants=constants).transitions
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}{size}.prism"
        path.write_text(getattr(generate, name)(size))
        return hybrid.load(path).transitions


def explicit(matrix: OffsetMTBDD, level: int) -> scipy.sparse.csr_array:
    """Expand to CSR, submatrix by submatrix."""
    injected = inject_level(matrix, level)
    rows, columns, values = [], [], []
    for number, instances in injected.instances_by_submatrix():
        part = injected.submatrix(number)
        rows.append((instances["row"][:, None] + part.row).ravel())
        columns.append((instances["column"][:, None] + part.column).ravel())
        values.append(np.tile(part.value, len(instances)))
    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=matrix.shape))


def take_turns(functions: list[Callable[[], object]], seconds: float) -> list[list[float]]:
    """Time the functions one after the other until the time is over, at least five times each."""
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for function, own in zip(functions, times, strict=True):
            begin = time.perf_counter()
            function()
            own.append(time.perf_counter() - begin)
    return times


def measure(spec: str, transposed: bool, seconds: float) -> dict[str, Any]:
    """Measure one model."""
    name, _, size = spec.partition(":")
    matrix = transitions(name, int(size))
    if transposed:
        matrix = matrix.transpose()
    begin = time.perf_counter()
    operator: HybridMatrix = hybrid.inject(matrix, "min-time", "cpu")
    chosen = time.perf_counter() - begin
    begin = time.perf_counter()
    memory = operator.nbytes
    built = time.perf_counter() - begin
    rng = np.random.default_rng(2718)
    x, out = rng.random(matrix.n_columns), np.empty(matrix.n_rows)
    diagonal = rng.uniform(1, 2, matrix.n_rows)
    csr = explicit(matrix, operator.curve.min_memory)
    expected = csr @ x
    difference = np.abs(operator.multiply(x, out) - expected)
    error = float(np.max(difference / np.maximum(np.abs(expected), 1e-300)))

    def single() -> None:
        set_thread_count(1)
        operator.multiply(x, out)
        set_thread_count(None)

    names = ("scipy_csr", "product", "product_one_thread", "relaxation_step")
    times = take_turns(
        [
            lambda: csr @ x,
            lambda: operator.multiply(x, out),
            single,
            lambda: operator.jacobi_step(x, out, None, diagonal, 0.9),
        ],
        seconds,
    )
    middle = {name: statistics.median(own) for name, own in zip(names, times, strict=True)}
    csr_bytes = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
    return {
        "model": spec,
        "states": matrix.n_rows,
        "transitions": operator.nnz,
        "level": operator.level,
        "level_reason": operator.level_reason,
        "representation_memory_bytes": memory,
        "csr_bytes": csr_bytes,
        "choose_seconds": chosen,
        "build_seconds": built,
        "seconds": middle,
        "best_seconds": {n: min(own) for n, own in zip(names, times, strict=True)},
        "ns_per_transition": {n: s / operator.nnz * 1e9 for n, s in middle.items()},
        "speedup": middle["scipy_csr"] / middle["product"],
        "speedup_one_thread": middle["scipy_csr"] / middle["product_one_thread"],
        "largest_relative_difference": error,
    }


def prism_times(path: Path | None) -> dict[int, dict[str, float]]:
    """Read PRISM's best ns a transition by number of transitions, for its hybrid and sparse engines."""
    found: dict[int, dict[str, float]] = {}
    if path is None:
        return found
    with path.open() as lines:
        for row in csv.DictReader(lines):
            engine = next((e for e in ("hybrid", "sparse") if f"-{e}" in row["flags"].split()), None)
            if engine is None or not row["ns_per_transition_iter"] or not row["transitions"]:
                continue
            own = found.setdefault(int(row["transitions"]), {})
            own[engine] = min(own.get(engine, math.inf), float(row["ns_per_transition_iter"]))
    return found


def main() -> int:
    """Measure, print a table, write a record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL:SIZE")
    parser.add_argument(
        "--transposed", action="store_true", help="measure products with the transposed matrix"
    )
    parser.add_argument("--prism", type=Path, metavar="CSV", help="table of PRISM runs to show beside")
    parser.add_argument("--seconds", type=float, default=2.0, help="time to spend on each model's timings")
    parser.add_argument("--out", type=Path, metavar="JSON", help="where to write the record")
    arguments = parser.parse_args()
    prism = prism_times(arguments.prism)
    begin = time.perf_counter()
    import hybrid.cpu.kernels  # noqa: F401

    compile_seconds = time.perf_counter() - begin
    print(
        f"{'model':>12} {'transitions':>11} {'level':>5} {'memory':>9} "
        f"{'/ CSR':>6} {'build s':>7} {'CSR':>6} "
        f"{'one':>6} {'all':>6} {'step':>6} {'gain':>5}  {'PRISM hybrid, sparse':>20}   (ns a transition)"
    )
    results = []
    for spec in arguments.models or DEFAULT:
        result = measure(spec, arguments.transposed, arguments.seconds)
        result["prism_ns_per_transition"] = prism.get(result["transitions"], {})
        results.append(result)
        ns, beside = result["ns_per_transition"], result["prism_ns_per_transition"]
        print(
            f"{spec:>12} {result['transitions']:>11} {result['level']:>5} "
            f"{result['representation_memory_bytes'] / 1e6:>6.1f} MB "
            f"{result['representation_memory_bytes'] / result['csr_bytes']:>6.1%} "
            f"{result['choose_seconds'] + result['build_seconds']:>7.2f} {ns['scipy_csr']:>6.3f} "
            f"{ns['product_one_thread']:>6.3f} {ns['product']:>6.3f} {ns['relaxation_step']:>6.3f} "
            f"{result['speedup']:>4.2f}x  {beside.get('hybrid', math.nan):>12.2f} "
            f"{beside.get('sparse', math.nan):>7.2f}",
            flush=True,
        )
    large = [r["speedup"] for r in results if r["transitions"] > MILLION]
    mean = math.exp(statistics.fmean(map(math.log, large))) if large else math.nan
    print(f"geometric mean over {len(large)} models with over 10^6 transitions: {mean:.2f}x", end="")
    print(f", least {min(large):.2f}x" if large else "")
    if arguments.out:
        record = {
            "benchmark": "cpu_iteration",
            "environment": environment(),
            "threads": thread_count(),
            "transposed": arguments.transposed,
            "compile_or_load_kernels_seconds": compile_seconds,
            "geometric_mean_speedup": mean,
            "least_speedup": min(large) if large else None,
            "results": results,
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
