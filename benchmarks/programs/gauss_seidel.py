"""Gauss-Seidel by colours on a card beside Jacobi or JOR, on explicit and on compressed matrices.

Systems are those of [BESW10]'s table II: steady states, and of herman the expected steps until its ring is
stable. Every system is solved until no element changes by more than epsilon, relative to it: by Jacobi or
JOR, and by Gauss-Seidel with the same relaxation and without. A solution is given as many iterations as fit
into --solve-seconds; its status says where that is too few. Times are of iterations alone; what colouring
and the layout by colours take stands beside them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import hybrid
from benchmarks.library.arguments import parser
from benchmarks.library.device import free_device_memory, require_device
from benchmarks.library.paper_solutions import EPSILON, system_of
from benchmarks.library.records import Records
from gpu_kernels import current_device
from hybrid.matrix.explicit import ExplicitOperator, explicit_matrix
from hybrid.solvers import Criterion, GaussSeidel, Jacobi, Solution
from mtbdd.offset.offset import OffsetMTBDD

CASES = (("herman", 13), ("kanban", 4), ("fms", 6), ("cluster", 256), ("tandem", 1023), ("polling", 15))
QUICK = (("herman", 5), ("tandem", 7))

LIMIT = 1_000_000
WARM, PROBE = 40, 400
"""Iterations of two first solutions: one compiles, the next tells the time of an iteration."""

ENGINES = ("hybrid", "explicit")


def operator_of(matrix: OffsetMTBDD, engine: str) -> Any:
    """Return a matrix on the card."""
    if engine == "hybrid":
        return hybrid.inject(matrix, "auto", "gpu").prepare()
    return ExplicitOperator(explicit_matrix(matrix, "gpu"), current_device())


def measure(row: dict[str, Any], name: str, size: int, seconds: float) -> None:
    """Solve a system by all methods and both engines."""
    matrix, diagonal, b, start, omega = system_of(name, size)
    row.update(states=matrix.n_rows, entries=matrix.n_entries, steady=b is None, runs=[])
    for engine in ENGINES:
        operator = operator_of(matrix, engine)
        begin = time.perf_counter()
        coloured = operator.coloured()
        current_device().synchronise()
        sets = {"colours": coloured.colours, "set_up_seconds": time.perf_counter() - begin}
        facts = {"engine": engine, "level": operator.level}
        # A solver colours a matrix anew for every solution.
        held = SimpleNamespace(backend="gpu", coloured=lambda coloured=coloured: coloured)
        plain = "jacobi" if omega == 1.0 else "jor"
        found = solved(partial(Jacobi, omega=omega), operator, (diagonal, b, start), seconds)
        row["runs"].append({**facts, "method": plain, "omega": omega, "bytes": operator.nbytes, **found})
        for weight in dict.fromkeys((omega, 1.0)):
            found = solved(partial(GaussSeidel, omega=weight), held, (diagonal, b, start), seconds)
            sweeps = {"method": "gauss-seidel", "omega": weight, "bytes": coloured.nbytes}
            row["runs"].append({**facts, **sets, **sweeps, **found})
        del operator, coloured, held
        free_device_memory(collect=True)


def solved(
    method: Callable[[Criterion], Jacobi | GaussSeidel],
    operator: Any,
    system: tuple[Any, Any, Any],
    seconds: float,
) -> dict[str, Any]:
    """Solve a system in so many seconds, about, once kernels are compiled."""

    def solve(limit: int) -> Solution:
        return method(Criterion(EPSILON, max_iterations=limit)).solve(operator, *system)

    solve(WARM)
    probe = solve(PROBE)
    each = max(probe.seconds, 1e-9) / probe.iterations
    run = solve(max(PROBE, min(LIMIT, int(seconds / each))))
    return {
        "seconds": run.seconds,
        "iterations": run.iterations,
        "status": run.status.name.lower(),
        "residual": run.residual,
    }


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "quick", "only", "seconds", "resume")
    arguments.add_argument("--solve-seconds", type=float, default=4.0, help="longest single solution")
    options = arguments.parse_args()
    require_device("there is nothing to try without one")
    records = Records("gauss_seidel", options, epsilon=EPSILON, solve_seconds=options.solve_seconds)
    for name, size in QUICK if options.quick else CASES:
        if not options.only or name in options.only:
            records.run({"model": name, "size": size}, measure, name, size, options.solve_seconds)
    records.show()


if __name__ == "__main__":
    main()
