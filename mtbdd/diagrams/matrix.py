"""Real matrices as one BDD: terminal numbers spelled by index bits below all other bits.

A matrix with m distinct non-zero values v_0 .. v_{m-1} is the disjunction of
(entries equal to v_k) and (index bits spell k); zero is FALSE.  The diagram is canonical
and its nodes above the index bits are the nodes of the MTBDD.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.records import Record
from mtbdd.base.sorting import sorted_values
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import FALSE, TRUE, NodeTable, constant_nodes, dump_nodes, read_nodes, walk_nodes
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


# Functions moved between `dd` managers: a caller's into ours, ours into a caller's, whatever their orders.
#
# A diagram is read out as arrays once, and rebuilt with one call of the target's package a node, from
# the leaves up.  If the target orders its variables otherwise, its own if-then-else puts them in place.

BACK_ENDS = ("dd.autoref", "dd.cudd")
"""Modules whose managers are understood: BDDs with negated edges behind the common interface."""

_BOTTOM = np.iinfo(np.int64).max


def is_manager(bdd: Any) -> bool:
    """Whether an object is a `dd` manager of BDDs that can be read and written here."""
    return any(kind.__module__ in BACK_ENDS and kind.__name__ == "BDD" for kind in type(bdd).__mro__)


def is_node(bdd: Any, node: Any) -> bool:
    """Whether an object is a function of a `dd` manager."""
    try:
        return node in bdd
    except (TypeError, ValueError, AttributeError):  # of no manager, of another one, no function at all
        return False


def transferred(source: Any, node: Node, target: Any, names: Mapping[str, str]) -> Node:
    """Return a function of one `dd` manager as one of another, variables renamed.

    Parameters
    ----------
    source : dd manager
        Of `dd.cudd` or `dd.autoref`.
    node : Node
        A function of it.
    target : dd manager
        May be of the other back end, and may order its variables otherwise.
    names : mapping of str to str
        The target's name of every variable that the function depends on; two never have the same.

    Returns
    -------
    Node
        Of the target.

    Raises
    ------
    ValueError
        The function depends on a variable without a name in the target.

    Notes
    -----
    Time: one call of the target's package a node; where the orders differ, a call costs as much as the
    diagrams that it works on are large.
    """
    table = read_diagram(source, node)
    levels = sorted_values(table.level[_present(table)])
    variables: dict[int, Node] = {}
    for level in levels.tolist():
        name = source.var_at_level(level)
        if name not in names:
            raise ValueError(f"the function depends on {name!r}, which has no name in the target manager")
        variables[level] = target.var(names[name])
    return made_of_table(table, target, variables)


def to_dd(
    matrix: SymbolicMatrix, bdd: Any, rows: Sequence[str], columns: Sequence[str]
) -> list[tuple[float, Node]]:
    """Return a symbolic matrix as sets of a caller's `dd` manager, one a value.

    Parameters
    ----------
    matrix : SymbolicMatrix
    bdd : dd manager
        Of `dd.cudd` or `dd.autoref`.
    rows, columns : sequence of str
        Declared variables that stand for the row and the column bits, from bit 0 on; `n_bits` each. No
        columns are needed for a vector.

    Returns
    -------
    list of (float, Node)
        Every value but 0, ascending, and where the matrix has it; the sets are disjoint.

    Raises
    ------
    ValueError
        A manager of another kind, names that it does not have, or too few or repeated ones.

    Notes
    -----
    Time: one call of the package for every node of every set.
    """
    manager = matrix.manager
    if not is_manager(bdd):
        raise ValueError(f"expected a manager of {' or '.join(BACK_ENDS)}, got {type(bdd).__name__}")
    n = manager.n_bits
    names = [*rows, *columns]
    if len(rows) != n or len(columns) not in (0, n):
        raise ValueError(f"expected {n} row and {n} column variables, got {len(rows)} and {len(columns)}")
    if len(set(names)) != len(names):
        raise ValueError("expected distinct row and column variables, got one twice")
    declared = set(bdd.vars)
    if missing := [name for name in names if name not in declared]:
        raise ValueError(f"the manager has no variable {missing[0]!r}; declare it with `bdd.declare`")
    variables = {manager.row_level(i): bdd.var(name) for i, name in enumerate(rows)}
    variables |= {manager.column_level(i): bdd.var(name) for i, name in enumerate(columns)}
    index = matrix.index_bits
    parts = []
    for number, value in enumerate(matrix.terminals.tolist()):
        spelled = {name: bool(number >> (len(index) - 1 - i) & 1) for i, name in enumerate(index)}
        entries = manager.bdd.let(spelled, matrix.node) if index else matrix.node
        table = read_nodes(manager, entries)
        if any(level not in variables for level in sorted_values(table.level[_present(table)]).tolist()):
            raise ValueError("the function depends on column bits: name the column variables, too")
        if entries != manager.false:
            parts.append((value, made_of_table(table, bdd, variables)))
    return parts


def read_diagram(bdd: Any, node: Node) -> NodeTable:
    """Return the nodes of a function of any `dd` manager as arrays; levels are those of its order.

    Time: O(nodes), in C where the manager is CUDD's.
    """
    if node in (bdd.true, bdd.false):
        return constant_nodes(node == bdd.true)
    # Names are written into the dump as they are: those with line breaks would tear it.
    plain = all(name.isprintable() for name in bdd.vars)
    if type(bdd).__module__ == "dd.cudd" and plain:
        text = dump_nodes(bdd, node)
        if text.endswith(b".end\n"):
            return _read_dump(text)
    return walk_nodes(bdd, node)


_LINE = re.compile(rb"^(\d+) .* (\d+) (-?\d+) (-?\d+)$", re.MULTILINE)


def _read_dump(text: bytes) -> NodeTable:
    """Read CUDD's DDDMP text, any names: lines `id name rank then else`, ranks among the levels in use."""
    header, body = text.split(b"\n.nodes\n", 1)
    root = int(header.rsplit(b"\n.rootids", 1)[1].split(maxsplit=1)[0])
    places = header.rsplit(b"\n.permids", 1)[1].split(b"\n", 1)[0]
    levels = np.sort(np.array(places.split(), dtype=np.int64))
    lines = body.rsplit(b"\n.end", 1)[0].split(b"\n", 1)[1]  # the first line is the constant
    numbers = np.fromstring(_LINE.sub(rb"\1 \2 \3 \4", lines), dtype=np.int64, sep=" ").reshape(-1, 4)
    size = int(numbers[:, 0].max()) + 1
    level = np.full(size, _BOTTOM, dtype=np.int64)
    low = np.full(size, TRUE, dtype=np.int64)
    high = np.full(size, TRUE, dtype=np.int64)
    ids = numbers[:, 0]
    level[ids] = levels[numbers[:, 1]]
    high[ids] = 2 * np.abs(numbers[:, 2]) + (numbers[:, 2] < 0)
    low[ids] = 2 * np.abs(numbers[:, 3]) + (numbers[:, 3] < 0)
    return NodeTable(level, low, high, 2 * abs(root) + (root < 0))


