"""Real matrices as one BDD: terminal numbers spelled by index bits below all other bits.

A matrix with m distinct non-zero values v_0 .. v_{m-1} is the disjunction of
(entries equal to v_k) and (index bits spell k); zero is FALSE.  The diagram is canonical
and its nodes above the index bits are the nodes of the MTBDD.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import FALSE, NodeTable, read_nodes
from mtbdd.diagrams.partition import Partition, canonical

UNITED_UNITS = 8
"""Greatest relative distance of values that are united, in units of 2^-53: 4 units in the last place."""


class SymbolicMatrix(Record):
    """A real function of row and column bits (a vector if no column bit occurs).

    Attributes
    ----------
    manager : Manager
    node : Node
        The BDD with index bits.
    terminals : ndarray of float64, shape (m,)
        Distinct non-zero values, ascending.
    units : float
        Bound on the relative error of every value against the number that it stands for, uniting values
        included, in units of 2^-53.
    """

    manager: Manager
    node: Node
    terminals: NDArray[np.float64]
    units: float = 0.0

    @classmethod
    def from_partition(cls, partition: Partition, unite: bool = True) -> SymbolicMatrix:
        """Return the matrix of a partition; zero values are dropped.

        Parameters
        ----------
        partition : Partition
        unite : bool
            Give values that are a rounding error apart one terminal.

        Notes
        -----
        Time: one conjunction and about log2(m) disjunctions a value over the diagram's size.
        """
        return cls.from_disjoint(partition.manager, [(partition, partition.manager.true)], unite)

    @classmethod
    def from_disjoint(
        cls, manager: Manager, parts: Sequence[tuple[Partition, Node]], unite: bool = True
    ) -> SymbolicMatrix:
        """Return the sum of functions with disjoint supports, each cut to a set of entries.

        Parameters
        ----------
        manager : Manager
        parts : sequence of (Partition, Node)
            A function and the set to cut it to; terminals are attached before the cut, while the
            diagrams are small.
        unite : bool
            Give values that are a rounding error apart one terminal.
        """
        found = [canonical(v) for part, _ in parts for v in part.pieces]
        representative = merge_close(found) if unite else {v: v for v in found}
        values = sorted({v for v in representative.values() if v != 0})
        bits = manager.index_bits(max(len(values) - 1, 0).bit_length())
        cubes = dict(zip(values, manager.cubes(bits, len(values)), strict=True))
        nodes = []
        for part, entries in parts:
            pieces: dict[float, list[Node]] = {}
            for value, piece in part.nonzero():
                pieces.setdefault(representative[canonical(value)], []).append(piece)
            numbered = [manager.disjunction(p) & cubes[v] for v, p in pieces.items()]
            nodes.append(manager.disjunction(numbered) & entries)
        units = max((part.units for part, _ in parts), default=0.0)  # lemma: entry-units
        if moved := _distance(representative):
            units += moved * (1 + units * 2.0**-53)  # lemma: entry-units
        return cls(manager, manager.disjunction(nodes), np.array(values, dtype=np.float64), units)

    @property
    def index_bits(self) -> tuple[str, ...]:
        """Names of the index bits in use."""
        return self.manager.index_bits(max(self.terminals.size - 1, 0).bit_length())

    def only(self, entries: Node) -> SymbolicMatrix:
        """Return the matrix with all entries outside a set zeroed; terminals keep their numbers."""
        return SymbolicMatrix(self.manager, self.node & entries, self.terminals, self.units)

    def support(self) -> Node:
        """Return the set of non-zero entries."""
        return self.manager.exists(self.index_bits, self.node)

    def partition(self) -> Partition:
        """Return the non-zero entries by value.  Time: one conjunction a value."""
        cubes = self.manager.cubes(self.index_bits, self.terminals.size)
        pieces = (self.manager.exists(self.index_bits, self.node & cube) for cube in cubes)
        return Partition(self.manager, dict(zip(self.terminals.tolist(), pieces, strict=True)), self.units)

    def table(self) -> NodeTable:
        """Return the nodes as arrays."""
        return read_nodes(self.manager, self.node)

    def mtbdd_nodes(self, table: NodeTable | None = None) -> tuple[int, int]:
        """Return the numbers of nodes and terminals of the MTBDD, zero counted where it occurs.

        Nodes include the terminals, as PRISM and CUDD count them.  Time: O(nodes).
        """
        table = table or self.table()
        depth = self.manager.index_level
        met = np.zeros((table.level.size, 2), dtype=np.bool_)  # a node and its negation are two
        met[table.root >> 1, table.root & 1] = True
        by_level = np.argsort(table.level, kind="stable")
        ends = np.searchsorted(table.level[by_level], np.arange(depth + 1))
        for begin, end in itertools.pairwise(ends.tolist()):
            rows, signs = np.nonzero(met[by_level[begin:end]])
            rows = by_level[begin:end][rows]
            for child in (table.low[rows] ^ signs, table.high[rows] ^ signs):
                met[child >> 1, child & 1] = True
        # Below the row and column bits every node spells a terminal; FALSE is the zero.
        nodes = int(met.sum())
        terminals = int(met[table.level >= depth].sum())
        return nodes, terminals

    def entries(self) -> tuple[int, list[float]]:
        """Return how many entries are not 0, however many, and their different values.

        Time: O(nodes) in numpy, with integers of Python.
        """
        table, depth = self.table(), self.manager.index_level
        levels = np.unique(table.level[table.level < depth])
        refs = np.array([table.root] if table.root != FALSE else [], dtype=np.int64)
        ways = np.ones(refs.size, dtype=np.object_)
        free = 2 * self.manager.n_bits - levels.size
        for level in levels.tolist():
            children = np.concatenate(table.cofactors(refs, level))
            live = children != FALSE
            refs, places = np.unique(children[live], return_inverse=True)
            above, ways = np.concatenate([ways, ways])[live], np.zeros(refs.size, dtype=np.object_)
            np.add.at(ways, places.reshape(-1), above)
        numbers = np.unique(self.terminal_numbers(table, refs))
        return int(ways.sum()) << free, self.terminals[numbers].tolist()

    def terminal_numbers(self, table: NodeTable, refs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the terminal number that each non-FALSE reference at the index bits spells."""
        numbers = np.zeros(refs.size, dtype=np.int64)
        start = self.manager.index_level
        for level in range(start, start + len(self.index_bits)):
            low, high = table.cofactors(refs, level)
            bit = low == FALSE
            numbers = 2 * numbers + bit
            refs = np.where(bit, high, low)
        return numbers


def merge_close(values: list[float]) -> dict[float, float]:
    """Return a representative for every value; values within 4 units in the last place share one.

    Rates that are equal on paper come out a rounding error apart when factors are multiplied in
    different orders, and would be different terminals.
    """
    representative: dict[float, float] = {}
    last = None
    for value in sorted(values):
        # Zero is no value of an entry, so nothing counts as close to it.
        if not last or value - last > 4 * np.spacing(abs(last)):
            last = value
        representative[value] = last
    return representative


def _distance(representative: dict[float, float]) -> float:
    """Return the greatest relative distance of a value from its representative, in units of 2^-53."""
    moved = [abs(r - v) / abs(v) for v, r in representative.items() if r != v]
    return max(moved, default=0.0) * 2.0**53 * (1 + 2.0**-40)  # lemma: entry-units
