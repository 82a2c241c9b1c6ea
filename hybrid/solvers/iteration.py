"""The loop of methods that stop when two iterates are close: Jacobi, JOR, power."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import (
    CheckInterval,
    Clock,
    Criterion,
    MatrixOperator,
    Numbers,
    Progress,
    Solution,
    Status,
    Vector,
    Watch,
)
from hybrid.matrix.space.bellman import Outcome
from hybrid.matrix.space.choice_operator import ChoiceOperator
from hybrid.matrix.space.host import workspace_of
from hybrid.matrix.space.workspace import Array, Pair, Steps, System, Workspace
from mtbdd.base.records import Record

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
    kept = clock.resumed(space.xp, name, len(start))
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


# Value iteration over choices until two iterates are close: an estimate without bounds.


class ValueIteration(Record):
    """Value iteration that stops when two iterates are close: an estimate without bounds.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "value-iteration"
    vectors: ClassVar[int] = 3  # two iterates and a layer's product

    def solve(self, system: ChoiceOperator, progress: Progress | None = None) -> Solution:
        """Iterate from 0."""
        clock, space = Clock(progress), system.space
        space.reserve(self.vectors, system.size)
        kept = clock.resumed(space.xp, self.name, system.size)
        pair: Pair = (system.zeros() if kept is None else kept.vectors["x"]), system.zeros()
        outcome, pace = Outcome(), CheckInterval(space.stride)
        before = 0 if kept is None else int(kept.numbers["iterations"])
        most = max(self.criterion.max_iterations - before, 1)

        def state() -> tuple[Mapping[str, Array], Numbers]:
            return {"x": pair[outcome.iterations % 2]}, {"iterations": before + outcome.iterations}

        while outcome.status is Status.MAX_ITERATIONS and outcome.iterations < most:
            count = pace.steps(most - outcome.iterations)
            system.repeat(pair, outcome.iterations, count)
            outcome.iterations += count
            absolute, relative = space.read(system.changes)
            outcome.difference = self.criterion.difference(absolute, relative)
            if not math.isfinite(absolute):
                outcome.status = Status.DIVERGED
            elif outcome.difference < self.criterion.epsilon:
                outcome.status = Status.CONVERGED
            else:
                clock.offer(state)
            pace.look(outcome.iterations, outcome.difference, self.criterion.epsilon)
            clock.tick(before + outcome.iterations, outcome.difference)
        if outcome.status is not Status.DIVERGED:
            clock.keep(state, outcome.status is Status.CONVERGED)
        k = outcome.iterations % 2
        seconds, looks = clock.seconds, space.synchronisations
        residual = system.residual(pair[k], pair[1 - k])
        return Solution(
            space.to_host(pair[k]), outcome.status, before + outcome.iterations, seconds, outcome.difference,
            residual, synchronisations=looks, products=outcome.iterations + 1,
        )  # fmt: skip


# What iterations come to, look by look, for those who want to see how they converge.

_MOST_LOOKS = 1 << 14


class Trace(Watch):
    """Iterations and differences of all solutions that it follows.

    Attributes
    ----------
    solutions : list of list of (int, float)
        A list a solution that was begun: the number of an iteration, and the difference that is compared with
        epsilon there. For interval iteration and long-run averages it is the width of the bounds, relative to
        the value unless epsilon is absolute; else the change of a step.
    """

    def __init__(self) -> None:
        self.solutions: list[list[tuple[int, float]]] = []

    def begin(self, target: float | None, steps: int | None) -> None:
        """Begin a solution."""
        super().begin(target, steps)
        self.solutions.append([])

    def look(self, iteration: int, difference: float) -> None:
        """Take a look into account; of very many every other one goes, again and again."""
        own = self.solutions[-1]
        own.append((iteration, difference))
        if len(own) >= _MOST_LOOKS:
            del own[1::2]


# Jacobi's method and over-relaxed Jacobi (JOR), [Tealdi13] §2.4.1 and algorithm 1.
#
# Solves ``diagonal * x = M x + b``.  One iteration is ``x <- (1 - w) x + w (M x + b) / diagonal``;
# w = 1 is Jacobi.  For steady states (b = 0, M the transposed rates) Jacobi fails to converge when the
# jump chain is periodic; any w < 1 then breaks the period.


@dataclass(frozen=True)
class Jacobi:
    """Jacobi (`omega` 1) or JOR.

    Attributes
    ----------
    criterion : Criterion
    omega : float
        Relaxation, in (0, 2).
    """

    criterion: Criterion = Criterion()
    omega: float = 1.0
    vectors: ClassVar[int] = ITERATE_VECTORS

    def __post_init__(self) -> None:
        """Refuse relaxations that cannot converge."""
        if not 0 < self.omega < 2:
            raise ValueError(f"omega must lie between 0 and 2, got {self.omega}")

    @property
    def name(self) -> str:
        """Name on the command line."""
        return "jacobi" if self.omega == 1 else "jor"

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start` until two iterates are close.

        Parameters
        ----------
        matrix : MatrixOperator
            M, shape (n, n), without diagonal.
        diagonal, start : ndarray of float64, shape (n,)
            `diagonal` positive; `start` is not changed.
        b : ndarray of float64, shape (n,), optional
            Right-hand side; None is zero.
        progress : callable, optional
            Called with (iteration, difference) about twice a second.

        Notes
        -----
        Two vectors besides the operands, where the matrix has its workspace; nothing is allocated inside the
        loop.
        """
        space = workspace_of(matrix)
        space.reserve(space.more(self.vectors, diagonal), diagonal.size)
        system = space.system(diagonal, b)
        steps = system.relaxation(self.omega, criterion=self.criterion)
        return iterate(space, system, steps, self.criterion, start, progress, diagonal, self.name)


# The power method on the uniformised system.
#
# Solves ``diagonal * x = M x + b`` by ``x <- x + (M x + b - diagonal x) / q`` with q a little above
# the greatest diagonal entry: for a DTMC's steady state (b = 0) this is the repeated vector-matrix
# product, and for linear systems the simplest fixed-point iteration.


class Power(Record):
    """The power method.

    Attributes
    ----------
    criterion : Criterion
    """

    criterion: Criterion = Criterion()
    name = "power"
    vectors: ClassVar[int] = ITERATE_VECTORS

    def solve(
        self,
        matrix: MatrixOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start`; parameters as for `Jacobi.solve`."""
        space = workspace_of(matrix)
        rate = 1.02 * space.communicator.greatest(max(0.0, extremes(diagonal)[1])) or 1.0
        space.reserve(space.more(self.vectors, diagonal), diagonal.size)
        system = space.system(diagonal, b)
        steps = system.uniformised(rate, self.criterion)
        return iterate(space, system, steps, self.criterion, start, progress, diagonal, self.name)
