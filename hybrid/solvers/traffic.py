"""Cost of a Krylov method's product, in steps of an iteration, by the memory traffic of both.

A product reads an element of a vector for every entry of a row. The rest of a method is passes over vectors,
each of which reads or writes an element for every row. Both are bound by memory, so that elements moved in a
row are a measure of time, on the host and on a device. No clock is read: runs repeat.
"""

from __future__ import annotations

from hybrid.matrix.space.base import LinearOperator
from mtbdd.base.communicator import Communicator

SUMMED_STEPS = 8.0
"""Elements that a step from below moves in a row: relaxation 5, the sum of the iterates 3."""

AVERAGE_STEPS = 6.0
"""The same of a step of an average: relaxation 5, and a tenth of the measurement of its bounds."""

IDR_PRODUCT = 24.0
"""Of IDR(4): in a cycle of five products 20 for images, 10 to aim, 53 to settle, 12 for sums and the step; a
quarter more, because an attempt may fail."""

BICGSTAB_PRODUCT = 16.0
"""Of IDR(1), BiCGStab: in a cycle of two 12 for images, 4 to aim, 6 to settle, 11 for sums and the step."""

_USUAL = 8.0  # entries of a row where the matrix does not count them


def traffic_ratio(matrix: LinearOperator, communicator: Communicator, product: float, step: float) -> float:
    """Return the time of a Krylov method's product in steps of an iteration.

    Parameters
    ----------
    matrix : LinearOperator
        Its entries count if it has `nnz`, those of the own rows.
    communicator : Communicator
        All processes call this together, with the same result.
    product, step : float
        Elements moved in a row besides those of the product with the matrix.
    """
    own = getattr(matrix, "nnz", None)
    rows, entries, unknown = communicator.total([matrix.shape[0], own or 0, own is None])
    mean = _USUAL if unknown or not rows else entries / rows
    return float((mean + product) / (mean + step))
