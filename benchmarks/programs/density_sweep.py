"""[CB12]'s experiments: Jacobi and BiCGStab on CPU and GPU, on random matrices and on two programs' chains.

``random``: diagonally dominant matrices of random integers, three sizes, growing density ([CB12] §6,
figure 1); 10 % density at growing sizes (figures 2 and 3).
``chains``: ``(I - P) x = b`` over S? for the biased die (Table 1's sizes and entries exactly) and for random
quick sort (sizes near Table 1's, for its chains come out of another search).
``twins``: random matrices with exactly the sizes and entries of Table 1 ([CB12] §7.1).
``large``: the biased die at sizes that a card of today needs to be busy.
``bicgstab`` is preconditioned with the diagonal, ``bicgstab-plain`` is not, as [CB12]'s (§3.2).

Every trial has a matrix of its own in ``random`` and ``twins``; times are means of solutions to a relative
change (Jacobi) or residual (BiCGStab) below epsilon, without set-up and transfer; the CPU is one core. Every
solution's residual is computed anew, and a run that did not converge, for example because it was given no
more than --solve-seconds, says so. The record is written after every row, and --resume goes on with it.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# Before NumPy is loaded: [CB12]'s sequential methods have one core, and SciPy's products use no more.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.library.arguments import parser
from benchmarks.library.device import require_device
from benchmarks.library.models import example
from benchmarks.library.records import Records
from gpu_kernels import Device, current_device
from hybrid.analysis.linear import LinearSystem, reachability_system, split_system
from hybrid.matrix.explicit import CsrArrays, ExplicitOperator
from hybrid.solvers import Criterion, Solution, Status

EPSILON = 1e-8
LIMIT = 200_000
WARM = 40
"""Iterations of a first solution that is not counted: it compiles kernels."""

GROWTH = 8
"""How many times as many iterations each further one of those solutions has that find the limit."""

MOST_ENTRIES = 10_000_000
METHODS = ("jacobi", "bicgstab", "bicgstab-plain")
STORAGE = "msr"

SIZES = (1_000, 5_000, 20_000)
DENSITIES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1)
DENSE_SIZES = (500, 1_000, 2_000, 4_000, 8_000)
QUICK_SIZES, QUICK_DENSITIES, QUICK_DENSE = (60, 120), (0.02, 0.1), (50,)

TABLE_1_DIE = ((667, 1333), (1333, 2665), (2000, 3999), (2668, 5335), (3647, 7293), (4647, 9293),
               (5647, 11293), (6647, 13293), (7647, 15293))  # fmt: skip
TABLE_1_SORT = ((92, 211), (118, 263), (142, 312), (173, 379), (198, 430), (228, 491), (250, 536), (284, 606),
                (313, 669))  # fmt: skip
"""Sizes and entries of [CB12]'s Table 1."""

SORTS = ((18, 135), (20, 170), (21, 188), (23, 231), (23, 228), (23, 226), (23, 224), (23, 68), (23, 221))
"""Elements and comparisons allowed whose S? is nearest to the sizes of Table 1."""

LARGE = (30_001, 100_001, 300_001, 1_000_001)


