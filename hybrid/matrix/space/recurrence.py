"""The interface of Krylov recurrences, which restart and advance where their vectors lie.

They solve ``A x = b / diagonal`` with ``A = I - M / diagonal`` (:mod:`hybrid.matrix.space.idr`). With an
*anchor*, the number s of an element of x, it is ``A x = x - (M x - x[s]) / diagonal``. Where M is a closed
class and its row sums are the diagonal, I - M / diagonal is singular, but this A is not
(:mod:`hybrid.solvers.average_krylov`).

A recurrence has *arrived* once ``|r|`` is below a limit. It *breaks down* when a number to divide by is zero
or not finite, or the residual has grown beyond all digits. In both cases it has ended: x stays as it is
until the recurrence restarts.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from hybrid.base.shadow_signs import DIRECTIONS


class RecurrenceStatus(NamedTuple):
    """Status of a recurrence.

    Attributes
    ----------
    iterations : int
        All iterations done, over all beginnings; the one in which it ends counts.
    norm : float
        Norm of the residual that the recurrence keeps.
    ended, broken : bool
        Whether it has ended, and whether by breaking down.
    """

    iterations: int
    norm: float
    ended: bool
    broken: bool


class Recurrence(Protocol):
    """The recurrence for one system, with its vectors and numbers where the matrix is.

    Attributes
    ----------
    cost : int
        Products of an iteration.
    patience : int
        Products without any gain after which a residual falls no more.
    is_preconditioned : bool
        Whether r is the residual of another system with the same solution.
    """

    cost: int
    patience: int
    is_preconditioned: bool

    @property
    def products(self) -> int:
        """Products made, those of beginnings included."""

    @property
    def x(self) -> Any:
        """The iterate, shape (n,), float64."""

    @property
    def r(self) -> Any:
        """The residual that the recurrence keeps, shape (n,), float64."""

    @property
    def spare(self) -> Any:
        """A vector that is free between two calls, shape (n,), float64."""

    def plain_residual(self) -> Any:
        """Return the residual of the system over its diagonal: r, recomputed in `spare` if preconditioned."""

    def restart(self) -> float:
        """Begin with the residual of x, from a fresh product, and return its norm. A look."""

    def refresh(self) -> float:
        """Go on with the residual of x, from a fresh product, and return its norm; a look."""

    def advance(self, most: int) -> RecurrenceStatus:
        """Make some iterations, as many as the space makes between two looks but at most `most`; a look.

        To be called of a recurrence that has begun, with `most` at least 1. Less are made if it ends.
        """


# Recurrences of systems that have the solution of another one and are solved sooner.
#
# Their residual is not that of the given system: bounds need that one, from a fresh product.

Array = Any


class Preconditioner(Protocol):
    """Makes recurrences for a system ``diagonal * x = M x + b``, and for others that differ from it by b.

    Attributes
    ----------
    probes : int
        Products made to know what it is worth.
    more_vectors : int
        Vectors of its recurrences besides those that a method has.
    """

    @property
    def probes(self) -> int:
        """See above."""

    @property
    def more_vectors(self) -> int:
        """See above."""

    @property
    def is_worth_it(self) -> bool:
        """Whether its images lead further than products, or sooner as far."""

    def idr(
        self,
        b: Array | None,
        start: Array,
        limit: float,
        anchor: int | None = None,
        weights: Array | None = None,
        directions: int = DIRECTIONS,
    ) -> Recurrence:
        """Return the recurrence of IDR(s) from a copy of `start`, as `System.idr` of a vector space does.

        Parameters
        ----------
        b : array, shape (n,), or None
            In the vector space, not copied; None for that of the system.
        """
