"""What a process receives before a product: elements of x that others own, behind its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid.core.operands import aligned_empty
from mtbdd.divided import DividedMTBDD

Vector = NDArray[np.float64]


class Halo:
    """Room for own elements and for those that are received, and who sends what.

    Parameters
    ----------
    divided : DividedMTBDD
        A matrix over these columns; all matrices that share a halo have the same.

    Attributes
    ----------
    whole : ndarray, shape (own columns and halo,), float64
        As `receive` left it.
    size : int
        Elements that are received.
    """

    def __init__(self, divided: DividedMTBDD) -> None:
        self._communicator, self._outgoing = divided.communicator, divided.outgoing
        self._own, self.size = divided.own_columns, int(sum(divided.incoming))
        self.whole: Vector = aligned_empty(divided.n_columns, 1).reshape(-1)
        ends = self._own + np.cumsum((0, *divided.incoming))
        self._places = [self.whole[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]

    def receive(self, x: Vector) -> Vector:
        """Bring the own elements x and those of others together; return them all.

        Notes
        -----
        All processes call it at once.  Time: O(own elements) and that of the messages.
        """
        self.whole[: self._own] = x
        self._communicator.exchange([x[places] for places in self._outgoing], self._places)
        return self.whole
