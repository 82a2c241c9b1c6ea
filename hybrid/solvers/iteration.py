"""The loop of methods that stop when two iterates are close: Jacobi, JOR, power, Gauss-Seidel."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hybrid.base.arrays import extremes
from hybrid.matrix.injection.injected import TaskList
from hybrid.matrix.reference import relax_in_place
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
    true_residual,
)
from hybrid.matrix.space.host import HostSpace, space_of
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


# Gauss-Seidel and its relaxation (SOR): every row is solved with the newest values of the rows before it.
#
# On compressed sparse rows it goes row by row.  On the hybrid matrix it relaxes eight rows at once, which
# Parker, with larger blocks, calls pseudo-Gauss-Seidel (D. Parker, Implementation of symbolic model checking
# for probabilistic systems, PhD thesis, University of Birmingham 2002): more than the cost of a Jacobi step,
# and fewer iterations.  Threads take up to eight parts of the rows, which see the old values of one another.
# The reference backend takes the tasks of 256 rows for blocks.

Sweep = Callable[[Vector, "Vector | None", Vector, float], tuple[float, float]]


@dataclass(frozen=True)
class GaussSeidel:
    """Gauss-Seidel, relaxed if omega is not 1.

    Attributes
    ----------
    criterion : Criterion
    omega : float
        Relaxation, in (0, 2).
    """

    criterion: Criterion = Criterion()
    omega: float = 1.0
    name = "gauss-seidel"
    # The iterate, its residual, new values, diagonal and right-hand side.
    vectors: ClassVar[int] = 5

    def __post_init__(self) -> None:
        """Refuse relaxations that cannot converge."""
        if not 0 < self.omega < 2:
            raise ValueError(f"omega must lie between 0 and 2, got {self.omega}")

    def solve(
        self,
        matrix: LinearOperator,
        diagonal: Vector,
        b: Vector | None,
        start: Vector,
        progress: Progress | None = None,
    ) -> Solution:
        """Sweep from `start` until two iterates are close; parameters as for `Jacobi.solve`.

        Raises
        ------
        ValueError
            The matrix has no sweeps, as on a device, or where processes share its rows.

        Notes
        -----
        The iterate and, on the hybrid matrix, its new values: two vectors.
        """
        sweep = _sweep_of(matrix)
        space, size = HostSpace(matrix), diagonal.size
        space.reserve(self.vectors, size)

        def begin(kept: Vector | None) -> Pair:
            x = np.array(start, dtype=np.float64) if kept is None else kept
            return x, x

        def advance(pair: Pair, made: int, most: int) -> Sequence[float]:
            return made + 1, *sweep(pair[0], b, diagonal, self.omega)

        def residual(x: Vector, _: Vector) -> float:
            with np.errstate(invalid="ignore", over="ignore"):
                return true_residual(matrix, x, b, diagonal, np.empty(size))

        return repeated(
            space, size, begin, advance, residual, space.to_host, self.criterion, progress, self.name
        )


def relax_by_tasks(
    tasks: TaskList, x: Vector, b: Vector | None, diagonal: Vector, omega: float
) -> tuple[float, float]:
    """Relax x in place, the rows of one task at once, task after task; return the greatest differences.

    Parameters
    ----------
    tasks : TaskList
        A square matrix without diagonal.
    x, b, diagonal : ndarray of float64, shape (n,)
        b None is zero.
    omega : float

    Notes
    -----
    Time: O(non-zeros), with a Python step for every instance; obviously right, for comparison.
    """
    greatest = [0.0, 0.0]
    for task in tasks:
        rows = slice(task.first_row, task.first_row + task.n_rows)
        new = np.zeros(task.n_rows)
        for row, column, number, begin, end in task.instances.tolist():
            part = tasks.blocks[number]
            kept = slice(begin, end)
            products = part.value[kept] * x[column + part.column[kept].astype(np.int64)]
            np.add.at(new, row + part.row[kept].astype(np.int64) - task.first_row, products)
        changes = relax_in_place(x[rows], None if b is None else b[rows], diagonal[rows], omega, new)
        x[rows] = new
        # Comparisons with NaN are false, so that an undefined change needs a test of its own.
        greatest = [math.inf if c != c else max(g, c) for g, c in zip(greatest, changes, strict=True)]
    return greatest[0], greatest[1]


def _sweep_of(matrix: Any) -> Sweep:
    """Return the sweep that fits how a matrix is held."""
    if matrix.backend == "reference":
        return lambda x, b, diagonal, omega: relax_by_tasks(matrix.tasks, x, b, diagonal, omega)
    if matrix.backend == "cpu" and getattr(matrix, "representation", None) == "tasks":
        return matrix.product.sweep().gauss_seidel_step  # type: ignore[no-any-return]
    space = space_of(matrix)
    sweeps = None
    if isinstance(space, HostSpace) and space.communicator.size == 1:
        sweeps = space.sweeps
    if sweeps is None and matrix.backend == "cpu":
        raise ValueError(
            "Gauss-Seidel takes rows one after the other, and those of this matrix have another order than "
            "its diagram, or are shared by processes: choose another method"
        )
    if sweeps is None:
        raise ValueError(
            f"Gauss-Seidel takes rows one after the other and does not run on the backend {matrix.backend}: "
            "choose the backend cpu, or another method"
        )
    new = np.empty(matrix.shape[0])

    def relax(x: Vector, b: Vector | None, diagonal: Vector, omega: float) -> tuple[float, float]:
        sweeps.sweep(x, b, diagonal, new, omega=omega)
        absolute, relative = (float(change) for change in space.distance(new, x))
        x[...] = new
        return (absolute, relative) if math.isfinite(absolute) else (math.inf, math.inf)

    return relax
