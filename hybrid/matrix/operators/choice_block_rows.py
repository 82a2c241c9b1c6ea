"""The choices of compressed layers in block rows, by the components of the graph of their states' prefixes.

States that share a prefix have neighbouring numbers, in all layers alike: the graph of prefixes has an edge
where a layer has a submatrix.  Its components hold the components of the states, and block rows of such
components are solved one after another.  If it does not come apart, one block row has all choices, provided
that they take no more memory than the vectors of a solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import ChoiceRows
from hybrid.base.arrays import concatenated_ranges
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.explicit.extract import LayerRows, merge_layers
from hybrid.matrix.injection.row_types import RowTypes
from hybrid.matrix.levels.curve import LevelCurve
from hybrid.matrix.operators.hybrid_choices import HybridChoices, LayerOperands
from hybrid.matrix.operators.hybrid_matrix import HybridMatrix
from hybrid.matrix.operators.matrix_block_rows import WrittenGroups, block_rows_of_units, ordered_units
from hybrid.matrix.space.choice_operator import Quotient
from mtbdd.offset.states import StateIndex

Int64Array = NDArray[np.int64]
Vector = NDArray[np.float64]

_MOST_PREFIXES = 1 << 16
"""Prefixes of a level beyond which it is not examined."""

_LEAST_GROUP = 8
"""States of a prefix, on average, below which its level is not examined."""

_DEEPER = 4
"""Bits to the next level that is examined."""

_MOST_SHARE = 0.25
"""Of all states in what is solved together, up to which no deeper level is examined."""

_BLOCK_ROW_STATES = 1 << 16
"""States of a block row, about."""

_MOST_BLOCK_ROWS = 16
"""Block rows at most, about: each takes a share of epsilon."""

_MOST_ENTRIES = 3
"""Transitions of a block row for every state of the model.  Written out, with what it takes to find their
components, they are then no more than the vectors of a solution."""

_FEW_ENTRIES = 1 << 18
"""Transitions of a block row that are never too many."""

_ENTRY_BYTES = 56
"""Of a transition: written, and while components are found."""


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer cut by prefixes; `owner` is the prefix of every group."""

    operands: LayerOperands
    written: WrittenGroups | None
    owner: Int64Array

    def gains(self, rows: Int64Array) -> Vector:
        return _decoded(self.operands, self.operands.gains, rows)

    def factors(self, rows: Int64Array) -> Vector:
        return _decoded(self.operands, self.operands.factors, rows)


