"""A formula's values or truth in every state, what is known of them for certain, and the work it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import NotConvergedError, UnknownError
from hybrid.solvers import Solution, Status

__all__ = ["StateTruth", "StateValues", "Work"]

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class Work:
    """What the solving of one property cost, summed over its linear systems.

    Attributes
    ----------
    method, backend : str or None
        Of the last and of the largest system; None while none had to be solved.
    level : int or None
        Injection level of the largest system; None where its matrix was written out.
    storage : str or None
        In which format it was written out; None where it was not.
    iterations : int
    seconds : float
        Wall time of the iterations.
    base_bytes, representation_bytes : int
        Iteration vectors, diagonal and right-hand side; matrix (MemB and MemR of the largest system).
    residual : float
        Greatest residual of any system.
    component_residual : float or None
        Of estimates, the greatest change, relative to itself, that one more step would make to an element of
        any system; None where no system was solved by a method without bounds.
    synchronisations : int
        How often the host waited for a device in iterations; 0 on the CPU.
    """

    method: str | None = None
    backend: str | None = None
    level: int | None = None
    storage: str | None = None
    iterations: int = 0
    seconds: float = 0.0
    base_bytes: int = 0
    representation_bytes: int = 0
    residual: float = 0.0
    component_residual: float | None = None
    synchronisations: int = 0
    progress: Callable[[int, float], None] | None = field(default=None, repr=False)
    _reasons: dict[str, str] = field(default_factory=dict, repr=False)
    _only_products: bool = field(default=False, repr=False)

    @property
    def backend_reason(self) -> str | None:
        """Why the systems were solved where they were, in words; None while none had to be.

        If other parts of the work were done elsewhere, it says so, and why.
        """
        if self.backend is None:
            return None
        others = [
            f"other parts on {name}: {why}" for name, why in self._reasons.items() if name != self.backend
        ]
        return "; ".join([self._reasons[self.backend], *others])

    def note(
        self,
        method: str,
        backend: str,
        level: int | None,
        iterations: int,
        seconds: float,
        base_bytes: int,
        representation_bytes: int,
        backend_reason: str,
        storage: str | None = None,
        is_product: bool = False,
    ) -> None:
        """Account for one run of iterations, or for single products, which count where nothing else does."""
        if is_product and self.method is not None and not self._only_products:
            self._reasons.setdefault(backend, backend_reason)
            return
        if self._only_products and not is_product:
            self.iterations, self.seconds, self.base_bytes, self.representation_bytes = 0, 0.0, 0, 0
        self._only_products = is_product
        self.method = method
        self.iterations += iterations
        self.seconds += seconds
        largest = base_bytes + representation_bytes >= self.base_bytes + self.representation_bytes
        if largest:
            self.backend, self.level, self.storage = backend, level, storage
            self.base_bytes, self.representation_bytes = base_bytes, representation_bytes
        if largest or backend not in self._reasons:
            self._reasons[backend] = backend_reason

    def estimate(self, relative: float) -> None:
        """Keep the change that one more step would make to some element, relative to it."""
        self.component_residual = max(self.component_residual or 0.0, relative)

    def accept(self, what: str, solution: Solution) -> None:
        """Keep a solution's residual and count of looks at a device; refuse one that did not converge.

        Raises
        ------
        NotConvergedError
        """
        if solution.status is not Status.CONVERGED:
            raise NotConvergedError(what, solution.status, solution.iterations, solution.difference)
        self.residual = max(self.residual, solution.residual)
        self.synchronisations += solution.synchronisations


@dataclass(frozen=True)
class StateValues:
    """One number for every state of a set, in index order.

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
    lower, upper : ndarray of float64, shape (n,)
        The exact value lies between them.  NaN where the method gives no bounds; the same array as
        `values` if all values are exact.
    open_lower, open_upper : ndarray of bool, shape (n,), or None
        Where the exact value is known to differ from `lower` or `upper`: the graph tells that a probability
        is positive, or less than 1, where no double between would be a bound.  None is nowhere.
    """

    values: Vector
    lower: Vector
    upper: Vector
    open_lower: Mask | None = None
    open_upper: Mask | None = None

    @classmethod
    def exact(cls, values: Vector) -> StateValues:
        """Return values that are their own bounds."""
        return cls(values, values, values)

    @classmethod
    def constant(cls, value: float, lower: float, upper: float, size: int) -> StateValues:
        """Return the same value for every state, without an array for it."""
        parts = [np.broadcast_to(np.float64(v), (size,)) for v in (value, lower, upper)]
        return cls(parts[0], parts[1], parts[2])

    @property
    def is_exact(self) -> bool:
        """Whether all values are known to be exact."""
        return self.lower is self.values and self.upper is self.values

    def at(self, indices: NDArray[np.int64] | Mask) -> StateValues:
        """Return the values of some states."""
        if self.is_exact:
            return StateValues.exact(self.values[indices])
        below, above = (None if m is None else m[indices] for m in (self.open_lower, self.open_upper))
        return StateValues(self.values[indices], self.lower[indices], self.upper[indices], below, above)

    def within(self, least: float, greatest: float) -> StateValues:
        """Return the values cut to the interval that they are known to lie strictly inside.

        Notes
        -----
        Bounds at its ends become open.  Time: O(n).
        """
        values, lower, upper = (np.clip(p, least, greatest) for p in (self.values, self.lower, self.upper))
        return StateValues(values, lower, upper, _some(lower == least), _some(upper == greatest))

    def spread(self, where: Mask, known: Vector) -> StateValues:
        """Return values for all states: these in the states `where`, exact `known` ones in the others."""
        parts = []
        for part in (self.values,) if self.is_exact else (self.values, self.lower, self.upper):
            full = known.copy()
            full[where] = part
            parts.append(full)
        if self.is_exact:
            return StateValues.exact(parts[0])
        values, lower, upper = parts
        below, above = (_spread(mask, where) for mask in (self.open_lower, self.open_upper))
        return StateValues(values, lower, upper, below, above)

    def complement(self) -> StateValues:
        """Return one minus the values."""
        if self.is_exact:
            return StateValues.exact(1.0 - self.values)
        # 1 - x is rounded, too; one unit in the last place of 1 covers it where it is not exact.
        lower, upper = 1.0 - self.upper, 1.0 - self.lower
        lower = np.where((self.upper == 0) | (self.upper == 1), lower, np.maximum(lower - 2.0**-53, 0.0))
        upper = np.where((self.lower == 0) | (self.lower == 1), upper, np.minimum(upper + 2.0**-53, 1.0))
        # A bound that was rounded outward is not reached either.
        return StateValues(1.0 - self.values, lower, upper, self.open_upper, self.open_lower)


def _some(mask: Mask) -> Mask | None:
    """Return a mask, or None if it is empty."""
    return mask if bool(mask.any()) else None


def _spread(mask: Mask | None, where: Mask) -> Mask | None:
    """Return a mask over some states as one over all."""
    if mask is None:
        return None
    full = np.zeros(where.size, dtype=np.bool_)
    full[where] = mask
    return full


@dataclass(frozen=True)
class StateTruth:
    """Whether a formula holds in every state of a set, in index order.

    Attributes
    ----------
    values : ndarray of bool, shape (n,)
    unknown : ndarray of bool, shape (n,), or None
        Where the bounds of some value do not decide; None is nowhere.
    unproven : ndarray of bool, shape (n,), or None
        Where the truth rests on values without bounds; None is nowhere.
    reason : str
        Which comparison is unknown, and why.
    """

    values: Mask
    unknown: Mask | None = None
    unproven: Mask | None = None
    reason: str = ""

    def at(self, indices: NDArray[np.int64]) -> StateTruth:
        """Return the truth in some states."""
        unknown, unproven = (None if m is None else m[indices] for m in (self.unknown, self.unproven))
        return StateTruth(self.values[indices], unknown, unproven, self.reason)

    def decided(self) -> Mask:
        """Return the truth where all states are needed.

        Raises
        ------
        UnknownError
            The truth of some state is unknown.
        """
        if self.unknown is not None and bool(self.unknown.any()):
            raise UnknownError(self.reason)
        return self.values

    @property
    def possible(self) -> Mask:
        """Where the formula may hold."""
        return self.values if self.unknown is None else self.values | self.unknown

    @property
    def certain(self) -> Mask:
        """Where the formula holds for certain."""
        return self.values if self.unknown is None else self.values & ~self.unknown

    def negated(self) -> StateTruth:
        """Return the truth of the negation."""
        return StateTruth(~self.values, self.unknown, self.unproven, self.reason)
