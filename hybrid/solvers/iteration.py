"""The loop of methods that stop when two iterates are close: Jacobi, JOR, power."""

from __future__ import annotations

import math

from hybrid.solvers.base import Clock, Criterion, Progress, Solution, Status, Vector
from hybrid.solvers.workspace import Steps, System, Workspace

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
    """
    pair = space.vector(start), space.xp.empty(len(start))
    clock = Clock(progress)
    status, difference, iterations = Status.MAX_ITERATIONS, math.inf, 0
    while status is Status.MAX_ITERATIONS and iterations < criterion.max_iterations:
        steps.sweep(pair, iterations, space.stretch(criterion.max_iterations - iterations))
        made, absolute, relative = space.read(steps.course)
        iterations, difference = int(made), criterion.difference(absolute, relative)
        # Asked first: infinity over infinity would pass for no difference.
        if not math.isfinite(absolute):
            status = Status.DIVERGED
        elif difference < criterion.epsilon:
            status = Status.CONVERGED
        clock.tick(iterations, difference)
    seconds, looks = clock.seconds, space.synchronisations
    x, scratch = pair[iterations % 2], pair[1 - iterations % 2]
    (residual,) = space.read(system.residual(x, scratch))
    values = space.result(x, like)
    return Solution(
        values, status, iterations, seconds, difference, residual, synchronisations=looks,
        products=iterations + 1,
    )  # fmt: skip
