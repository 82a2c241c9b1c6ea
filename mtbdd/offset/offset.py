"""The offset-labelled MTBDD, stored level by level in arrays.

An offset-labelled MTBDD represents a real matrix over interleaved row and column bits (x1 < y1 < x2 < y2 <
...). It differs from a plain MTBDD in two ways ([Tealdi13] §4.3.2). Every inner node carries an offset.
Every path to a non-zero terminal visits every level. Only zero may be skipped to. Rows and columns that
belong to no state are left out. So the row and column of an entry are sums of offsets, of the nodes that its
path leaves by the then edge.

Nodes have no addresses here: a node is its position in the arrays of its level. Every algorithm on the
diagram is a sweep of NumPy operations over whole levels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.base.sorting import sorted_values
from mtbdd.offset.tuples import distinct_rows

# The non-zeros of a small matrix, written out.

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]


class Entries(NamedTuple):
    """The non-zeros of a matrix, sorted by row, then by column.

    `row`, `column`: ndarray, shape (entries,), int32. `value`: ndarray, shape (entries,), float64.
    """

    row: Int32Array
    column: Int32Array
    value: NDArray[np.float64]

    def part(
        self,
        size: int,
        rows: Int64Array | None,
        columns: Int64Array | None,
        chosen: Int64Array | None = None,
        diagonal: bool = True,
    ) -> Entries:
        """Return the entries in some rows and columns, numbered among these.

        `size`: rows and columns of the matrix. `rows`, `columns`, `chosen`: which rows and columns the part
        has, and which of the rows keep their entries; None: all. `diagonal`: whether entries of a row in the
        column of its own number stay.
        """
        row, column = (_renumbered(*pair, size) for pair in ((self.row, rows), (self.column, columns)))
        kept = (row >= 0) & (column >= 0)
        if chosen is not None:
            kept &= _renumbered(self.row, chosen, size) >= 0
        if not diagonal:
            kept &= self.row != self.column
        return Entries(row[kept], column[kept], self.value[kept])

    def transpose(self) -> Entries:
        """Return the entries of the transposed matrix."""
        order = np.argsort(self.column, kind="stable")
        return Entries(self.column[order], self.row[order], self.value[order])


def _renumbered(numbers: Int32Array, kept: Int64Array | None, size: int) -> Int32Array:
    """Return the place of every number among those kept, -1 for others."""
    if kept is None:
        return numbers
    place = np.full(size, -1, np.int32)
    place[kept] = np.arange(kept.size, dtype=np.int32)
    found: Int32Array = place[numbers]
    return found


# One level of a diagram in arrays.


class Level(Record, eq=False):
    """The nodes of one of the 2n levels; even levels test row bits, odd levels column bits.

    Attributes
    ----------
    low, high : ndarray, shape (nodes,), int32
        Else and then child: node number in the next level, -1 for the zero submatrix.
    offset : ndarray, shape (nodes,), int64
        Rows (even level) or columns (odd level) below the else edge: what taking the then edge adds
        to the row or column index.
    """

    low: Int32Array
    high: Int32Array
    offset: Int64Array

    def __len__(self) -> int:
        return len(self.low)


# Counting paths on an offset-labelled MTBDD: entries below and paths above every node, one sweep each.

MAX_COUNT = 2**62 - 1
"""Largest number of states or transitions; twice as many still fit 64 bits."""


def count_entries_below(levels: Sequence[Level], terminals: int) -> tuple[Int64Array, ...]:
    """Count the non-zeros of every node's submatrix.

    `levels`: the 2n levels. `terminals`: nodes of level 2n. Returns tuple of ndarray, each shape (nodes of
    its level,), int64: 2n + 1 arrays; the entry of the root is the number of non-zeros of the matrix. Raises
    OverflowError: there are more than 2^62.

    Time: O(nodes). A node's count is the sum of its children's, and 1 for a terminal ([Tealdi13] §4.4.1.1).
    """
    counts = [np.ones(terminals, np.int64)]
    for level in reversed(levels):
        below = np.append(counts[0], 0)
        total = below[level.low] + below[level.high]
        # A sum of two counts below 2^62 does not wrap.
        if np.any(total > MAX_COUNT):
            raise OverflowError("the matrix has more than 2^62 non-zero entries: expected a smaller model")
        counts.insert(0, total)
    return tuple(counts)


def count_paths_above(levels: Sequence[Level], nodes: Sequence[int]) -> tuple[Int64Array, ...]:
    """Count the paths from the root to every node.

    `levels`: the 2n levels. `nodes`: nodes of each of the 2n + 1 levels. Returns tuple of ndarray, each shape
    (nodes of its level,), int64: 2n + 1 arrays; level 2n together has as many paths as the matrix has
    non-zeros. Raises OverflowError: there are more than 2^62. Time: O(nodes).
    """
    counts = [np.ones(nodes[0], np.int64)]
    for k, level in enumerate(levels):
        total = np.zeros(nodes[k + 1], np.int64)
        for child in (level.low, level.high):
            there = child >= 0
            np.add.at(total, child[there], counts[k][there])
        if float(counts[k].sum(dtype=np.float64)) > MAX_COUNT:
            raise OverflowError(f"more than 2^62 paths lead to level {k}: expected a smaller model")
        counts.append(total)
    return tuple(counts)


Float64Array = NDArray[np.float64]

ENTRY_UNITS = 16.0
"""Bound on the relative error of entries that nothing else is known of, in units of 2^-53."""

SCALED_UNITS = 8.0
"""Part of it that is due to blocks shared up to a scale, see `hybrid.matrix.injection.submatrices`."""


class OffsetMTBDD(Record, eq=False):
    """A real matrix as an offset-labelled MTBDD ([Tealdi13] §4.3.2).

    Attributes
    ----------
    levels : tuple of Level
        The 2n levels; the root is node 0 of level 0. The zero matrix has no node on any level.
    terminals : ndarray, shape (values,), float64
        Values of the nodes of level 2n, distinct and not zero.
    n_rows, n_columns : int
        Shape of the matrix. Rows and columns may stand for different sets of states.
    rows, columns : tuple of ndarray, each shape (nodes of its level,), int64
        2n + 1 arrays: how many rows and columns the submatrix of every node has, all-zero ones included.
    entry_units : float
        Bound on the relative error of every entry against the number that it stands for, in units of 2^-53,
        sharing blocks up to a scale included.
    """

    levels: tuple[Level, ...]
    terminals: Float64Array
    n_rows: int
    n_columns: int
    rows: tuple[Int64Array, ...]
    columns: tuple[Int64Array, ...]
    entry_units: float = ENTRY_UNITS

    @classmethod
    def written(
        cls,
        shape: tuple[int, int],
        n_bits: int,
        entries: Entries,
        entry_units: float,
        label: Callable[[], OffsetMTBDD],
    ) -> OffsetMTBDD:
        """Return a matrix whose entries are written out; its nodes are made at first use.

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
        found = cls.__new__(cls)
        # Without the nodes, which `__getattr__` takes from the diagram.
        found.__dict__.update(
            n_rows=shape[0], n_columns=shape[1], entry_units=entry_units, _entries=entries, _bits=n_bits,
            _label=label,
        )  # fmt: skip
        return found

    def __getattr__(self, name: str) -> Any:
        if name not in ("levels", "terminals", "rows", "columns") or "_label" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.diagram, name)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.n_rows} x {self.n_columns}, {self.n_levels} levels, "
            f"{sum(self.nodes)} nodes, {len(self.terminals)} terminals>"
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.n_columns

    @property
    def n_levels(self) -> int:
        """Number of levels that test a bit, 2n; the terminals are level 2n."""
        return len(self.levels) if self.entries is None else 2 * int(self.__dict__["_bits"])

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Nodes of each of the 2n + 1 levels, the last one being the terminals."""
        return (*(len(level) for level in self.levels), len(self.terminals))

    @cached_property
    def entries_below(self) -> tuple[Int64Array, ...]:
        """Entries (non-zeros) of the submatrix of every node: 2n + 1 arrays, one element a node.

        Counted once, at first use, by one sweep; `OverflowError` if a count does not fit 63 bits.
        """
        return count_entries_below(self.levels, len(self.terminals))

    @cached_property
    def paths_above(self) -> tuple[Int64Array, ...]:
        """Paths from the root to every node: 2n + 1 arrays, one element a node.

        Counted once, at first use, by one sweep; `OverflowError` if a count does not fit 63 bits.
        """
        return count_paths_above(self.levels, self.nodes)

    @property
    def entries(self) -> Entries | None:
        """The entries one by one, where they are held so; see `written`."""
        return self.__dict__.get("_entries")

    @property
    def diagram(self) -> OffsetMTBDD:
        """The matrix as its nodes alone: itself, unless its entries are written out."""
        label: Callable[[], OffsetMTBDD] | None = self.__dict__.get("_label")
        if label is None:
            return self
        if "_diagram" not in self.__dict__:
            self.__dict__["_diagram"] = label()
        found: OffsetMTBDD = self.__dict__["_diagram"]
        return found

    @property
    def values(self) -> Float64Array:
        """The values of all entries, each at least once."""
        return self.terminals if self.entries is None else self.entries.value

    @property
    def n_entries(self) -> int:
        """Number of entries (non-zeros) of the matrix."""
        return int(self.entries_below[0].sum()) if self.entries is None else self.entries.value.size

    @property
    def nbytes(self) -> int:
        """Bytes held by the arrays of the diagram."""
        return sum(a.nbytes for a in self._arrays())

    def validate(self) -> None:
        """Check every rule of the data structure.

        Raises
        ------
        ValueError
            If an array has the wrong length, a child number lies outside the next level, an offset or a
            row or column count disagrees with those of the children, a node is unreachable or has only
            zero below, or the terminals are not distinct finite non-zero numbers.

        Notes
        -----
        Time: O(nodes).
        """
        depth = self.n_levels
        _require(depth % 2 == 0, f"an MTBDD has one row and one column bit a pair, so 2n levels, not {depth}")
        _require(
            len(self.rows) == len(self.columns) == depth + 1,
            f"rows and columns need {depth + 1} arrays, got {len(self.rows)} and {len(self.columns)}",
        )
        for k, count in enumerate(self.nodes):
            _require(
                len(self.rows[k]) == len(self.columns[k]) == count,
                f"level {k} has {count} nodes, but {len(self.rows[k])} row and "
                f"{len(self.columns[k])} column counts",
            )
        values = self.terminals
        _require(bool(np.all(np.isfinite(values) & (values != 0))), "terminals must be finite and not zero")
        _require(len(sorted_values(values)) == len(values), "terminals must be distinct")
        _require(self.nodes[0] <= 1, f"level 0 holds the root alone, got {self.nodes[0]} nodes")
        if self.nodes[0] == 0:
            _require(not any(self.nodes), "a diagram without a root must have no node on any level")
            return
        _require(
            (int(self.rows[0][0]), int(self.columns[0][0])) == self.shape,
            f"the root covers {self.rows[0][0]} x {self.columns[0][0]}, the matrix is {self.shape}",
        )
        for k in range(depth):
            self._validate_level(k)
        ones = np.concatenate((self.rows[depth], self.columns[depth]))
        _require(bool(np.all(ones == 1)), "a terminal stands for one row and one column")

    def _validate_level(self, k: int) -> None:
        level = self.levels[k]
        size = self.nodes[k + 1]
        counts, others = (self.rows, self.columns) if k % 2 == 0 else (self.columns, self.rows)
        seen = np.zeros(size, bool)
        _require(bool(np.all((level.low >= 0) | (level.high >= 0))), f"level {k} has a node without a child")
        for name, child, expected in (
            ("low", level.low, level.offset),
            ("high", level.high, counts[k] - level.offset),
        ):
            _require(
                bool(np.all((child >= -1) & (child < size))),
                f"level {k}: {name} must lie in -1..{size - 1}, the nodes of level {k + 1}",
            )
            there = child >= 0
            seen[child[there]] = True
            _require(
                bool(np.all(counts[k + 1][child[there]] == expected[there])),
                f"level {k}: the {name} child's count disagrees with the offset of its parent",
            )
            _require(
                bool(np.all(others[k + 1][child[there]] == others[k][there])),
                f"level {k}: the {name} child covers another number of rows or columns than its parent",
            )
        _require(
            bool(np.all((level.offset >= 0) & (level.offset <= counts[k]))),
            f"level {k}: an offset lies outside 0..rows (or columns) of its node",
        )
        _require(bool(np.all(seen)), f"level {k + 1} has a node that no edge reaches")

    def transpose(self) -> OffsetMTBDD:
        """Return the transposed matrix, sharing kept.

        Returns
        -------
        OffsetMTBDD
            Rows and columns exchanged: within every pair of levels the row and the column bit swap.

        Notes
        -----
        Time: O(nodes log nodes). The nodes of the even levels correspond one to one, because transposing
        is injective; only the nodes between the two bits of a pair are new.
        """
        if self.entries is not None:
            shape, turned = (self.n_columns, self.n_rows), self.entries.transpose()
            return OffsetMTBDD.written(
                shape, self.n_levels // 2, turned, self.entry_units, lambda: self.diagram.transpose()
            )
        levels: list[Level] = []
        rows: list[Int64Array] = [self.columns[0]]
        columns: list[Int64Array] = [self.rows[0]]
        for k in range(0, self.n_levels, 2):
            upper, lower = self._transpose_pair(k)
            levels += [upper, lower.level]
            rows += [lower.rows, self.columns[k + 2]]
            columns += [lower.columns, self.rows[k + 2]]
        return OffsetMTBDD(
            tuple(levels),
            self.terminals,
            self.n_columns,
            self.n_rows,
            tuple(rows),
            tuple(columns),
            self.entry_units,
        )

    def _transpose_pair(self, k: int) -> tuple[Level, _Between]:
        outer, inner = self.levels[k], self.levels[k + 1]
        size = len(outer)
        # Child (x, y) of every node, and the column offset, which both row children agree on.
        corner = np.full((2, 2, size), -1, np.int32)
        column_offset = np.zeros(size, np.int64)
        for x, child in enumerate((outer.low, outer.high)):
            there = np.flatnonzero(child >= 0)
            below = child[there]
            corner[x, 0, there] = inner.low[below]
            corner[x, 1, there] = inner.high[below]
            column_offset[there] = inner.offset[below]
        halves = []
        for y in (0, 1):
            present = np.flatnonzero((corner[0, y] >= 0) | (corner[1, y] >= 0))
            width = column_offset if y == 0 else self.columns[k] - column_offset
            halves.append((y, present, width[present]))
        present = np.concatenate([h[1] for h in halves])
        low = np.concatenate([corner[0, y, p] for y, p, _ in halves])
        high = np.concatenate([corner[1, y, p] for y, p, _ in halves])
        offset = outer.offset[present]
        new_rows = np.concatenate([h[2] for h in halves])
        new_columns = self.rows[k][present]
        first, inverse = distinct_rows((low, high, offset, new_rows, new_columns))
        numbers = inverse.astype(np.int32)
        upper_low, upper_high = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
        split = len(halves[0][1])
        upper_low[halves[0][1]] = numbers[:split]
        upper_high[halves[1][1]] = numbers[split:]
        between = _Between(Level(low[first], high[first], offset[first]), new_rows[first], new_columns[first])
        return Level(upper_low, upper_high, column_offset), between

    def same_as(self, other: OffsetMTBDD) -> bool:
        """Return whether both diagrams have equal arrays: the same nodes under the same numbers."""
        if self.shape != other.shape or self.nodes != other.nodes:
            return False
        pairs = zip(self._arrays(), other._arrays(), strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def _arrays(self) -> list[NDArray[Any]]:
        arrays: list[NDArray[Any]] = [self.terminals, *self.rows, *self.columns]
        for level in self.levels:
            arrays += (level.low, level.high, level.offset)
        return arrays


class _Between(Record, eq=False):
    """The new middle level of a transposed pair with its row and column counts."""

    level: Level
    rows: Int64Array
    columns: Int64Array


def zero_matrix(n_bits: int, n_rows: int, n_columns: int) -> OffsetMTBDD:
    """Return the zero matrix over ``n_bits`` row and column bits: no node on any level.

    `n_bits`: row bits (and column bits), so that the diagram has ``2 * n_bits`` empty levels. `n_rows`,
    `n_columns`: shape of the matrix.
    """
    no_child, none = np.zeros(0, np.int32), np.zeros(0, np.int64)
    depth = 2 * n_bits
    return OffsetMTBDD(
        tuple(Level(no_child, no_child, none) for _ in range(depth)),
        np.zeros(0, np.float64),
        n_rows,
        n_columns,
        (none,) * (depth + 1),
        (none,) * (depth + 1),
    )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"malformed offset-labelled MTBDD: {message}")


# Greatest number of entries in a row of a matrix, from its diagram.


def row_entries(matrix: OffsetMTBDD) -> int:
    """Return a bound on the number of non-zeros in any row.

    Below a node that tests a column bit the counts of both children add up, below a row bit the greater one
    counts. Entries that are written out are counted. Time: O(nodes).
    """
    if matrix.entries is not None:
        return int(np.bincount(matrix.entries.row).max(initial=0))
    counts = np.ones(len(matrix.terminals), dtype=np.int64)
    for k in reversed(range(matrix.n_levels)):
        level = matrix.levels[k]
        # The number -1 of a zero submatrix picks the zero at the end.
        padded = np.append(counts, 0)
        low, high = padded[level.low], padded[level.high]
        counts = np.maximum(low, high) if k % 2 == 0 else low + high
    return int(counts.max(initial=0))
