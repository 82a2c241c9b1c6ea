"""Submatrices of classes and groups of a level, expanded on the device by array sweeps over the levels.

The same expansions as :mod:`hybrid.injection.submatrices` and :mod:`hybrid.injection.groups`, for arrays
of any module; the diagram's levels are small and are copied to the device one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hybrid.gpu.arrays import Array, counts, owners, pointers, ranges, stable_order
from hybrid.injection.block_classes import BlockClasses
from hybrid.injection.row_types import RowTypes

__all__ = ["ClassEntries", "DeviceGroups", "expand_classes", "expand_groups"]

_MAX_ULP = 4
"""Units in the last place by which a value rebuilt from a scaled class may differ from the exact one."""


@dataclass(frozen=True, eq=False)
class ClassEntries:
    """The entries of one submatrix a class, sorted by class, then by row, then by column.

    Attributes
    ----------
    ptr : ndarray, shape (classes + 1,), int64
        Entries of class c are ``ptr[c] .. ptr[c + 1]``.
    row, column : ndarray, shape (entries,), int64
        Indices local to the submatrix.
    value : ndarray, shape (entries,), float64
        Values, divided by the leading value of the submatrix if classes are scaled.
    """

    ptr: Array
    row: Array
    column: Array
    value: Array


@dataclass(frozen=True, eq=False)
class DeviceGroups:
    """The groups of a level in the order of their rows, like :class:`hybrid.injection.groups.Groups`.

    Attributes
    ----------
    row, type : ndarray, shape (groups,), int64
        First row and row type.
    ptr : ndarray, shape (groups + 1,), int64
        Slots of each group.
    base, node : ndarray, shape (slots,), int64
        Column at which each slot's submatrix begins, and its node.
    """

    row: Array
    type: Array
    ptr: Array
    base: Array
    node: Array

    def __len__(self) -> int:
        return len(self.row)


def expand_classes(xp: Any, classes: BlockClasses, k: int) -> ClassEntries | None:
    """Expand one normalised submatrix per class of level k.

    Parameters
    ----------
    xp : module
        Array module of the result.
    classes : BlockClasses
        Classes of the matrix.
    k : int
        Level.

    Returns
    -------
    ClassEntries or None
        None if sharing up to a scale would change some value by more than 4 units in the last place.

    Notes
    -----
    Time: O(entries * levels below k). Synchronises: yes.
    """
    chosen = xp.asarray(classes.representative[k])
    blocks = _expand_nodes(xp, classes, k, chosen)
    if not classes.scaled:
        return blocks
    leading = xp.asarray(classes.leading[k])
    total = len(blocks.value)
    value = blocks.value / leading[chosen][owners(xp, blocks.ptr, total)]
    alone = xp.ones(len(leading), bool)
    alone[chosen] = False
    others = xp.flatnonzero(alone)
    if len(others):
        members = _expand_nodes(xp, classes, k, others)
        twin = xp.asarray(classes.classes[k])[others]
        items, owner = ranges(xp, blocks.ptr[twin], members.ptr, len(members.value))
        rebuilt = value[items] * leading[others][owner]
        exact = members.value
        if bool((abs(rebuilt - exact) > _MAX_ULP * _spacing(xp, exact)).any()):
            return None
    return ClassEntries(blocks.ptr, blocks.row, blocks.column, value)


def _spacing(xp: Any, values: Array) -> Array:
    return xp.abs(xp.nextafter(values, xp.inf) - values)


def _expand_nodes(xp: Any, classes: BlockClasses, k: int, nodes: Array) -> ClassEntries:
    matrix = classes.matrix
    block = xp.arange(len(nodes), dtype=xp.int64)
    node = nodes.astype(xp.int64)
    row, column = xp.zeros(len(nodes), xp.int64), xp.zeros(len(nodes), xp.int64)
    for depth in range(k, matrix.n_levels):
        level = matrix.levels[depth]
        low, high = xp.asarray(level.low)[node], xp.asarray(level.high)[node]
        left, right = xp.flatnonzero(low >= 0), xp.flatnonzero(high >= 0)
        step = xp.asarray(level.offset)[node[right]]
        both = xp.concatenate((left, right))
        block, row, column = block[both], row[both], column[both]
        moved = row if depth % 2 == 0 else column
        moved[len(left) :] += step
        node = xp.concatenate((low[left], high[right])).astype(xp.int64)
    order = stable_order(xp, (block, row, column))
    ptr = pointers(xp, counts(xp, block, len(nodes)))
    value = xp.asarray(matrix.terminals)[node[order]]
    return ClassEntries(ptr, row[order], column[order], value)


def expand_groups(xp: Any, types: RowTypes, k: int) -> DeviceGroups:
    """List the groups of level k with their rows, types, column bases and nodes, on the device.

    Parameters
    ----------
    xp : module
        Array module of the result.
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        The level.

    Returns
    -------
    DeviceGroups
        In the order of their first rows.

    Notes
    -----
    Time and memory: O(groups and their slots, summed over the levels down to k). Synchronises: yes, twice a
    level, for the sizes.
    """
    size = types.levels[0].n_types
    state = DeviceGroups(
        xp.zeros(size, xp.int64),
        xp.zeros(size, xp.int64),
        xp.arange(size + 1, dtype=xp.int64),
        xp.zeros(size, xp.int64),
        xp.zeros(size, xp.int64),
    )
    for depth in range(k):
        state = _descend(xp, types, depth, state)
    return state


def _descend(xp: Any, types: RowTypes, depth: int, state: DeviceGroups) -> DeviceGroups:
    above, below = types.levels[depth], types.levels[depth + 1]
    level = types.classes.matrix.levels[depth]
    offset = xp.asarray(level.offset)
    # A type has at most two edges, found by a table [type, side].
    table = xp.full((above.n_types, 2), -1, xp.int64)
    table[xp.asarray(below.parent), xp.asarray(below.then).astype(xp.int64)] = xp.arange(len(below.parent))
    if depth % 2 == 0:
        # Else and then side by side keeps the groups in the order of their rows.
        edge = table[state.type].ravel()
        step = offset[state.node[state.ptr[:-1]]]
        row = xp.stack((state.row, state.row + step), axis=1).ravel()
        group = xp.flatnonzero(edge >= 0)
        edge, row, group = edge[group], row[group], group >> 1
    else:
        edge, row, group = table[state.type, 0], state.row, xp.arange(len(state), dtype=xp.int64)
    edge_ptr = xp.asarray(below.edge_ptr)
    ptr = pointers(xp, (edge_ptr[1:] - edge_ptr[:-1])[edge])
    total = int(ptr[-1])
    items, owner = ranges(xp, edge_ptr[edge], ptr, total)
    source = state.ptr[group][owner] + xp.asarray(below.source)[items]
    side = xp.asarray(below.side)[items]
    node, base = state.node[source], state.base[source]
    if depth % 2 == 1:
        base = base + xp.where(side, offset[node], 0)
    low, high = xp.asarray(level.low), xp.asarray(level.high)
    node = xp.where(side, high[node], low[node]).astype(xp.int64)
    return DeviceGroups(row, xp.asarray(below.child)[edge], ptr, base, node)
