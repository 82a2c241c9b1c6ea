"""Which columns the rows of every prefix group use, found on the diagram itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.parts.prefixes import PrefixGroups
from mtbdd.offset.descent import descend
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.tuples import distinct_rows

Int64Array = NDArray[np.int64]

MOST_USES = 1 << 19
"""Pairs of a prefix group and a range of columns beyond which ranges are not cut any finer."""


@dataclass(frozen=True, eq=False)
class ColumnUses:
    """Ranges of columns, and which prefix groups have an entry in which.

    Attributes
    ----------
    start, size : ndarray, shape (ranges,), int64
        First column of every range and how many it has, in order, disjoint.
    owner : ndarray, shape (ranges,), int64
        The prefix group whose states the columns of a range are.
    group, range : ndarray, shape (uses,), int64
        Rows of the group use columns of the range; every pair once.
    level : int
        Level of the diagram at which the ranges are the columns of a node; at the last level they are
        single columns, and what is used is exact; before it, a range counts as used if one column is.
    """

    start: Int64Array
    size: Int64Array
    owner: Int64Array
    group: Int64Array
    range: Int64Array
    level: int


def transitions_of_groups(matrices: Sequence[OffsetMTBDD], groups: PrefixGroups) -> Int64Array:
    """Count the entries in the rows of every prefix group, shape (groups,), of all matrices together.

    Notes
    -----
    Time: O(paths to the level below the prefixes), by counts of entries kept on the diagram.
    """
    total = np.zeros(len(groups), np.int64)
    for matrix in matrices:
        node, row, _ = _paths(matrix, 2 * groups.bits)
        np.add.at(total, groups.of(row), matrix.entries_below[2 * groups.bits][node])
    return total


def prefix_pairs(
    matrices: Sequence[OffsetMTBDD], least: int, ends: Sequence[int], most: int
) -> tuple[int, Int64Array, Int64Array, Int64Array]:
    """Find the prefixes of rows and columns between which there are entries.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
    least : int
        Bits that a prefix has in any case.
    ends : sequence of int
        Other lengths that a prefix may have.
    most : int
        Pairs beyond which none of them is tried.

    Returns
    -------
    bits : int
        Length of a prefix, the greatest that may be.
    row, column : ndarray, shape (pairs,), int64
        First row and first column of every pair, which is once for each matrix, or more often.
    entries : ndarray, shape (pairs,), int64
        How many there are.
    """
    paths = [_paths(matrix, 2 * least) for matrix in matrices]
    bits, found = least, paths
    for bit in range(least, max((m.n_levels // 2 for m in matrices), default=0)):
        for k in (2 * bit, 2 * bit + 1):
            paths = [descend(np, m, k, *own) for m, own in zip(matrices, paths, strict=True)]
        if sum(len(own[0]) for own in paths) > most:
            break
        if bit + 1 in ends:
            bits, found = bit + 1, paths
    none = np.zeros(0, np.int64)
    entries = [m.entries_below[2 * bits][own[0]] for m, own in zip(matrices, found, strict=True)]
    row, column = (np.concatenate([own[i] for own in found] or [none]) for i in (1, 2))
    return bits, row, column, np.concatenate(entries or [none])


def column_uses(matrices: Sequence[OffsetMTBDD], groups: PrefixGroups, most: int = MOST_USES) -> ColumnUses:
    """Find the columns that the rows of every prefix group use.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        Square matrices over the states of the groups: one of a chain, the layers of a decision process.
    groups : PrefixGroups
    most : int
        Ranges are cut finer, level by level, until there are more pairs than this.

    Returns
    -------
    ColumnUses

    Notes
    -----
    Below the prefixes only columns are told apart: triples (group, column, node), each once, are taken down
    level by level.  Time and memory: O(most log most) a level.
    """
    depth = 2 * groups.bits
    found = []
    for matrix in matrices:
        node, row, column = _paths(matrix, depth)
        found.append(_distinct(groups.of(row), column, node.astype(np.int64)))
    level = depth
    for k in range(depth, max((m.n_levels for m in matrices), default=0), 2):
        finer = [_below(matrix, k, *uses) for matrix, uses in zip(matrices, found, strict=True)]
        if sum(len(uses[0]) for uses in finer) > most:
            break
        found, level = finer, k + 2
    group = np.concatenate([uses[0] for uses in found] or [np.zeros(0, np.int64)])
    column = np.concatenate([uses[1] for uses in found] or [np.zeros(0, np.int64)])
    width = np.concatenate(
        [matrix.columns[level][uses[2]] for matrix, uses in zip(matrices, found, strict=True)]
        or [np.zeros(0, np.int64)]
    )
    first, number = distinct_rows((group, column))
    group, column, width = group[first], column[first], width[first]
    start, place = np.unique(column, return_inverse=True)
    size = np.zeros(len(start), np.int64)
    size[place] = width
    return ColumnUses(start, size, groups.of(start), group, place.astype(np.int64), level)


def nodes_of_parts(
    matrices: Sequence[OffsetMTBDD], groups: PrefixGroups, part: Int64Array, parts: int
) -> Int64Array:
    """Count the nodes below the prefixes that the rows of every part lead to, shape (parts,).

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
    groups : PrefixGroups
    part : ndarray, shape (groups,), int64
    parts : int

    Notes
    -----
    Time: O(parts * nodes).
    """
    depth, total = 2 * groups.bits, np.zeros(parts, np.int64)
    for matrix in matrices:
        node, row, _ = _paths(matrix, depth)
        there = np.zeros((parts, matrix.nodes[depth]), bool)
        there[part[groups.of(row)], node] = True
        for k in range(depth, matrix.n_levels):
            total += there.sum(axis=1)
            own, node = np.nonzero(there)
            there = np.zeros((parts, matrix.nodes[k + 1]), bool)
            for child in (matrix.levels[k].low[node], matrix.levels[k].high[node]):
                there[own[child >= 0], child[child >= 0]] = True
    return total


def _paths(matrix: OffsetMTBDD, depth: int) -> tuple[Int64Array, ...]:
    """Return the nodes of a level with the row and the column of every path to them."""
    size = matrix.nodes[0]
    found: tuple[Int64Array, ...] = tuple(np.zeros(size, np.int64) for _ in range(3))
    for k in range(depth):
        found = descend(np, matrix, k, *found)
    return found


def _distinct(*columns: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    first, _ = distinct_rows(columns)
    group, column, node = (values[first] for values in columns)
    return group, column, node


def _below(
    matrix: OffsetMTBDD, k: int, group: Int64Array, column: Int64Array, node: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Take triples two levels down: rows are forgotten, columns kept."""
    rows, columns = matrix.levels[k], matrix.levels[k + 1]
    child = np.concatenate((rows.low[node], rows.high[node])).astype(np.int64)
    there = child >= 0
    group, column, node = _distinct(np.tile(group, 2)[there], np.tile(column, 2)[there], child[there])
    child = np.concatenate((columns.low[node], columns.high[node])).astype(np.int64)
    there = child >= 0
    column = np.concatenate((column, column + columns.offset[node]))
    return _distinct(np.tile(group, 2)[there], column[there], child[there])
