"""Time of one iteration on the CPU backend, beside SciPy's CSR product on the same matrix in the same run.

For every model: the product ``M @ x`` and the fused relaxation step of the CPU backend on all cores and on
one, and SciPy's CSR product, which uses one. The explicit matrix exists for SciPy alone and is expanded
from the same diagram. Timings take turns; the median of each counts, the best is recorded too. Compilation
and building are timed apart. The mean is geometric, over the models with more than a million transitions.
With ``--prism`` the times of PRISM's hybrid and sparse engines stand beside, in ns a transition; with
``--mkl`` products of MKL on the same matrix, which it has inspected and optimised, with all threads and with
one, apart from the others because its threads stay awake for a while.  So are the products that they are
compared with, which follow one another as MKL's do, and as those of a solution: behind one of SciPy's nothing
is in the caches.
"""

from __future__ import annotations

import csv
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hybrid
from benchmarks.library.arguments import existing, parser
from benchmarks.library.mkl import Mkl, MklProduct
from benchmarks.library.models import example
from benchmarks.library.records import Records, Row
from hybrid.matrix.cpu.threads import set_thread_count, thread_count
from hybrid.matrix.explicit import explicit_matrix
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix

Vector = NDArray[np.float64]

DEFAULT = (
    "kanban:4", "kanban:5", "kanban:6", "fms:5", "fms:6", "fms:7", "fms:8",
    "cluster:128", "cluster:256", "cluster:512", "polling:13", "polling:15", "polling:16", "polling:18",
    "herman:13", "herman:15", "tandem:511", "tandem:1023", "brp:1024",
)  # fmt: skip


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


def measure(
    row: Row,
    name: str,
    size: int,
    transposed: bool,
    seconds: float,
    prism: dict[int, dict[str, float]],
    mkl: Mkl | None,
) -> None:
    """Measure one model."""
    constants = {"MAX": 50} if name == "brp" else {}
    matrix = example(name, size, **constants).transitions
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
    csr = explicit_matrix(matrix).to_scipy()
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
    best = {name: min(own) for name, own in zip(names, times, strict=True)}
    gains = {}
    if mkl is not None:
        for suffix, threads in (("", thread_count()), ("_one_thread", 1)):
            key, own = f"mkl{suffix}", f"product_beside_mkl{suffix}"
            set_thread_count(threads)
            (alone,) = take_turns([lambda: operator.multiply(x, out)], seconds / 4)
            set_thread_count(None)
            middle[own], best[own] = statistics.median(alone), min(alone)
            middle[key], best[key] = by_mkl(mkl, csr, x, expected, threads, seconds)
            gains[f"speedup_over_{key}"] = middle[key] / middle[own]
    csr_bytes = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
    row.update(
        states=matrix.n_rows,
        transitions=operator.nnz,
        level=operator.level,
        level_reason=operator.level_reason,
        representation_memory_bytes=memory,
        csr_bytes=csr_bytes,
        choose_seconds=chosen,
        build_seconds=built,
        seconds=middle,
        best_seconds=best,
        ns_per_transition={n: s / operator.nnz * 1e9 for n, s in middle.items()},
        speedup=middle["scipy_csr"] / middle["product"],
        speedup_one_thread=middle["scipy_csr"] / middle["product_one_thread"],
        largest_relative_difference=error,
        prism_ns_per_transition=prism.get(operator.nnz, {}),
        **gains,
    )


def by_mkl(
    mkl: Mkl, csr: Any, x: Vector, expected: Vector, threads: int, seconds: float
) -> tuple[float, float]:
    """Return the median and the least time of MKL's product."""
    mkl.set_threads(threads)
    product, out = MklProduct(mkl, csr), np.empty(len(expected))
    (times,) = take_turns([lambda: product.multiply(x, out)], seconds / 4)
    product.close()
    np.testing.assert_allclose(out, expected, rtol=1e-11)
    return statistics.median(times), min(times)


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


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "resume")
    arguments.add_argument("models", nargs="*", metavar="MODEL:SIZE")
    arguments.add_argument("--transposed", action="store_true", help="products with the transposed matrix")
    arguments.add_argument("--prism", type=existing, metavar="FILE.csv", help="PRISM's runs to show beside")
    arguments.add_argument("--mkl", type=existing, metavar="FILE.so", help="MKL's libmkl_rt to show beside")
    arguments.add_argument("--seconds", type=float, default=2.0, help="for each model's timings")
    options = arguments.parse_args()
    prism, each = prism_times(options.prism), options.seconds
    mkl = None if options.mkl is None else Mkl(options.mkl)
    # A limit of the whole run in other programs.
    options.seconds = None
    begin = time.perf_counter()
    import hybrid.matrix.cpu.kernels  # noqa: F401

    compiled = time.perf_counter() - begin
    records = Records("cpu_iteration", options, threads=thread_count(), transposed=options.transposed)
    records.facts["compile_or_load_kernels_seconds"] = compiled
    if mkl is not None:
        records.facts["mkl"] = mkl.version
    for spec in options.models or DEFAULT:
        name, _, size = spec.partition(":")
        records.run({"model": spec}, measure, name, int(size), options.transposed, each, prism, mkl)
    records.show()


if __name__ == "__main__":
    main()
