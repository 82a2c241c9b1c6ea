"""Krylov methods whose numbers are the host's, over the images of another system with the same solution."""

from __future__ import annotations

from typing import Any

from hybrid.matrix.space.host_recurrence import HostBiCGStab
from hybrid.matrix.space.idr import IDR, Images
from hybrid.matrix.space.passes import Passes
from hybrid.matrix.space.preconditioner import Preconditioned

Array = Any


class _Measured(Preconditioned):
    """What both recurrences have in common: the residual of the system itself, and products that measured."""

    x: Any
    spare: Any
    _plain: Images

    @property
    def products(self) -> int:
        """Products made for images, and those that measured."""
        made: int = super().products  # type: ignore[misc]
        return made + self._plain.made

    def plain_residual(self) -> Any:
        """See `Preconditioned.plain_residual`."""
        self._plain.residual(self.x, self.spare)
        return self.spare


class PreconditionedIDR(_Measured, IDR):
    """IDR(s) over the images of another system.

    Parameters
    ----------
    passes, start, limit, weights
        As for `IDR`; the iterate is changed in place.
    images : Images
        Of the system that is solved.
    plain : Images
        Of the one that was asked for, divided by its diagonal.
    """

    def __init__(
        self,
        passes: Passes,
        images: Images,
        plain: Images,
        start: Array,
        limit: float,
        weights: Array | None = None,
    ) -> None:
        super().__init__(passes.shadows(), images, start, limit, weights)
        self._plain = plain


class PreconditionedBiCGStab(_Measured, HostBiCGStab):
    """BiCGStab over the images of another system.

    Parameters
    ----------
    passes, start, limit, orthogonal
        As for `HostBiCGStab`.
    images, plain
        As for `PreconditionedIDR`.
    """

    def __init__(
        self,
        passes: Passes,
        images: Images,
        plain: Images,
        start: Array,
        limit: float,
        orthogonal: float,
    ) -> None:
        super().__init__(passes, images, start, limit, orthogonal)
        self._plain = plain
