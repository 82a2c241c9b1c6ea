"""A process's rows of a matrix whose states are shared: own columns first, then those that it receives.

The halo, columns of other processes that some row uses, is numbered owner by owner: elements from one process
are received as one stretch. The blocks of the owners stand side by side below levels that test no bit of a
state but name the owner. Common nodes of blocks stay shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.communicator import ALONE, Communicator
from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.offset.convert import offset_label
from mtbdd.offset.offset import Level, OffsetMTBDD, zero_matrix
from mtbdd.offset.states import StateIndex, index_states
from mtbdd.offset.tuples import distinct_rows

Int64Array = NDArray[np.int64]


class DistributedMTBDD(OffsetMTBDD, eq=False):
    """See `OffsetMTBDD`; of shape (own rows, own columns and halo).

    `outgoing` (tuple of ndarray of int64, shape (runs, 2) each): for every process, which of the own columns
    it needs: ranges, ascending and apart. `incoming`: how many columns come from every process, in this order
    behind the own ones. `has_entries`: whether some process has an entry.
    """

    own_columns: int = 0
    outgoing: tuple[Int64Array, ...] = ()
    incoming: tuple[int, ...] = ()
    communicator: Communicator = ALONE
    has_entries: bool = True


def places_of(runs: Int64Array) -> Int64Array:
    """Return the numbers in ranges, shape (runs, 2), one after the other."""
    lengths = runs[:, 1] - runs[:, 0]
    return np.arange(lengths.sum()) + np.repeat(runs[:, 1] - np.cumsum(lengths), lengths)


def distribute(
    manager: Manager, matrix: SymbolicMatrix, rows: StateIndex, columns: StateIndex, transposed: bool = False
) -> DistributedMTBDD:
    """Return the own rows of a matrix, or the own rows of the transposed one, which are columns.

    `manager`: with a share of the states. `matrix`: all its entries lie inside of the rows and columns, those
    of other processes included. `rows`, `columns`: own members of both sets.

    Every process finds what all of them need, so that nothing is sent. Time: for every process one image of
    its states, and what `offset_label` takes for every owner.
    """
    return distribute_all(manager, [matrix], [rows], columns, transposed)[0]


def distribute_all(
    manager: Manager,
    matrices: Sequence[SymbolicMatrix],
    rows: Sequence[StateIndex],
    columns: StateIndex,
    transposed: bool = False,
) -> list[DistributedMTBDD]:
    """Return own rows of several matrices, see `distribute`, over the columns that any of them uses."""
    share = manager.share
    assert share is not None
    supports = [matrix.support() for matrix in matrices]
    theirs = rows[0] if transposed else columns
    mine = [columns] if transposed else rows

    def needed(owner: Node) -> Node:
        """Return what the rows of a process use."""
        found = (
            _reached(manager, support, own.states & owner, transposed)
            for support, own in zip(supports, mine, strict=True)
        )
        return manager.disjunction(found)

    reached = needed(share.own)
    halo = [index_states(manager.whole, reached & owner) for owner in share.owners]
    halo[share.communicator.rank] = replace(theirs, states=theirs.states & share.own)
    incoming = [there.size for there in halo]
    incoming[share.communicator.rank] = 0
    outgoing = [np.zeros((0, 2), np.int64) for _ in share.owners]
    for rank, owner in enumerate(share.owners):
        if rank != share.communicator.rank:
            wanted = needed(owner) & theirs.states & share.own
            outgoing[rank] = theirs.runs(index_states(manager.whole, wanted))
    order = [share.communicator.rank]
    order += [rank for rank in range(len(halo)) if rank != share.communicator.rank]
    found = []
    for matrix, support, own in zip(matrices, supports, mine, strict=True):
        inside = replace(own, states=own.states & share.own)
        blocks = [_block(manager, matrix, inside, halo[rank], transposed) for rank in order]
        together = beside(blocks)
        found.append(
            DistributedMTBDD(
                **{field.name: getattr(together, field.name) for field in fields(OffsetMTBDD)},
                own_columns=theirs.size,
                outgoing=tuple(outgoing),
                incoming=tuple(incoming),
                communicator=share.communicator,
                has_entries=bool(support != manager.false),
            )
        )
    return found


def _block(
    manager: Manager, matrix: SymbolicMatrix, mine: StateIndex, theirs: StateIndex, transposed: bool
) -> OffsetMTBDD:
    """Return the part of a matrix between own rows and one owner's columns, or of the transposed one."""
    rows, columns = (theirs, mine) if transposed else (mine, theirs)
    entries = matrix.only(rows.states).only(manager.to_columns(columns.states))
    found = offset_label(entries, rows, columns)
    return found.transpose() if transposed else found


