"""A formula's values or truth in every state, and what is known of them for certain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arrays import elements, to_host
from hybrid.base.errors import UnknownError
from mtbdd.base.records import Record

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


class StateValues(Record):
    """One number for every state of a set, in index order: float64, shape (n,).

    Values lie on the host, or where a system was solved. The exact value lies between `lower` and `upper`:
    NaN where the method gives no bounds, the same array as `values` if all values are exact. `open_lower` and
    `open_upper`, bool, mark where the exact value is known to differ from a bound: the graph shows that a
    probability is positive, or less than 1, where no double between would be a bound. None is nowhere.
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

    def at(self, indices: NDArray[np.int64] | Mask | slice) -> StateValues:
        """Return the values of some states."""
        if self.is_exact:
            return StateValues.exact(elements(self.values, indices))
        below, above = (None if m is None else m[indices] for m in (self.open_lower, self.open_upper))
        values, lower, upper = (elements(part, indices) for part in (self.values, self.lower, self.upper))
        return StateValues(values, lower, upper, below, above)

    def on_host(self) -> StateValues:
        """Return the same values as NumPy's arrays."""
        if self.is_exact:
            return StateValues.exact(to_host(self.values))
        values, lower, upper = (to_host(part) for part in (self.values, self.lower, self.upper))
        return StateValues(values, lower, upper, self.open_lower, self.open_upper)

    def columns(self) -> tuple[Vector, Vector, Vector]:
        """Return values, lower and upper bounds; the bounds are NaN in states that have but one of them."""
        missing = np.isnan(self.lower) | np.isnan(self.upper)
        if self.is_exact or not missing.any():
            return self.values, self.lower, self.upper
        lower, upper = (np.where(missing, np.nan, part) for part in (self.lower, self.upper))
        return self.values, lower, upper

    def without_bounds(self) -> StateValues:
        """Return the values as estimates."""
        missing = np.broadcast_to(np.float64(np.nan), self.values.shape)
        return StateValues(self.values, missing, missing)

    def within(self, least: float, greatest: float) -> StateValues:
        """Return the values cut to the interval that they are known to lie strictly inside.

        Bounds at its ends become open. Time: O(n).
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
        values = 1.0 - self.values
        if self.is_exact and bool((1.0 - values == self.values).all()):
            return StateValues.exact(values)
        # 1 - x is rounded unless it leads back to x (Sterbenz); one unit in the last place of 1 covers that.
        lower, upper = 1.0 - self.upper, 1.0 - self.lower
        lower = np.where(1.0 - lower == self.upper, lower, np.maximum(lower - 2.0**-53, 0.0))
        upper = np.where(1.0 - upper == self.lower, upper, np.minimum(upper + 2.0**-53, 1.0))
        # A bound that was rounded outward is not reached either.
        return StateValues(values, lower, upper, self.open_upper, self.open_lower)


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


class StateTruth(Record):
    """Truth of a formula in every state of a set, in index order, bool, shape (n,).

    It is `unknown` where the bounds of some value do not decide, and `unproven` where it rests on values
    without bounds; None is nowhere. `reason` says which comparison is unknown, and why.
    """

    values: Mask
    unknown: Mask | None = None
    unproven: Mask | None = None
    reason: str = ""

    def at(self, indices: NDArray[np.int64] | Mask | slice) -> StateTruth:
        """Return the truth in some states."""
        unknown, unproven = (None if m is None else m[indices] for m in (self.unknown, self.unproven))
        return StateTruth(self.values[indices], unknown, unproven, self.reason)

    def columns(self) -> tuple[Mask, Mask, Mask]:
        """Return the truth, where it holds for certain, and where it may hold.

        Where it rests on values without bounds, nothing is certain and all is possible.
        """
        certain, possible = self.certain, self.possible
        if self.unproven is not None:
            certain, possible = certain & ~self.unproven, possible | self.unproven
        return self.values, certain, possible

    def decided(self) -> Mask:
        """Return the truth where all states are needed; UnknownError if that of some state is unknown."""
        if self.unknown is not None and bool(self.unknown.any()):
            raise UnknownError(self.reason)
        return self.values

    def without_bounds(self) -> StateTruth:
        """Return the truth as one that rests on estimates."""
        return StateTruth(self.values, self.unknown, np.ones(self.values.shape, dtype=np.bool_), self.reason)

    @property
    def possible(self) -> Mask:
        """States where the formula may hold."""
        return self.values if self.unknown is None else self.values | self.unknown

    @property
    def certain(self) -> Mask:
        """States where the formula certainly holds."""
        return self.values if self.unknown is None else self.values & ~self.unknown

    def negated(self) -> StateTruth:
        """Return the truth of the negation."""
        return StateTruth(~self.values, self.unknown, self.unproven, self.reason)
