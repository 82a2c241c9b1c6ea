"""Gauss-Seidel and its relaxation (SOR): every row is solved with the newest values of the rows before it.

On compressed sparse rows it goes row by row.  On the hybrid matrix it relaxes eight rows at once, which
Parker, with larger blocks, calls pseudo-Gauss-Seidel (D. Parker, Implementation of symbolic model checking
for probabilistic systems, PhD thesis, University of Birmingham 2002): more than the cost of a Jacobi step,
and fewer iterations.  Threads take up to eight parts of the rows, which see the old values of one another.
The reference backend takes the tasks of 256 rows for blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hybrid.matrix.injection.injected import TaskList
from hybrid.matrix.reference import relax_in_place
from hybrid.matrix.space.base import (
    Criterion,
    LinearOperator,
    Progress,
    Solution,
    Vector,
    true_residual,
)
from hybrid.matrix.space.host import HostSpace, space_of
from hybrid.matrix.space.vector_space import Pair
from hybrid.solvers.iteration import repeated

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
