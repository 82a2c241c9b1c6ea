"""One level of a diagram in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Level:
    """The nodes of one of the 2n levels; even levels test row bits, odd levels column bits.

    Attributes
    ----------
    low, high : ndarray, shape (nodes,), int32
        Else and then child: node number in the next level, -1 for the zero submatrix.
    offset : ndarray, shape (nodes,), int64
        Rows (even level) or columns (odd level) below the else edge: what taking the then edge adds
        to the row or column index.
    """

    low: Int32Array
    high: Int32Array
    offset: Int64Array

    def __len__(self) -> int:
        return len(self.low)
