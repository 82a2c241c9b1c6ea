"""Matrices as the options of a check have them held, and where the vectors beside them are made."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.explicit.operators import ExplicitOperator, write_out
from hybrid.matrix.operators.divided_matrix import DividedMatrix
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.inject import inject
from mtbdd.base.memory import require_memory
from mtbdd.base.wording import option
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import HOST, VectorPlace
from mtbdd.offset.states import StateIndex

Matrix = HybridMatrix | DividedMatrix | ExplicitOperator

_SMALL = 1 << 18
"""States below which a device that nobody asked for takes no system."""

_SHORT = 1 << 28
"""Bytes of a vector for which a device has room at any time."""

_HOST_VECTORS = 3
"""Diagonal, right-hand side and solution, where they are on the host."""


def injected(matrix: OffsetMTBDD, options: CheckOptions, beside: bool = False) -> Matrix:
    """Return the operator with its representation built, so that no set-up hides in the iterations' time.

    Parameters
    ----------
    matrix : OffsetMTBDD
    options : CheckOptions
    beside : bool
        Whether the vectors of the solution lie where the matrix does, and not on the host in any case.

    Raises
    ------
    MemoryError
        If there is no room for the matrix, or for the vectors that any method keeps on the host; in all
        processes that share it, if one of them has none.
    """
    backend = options.matrix_backend()
    expects_room = not beside or backend.place is HOST
    if isinstance(matrix, DividedMTBDD):

        def own() -> HybridMatrix | None:
            if expects_room:
                _require_room(matrix)
            if not matrix.n_entries:
                return None
            return inject(matrix, options.level, backend, representation=options.representation).prepare()

        held = matrix.communicator.with_room(own)
        return DividedMatrix(held, matrix, backend if held is None else held.engine)
    if expects_room:
        _require_room(matrix)
    if options.engine == "explicit":
        written = write_out(matrix, backend.name, options.storage)
        written.backend_reason = backend.reason
        return written
    operator = inject(matrix, options.level, backend, representation=options.representation)
    if not expects_room and operator.place is HOST:
        _require_room(matrix)  # the device had none for it
    return operator.prepare()


def _require_room(matrix: OffsetMTBDD) -> None:
    """Refuse a system whose vectors do not fit on the host."""
    require_memory(
        8 * _HOST_VECTORS * matrix.n_rows,
        f"a system of {matrix.n_rows} equations, with {_HOST_VECTORS} vectors at least,",
        f"choose smaller constants, or {option('spill', 'DIR')}, which has them on a disk",
    )


def place_beside(matrix: Matrix) -> VectorPlace:
    """Return where vectors beside a matrix are made."""
    return matrix.place


def expected_place(options: CheckOptions, size: int) -> VectorPlace:
    """Return where vectors of a size will probably be wanted, before the matrix tells."""
    backend = options.matrix_backend()
    return HOST if backend.is_free and size < _SMALL else backend.place


def made_again(
    vector: NDArray[np.float64], place: VectorPlace, make: Callable[[StateIndex], NDArray[np.float64]]
) -> Callable[[StateIndex], NDArray[np.float64]]:
    """Return what gives a vector over a set where it is asked for; it is kept for that, or made anew.

    A device makes a long one anew sooner than it has room for it beside a matrix that is built.
    """
    if place is HOST or vector.nbytes <= _SHORT:
        return lambda there: there.place.array(vector)
    return make


def sums_beside(matrix: Matrix) -> NDArray[np.float64]:
    """Return the sums of the rows where the matrix lies, shape (n_rows,)."""
    if isinstance(matrix, DividedMatrix):
        return matrix.row_sums()
    sums: NDArray[np.float64] = matrix.multiply(matrix.place.xp.ones(matrix.shape[1]))
    return sums
