"""A process's rows of a matrix as an operator: others' elements of x are received during every product."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.base.arriving import ArrivingVector
from hybrid.base.halo import Halo
from hybrid.base.operands import as_vector, check_out
from hybrid.matrix.backends import Backend
from hybrid.matrix.backends.base import ProductMeanwhile
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.reference import relax_in_place
from mtbdd.base.communicator import Communicator
from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.places import HOST, VectorPlace

if TYPE_CHECKING:
    from hybrid.matrix.space.workspace import Workspace

Vector = NDArray[np.float64]


def operator_of(
    matrix: OffsetMTBDD, held: HybridMatrix | None, engine: Backend, halo: Halo | None = None
) -> HybridMatrix | DividedMatrix:
    """Return a symbolic matrix as an operator: what it is held in, or together with other processes.

    Parameters
    ----------
    matrix : OffsetMTBDD
    held : HybridMatrix or None
        None where a divided matrix has no own entries.
    engine : Backend
    halo : Halo, optional
        See `DividedMatrix`.
    """
    if isinstance(matrix, DividedMTBDD):
        return DividedMatrix(held, matrix, engine, halo)
    assert held is not None
    return held


class DividedMatrix:
    """The own rows of a symbolic matrix; vectors have the own elements.

    All processes call `multiply`, `jacobi_step` and what a workspace measures in the same order.

    Parameters
    ----------
    matrix : HybridMatrix or None
        Of the own rows, over own columns and halo; None where no own row has an entry.
    divided : DividedMTBDD
        What it was made of.
    engine : Backend
    halo : Halo, optional
        Shared with other matrices over the same columns.

    Notes
    -----
    A product sends what others need, and multiplies rows that need nothing of others before it waits for what
    they send.  Every row has the same bits as if it had waited first.
    """

    def __init__(
        self,
        matrix: HybridMatrix | None,
        divided: DividedMTBDD,
        engine: Backend,
        halo: Halo | None = None,
    ) -> None:
        self.matrix, self._engine = matrix, engine
        self.halo = engine.halo(divided) if halo is None else halo
        self.communicator: Communicator = divided.communicator
        self.shape = divided.n_rows, divided.own_columns
        self.symbolic: OffsetMTBDD = divided
        self.level = None if matrix is None else matrix.level
        self.storage = None if matrix is None else matrix.storage
        self.backend = engine.name
        carried = f", elements are carried {self.halo.way}" if self.halo.way else ""
        self.backend_reason = f"{divided.communicator.size} parts share the states{carried}"
        self.nbytes = 0 if matrix is None else matrix.nbytes
        product = None if matrix is None else matrix.product
        self._meanwhile = product if isinstance(product, ProductMeanwhile) else None
        if self._meanwhile is not None:
            self.halo.cover(self._meanwhile.stretches)

    @property
    def nnz(self) -> int:
        """Number of non-zeros in the own rows."""
        return 0 if self.matrix is None else self.matrix.nnz

    @property
    def place(self) -> VectorPlace:
        """Where its vectors lie."""
        return self._engine.place

    def multiply(self, x: Vector, out: Vector | None = None) -> Vector:
        """Return the own elements of ``M x``, written to `out` if given."""
        if self.place is HOST:
            vector = as_vector(x, self.shape[1], "x")
            result = np.empty(self.shape[0]) if out is None else check_out(out, self.shape[0], vector)
        else:
            vector, result = x, self.place.xp.empty(self.shape[0]) if out is None else out
        with self.halo.exchange(vector) as arriving:
            return self.multiply_arriving(arriving, result)

    def row_sums(self) -> Vector:
        """Return the sums of the own rows; nothing is received."""
        return self.multiply_arriving(self.halo.ones(), self.place.xp.empty(self.shape[0]))

    def jacobi_step(
        self, x: Vector, out: Vector, b: Vector | None, diagonal: Vector, omega: float
    ) -> tuple[float, float]:
        """Write a relaxation step to `out`; return the greatest differences of the own elements.

        The workspace's steps have those of all processes.  Vectors are contiguous, and do not overlap.
        """
        with self.halo.exchange(x) as arriving:
            if self.matrix is None:
                out[...] = 0.0
                return relax_in_place(x, b, diagonal, float(omega), out)
            if self._meanwhile is not None:
                return self._meanwhile.relax_meanwhile(arriving, b, diagonal, float(omega), out)
            return self.matrix.product.relax(arriving.received(), b, diagonal, float(omega), out)

    def workspace(self) -> Workspace:
        """Return memory and operations for a solution of all processes."""
        product = None if self.matrix is None else self.matrix.product
        return self._engine.workspace_together(product, self, self.halo, self.communicator)

    def multiply_arriving(self, x: ArrivingVector, out: Vector) -> Vector:
        """Write the own elements of ``M x`` to `out`, those first for which nothing is awaited."""
        if self.matrix is None:
            out[...] = 0.0
        elif self._meanwhile is not None:
            self._meanwhile.multiply_meanwhile(x, out)
        else:
            self.matrix.product.multiply(x.received(), out)
        return out
