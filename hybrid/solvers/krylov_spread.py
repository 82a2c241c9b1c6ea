"""The shape of what goes down in a step: w with ``(1 - s) x <= w - A w``, by a few products or sweeps.

See :mod:`hybrid.solvers.krylov_bounds`, whose bounds are ``z + c w`` and ``z - c w``.
"""

from __future__ import annotations

from typing import Protocol

from hybrid.matrix.space.base import Clock, Vector
from hybrid.matrix.space.bellman import BellmanOperator, Held
from hybrid.matrix.space.idr import IDR_VECTORS
from hybrid.matrix.space.preconditioner import Preconditioner, plain_residual
from hybrid.matrix.space.recurrence import Recurrence
from hybrid.matrix.space.workspace import OPERANDS, Array, System, Workspace
from hybrid.solvers.krylov_run import follow
from hybrid.solvers.krylov_try import SPREAD, Try

LOOSE = 0.5
"""Share of its right-hand side by which w may be off."""

_BRIEF = 20  # products after which a preconditioner is tried
_LONGER = 2.0  # times as many products with it


class Affine(Protocol):
    """The equation as a Krylov method sees it; see :class:`hybrid.solvers.directed_system.DirectedSystem`."""

    @property
    def system(self) -> System:
        """``diagonal * x = M x + b``, not rounded in any direction."""

    @property
    def diagonal(self) -> Vector:
        """Its diagonal, on the host or in the workspace."""

    @property
    def b(self) -> Vector:
        """Its right-hand side, likewise."""


class Spread:
    """Finds w.

    Parameters
    ----------
    operator : BellmanOperator
    equation : Affine
    change : float
        Of the last step of the iteration, which is told as the difference meanwhile.
    """

    def __init__(self, operator: BellmanOperator, equation: Affine, change: float) -> None:
        self._operator, self._equation, self._change = operator, equation, change

    def preconditioner(self, shape: Array, course: Try) -> Preconditioner | None:
        """Return the matrix's own for solutions of a shape; None where there is none that is worth it."""
        found = self._equation.system.preconditioner(shape)
        room = IDR_VECTORS + OPERANDS
        if found is None or not self._operator.space.has_room(found.more_vectors + room, self._operator.size):
            return None
        self._operator.products += found.probes
        course.leave_out(found.probes)
        return found if found.is_worth_it else None

    def at_first(self, held: Held, y: Array, course: Try, most: float, clock: Clock) -> float | None:
        """Do as `found` does for x: by products at first, and preconditioned if some of these lead nowhere.

        Of some matrices Krylov methods need far fewer products than sweeps (few eigenvalues, which sweeps
        spread); where that is so a few products tell.
        """
        x, w, space = held.x, held.spare, self._operator.space
        preconditioner = self.preconditioner(x, course)
        if preconditioner is None:
            return self.found(x, y, w, course, most, clock)
        loose = self.found(x, y, w, course, min(most, _BRIEF), clock)
        if loose is None and most > _BRIEF and not clock.is_ended:
            begin_spread(space, held)
            course.preconditioner = preconditioner
            # Sweeps take longer than products where these are quick, and lead to z the sooner where not.
            loose = self.found(x, y, w, course, min(_LONGER * most, course.left), clock)
        return loose

    def found(self, shape: Array, y: Array, w: Array, course: Try, most: float, clock: Clock) -> float | None:
        """Leave w with about the image `shape` in its place; return by which share of it that is off at most.

        Returns
        -------
        float or None
            None if that cannot be done.
        """
        space, xp = self._operator.space, self._operator.space.xp
        recurrence = recurrence_of(self._equation, course, w, w, y)
        # The start has been copied, and its vector is that of the right-hand side.
        xp.multiply(space.operand(self._equation.diagonal), shape, out=w)

        def share() -> float:
            xp.multiply(plain_residual(recurrence), y, out=recurrence.spare)
            return space.read(space.extremes(recurrence.spare)[1])[0]

        def close(now: float) -> bool:
            return now <= LOOSE

        def tell(now: float) -> float:
            return self._change

        found = follow(
            self._operator,
            recurrence,
            share,
            close,
            tell,
            most,
            clock,
            course.state({"w": recurrence}, SPREAD),
        )
        if found is None:
            return None
        w[...] = recurrence.x
        (least,) = space.read(space.extremes(w)[0])
        return max(found, 0.0) if least >= 0.0 else None


def recurrence_of(equation: Affine, course: Try, b: Array | None, start: Array, weights: Array) -> Recurrence:
    """Return the recurrence for a right-hand side, that of the equation by default."""
    if course.preconditioner is not None:
        return course.preconditioner.idr(b, start, 0.0, None, weights)
    system = equation.system if b is None else equation.system.sharing(b)
    return system.idr(start, 0.0, None, weights)


def begin_spread(space: Workspace, held: Held) -> None:
    """Leave in the place of w where it begins: the sum of ``x - x_j`` over all iterates before.

    Its image is x but for a change.
    """
    w = held.spare
    assert held.total is not None
    space.xp.multiply(held.total, -1.0, out=w)
    space.add_scaled(float(held.made), held.x, w)
    space.xp.maximum(w, 0.0, out=w)