def _reached(manager: Manager, support: Node, states: Node, backward: bool) -> Node:
    """Return the columns with an entry in some row of a set, or the rows with an entry in some column."""
    if backward:
        return manager.and_exists(support, manager.to_columns(states), manager.columns)
    return manager.to_rows(manager.and_exists(support, states, manager.rows))


def beside(matrices: Sequence[OffsetMTBDD]) -> OffsetMTBDD:
    """Put matrices with the same rows side by side, nodes that are equal made one.

    Time: O(t log t) in numpy for t nodes of all of them.
    """
    first = matrices[0]
    if len(matrices) == 1:
        return first
    depth, n_rows = first.n_levels, first.n_rows
    bits = (len(matrices) - 1).bit_length()
    width = sum(matrix.n_columns for matrix in matrices)
    parts = [matrix for matrix in matrices if matrix.nodes[0]]
    if not parts:
        return zero_matrix(depth // 2 + bits, n_rows, width)
    terminals, place = np.unique(np.concatenate([m.terminals for m in parts]), return_inverse=True)
    ends = np.cumsum([len(m.terminals) for m in parts])[:-1]
    places = np.split(place.reshape(-1).astype(np.int64), ends)
    ones = np.ones(len(terminals), np.int64)
    levels: list[Level] = []
    rows, columns = [ones], [ones]
    for k in reversed(range(depth)):
        level = _joined([m.levels[k] for m in parts], places)
        counts = [np.concatenate([getattr(m, name)[k] for m in parts]) for name in ("rows", "columns")]
        kept, number = distinct_rows((level.low, level.high, level.offset, *counts))
        levels.insert(0, Level(level.low[kept], level.high[kept], level.offset[kept]))
        rows.insert(0, counts[0][kept])
        columns.insert(0, counts[1][kept])
        places = np.split(number, np.cumsum([m.nodes[k] for m in parts])[:-1])
    roots = np.full(1 << bits, -1, np.int64)
    widths = np.zeros(1 << bits, np.int64)
    widths[: len(matrices)] = [matrix.n_columns for matrix in matrices]
    roots[[i for i, matrix in enumerate(matrices) if matrix.nodes[0]]] = [int(p[0]) for p in places]
    _join_roots(levels, rows, columns, roots, widths, n_rows)
    # lemma: entry-units
    units = max(matrix.entry_units for matrix in parts)
    return OffsetMTBDD(tuple(levels), terminals, n_rows, width, tuple(rows), tuple(columns), units)


def _join_roots(
    levels: list[Level],
    rows: list[Int64Array],
    columns: list[Int64Array],
    roots: Int64Array,
    widths: Int64Array,
    n_rows: int,
) -> None:
    """Add levels above blocks side by side, a pair for every bit of a block's number, the lowest bit first.

    `roots` are the blocks' nodes on the highest level, -1 for those without any; `widths` their columns.
    """
    while len(roots) > 1:
        low, high, left = roots[0::2], roots[1::2], widths[0::2]
        widths = left + widths[1::2]
        there = np.flatnonzero((low >= 0) | (high >= 0))
        levels.insert(0, Level(low[there].astype(np.int32), high[there].astype(np.int32), left[there]))
        same, none = np.arange(len(there), dtype=np.int32), np.full(len(there), -1, np.int32)
        levels.insert(0, Level(same, none, np.full(len(there), n_rows, np.int64)))
        for _ in range(2):
            rows.insert(0, np.full(len(there), n_rows, np.int64))
            columns.insert(0, widths[there])
        roots = np.full(len(low), -1, np.int64)
        roots[there] = same


def _joined(levels: Sequence[Level], places: Sequence[Int64Array]) -> Level:
    """Return the nodes of several diagrams on one level; `places` numbers their children."""
    low, high = (
        np.concatenate([_placed(child, place) for child, place in zip(children, places, strict=True)])
        for children in ([level.low for level in levels], [level.high for level in levels])
    )
    return Level(low, high, np.concatenate([level.offset for level in levels]))


def _placed(child: NDArray[np.int32], place: Int64Array) -> NDArray[np.int32]:
    """Return children by their new numbers; -1 stays."""
    return np.append(place, -1)[child].astype(np.int32)


# The matrices of several layers as one: side by side, so that a row has the entries of all layers.
#
# Column l * m + c of the stacked matrix is column c of layer l, which has m columns. Every layer keeps
# terminals of its own, so that no submatrix is shared between layers and every one knows its layer.


class StackedLayers(Record, eq=False):
    """Layers side by side.

    Attributes
    ----------
    matrix : OffsetMTBDD
        Shape (n, 2**bits * m); equal terminals of different layers are different nodes.
    size : int
        n, the rows of a layer.
    columns : int
        m, the columns of a layer: n, and behind them those of other processes.
    layers : int
        Number of layers; some may be zero.
    first_level : int
        The levels before it test no bit of a layer but choose among layers.
    terminal_layer : ndarray, shape (terminals,), int64
        The layer of every terminal.
    own_columns : int or None
        n where processes share the states; else None.
    """

    matrix: OffsetMTBDD
    size: int
    columns: int
    layers: int
    first_level: int
    terminal_layer: Int64Array
    own_columns: int | None = None

    def layer_of_nodes(self, k: int) -> Int64Array:
        """Return the layer of every node of a level, which must not be above `first_level`."""
        if k < self.first_level:
            raise ValueError(f"level: expected {self.first_level} or more, got {k}")
        layer = self.terminal_layer
        for level in reversed(self.matrix.levels[k:]):
            layer = layer[np.where(level.low >= 0, level.low, level.high)]
        return layer


def stack_layers(matrices: Mapping[int, OffsetMTBDD], layers: int) -> StackedLayers:
    """Put the matrices of layers side by side.

    `matrices`: by layer, 0 .. layers - 1; square, but for columns of others, of one shape, over the same
    bits. At least one. Raises ValueError: if the matrices do not belong together. Time: O(nodes).
    """
    if not matrices or not all(0 <= layer < layers for layer in matrices):
        raise ValueError(f"matrices: expected layers 0 .. {layers - 1}, got {sorted(matrices)}")
    parts = [(layer, matrix) for layer, matrix in sorted(matrices.items()) if matrix.nodes[0]]
    first = next(iter(matrices.values()))
    (size, columns_of_layer), depth = first.shape, first.n_levels
    owned = first.own_columns if isinstance(first, DistributedMTBDD) else None
    square = size == (columns_of_layer if owned is None else owned)
    if not square or any(m.shape != first.shape or m.n_levels != depth for m in matrices.values()):
        shapes = sorted({(m.shape, m.n_levels) for m in matrices.values()})
        raise ValueError(f"matrices: expected square ones of one shape and depth, got {shapes}")
    bits = max(layers - 1, 0).bit_length()
    width = columns_of_layer << bits
    own = np.array([layer for layer, _ in parts], np.int64)
    if not parts:
        return StackedLayers(
            zero_matrix(depth // 2 + bits, size, width), size, columns_of_layer, layers, 2 * bits, own, owned
        )
    found = [matrix for _, matrix in parts]
    levels = [
        _joined([m.levels[k] for m in found], _apart([m.nodes[k + 1] for m in found])) for k in range(depth)
    ]
    rows = [np.concatenate([m.rows[k] for m in found]) for k in range(depth + 1)]
    columns = [np.concatenate([m.columns[k] for m in found]) for k in range(depth + 1)]
    roots = np.full(1 << bits, -1, np.int64)
    roots[own] = np.arange(len(found))
    _join_roots(levels, rows, columns, roots, np.full(1 << bits, columns_of_layer, np.int64), size)
    terminals = np.concatenate([m.terminals for m in found])
    units = max(m.entry_units for m in found)  # lemma: entry-units
    matrix = OffsetMTBDD(tuple(levels), terminals, size, width, tuple(rows), tuple(columns), units)
    owner = np.repeat(own, [len(m.terminals) for m in found])
    return StackedLayers(matrix, size, columns_of_layer, layers, 2 * bits, owner, owned)


def _apart(sizes: Sequence[int]) -> list[Int64Array]:
    """Return numbers for the members of several lists, one after the other."""
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
