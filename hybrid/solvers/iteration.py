"""The loop of methods that stop when two iterates are close: Jacobi, JOR, power."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hybrid.base.arrays import extremes
from hybrid.matrix.space.base import (
    CheckInterval,
    Clock,
    Criterion,
    LinearOperator,
    Numbers,
    Progress,
    ProgressMonitor,
    Solution,
    Status,
    Vector,
)
from hybrid.matrix.space.host import space_of
from hybrid.matrix.space.vector_space import Array, Pair, Steps, System, VectorSpace
from mtbdd.base.records import Record

if TYPE_CHECKING:
    from hybrid.matrix.space.choice_operator import ChoiceOperator

ITERATE_VECTORS = 4
"""Vectors of the loop: two iterates, diagonal, right-hand side."""


def iterate(
    space: VectorSpace,
    system: System,
    steps: Steps,
    criterion: Criterion,
    start: Vector,
    progress: Progress | None,
    like: Vector,
    name: str,
) -> Solution:
    """Make steps from `start` until two iterates are close, and return how it ended.

    Parameters
    ----------
    space : VectorSpace
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

    def begin(x: Array | None) -> Pair:
        return space.vector(start) if x is None else x, space.xp.empty(len(start))

    def advance(pair: Pair, made: int, most: int) -> Sequence[float]:
        steps.sweep(pair, made, space.stretch(most))
        return space.read(steps.course)

    def residual(x: Array, scratch: Array) -> float:
        return space.read(system.residual(x, scratch))[0]

    def result(x: Array) -> Vector:
        found: Vector = space.result(x, like)
        return found

    return repeated(space, len(start), begin, advance, residual, result, criterion, progress, name)


def repeated(
    space: VectorSpace,
    size: int,
    begin: Callable[[Array | None], Pair],
    advance: Callable[[Pair, int, int], Sequence[float]],
    residual: Callable[[Array, Array], float],
    result: Callable[[Array], Vector],
    criterion: Criterion,
    progress: Progress | None,
    name: str,
) -> Solution:
    """Make steps until two iterates are close, and return how it ended.

    Parameters
    ----------
    space : VectorSpace
        Of vectors of `size` elements.
    begin : callable
        Returns the first iterate, or the one given that an earlier run has left, and room for the next one;
        the same vector twice where steps are made in place.
    advance : callable
        Makes steps: ``advance(pair, made, most)``, most of them; returns all made, and both changes.
    residual : callable
        Returns that of a vector; another one is overwritten.
    result : callable
        Returns the last iterate as results are given.
    criterion : Criterion
    name : str
        Of the method, for records.
    """
    clock = Clock(progress)
    kept = clock.resumed(space.xp, name, size)
    pair = begin(None if kept is None else kept.vectors["x"])
    before = 0 if kept is None else int(kept.numbers["iterations"])
    most, made = max(criterion.max_iterations - before, 1), 0
    status, difference = Status.MAX_ITERATIONS, math.inf

    def state() -> tuple[Mapping[str, Array], Numbers]:
        return {"x": pair[made % 2]}, {"iterations": before + made}

    while status is Status.MAX_ITERATIONS and made < most:
        left = most - made
        done, absolute, relative = advance(pair, made, left)
        made, difference = int(done), criterion.difference(absolute, relative)
        # Asked first: infinity over infinity would pass for no difference.
        if not math.isfinite(absolute):
            status = Status.DIVERGED
        elif difference < criterion.epsilon:
            status = Status.CONVERGED
        else:
            clock.offer(state)
        clock.tick(before + made, difference)
    if status is not Status.DIVERGED:
        clock.keep(state, status is Status.CONVERGED)
    seconds, looks, x = clock.seconds, space.synchronisations, pair[made % 2]
    scratch = pair[1 - made % 2]
    return Solution(
        result(x), status, before + made, seconds, difference, residual(x, scratch), synchronisations=looks,
        products=made + 1,
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
        space, pace, criterion = system.space, CheckInterval(system.stride), self.criterion
        space.reserve(self.vectors, system.size)

        def begin(x: Array | None) -> Pair:
            return system.zeros() if x is None else x, system.zeros()

        def advance(pair: Pair, made: int, most: int) -> Sequence[float]:
            count = pace.steps(most)
            system.repeat(pair, made, count)
            absolute, relative = space.read(system.changes)
            pace.observe(made + count, criterion.difference(absolute, relative), criterion.epsilon)
            return made + count, absolute, relative

        return repeated(
            space, system.size, begin, advance, system.residual, space.to_host, criterion, progress, self.name
        )


# Convergence of iterations, one row a measurement.

_MOST_LOOKS = 1 << 14


class Trace(ProgressMonitor):
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

    def observe(self, iteration: int, difference: float) -> None:
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
        matrix: LinearOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start` until two iterates are close.

        Parameters
        ----------
        matrix : LinearOperator
            M, shape (n, n), without diagonal.
        diagonal, start : ndarray of float64, shape (n,)
            `diagonal` positive; `start` is not changed.
        b : ndarray of float64, shape (n,), optional
            Right-hand side; None is zero.
        progress : callable, optional
            Called with (iteration, difference) about twice a second.

        Notes
        -----
        Two vectors besides the operands, where the matrix has its space; nothing is allocated inside the
        loop.
        """
        space = space_of(matrix)
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
        matrix: LinearOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Iterate from `start`; parameters as for `Jacobi.solve`."""
        space = space_of(matrix)
        rate = 1.02 * space.communicator.greatest(max(0.0, extremes(diagonal)[1])) or 1.0
        space.reserve(space.more(self.vectors, diagonal), diagonal.size)
        system = space.system(diagonal, b)
        steps = system.uniformised(rate, self.criterion)
        return iterate(space, system, steps, self.criterion, start, progress, diagonal, self.name)
