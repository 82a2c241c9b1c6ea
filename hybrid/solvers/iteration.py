"""The loop of methods that stop when two iterates are close: Jacobi, JOR, power."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hybrid.matrix.space.base import Clock, Criterion, Progress, Solution, Status, Vector
from hybrid.matrix.space.record import Numbers
from hybrid.matrix.space.workspace import Array, Steps, System, Workspace

ITERATE_VECTORS = 4
"""Vectors of the loop: two iterates, diagonal, right-hand side."""


def iterate(
    space: Workspace,
    system: System,
    steps: Steps,
    criterion: Criterion,
    start: Vector,
    progress: Progress | None,
    like: Vector,
    name: str,
) -> Solution:
    """Make steps from `start` until two iterates are close; the one place that decides how it ended.

    Parameters
    ----------
    space : Workspace
    system : System
        For the residual.
    steps : Steps
        Made with the same criterion, so that they end by themselves wherever they were queued beyond it.
    criterion : Criterion
    start : ndarray of float64, shape (n,)
    like : ndarray of float64, shape (n,)
        An operand: the values lie where it does.
    name : str
        Of the method, for records.
    """
    clock = Clock(progress)
    kept = clock.resumed(space, name, len(start))
    x = space.vector(start) if kept is None else kept.vectors["x"]
    pair = x, space.xp.empty(len(start))
    before = 0 if kept is None else int(kept.numbers["iterations"])
    most, iterations = max(criterion.max_iterations - before, 1), 0
    status, difference = Status.MAX_ITERATIONS, math.inf

    def state() -> tuple[Mapping[str, Array], Numbers]:
        return {"x": pair[iterations % 2]}, {"iterations": before + iterations}

    while status is Status.MAX_ITERATIONS and iterations < most:
        steps.sweep(pair, iterations, space.stretch(most - iterations))
        made, absolute, relative = space.read(steps.course)
        iterations, difference = int(made), criterion.difference(absolute, relative)
        # Asked first: infinity over infinity would pass for no difference.
        if not math.isfinite(absolute):
            status = Status.DIVERGED
        elif difference < criterion.epsilon:
            status = Status.CONVERGED
        else:
            clock.offer(state)
        clock.tick(before + iterations, difference)
    if status is not Status.DIVERGED:
        clock.keep(state, status is Status.CONVERGED)
    seconds, looks = clock.seconds, space.synchronisations
    x, scratch = pair[iterations % 2], pair[1 - iterations % 2]
    (residual,) = space.read(system.residual(x, scratch))
    values = space.result(x, like)
    return Solution(
        values, status, before + iterations, seconds, difference, residual, synchronisations=looks,
        products=iterations + 1,
    )  # fmt: skip