def _present(table: NodeTable) -> NDArray[np.bool_]:
    """Return which rows are nodes, not constants."""
    present: NDArray[np.bool_] = table.level != _BOTTOM
    return present


def made_of_table(table: NodeTable, bdd: Any, variables: Mapping[int, Node]) -> Node:
    """Make the nodes of a table in a manager, from the leaves up; every level has a variable."""
    made: list[Node] = [None] * table.level.size
    made[TRUE >> 1] = bdd.true
    order = np.flatnonzero(_present(table))
    order = order[np.argsort(-table.level[order], kind="stable")]
    levels, lows, highs = table.level[order], table.low[order], table.high[order]
    quads = zip(order.tolist(), levels.tolist(), lows.tolist(), highs.tolist(), strict=True)
    for row, level, low, high in quads:
        if row % 4096 == 0:
            check_budget()
        below, above = made[low >> 1], made[high >> 1]
        made[row] = bdd.ite(variables[level], ~above if high & 1 else above, ~below if low & 1 else below)
    root = made[table.root >> 1]
    return ~root if table.root & 1 else root


def manager_names(manager: Manager, rows: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Return our names of a caller's row and column variables, given in the order of our bits."""
    return dict(zip(rows, manager.rows, strict=True)) | dict(zip(columns, manager.columns, strict=True))


# A set of states that processes have found parts of, made whole in all of them.


def united(manager: Manager, states: Node) -> Node:
    """Return the union of the sets that the processes have found.

    Parameters
    ----------
    manager : Manager
        Of this process; all have the same variables.
    states : Node
        What this process has found.

    Notes
    -----
    Sets are sent as the nodes of their diagrams.  Time: O(nodes) a process, and one call of the package a
    node.
    """
    communicator = manager.communicator
    if communicator.size == 1:
        return states
    table = read_nodes(manager, states)
    arrays = np.concatenate(([table.root, table.level.size], table.level, table.low, table.high))
    found = []
    for sent in communicator.gather_bytes(arrays.astype(np.int64).tobytes()):
        numbers = np.frombuffer(sent, np.int64)
        level, low, high = numbers[2:].reshape(3, int(numbers[1]))
        tested = sorted_values(level[level != _BOTTOM])
        variables = {n: manager.bdd.var(f"b{n}") for n in tested.tolist()}
        found.append(made_of_table(NodeTable(level, low, high, int(numbers[0])), manager.bdd, variables))
    return manager.disjunction(found)
