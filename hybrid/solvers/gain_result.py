"""What comes out where an average is looked for."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.matrix.space.base import Status


@dataclass(frozen=True)
class GainResult:
    """An average between bounds.

    Attributes
    ----------
    value, lower, upper : float
    status : Status
    iterations : int
        Products.
    seconds : float
        Wall time of the iterations.
    difference : float
        Distance of the bounds, relative to the value unless the criterion is absolute.
    synchronisations : int
        How often the host waited for a device while iterating; 0 where there is none.
    products : int
        With the matrix, those of the bounds included.
    more_vectors : int
        Held at once besides those that the method counts, where another one took over.
    nbytes : int or None
        Of all vectors held at once, where they are fewer than the method counts.
    """

    value: float
    lower: float
    upper: float
    status: Status
    iterations: int
    seconds: float
    difference: float
    synchronisations: int = 0
    products: int = 0
    more_vectors: int = 0
    nbytes: int | None = None