class ChoiceBlockRows:
    """See `hybrid.solvers.block_rows.BlockRows`.

    Parameters
    ----------
    layers : sequence of _Layer
    first, size : ndarray, shape (prefixes,), int64
        First state and states of every prefix.
    block_rows : list of ndarray, int64
        Prefixes of every block row, ascending, in the order of solution.
    most : int
        Transitions of the largest block row.
    """

    def __init__(
        self,
        layers: Sequence[_Layer],
        first: Int64Array,
        size: Int64Array,
        block_rows: list[Int64Array],
        most: int,
    ) -> None:
        self._layers, self._first, self._size, self._block_rows = layers, first, size, block_rows
        self._n = int(size.sum())
        self.entries = sum(int(own.written.entries.sum()) for own in layers if own.written is not None)
        self.nbytes = _ENTRY_BYTES * most

    @classmethod
    def where_they_pay(cls, system: HybridChoices, states: StateIndex) -> ChoiceBlockRows | None:
        """Return the block rows of choices; None where too many transitions belong together.

        Parameters
        ----------
        system : HybridChoices
            On the host.
        states : StateIndex
            The unknown ones.

        Notes
        -----
        It begins with the prefixes of the injection level; longer ones are tried where components are large.
        Time: O(slots of all groups) a length.
        """
        layers = _row_types(system)
        if layers is None or system.level is None:
            return None
        bits, quotient = system.level // 2, system.groups
        found: ChoiceBlockRows | None = None
        n = states.size
        for length in range(bits, states.n_bits + 1, _DEEPER):
            own_types = [types for _, types in layers if types is not None]
            if not all(types.reaches(2 * length) for types in own_types):
                break
            # Asked before anything of their number is made.
            count = max((types[2 * length].n_groups for types in own_types), default=0)
            if count > min(_MOST_PREFIXES, n // _LEAST_GROUP):
                break
            first, size = states.prefixes(length)
            cut = [_cut(operands, types, length, first) for operands, types in layers]
            units = ordered_units(_graph(cut, first, quotient))
            entries = np.zeros(len(first), np.int64)
            for own in cut:
                if own.written is not None:
                    np.add.at(entries, own.owner, own.written.entries)
            block_rows = block_rows_of_units(units, size, max(_BLOCK_ROW_STATES, n // _MOST_BLOCK_ROWS))
            most = max((int(entries[block_row].sum()) for block_row in block_rows), default=0)
            if most <= max(_MOST_ENTRIES * n, _FEW_ENTRIES):
                found = cls(cut, first, size, block_rows, most)
            if int(units.sizes(size).max()) <= _MOST_SHARE * n:
                break
        return found

    def __len__(self) -> int:
        return len(self._block_rows)

    def rows(self, number: int) -> Int64Array:
        """See `BlockRows.rows`."""
        chosen = self._block_rows[number]
        return concatenated_ranges(self._first[chosen], self._size[chosen])

    def written(self, number: int) -> ChoiceRows:
        """See `BlockRows.written`."""
        chosen, states = self._block_rows[number], self.rows(number)
        is_chosen = np.zeros(len(self._first), np.bool_)
        is_chosen[chosen] = True
        begin = np.zeros(len(self._first), np.int64)
        begin[chosen] = np.cumsum(self._size[chosen]) - self._size[chosen]
        layers = [self._written(own, states, is_chosen, begin) for own in self._layers]
        return merge_layers(sorted(layers, key=lambda own: own.number), len(states), n_columns=self._n)

    def _written(
        self, own: _Layer, states: Int64Array, is_chosen: NDArray[np.bool_], begin: Int64Array
    ) -> LayerRows:
        """Return the choices that a layer has in a block row."""
        # Here: most answers need no SciPy.
        from scipy.sparse import csr_array

        operands = own.operands
        if operands.place is None:
            rows = states
        else:
            prefix = np.searchsorted(self._first, operands.place, "right") - 1
            rows = np.flatnonzero(is_chosen[prefix])
        gains = own.gains(rows)
        has = np.isfinite(gains)
        place = (
            np.arange(len(rows)) if operands.place is None else np.searchsorted(states, operands.place[rows])
        )
        if own.written is None:
            none, lengths = np.zeros(0), np.zeros(int(has.sum()), np.int64)
            return LayerRows(operands.layer, place[has], lengths, none.astype(np.int64), none, gains[has])
        groups = np.flatnonzero(is_chosen[own.owner])
        if operands.place is None:
            first = begin[own.owner[groups]]
        else:
            first = np.searchsorted(rows, own.written.groups.row[groups])
        row, column, value = own.written.write(groups, first)
        matrix = csr_array((value, (row, column)), shape=(len(rows), self._n))
        lengths = np.diff(matrix.indptr)
        values = matrix.data
        if len(operands.factors):
            values = values * np.repeat(own.factors(rows), lengths)
        return LayerRows(operands.layer, place[has], lengths[has], matrix.indices, values, gains[has])


def _row_types(system: HybridChoices) -> list[tuple[LayerOperands, RowTypes | None]] | None:
    """Return every layer with its row types; None where a layer has others' rows, or is held in tasks."""
    found: list[tuple[LayerOperands, RowTypes | None]] = []
    for held in system.layers:
        if held.matrix is None:
            found.append((held, None))
        elif isinstance(held.matrix, HybridMatrix) and isinstance(held.matrix.curve, LevelCurve):
            found.append((held, held.matrix.curve.typed.plain))
        else:
            return None
    return found


def _decoded(operands: LayerOperands, values: Vector, rows: Int64Array) -> Vector:
    return values[rows] if operands.codes is None else values[operands.codes[rows]]


def _cut(operands: LayerOperands, types: RowTypes | None, bits: int, first: Int64Array) -> _Layer:
    """Cut a layer by prefixes."""
    if types is None:
        return _Layer(operands, None, np.zeros(0, np.int64))
    written = WrittenGroups(types, 2 * bits)
    row = written.groups.row if operands.place is None else operands.place[written.groups.row]
    return _Layer(operands, written, np.asarray(np.searchsorted(first, row, "right") - 1))


def _graph(layers: Sequence[_Layer], first: Int64Array, quotient: Quotient | None) -> CsrMatrix:
    """Return which prefix leads to which other ones."""
    from scipy.sparse import csr_array

    source: list[Int64Array] = []
    target: list[Int64Array] = []
    for own in layers:
        if own.written is not None:
            groups = own.written.groups
            source.append(np.repeat(own.owner, np.diff(groups.ptr)))
            target.append(np.asarray(np.searchsorted(first, groups.base, "right") - 1))
    if quotient is not None:
        # There and back between each member and the first of its group.
        members: Int64Array = np.asarray(np.searchsorted(first, quotient.members, "right") - 1)
        leader = np.repeat(members[quotient.starts], quotient.sizes)
        source += [members, leader]
        target += [leader, members]
    if not source:
        return CsrMatrix(csr_array((len(first), len(first))))
    pairs = np.divmod(np.unique(np.concatenate(source) * len(first) + np.concatenate(target)), len(first))
    other = pairs[0] != pairs[1]
    ones = np.ones(int(other.sum()))
    return CsrMatrix(csr_array((ones, (pairs[0][other], pairs[1][other])), shape=(len(first),) * 2))
