"""The matrices of several layers as one: side by side, so that a row has the entries of all layers.

Column l * m + c of the stacked matrix is column c of layer l, which has m columns. Every layer keeps
terminals of its own, so that no submatrix is shared between layers and every one knows its layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.divided import DividedMTBDD
from mtbdd.offset.offset import ENTRY_UNITS, Level, OffsetMTBDD

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StackedLayers:
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

    Parameters
    ----------
    matrices : mapping of int to OffsetMTBDD
        By layer, 0 .. layers - 1; square, but for columns of others, of one shape, over the same bits. At
        least one.
    layers : int

    Raises
    ------
    ValueError
        If the matrices do not belong together.

    Notes
    -----
    Time: O(nodes).
    """
    if not matrices or not all(0 <= layer < layers for layer in matrices):
        raise ValueError(f"matrices: expected layers 0 .. {layers - 1}, got {sorted(matrices)}")
    parts = [(layer, matrix) for layer, matrix in sorted(matrices.items()) if matrix.nodes[0]]
    first = next(iter(matrices.values()))
    (size, columns_of_layer), depth = first.shape, first.n_levels
    owned = first.own_columns if isinstance(first, DividedMTBDD) else None
    square = size == (columns_of_layer if owned is None else owned)
    if not square or any(m.shape != first.shape or m.n_levels != depth for m in matrices.values()):
        found = sorted({(m.shape, m.n_levels) for m in matrices.values()})
        raise ValueError(f"matrices: expected square ones of one shape and depth, got {found}")
    begin = np.zeros((len(parts) + 1, depth + 1), np.int64)
    for i, (_, matrix) in enumerate(parts):
        begin[i + 1] = begin[i] + matrix.nodes
    levels = [_joined([m.levels[k] for _, m in parts], begin[:, k + 1]) for k in range(depth)]
    rows = [_concatenated([m.rows[k] for _, m in parts]) for k in range(depth + 1)]
    columns = [_concatenated([m.columns[k] for _, m in parts]) for k in range(depth + 1)]
    own = np.array([layer for layer, _ in parts], np.int64)
    bits = max(layers - 1, 0).bit_length()
    # The roots by layer; above them one pair of levels a bit, the lowest bit next to the roots.
    roots = np.full(1 << bits, -1, np.int32)
    roots[own] = np.arange(len(parts))
    width = columns_of_layer
    for _ in range(bits):
        low, high = roots[0::2], roots[1::2]
        there = np.flatnonzero((low >= 0) | (high >= 0))
        offset = np.full(len(there), width, np.int64)
        levels.insert(0, Level(low[there], high[there], offset))
        width *= 2
        none, same = np.full(len(there), -1, np.int32), np.arange(len(there), dtype=np.int32)
        levels.insert(0, Level(same, none, np.full(len(there), size, np.int64)))
        for _ in range(2):
            rows.insert(0, np.full(len(there), size, np.int64))
            columns.insert(0, np.full(len(there), width, np.int64))
        roots = np.full(len(low), -1, np.int32)
        roots[there] = same
    terminals = np.concatenate([m.terminals for _, m in parts]) if parts else np.zeros(0)
    owner = np.repeat(own, [len(m.terminals) for _, m in parts]) if parts else np.zeros(0, np.int64)
    units = max((m.entry_units for _, m in parts), default=ENTRY_UNITS)  # lemma: entry-units
    matrix = OffsetMTBDD(tuple(levels), terminals, size, width, tuple(rows), tuple(columns), units)
    return StackedLayers(matrix, size, columns_of_layer, layers, 2 * bits, owner, owned)


def _joined(parts: list[Level], begin: Int64Array) -> Level:
    """Return the nodes of several diagrams on one level; `begin` numbers their children's first nodes."""
    low, high = (
        [np.where(child >= 0, child + first, -1) for child, first in zip(children, begin[:-1], strict=True)]
        for children in ([p.low for p in parts], [p.high for p in parts])
    )
    none = [np.zeros(0, np.int64)]
    return Level(
        np.concatenate(low or none).astype(np.int32),
        np.concatenate(high or none).astype(np.int32),
        _concatenated([p.offset for p in parts]),
    )


def _concatenated(parts: list[Int64Array]) -> Int64Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
