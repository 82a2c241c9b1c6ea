"""Matrices with few entries: written out at once, and labelled as a diagram on request.

Most matrices of a small model are the rows and columns of some states in a whole matrix that is known.  To
number such a part among the entries of the whole takes some array operations; to cut the diagram, to read it
and to label it takes a few for every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mtbdd.offset.convert import descend
from mtbdd.offset.entries import Entries
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.tuples import stable_order


def write_entries(matrix: OffsetMTBDD) -> Entries:
    """Return the entries of a diagram of less than 2^31 rows and columns.

    Time: O(entries) for every level.
    """
    if matrix.entries is not None:
        return matrix.entries
    node = np.zeros(matrix.nodes[0], np.int32)
    row, column = node.copy(), node.copy()
    for depth in range(matrix.n_levels):
        node, row, column = descend(np, matrix, depth, node, row, column)
    order = stable_order(np, (row, column))
    return Entries(row[order], column[order], matrix.terminals[node[order]])


class WrittenMTBDD(OffsetMTBDD, eq=False):
    """A matrix whose entries are written out; its nodes are those of the diagram, made at first use.

    Parameters
    ----------
    shape : tuple of int
    n_bits : int
        Row bits, as many as column bits.
    entries : Entries
    entry_units : float
    label : callable
        Returns the diagram.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        n_bits: int,
        entries: Entries,
        entry_units: float,
        label: Callable[[], OffsetMTBDD],
    ) -> None:
        # The attributes are frozen, and `__getattr__` makes those of the nodes.
        self.__dict__.update(
            n_rows=shape[0], n_columns=shape[1], entry_units=entry_units, _entries=entries, _bits=n_bits,
            _label=label,
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name not in ("levels", "terminals", "rows", "columns"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.diagram, name)

    @cached_property
    def diagram(self) -> OffsetMTBDD:
        """See `OffsetMTBDD.diagram`."""
        label: Callable[[], OffsetMTBDD] = self.__dict__["_label"]
        return label()

    @property
    def entries(self) -> Entries:
        """See `OffsetMTBDD.entries`."""
        found: Entries = self.__dict__["_entries"]
        return found

    @property
    def n_levels(self) -> int:
        """See `OffsetMTBDD.n_levels`."""
        bits: int = self.__dict__["_bits"]
        return 2 * bits

    @property
    def n_entries(self) -> int:
        """See `OffsetMTBDD.n_entries`."""
        return int(self.entries.value.size)

    def transpose(self) -> OffsetMTBDD:
        """See `OffsetMTBDD.transpose`."""
        return WrittenMTBDD(
            (self.n_columns, self.n_rows),
            self.n_levels // 2,
            self.entries.transpose(),
            self.entry_units,
            lambda: self.diagram.transpose(),
        )
