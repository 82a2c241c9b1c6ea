"""Recurrences of systems that have the solution of another one and are solved sooner.

Their residual is not that of the system that was asked for: bounds need that one, from a fresh product.
"""

from __future__ import annotations

from typing import Any, Protocol

from hybrid.matrix.space.recurrence import Recurrence

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
    ) -> Recurrence:
        """Return the recurrence of IDR(s) from a copy of `start`, as `System.idr` of a workspace does.

        Parameters
        ----------
        b : array, shape (n,), or None
            In the workspace, not copied; None for that of the system.
        """

    def bicgstab(
        self, b: Array | None, start: Array, limit: float, orthogonal: float, anchor: int | None = None
    ) -> Recurrence:
        """Return the recurrence of BiCGStab from a copy of `start`, as `System.bicgstab` does; b as above."""