def random_matrix(rng: np.random.Generator, n: int, entries: int) -> CsrArrays:
    """Return a diagonally dominant matrix of positive integers at random places ([CB12] §6).

    Parameters
    ----------
    n : int
        Rows and columns.
    entries : int
        Non-zeros; at least n, for the diagonal has none left out.
    """
    from scipy.sparse import coo_matrix, diags

    wanted = max(entries - n, 0)
    # Drawn with some to spare, because places on the diagonal and doubles do not count.
    places = np.zeros(0, np.int64)
    while len(places) < wanted:
        more = rng.integers(0, n * n, int(1.2 * (wanted - len(places))) + 16)
        places = np.unique(np.concatenate((places, more[more // n != more % n])))
    places = rng.permutation(places)[:wanted]
    values = rng.integers(1, 100, wanted).astype(np.float64)
    off = coo_matrix((values, (places // n, places % n)), shape=(n, n)).tocsr()
    diagonal = np.asarray(off.sum(axis=1)).ravel() + rng.integers(1, 100, n)
    return CsrArrays.from_scipy(off + diags(diagonal))


def without_preconditioner(system: LinearSystem) -> LinearSystem:
    """Return the same system as ``1 x = (I - A) x + b``: dividing by that diagonal changes nothing."""
    from scipy.sparse import diags

    rest = system.matrix.matrix.to_scipy() + diags(1.0 - system.diagonal)
    return LinearSystem(ExplicitOperator(CsrArrays.from_scipy(rest)), np.ones(len(system.b)), system.b)


def on_backend(system: LinearSystem, backend: str, device: Device | None) -> LinearSystem:
    """Return the system on a backend; ExplicitOperator's matrix is copied where it has to be."""
    if backend == "cpu" or device is None:
        return system
    xp = device.xp
    operator = ExplicitOperator(system.matrix.matrix.to_device(device), device, STORAGE)
    return LinearSystem(operator, xp.asarray(system.diagonal), xp.asarray(system.b))


def fitting_iterations(solve: Callable[[int], Solution], seconds: float) -> int:
    """Return how many iterations fit into some seconds, found by ever longer ones; `LIMIT` if they end."""
    solve(WARM)
    limit = WARM
    while limit < LIMIT:
        run = solve(limit)
        if run.status is not Status.MAX_ITERATIONS:
            return LIMIT
        fitting = int(limit * seconds / max(run.seconds, 1e-9))
        if fitting < 2 * limit:
            return max(WARM, fitting)
        limit = min(LIMIT, GROWTH * limit, fitting)
    return LIMIT


def measure(
    row: dict[str, Any],
    systems: Callable[[], Iterator[LinearSystem]],
    backends: list[str],
    repeats: int,
    seconds: float,
    methods: Sequence[str] = METHODS,
    row_seconds: float = math.inf,
) -> None:
    """Solve all systems by all methods on all backends, and keep means and the worst residual.

    A solution is given as many iterations as fit into ``seconds``; once that much time has been spent on a
    method and backend, there are no more trials of them.  No further system is drawn after ``row_seconds``.
    """
    device = current_device() if "gpu" in backends else None
    runs: dict[tuple[str, str], list[Solution]] = {}
    limits: dict[tuple[str, str], int] = {}
    begin = time.perf_counter()
    for system in systems():
        row.setdefault("n", len(system.b))
        row.setdefault("entries", system.matrix.nnz + len(system.b))
        row.setdefault("set_up_seconds", time.perf_counter() - begin)
        for backend in backends:
            usual, plain = on_backend(system, backend, device), None
            if "bicgstab-plain" in methods:
                plain = on_backend(without_preconditioner(system), backend, device)
            for method in methods:
                name, is_plain = method.removesuffix("-plain"), method.endswith("-plain")
                placed = plain if is_plain and plain is not None else usual
                key = method, backend
                own = runs.setdefault(key, [])
                if sum(s.seconds for s in own) > seconds:
                    continue

                def solve(limit: int, name: Any = name, placed: LinearSystem = placed) -> Solution:
                    return placed.solve(name, criterion=Criterion(EPSILON, max_iterations=limit))

                if key not in limits:
                    limits[key] = fitting_iterations(solve, seconds)
                own += [solve(limits[key]) for _ in range(repeats)]
        if time.perf_counter() - begin > row_seconds:
            break
    row["density"] = row["entries"] / row["n"] ** 2
    row["runs"] = [
        {
            "method": method,
            "backend": backend,
            "seconds": statistics.fmean(s.seconds for s in own),
            "deviation": statistics.pstdev(s.seconds for s in own),
            "iterations": statistics.fmean(s.iterations for s in own),
            "statuses": sorted({s.status.name.lower() for s in own}),
            "residual": max(s.residual for s in own),
            "trials": len(own),
        }
        for (method, backend), own in runs.items()
    ]


def random_systems(n: int, entries: int, trials: int) -> Callable[[], Iterator[LinearSystem]]:
    """Return a source of random systems, a new matrix and right-hand side every trial."""

    def draw() -> Iterator[LinearSystem]:
        rng = np.random.default_rng([n, entries])
        for _ in range(trials):
            yield split_system(random_matrix(rng, n, entries), rng.integers(1, 100, n))

    return draw


def chain_system(name: str, size: int, target: str, **constants: int) -> Callable[[], Iterator[LinearSystem]]:
    """Return a source of the one system of a chain, built when it is asked for."""

    def build() -> Iterator[LinearSystem]:
        yield reachability_system(example(name, size, **constants), target).system("explicit")

    return build


Case = tuple[dict[str, Any], Callable[[], Iterator[LinearSystem]], int]


def cases(parts: list[str], trials: int, quick: bool) -> Iterator[Case]:
    """Yield identity, systems and repetitions of every row, the cheapest first within a part."""
    if "chains" in parts:
        for n, entries in TABLE_1_DIE[:1] if quick else TABLE_1_DIE:
            source = chain_system("biased_die", n, "d=1", first=1 - n % 2)
            yield {"part": "chains", "model": "biased_die", "paper": (n, entries)}, source, trials
        for (elements, limit), paper in list(zip(SORTS, TABLE_1_SORT, strict=True))[: 1 if quick else None]:
            source = chain_system("quick_sort", elements, '"sorted"', limit=limit)
            identity = {"part": "chains", "model": "quick_sort", "size": elements, "limit": limit}
            yield identity | {"paper": paper}, source, trials
    if "twins" in parts:
        for model, table in (("biased_die", TABLE_1_DIE), ("quick_sort", TABLE_1_SORT)):
            for n, entries in table[:1] if quick else table:
                identity = {"part": "twins", "model": model, "paper": (n, entries)}
                yield identity, random_systems(n, entries, trials), 1
    if "random" in parts:
        sizes, densities = (QUICK_SIZES, QUICK_DENSITIES) if quick else (SIZES, DENSITIES)
        for n in sizes:
            for density in densities:
                entries = round(density * n * n)
                if n < entries <= MOST_ENTRIES:
                    identity = {"part": "random", "figure": 1, "wanted": (n, entries)}
                    yield identity, random_systems(n, entries, trials), 1
        for n in QUICK_DENSE if quick else DENSE_SIZES:
            identity = {"part": "random", "figure": 2, "wanted": (n, n * n // 10)}
            yield identity, random_systems(n, n * n // 10, trials), 1
    if "large" in parts:
        for n in (2001,) if quick else LARGE:
            source = chain_system("biased_die", n, "d=1", first=0)
            yield {"part": "large", "model": "biased_die", "size": n}, source, 1


def main() -> None:
    """Measure and write the record."""
    arguments = parser(__doc__, "quick", "seconds", "resume")
    arguments.add_argument("--parts", default="chains,twins,random,large", help="separated by commas")
    arguments.add_argument("--trials", type=int, default=20, help="solutions a row, as in [CB12]")
    arguments.add_argument("--methods", default=",".join(METHODS), help="separated by commas")
    arguments.add_argument("--backends", default="cpu,gpu", help="separated by commas")
    arguments.add_argument("--solve-seconds", type=float, default=2.0, help="longest single solution")
    arguments.add_argument(
        "--row-seconds", type=float, default=15.0, help="after which a row draws no further matrix"
    )
    options = arguments.parse_args()
    backends = options.backends.split(",")
    if "gpu" in backends:
        require_device("use --backends cpu")
    run(options, backends)


def run(options: argparse.Namespace, backends: list[str]) -> Records:
    """Measure all rows that are asked for."""
    methods = options.methods.split(",")
    records = Records(
        "density_sweep", options, epsilon=EPSILON,
        storage=STORAGE, methods=methods, backends=backends, trials=options.trials,
        solve_seconds=options.solve_seconds,
    )  # fmt: skip
    for identity, systems, repeats in cases(options.parts.split(","), options.trials, options.quick):
        records.run(
            identity, measure, systems, backends, repeats, options.solve_seconds, methods, options.row_seconds
        )
    records.show()
    return records


if __name__ == "__main__":
    main()
