"""Row types: the distinct lists of submatrices that row prefixes meet, found on the diagram itself.

Fix a level k. The instances that start with the same row bits cover the same rows and form a *group*. The
classes of their submatrices, ordered by column, are the *row type* of the group. Few row types serve many
groups, so all that is computed per row type (merged rows, slices) is computed once.

Row types need no enumeration of groups. One array sweep takes those of one level to the next, and the groups
of a row type are counted like paths. Levels are found when they are requested: a choice of level seldom
needs the deepest ones, which take the longest.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers, ranges
from hybrid.base.arrays import Array, concatenated_ranges, distinct_lists
from hybrid.matrix.injection.submatrices import FEW_ENTRIES, BlockClasses, find_block_classes, level_blocks
from mtbdd.base.records import Record
from mtbdd.offset.offset import OffsetMTBDD

# The row types of one level, and those of the next: lists of submatrices, followed down the diagram.
#
# A row type is a list of classes of one level; taking a row bit maps every class to its child, while a column
# bit keeps both children: that is the subset construction which makes an automaton deterministic, with lists
# in place of sets.

Int64Array = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


class RowTypeLevel(Record, eq=False):
    """The row types of one level and the edges by which the row types of the level above reach them.

    Attributes
    ----------
    ptr : ndarray, shape (types + 1,), int64
        Slots of type t are ``ptr[t] .. ptr[t + 1]``.
    blocks : ndarray, shape (slots,), int32
        Class of the submatrix in each slot; slots are ordered by column.
    groups : ndarray, shape (types,), int64
        Number of groups (row prefixes) of each type.
    rows : ndarray, shape (types,), int64
        Rows that a group of each type covers.
    entries : ndarray, shape (types,), int64
        Entries of a group of each type: those of the submatrices in its slots.
    parent : ndarray, shape (edges,), int64
        Type in the level above from which each edge comes; no edges at level 0.
    then : ndarray, shape (edges,), bool
        Whether the edge takes the then side of a row bit; False throughout below a column bit.
    child : ndarray, shape (edges,), int64
        Type of this level to which the edge leads.
    edge_ptr : ndarray, shape (edges + 1,), int64
        Where the slots of the edge's child type lie in ``source`` and ``side``.
    source : ndarray, shape (edge_ptr[-1],), int32
        For every slot of the child, the slot of the parent type that it comes from.
    side : ndarray, shape (edge_ptr[-1],), bool
        For every slot of the child, whether its node is the then child of the parent slot's node.
    """

    ptr: Int64Array
    blocks: Int32Array
    groups: Int64Array
    rows: Int64Array
    entries: Int64Array
    parent: Int64Array
    then: BoolArray
    child: Int64Array
    edge_ptr: Int64Array
    source: Int32Array
    side: BoolArray

    @property
    def n_types(self) -> int:
        """Number of row types."""
        return len(self.ptr) - 1

    @property
    def lengths(self) -> Int64Array:
        """Slots of every type, shape (types,)."""
        return self.ptr[1:] - self.ptr[:-1]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return int(self.groups.sum())

    @property
    def group_slots(self) -> int:
        """Slots of all groups together."""
        return int((self.groups * self.lengths).sum())

    def edges_of(self, n_types: int) -> Int64Array:
        """Return the edge of every type of the level above on either side, shape (n_types, 2); -1: none."""
        table = np.full((n_types, 2), -1, np.int64)
        table[self.parent, self.then.astype(np.int64)] = np.arange(len(self.parent))
        return table


def root_level(classes: BlockClasses) -> RowTypeLevel:
    """Return the row types of level 0: the root alone, or none where the matrix has no entry."""
    size = classes.matrix.nodes[0]
    none = np.zeros(0, np.int64)
    return RowTypeLevel(
        ptr=np.arange(size + 1, dtype=np.int64),
        blocks=np.zeros(size, np.int32),
        groups=np.ones(size, np.int64),
        rows=classes.matrix.rows[0],
        entries=classes.matrix.entries_below[0],
        parent=none,
        then=np.zeros(0, bool),
        child=none,
        edge_ptr=np.zeros(1, np.int64),
        source=np.zeros(0, np.int32),
        side=np.zeros(0, bool),
    )


def level_below(above: RowTypeLevel, classes: BlockClasses, k: int) -> RowTypeLevel:
    """Return the row types of level k + 1.

    Parameters
    ----------
    above : RowTypeLevel
        Those of level k.
    classes : BlockClasses
    k : int
        Below the number of levels of the matrix.

    Notes
    -----
    Time and memory: O(slots log types).
    """
    # Below a row bit each type has an edge per side, below a column bit one edge that keeps both sides.
    low, high = (child[above.blocks] for child in classes.children(k))
    edges = _row_edges(above, low, high) if k % 2 == 0 else _column_edges(above, low, high)
    return _merge(above, edges, classes, k + 1)


class _Edges(Record, eq=False):
    """Edges out of the types of a level, the lists that they lead to not yet numbered."""

    parent: Int64Array
    then: BoolArray
    ptr: Int64Array
    blocks: Int32Array
    source: Int32Array
    side: BoolArray


def _row_edges(above: RowTypeLevel, low: Int32Array, high: Int32Array) -> _Edges:
    """Return the edges below a row bit: of every type one to its else children, one to its then children."""
    owner, slot = _owners(above)
    kept = [np.flatnonzero(low >= 0), np.flatnonzero(high >= 0)]
    counts = [np.bincount(owner[k], minlength=above.n_types) for k in kept]
    present = [np.flatnonzero(c) for c in counts]
    lengths = np.concatenate([c[p] for c, p in zip(counts, present, strict=True)])
    return _Edges(
        parent=np.concatenate(present),
        then=np.repeat([False, True], [len(p) for p in present]),
        ptr=pointers(np, lengths),
        blocks=np.concatenate((low[kept[0]], high[kept[1]])),
        source=slot[np.concatenate(kept)].astype(np.int32),
        side=np.repeat([False, True], [len(k) for k in kept]),
    )


def _column_edges(above: RowTypeLevel, low: Int32Array, high: Int32Array) -> _Edges:
    """Return the edges below a column bit: of every type one, to the children of both sides in its slots."""
    owner, slot = _owners(above)
    # Else before then under every slot keeps the slots ordered by column.
    child = np.empty(2 * len(low), low.dtype)
    child[0::2], child[1::2] = low, high
    kept = np.flatnonzero(child >= 0)
    lengths = np.bincount(owner[kept >> 1], minlength=above.n_types)
    return _Edges(
        parent=np.arange(above.n_types),
        then=np.zeros(above.n_types, bool),
        ptr=pointers(np, lengths),
        blocks=child[kept],
        source=slot[kept >> 1].astype(np.int32),
        side=(kept & 1).astype(bool),
    )


def _owners(level: RowTypeLevel) -> tuple[Int64Array, Int64Array]:
    """Type of every slot and position of every slot within its type."""
    owner = np.arange(level.n_types).repeat(level.lengths)
    return owner, np.arange(len(level.blocks)) - level.ptr[owner]


def _merge(above: RowTypeLevel, edges: _Edges, classes: BlockClasses, k: int) -> RowTypeLevel:
    """Return level k: the distinct lists that the edges lead to are its types; their groups are added up."""
    first, child = distinct_lists(edges.ptr, (edges.blocks,))
    ptr, blocks = edges.ptr, edges.blocks
    groups = np.zeros(len(first), np.int64)
    np.add.at(groups, child, above.groups[edges.parent])
    if len(first) < len(child):
        lengths = (ptr[1:] - ptr[:-1])[first]
        blocks = blocks[concatenated_ranges(ptr[first], lengths)]
        ptr = pointers(np, lengths)
    own = classes.entries(k)[blocks]
    return RowTypeLevel(
        ptr=ptr,
        blocks=blocks,
        groups=groups,
        rows=classes.matrix.rows[k][classes.representative[k][blocks[ptr[:-1]]]],
        # `reduceat` needs lists that are not empty, and none is.
        entries=np.add.reduceat(own, ptr[:-1]) if own.size else own,
        parent=edges.parent,
        then=edges.then,
        child=child,
        edge_ptr=edges.ptr,
        source=edges.source,
        side=edges.side,
    )


SLOT_LIMIT = 1 << 19
"""Slots of one level beyond which the sweep stops: deeper levels have no compact row types to offer."""


class _Sweep:
    """The levels found so far; threads that ask for more wait for one another."""

    def __init__(self, classes: BlockClasses, slot_limit: int) -> None:
        self._classes, self._slot_limit = classes, slot_limit
        self._lock = threading.Lock()
        self._is_stopped = False
        self.found = [root_level(classes)]

    def reaches(self, k: int) -> bool:
        if k < len(self.found):
            return True
        with self._lock:
            while not self._is_stopped and len(self.found) <= min(k, self._classes.matrix.n_levels):
                below = level_below(self.found[-1], self._classes, len(self.found) - 1)
                if len(below.blocks) > self._slot_limit:
                    self._is_stopped = True
                else:
                    self.found.append(below)
        return k < len(self.found)


class RowTypes:
    """Row types of the levels from the root down, all 2n + 1 as a rule: ``types[k]`` are those of level k.

    The sequence ends early where they become too many. A level is found at the first question about it or
    a deeper one.

    Parameters
    ----------
    classes : BlockClasses
        Classes of submatrices of the matrix.
    slot_limit : int
        The sequence ends before the first level whose types have more slots than this together.

    Notes
    -----
    Time and memory: O(slots log types) a level.
    """

    def __init__(self, classes: BlockClasses, slot_limit: int = SLOT_LIMIT) -> None:
        self.classes = classes
        self._sweep = _Sweep(classes, slot_limit)

    def under(self, classes: BlockClasses) -> RowTypes:
        """Return the same lists for classes that have the same members, under another name."""
        other = RowTypes.__new__(RowTypes)
        other.classes, other._sweep = classes, self._sweep
        return other

    def reaches(self, k: int) -> bool:
        """Return whether there are row types of level k; all levels down to it are found."""
        return k >= 0 and self._sweep.reaches(k)

    def __getitem__(self, k: int) -> RowTypeLevel:
        if not self.reaches(k):
            raise IndexError(f"level: expected 0..{len(self) - 1}, where row types are known, got {k}")
        return self._sweep.found[k]

    def __len__(self) -> int:
        self._sweep.reaches(self.classes.matrix.n_levels)
        return len(self._sweep.found)


# Sums of the rows of a matrix, from its row types alone: no level is chosen and nothing is injected.


def row_type_sums(matrix: OffsetMTBDD, slot_limit: int = SLOT_LIMIT) -> NDArray[np.float64] | None:
    """Return the sums of the rows.

    Parameters
    ----------
    matrix : OffsetMTBDD
        With some entry.
    slot_limit : int
        See :func:`hybrid.matrix.injection.row_types.RowTypes`.

    Returns
    -------
    ndarray, shape (n_rows,), float64, or None
        None if the row types are too many to be found.  A sum of m entries has at most m - 1 roundings.

    Notes
    -----
    The row types of the last level are lists of terminals: each is added up once, and its sum is written to
    all rows of the type.  Few entries are written out sooner.  Time: one sweep over the row types, and
    O(rows) for every row bit.  A product with ones needs both sweeps of a level curve first, and a layout.
    """
    if matrix.n_entries <= FEW_ENTRIES:
        whole = level_blocks(matrix, 0)
        return np.bincount(whole.row, whole.value, minlength=matrix.n_rows).astype(np.float64, copy=False)
    types = RowTypes(find_block_classes(matrix, scaled=False), slot_limit)
    if not types.reaches(matrix.n_levels):
        return None
    classes, last = types.classes, types[matrix.n_levels]
    sums = np.add.reduceat(matrix.terminals[classes.representative[-1][last.blocks]], last.ptr[:-1])
    row, kind = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for depth in range(matrix.n_levels):
        above, below = types[depth], types[depth + 1]
        edge = below.edges_of(above.n_types)
        if depth % 2 == 1:
            kind = below.child[edge[kind, 0]]
            continue
        # All submatrices of a group split at the same row, so the first one shows where.
        first = classes.representative[depth][above.blocks[above.ptr[:-1]]]
        step = matrix.levels[depth].offset[first]
        row = np.stack((row, row + step[kind]), axis=1).ravel()
        taken = edge[kind].ravel()
        kept = np.flatnonzero(taken >= 0)
        row, kind = row[kept], below.child[taken[kept]]
    found = np.zeros(matrix.n_rows)
    found[row] = sums[kind]
    return found


# Groups: one entry for every row prefix of a level, with its row type and the place of its submatrices.


class RowGroups(Record, eq=False):
    """All groups of one level in the order of their rows.

    Attributes
    ----------
    row : array, shape (groups,), int64
        First row of each group.
    type : array, shape (groups,), int32
        Its row type.
    ptr : array, shape (groups + 1,), int64
        Slots of group g are ``ptr[g] .. ptr[g + 1]``.
    base : array, shape (slots,), int64
        Column at which each slot's submatrix begins.
    node : array, shape (slots,), int32
        Node of the level that is each slot's submatrix.
    """

    row: Array
    type: Array
    ptr: Array
    base: Array
    node: Array

    def __len__(self) -> int:
        return len(self.row)


def enumerate_groups(xp: Any, types: RowTypes, k: int) -> RowGroups:
    """List the groups of level k with their rows, types, column bases and nodes.

    Parameters
    ----------
    xp : module
        Array module of the groups.
    types : RowTypes
        Row types of the matrix; level k must be among them.
    k : int
        The level.

    Returns
    -------
    RowGroups
        In the order of their first rows.

    Raises
    ------
    ValueError
        If ``types`` does not reach level k.

    Notes
    -----
    Time and memory: O(groups and their slots, summed over the levels down to k), array sweeps only.
    Synchronises: yes, twice a level, for the sizes.
    """
    if not types.reaches(k):
        raise ValueError(
            f"row types are known for the levels 0..{len(types) - 1}, got level {k}; "
            "choose a level in that range"
        )
    size = types[0].n_types
    state = RowGroups(
        xp.zeros(size, np.int64),
        xp.zeros(size, np.int32),
        xp.arange(size + 1, dtype=np.int64),
        xp.zeros(size, np.int64),
        xp.zeros(size, np.int32),
    )
    for depth in range(k):
        state = _descend(xp, types, depth, state)
    return state


def _descend(xp: Any, types: RowTypes, depth: int, state: RowGroups) -> RowGroups:
    above, below = types[depth], types[depth + 1]
    level = types.classes.matrix.levels[depth]
    offset = xp.asarray(level.offset)
    table = xp.asarray(below.edges_of(above.n_types))
    if depth % 2 == 0:
        # Else and then side by side keeps the groups in the order of their rows. All submatrices of a group
        # split at the same row, so the first one shows where.
        edge = table[state.type].ravel()
        step = offset[state.node[state.ptr[:-1]]]
        row = xp.stack((state.row, state.row + step), axis=1).ravel()
        kept = xp.flatnonzero(xp.greater_equal(edge, 0))
        edge, row, group = edge[kept], row[kept], xp.right_shift(kept, 1)
    else:
        edge, row, group = table[state.type, 0], state.row, xp.arange(len(state), dtype=np.int64)
    ptr = pointers(xp, xp.asarray(np.diff(below.edge_ptr))[edge])
    items, owner = ranges(xp, xp.asarray(below.edge_ptr)[edge], ptr, int(ptr[-1]))
    source = state.ptr[group][owner] + xp.asarray(below.source)[items]
    side = xp.asarray(below.side)[items]
    node, base = state.node[source], state.base[source]
    if depth % 2 == 1:
        base = base + xp.where(side, offset[node], 0)
    node = xp.where(side, xp.asarray(level.high)[node], xp.asarray(level.low)[node])
    return RowGroups(row, xp.asarray(below.child)[edge].astype(np.int32), ptr, base, node)


def find_empty_rows(xp: Any, row: Array, rows: Array, n_rows: int) -> tuple[Array, Array]:
    """Return the first rows of the ranges that no group covers, and pointers of their lengths.

    Parameters
    ----------
    xp : module
    row, rows : ndarray, shape (groups,), int64
        First row and rows of every group, in the order of the rows.
    n_rows : int
        Rows of the matrix.

    Returns
    -------
    begin : ndarray, shape (gaps,), int64
    ptr : ndarray, shape (gaps + 1,), int64

    Notes
    -----
    Time: O(groups). Synchronises: yes.
    """
    begin = xp.concatenate((xp.zeros(1, np.int64), row + rows))
    end = xp.concatenate((row, xp.full(1, n_rows, np.int64)))
    kept = begin < end
    return begin[kept], pointers(xp, end[kept] - begin[kept])


def group_arrows(
    groups: RowGroups, size: NDArray[np.int64], width: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which group of a square matrix leads to which other ones, once for every submatrix.

    Parameters
    ----------
    groups : RowGroups
        On the host.
    size : ndarray, shape (groups,), int64
        Rows of every group.
    width : ndarray, shape (nodes,), int64
        Columns of every node of the level.

    Returns
    -------
    source, target : ndarray, shape (arrows,), int64
        The sources ascending.
    """
    owner = np.repeat(np.arange(len(groups)), np.diff(groups.ptr))
    first = np.searchsorted(groups.row + size, groups.base, "right")
    end = np.searchsorted(groups.row, groups.base + width[groups.node], "left")
    count: NDArray[np.int64] = np.maximum(end - first, 0)
    source, target = np.repeat(owner, count), concatenated_ranges(np.asarray(first), count)
    other = source != target
    return source[other], target[other]
