"""Ways in which a recurrence fails, each in the place of `IDR.advance`."""

from __future__ import annotations

import numpy as np

from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.vector_space import RecurrenceStatus

__all__ = ["FAILURES", "breaks", "is_lost", "stagnates"]


def breaks(self: IDR, most: int) -> RecurrenceStatus:
    """Break down at once."""
    self.x *= 1e200
    return RecurrenceStatus(1, np.inf, ended=True, broken=True)


def stagnates(self: IDR, most: int) -> RecurrenceStatus:
    """Make products, and nothing of them."""
    self._images.apply(self.x, self._t)
    return RecurrenceStatus(1, 1.0, ended=False, broken=False)


def is_lost(self: IDR, most: int) -> RecurrenceStatus:
    """Come to something that is no number."""
    self.x[0] = self.r[0] = np.nan
    return RecurrenceStatus(1, np.nan, ended=False, broken=False)


FAILURES = (breaks, stagnates, is_lost)
