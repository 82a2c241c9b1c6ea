"""How many entries the rows of a matrix have at most, told by its diagram."""

from __future__ import annotations

import numpy as np

from mtbdd.offset.offset import OffsetMTBDD


def row_entries(matrix: OffsetMTBDD) -> int:
    """Return a bound on the number of non-zeros in any row.

    Notes
    -----
    Below a node that tests a column bit the counts of both children add up, below a row bit the
    greater one counts.  Time: O(nodes).
    """
    counts = np.ones(len(matrix.terminals), dtype=np.int64)
    for k in reversed(range(matrix.n_levels)):
        level = matrix.levels[k]
        # The number -1 of a zero submatrix picks the zero at the end.
        padded = np.append(counts, 0)
        low, high = padded[level.low], padded[level.high]
        counts = np.maximum(low, high) if k % 2 == 0 else low + high
    return int(counts.max(initial=0))
