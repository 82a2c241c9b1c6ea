"""A model's transitions as a diagram that can be written out for SciPy, states numbered as users see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import pointers
from hybrid.base.lists import concatenated_ranges
from hybrid.matrix.explicit.extract import explicit_matrix
from mtbdd.base.memory import require_memory
from mtbdd.build.numbering import inverse
from mtbdd.offset.offset import OffsetMTBDD


class ModelTransitions(OffsetMTBDD):
    """The offset-labelled matrix of a model, or of one layer of it, over all states.

    It is used like any `mtbdd.OffsetMTBDD`; its own rows and columns are in the diagram's order, those of
    `to_scipy` are the states' numbers.
    """

    @classmethod
    def of(cls, matrix: OffsetMTBDD, numbering: Callable[[], NDArray[np.int64] | None]) -> ModelTransitions:
        """Return a matrix, with all that it knows, over states that `numbering` puts in users' order."""
        made = cls(**{field.name: getattr(matrix, field.name) for field in fields(matrix)})
        made.__dict__.update(matrix.__dict__)
        made.__dict__["_numbering"] = numbering
        return made

    @cached_property
    def places(self) -> NDArray[np.int64] | None:
        """The index in the diagram of every state by number, shape (n,); None: the same."""
        found: NDArray[np.int64] | None = self.__dict__["_numbering"]()
        return found

    def transpose(self) -> ModelTransitions:
        """Return the transposed matrix, states numbered alike."""
        return ModelTransitions.of(super().transpose(), self.__dict__["_numbering"])

    def to_scipy(self, memory_budget: int | None = None) -> Any:
        """Write the matrix out as a sparse matrix of SciPy.

        Parameters
        ----------
        memory_budget : int, optional
            Bytes that it may take; default what is free.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n, n), float64
            Probabilities, in a CTMC rates, self-loops included; row and column k are state k of
            ``model.state_table()``.  Columns ascend within the rows.

        Raises
        ------
        MemoryError
            There is no room, told before anything is allocated, with required and available bytes.

        Notes
        -----
        Time: O(entries + nodes); with a variable order other than the text's O(entries log entries).
        """
        matrix = explicit_matrix(self, memory_budget=memory_budget)
        if self.places is not None:
            matrix = renumbered(matrix, self.places)
        return matrix.to_scipy()


def renumbered(matrix: CsrArrays, places: NDArray[np.int64]) -> CsrArrays:
    """Return a square matrix with rows and columns in another order, shape (n, n).

    Parameters
    ----------
    matrix : CsrArrays
        On the host.
    places : ndarray of int64, shape (n,)
        Row and column k of the result are row and column ``places[k]`` of the matrix.

    Raises
    ------
    MemoryError
        There is no room for the lists that this takes.
    """
    entries = len(matrix.values)
    require_memory(44 * entries, f"{entries} entries in another order", "load the model with order='model'")
    lengths = np.diff(matrix.row_starts).astype(np.int64)[places]
    source = concatenated_ranges(matrix.row_starts[:-1].astype(np.int64)[places], lengths)
    columns: Any = inverse(places)[matrix.columns[source]]
    rows = np.repeat(np.arange(matrix.shape[0]), lengths)
    order = np.lexsort((columns, rows))
    return CsrArrays(
        matrix.shape,
        pointers(np, lengths).astype(matrix.row_starts.dtype),
        columns[order].astype(matrix.columns.dtype),
        matrix.values[source[order]],
    )
