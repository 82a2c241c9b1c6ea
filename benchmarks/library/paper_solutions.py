"""Whole solutions for [BESW10]'s tables: property 1 of three models, and a time-bounded until."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hybrid
from benchmarks.library.device import free_device_memory
from benchmarks.library.models import example
from gpu_kernels import current_device
from hybrid.base.option_types import BackendName, Engine
from hybrid.matrix.explicit import ExplicitOperator, explicit_matrix
from hybrid.solvers import Criterion, Jacobi, Solution, Status
from mtbdd.graph.prob01 import bottom_components
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import index_states

__all__ = ["EPSILON", "measure_bounded", "measure_solve"]

STORAGES = ("msr", "msr-scan", "auto", "cusparse")
"""M1, M2, what the explicit engine takes by itself, and the library."""

BOUNDED = "P=? [ F<={time:g} sc=c ]"
"""[BESW10] names property 3 of tandem's file unprinted; this is a bounded until over the same chain."""

EPSILON = 1e-6
LIMIT = 1_000_000
PROBES = {"cpu": (2, 10), "gpu": (40, 400)}
"""Iterations of two first runs by backend: one warms up, the next tells the time of an iteration."""

SHORT_TIME = 0.005
"""Time bound of a run that tells the time of an iteration."""


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


def measure_solve(row: dict[str, Any], name: str, size: int, run_seconds: float) -> None:
    """Fill a row of [BESW10]'s table II."""
    device = current_device()
    matrix, diagonal, b, start, omega = system_of(name, size)
    row.update(states=matrix.n_rows, method="jor" if omega != 1.0 else "jacobi", epsilon=EPSILON)

    def solve(operator: Any, limit: int = LIMIT) -> Solution:
        return Jacobi(Criterion(EPSILON, max_iterations=limit), omega).solve(operator, diagonal, b, start)

    operator = hybrid.inject(matrix, "min-time", "gpu")
    _ = operator.product
    # The first iterations compile.
    solve(operator, PROBES["gpu"][0])
    reference = solve(operator)
    row["hybrid_gpu"] = solved(reference, operator.nbytes) | {"extrapolated": False}
    del operator
    explicit = explicit_matrix(matrix, "gpu")

    def timed(operator: Any, backend: str) -> dict[str, Any]:
        return within(functools.partial(solve, operator), reference, operator.nbytes, run_seconds, backend)

    for storage in STORAGES:
        try:
            held: Any = ExplicitOperator(explicit, device, storage)
            row[storage] = timed(held, "gpu") | {"storage": held.storage}
        except Exception as error:
            row[storage] = {"error": f"{type(error).__name__}: {error}"}
        held = None
        free_device_memory(collect=False)
    on_host = explicit.to_host()
    del explicit
    row["scipy_csr_one_core"] = timed(ExplicitOperator(on_host), "cpu")
    del on_host
    row["hybrid_cpu"] = timed(hybrid.inject(matrix, "min-time", "cpu"), "cpu")


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
    solve: Callable[[int], Solution], reference: Solution, memory: int, seconds: float, backend: str
) -> dict[str, Any]:
    """Solve to the end where there is time for it; otherwise extrapolate from some iterations."""
    warm, count = PROBES[backend]
    solve(warm)
    probe = solve(count)
    each = probe.seconds / max(probe.iterations, 1)
    if probe.status is Status.CONVERGED:
        return solved(probe, memory) | {"extrapolated": False, "difference": _apart(probe, reference)}
    if each * reference.iterations <= seconds:
        run = solve(LIMIT)
        return solved(run, memory) | {"extrapolated": False, "difference": _apart(run, reference)}
    return {"seconds": each * reference.iterations, "iterations": reference.iterations, "bytes": memory,
            "measured_iterations": probe.iterations, "extrapolated": True}  # fmt: skip


def measure_bounded(row: dict[str, Any], size: int, run_seconds: float) -> None:
    """Fill a row of [BESW10]'s table III."""
    model = example("tandem", size)
    row.update(states=model.n_states, property=BOUNDED.format(time=1))

    def answer(engine: Engine, backend: BackendName, bound: float) -> dict[str, Any]:
        begin = time.perf_counter()
        text = BOUNDED.format(time=bound)
        found = hybrid.check(model, text, engine=engine, backend=backend, epsilon=EPSILON, throw=False)
        return {
            "total_seconds": time.perf_counter() - begin,
            "seconds": found.statistics.seconds,
            "iterations": found.statistics.iterations,
            "value": found.value,
            "error": found.error,
            "extrapolated": False,
        }

    runs: tuple[tuple[Engine, BackendName], ...] = (("hybrid", "gpu"), ("explicit", "gpu"), ("hybrid", "cpu"))
    for engine, backend in runs:
        short = answer(engine, backend, SHORT_TIME)
        expected = row["hybrid_gpu"]["iterations"] if backend == "cpu" else 0
        seconds = short["seconds"] / max(short["iterations"] or 0, 1) * expected
        if seconds <= run_seconds:
            row[f"{engine}_{backend}"] = answer(engine, backend, 1.0)
        else:
            row[f"{engine}_{backend}"] = {
                "seconds": seconds, "iterations": expected, "measured_iterations": short["iterations"],
                "extrapolated": True,
            }  # fmt: skip
