"""Products with several vectors at once, beside as many products with one, and beside SciPy's CSR.

For every model: ``M @ X`` for the columns of X, shape (n, k), C-contiguous, and k products with contiguous
vectors. Both are warmed up, timings take turns in one run, and the median of each counts; the best is
recorded too. The results agree bit for bit, or the row is an error. On the CPU all cores are used, and
SciPy's product with X, on one core, stands beside; on a card everything lies there and each timing waits for
it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.models import example
from benchmarks.library.records import Records, Row
from benchmarks.programs.cpu_iteration import take_turns
from hybrid.base.arrays import to_host
from hybrid.base.option_types import BackendName
from hybrid.matrix.cpu.threads import thread_count
from hybrid.matrix.explicit import explicit_matrix
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix

DEFAULT = {"cpu": ("kanban:5", "cluster:256"), "gpu": ("kanban:5", "kanban:6", "kanban:7")}


def measure(row: Row, name: str, size: int, backend: BackendName, width: int, seconds: float) -> None:
    """Measure one model."""
    symbolic = example(name, size).transitions
    matrix: HybridMatrix = hybrid.inject(symbolic, "min-time", backend).prepare()
    xp: Any = np
    wait: Callable[[], object] = int
    if backend == "gpu":
        from gpu_kernels import current_device

        device = current_device()
        xp, wait = device.xp, device.synchronise
    x = np.random.default_rng(2718).random((matrix.shape[1], width))
    vectors = [xp.asarray(np.ascontiguousarray(x[:, i])) for i in range(width)]
    results = [xp.empty(matrix.shape[0]) for _ in range(width)]
    together = xp.asarray(x)
    out = matrix @ together

    def at_once() -> None:
        matrix.product.multiply_many(together, out)
        wait()

    def one_by_one() -> None:
        for vector, result in zip(vectors, results, strict=True):
            matrix.multiply(vector, result)
        wait()

    timed = {"at_once": at_once, "one_by_one": one_by_one}
    if backend == "cpu":
        csr = explicit_matrix(symbolic).to_scipy()
        timed["scipy_csr_at_once"] = lambda: csr @ x
    times = dict(zip(timed, take_turns(list(timed.values()), seconds), strict=True))
    found = to_host(out)
    if not all(np.array_equal(found[:, i], to_host(r)) for i, r in enumerate(results)):
        raise ArithmeticError("the products at once differ from those one by one")
    middle = {what: statistics.median(own) for what, own in times.items()}
    best = {what: min(own) for what, own in times.items()}
    row.update(
        states=matrix.shape[0],
        transitions=matrix.nnz,
        level=matrix.level,
        vectors=width,
        runs=len(times["at_once"]),
        seconds=middle,
        best_seconds=best,
        share_of_one_by_one=middle["at_once"] / middle["one_by_one"],
        best_share_of_one_by_one=best["at_once"] / best["one_by_one"],
    )


def main() -> None:
    """Measure, print a table, write a record."""
    arguments = parser(__doc__, "resume")
    arguments.add_argument("models", nargs="*", metavar="MODEL:SIZE")
    arguments.add_argument("--backend", choices=tuple(DEFAULT), default="cpu")
    arguments.add_argument("--vectors", type=int, default=8, metavar="K")
    arguments.add_argument("--seconds", type=float, default=5.0, help="for each model's timings")
    options = arguments.parse_args()
    each = options.seconds
    # A limit of the whole run in other programs.
    options.seconds = None
    records = Records("many_vectors", options, threads=thread_count(), backend=options.backend)
    for spec in options.models or DEFAULT[options.backend]:
        model, _, size = spec.partition(":")
        records.run({"model": spec}, measure, model, int(size), options.backend, options.vectors, each)
    records.show()


if __name__ == "__main__":
    main()
