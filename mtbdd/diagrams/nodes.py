"""A decision diagram read out of the BDD package as arrays, one row a node.

The package's own text dump is written at C speed and parsed as one block of numbers. So a diagram of 10^5
nodes is read in tens of milliseconds. Reading its nodes one by one from Python would cost several
microseconds each.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.records import Record
from mtbdd.diagrams.manager import Manager, Node

# A level of a diagram made from pairs of diagrams below it: equal pairs become one node.


def distinct_pairs(keys: NDArray[np.int64], width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct pairs, 0 always among them, and every pair's place.

    `keys` (ndarray of int64, shape (n,)): ``width * low + high`` of each pair of numbers below `width`. Time:
    O(n) where the pairs are few beside those possible, else O(n log n).
    """
    if width * width <= max(4 * keys.size, 1024):
        seen = np.zeros(width * width, dtype=np.bool_)
        seen[keys] = True
        seen[0] = True
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[keys]
    distinct, places = np.unique(np.append(keys, 0), return_inverse=True)
    return distinct, places.reshape(-1)[:-1]


def nodes_of_pairs(
    manager: Manager, name: str, below: Sequence[Node], low: NDArray[np.integer], high: NDArray[np.integer]
) -> list[Node]:
    """Return the diagrams that test a bit and go on in the given places of `below`."""
    variable, ite = manager.bdd.var(name), manager.bdd.ite
    return [
        below[a] if a == b else ite(variable, below[b], below[a])
        for a, b in zip(low.tolist(), high.tolist(), strict=True)
    ]


TRUE = 2  # references: twice the row in the table, plus 1 for a negated edge
FALSE = 3

Ref = NDArray[np.int64]


class NodeTable(Record):
    """The nodes of a BDD with negated edges; its arrays cannot be written to.

    A reference is ``2 * row + negated``; row 1 is the constant TRUE, so `TRUE` is 2 and `FALSE` is 3. A node
    and its negation are different references, and different MTBDD nodes. `level` (ndarray of int64, shape (n
    + 1,)): level of each node's variable; constants lie below every variable. `low`, `high` (ndarray of int32
    or int64, shape (n + 1,)): references of the else and then children. `root`: reference of the diagram's
    root.
    """

    level: NDArray[np.int64]
    low: NDArray[np.signedinteger]
    high: NDArray[np.signedinteger]
    root: int

    def __post_init__(self) -> None:
        """Protect the arrays: several callers may hold one table."""
        for column in (self.level, self.low, self.high):
            column.flags.writeable = False

    def cofactors(self, refs: Ref, level: int) -> tuple[Ref, Ref]:
        """Return the else and then cofactors of references at one level; skipped levels yield the same twice.

        Time: O(len(refs)) in numpy.
        """
        row, sign = refs >> 1, refs & 1
        here = self.level[row] == level
        low = np.where(here, self.low[row] ^ sign, refs)
        high = np.where(here, self.high[row] ^ sign, refs)
        return low, high

    def followed(self, refs: Ref, level: int, bits: NDArray[np.bool_]) -> Ref:
        """Return the cofactor of each reference at one level by a bit of its own, shape (len(refs),).

        Time: O(len(refs)) in numpy.
        """
        row = refs >> 1
        below = np.where(bits, self.high[row], self.low[row])
        found: Ref = np.where(self.level[row] == level, below ^ (refs & 1), refs)
        return found


_OVERHEAD = 64
"""Nodes that take as much memory as a table without any."""

_LETTERS = bytes.maketrans(b"bT", b"  ")
_PART = 1 << 24  # bytes of a dump that are read at a time


def read_nodes(manager: Manager, u: Node) -> NodeTable:
    """Return the nodes of `u` as arrays.

    Time: O(nodes), unless the same diagram was read a short while ago: several functions of a set are read
    out one after the other.
    """
    if u in (manager.true, manager.false):
        return constant_nodes(u == manager.true)
    found = manager.tables.get(u)
    if found is None:
        found = _read(manager, u)
        manager.tables.keep(u, found, found.level.size + _OVERHEAD)
    return found


def constant_nodes(is_true: bool) -> NodeTable:
    """Return the table of a constant."""
    level = np.full(2, np.iinfo(np.int64).max, dtype=np.int64)
    self_loop = np.array([TRUE, TRUE], dtype=np.int64)
    return NodeTable(level, self_loop, self_loop, TRUE if is_true else FALSE)


def _read(manager: Manager, u: Node) -> NodeTable:
    """Read a diagram that is no constant."""
    if manager.is_cudd:
        with dumped_nodes(manager.bdd, u) as file:
            found = _read_dump(file)
        if found is not None:
            return found
    return walk_nodes(manager.bdd, u)


def _read_dump(file: BinaryIO) -> NodeTable | None:
    """Read CUDD's DDDMP text: lines `id b<level> <index> <then> <else>`, negative ids are negated edges.

    Returns NodeTable or None: None if the text is cut: CUDD does not tell of a full disk or a limit of files'
    sizes. Some of the text at a time: of large diagrams it is longer than the table.
    """
    facts = {}
    for line in file:
        if line == b".nodes\n":
            break
        name, _, value = line.partition(b" ")
        facts[name] = value
    else:
        return None
    root, size = int(facts[b".rootids"].split()[0]), int(facts[b".nnodes"]) + 1
    level = np.full(size, np.iinfo(np.int64).max, dtype=np.int64)
    kind = np.dtype(np.int32 if size < 1 << 30 else np.int64)
    low: NDArray[np.signedinteger] = np.full(size, TRUE, dtype=kind)
    high: NDArray[np.signedinteger] = np.full(size, TRUE, dtype=kind)
    file.readline()  # the constant
    rest, is_whole = b"", False
    while not is_whole:
        part = file.read(_PART)
        if not part:
            return None
        lines, newline, rest = (rest + part).rpartition(b"\n")
        if lines.endswith(b".end") or lines == b".end":
            lines, is_whole = lines.removesuffix(b".end"), True
        elif not newline:
            continue
        numbers = np.fromstring(lines.translate(_LETTERS), dtype=np.int64, sep=" ").reshape(-1, 5)
        ids = numbers[:, 0]
        level[ids] = numbers[:, 1]
        high[ids] = 2 * np.abs(numbers[:, 3]) + (numbers[:, 3] < 0)
        low[ids] = 2 * np.abs(numbers[:, 4]) + (numbers[:, 4] < 0)
    return NodeTable(level, low, high, 2 * abs(root) + (root < 0))


@contextmanager
def dumped_nodes(bdd: Any, u: Node) -> Iterator[BinaryIO]:
    """Open the text of CUDD's dump, empty or cut if there is no room for it.

    In memory where the system has files there, which saves most of the time.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        with open(os.memfd_create("nodes"), "rb") as file:
            bdd.dump(f"/proc/self/fd/{file.fileno()}", [u], filetype="dddmp")
            yield file
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mtbdd-") as folder:
        path = Path(folder) / "nodes.dddmp"
        bdd.dump(str(path), [u], filetype="dddmp")
        with path.open("rb") as file:
            yield file


def dump_nodes(bdd: Any, u: Node) -> bytes:
    """Return the text of CUDD's dump, empty or cut if there is no room for it."""
    with dumped_nodes(bdd, u) as file:
        return file.read()


def walk_nodes(bdd: Any, u: Node) -> NodeTable:
    """Walk the diagram through the package's Python interface, where there is no C dump or no room for it."""
    rows: dict[int, int] = {}
    order: list[Node] = []
    stack = [u]
    while stack:
        node = stack.pop()
        key = int(~node if node.negated else node)
        if key in rows or node.var is None:
            continue
        rows[key] = len(order) + 2
        order.append(~node if node.negated else node)
        _, low, high = bdd.succ(node)
        stack += [low, high]

    def reference(node: Node) -> int:
        if node.var is None:
            return TRUE if node == bdd.true else FALSE
        return 2 * rows[int(~node if node.negated else node)] + int(node.negated)

    level = np.full(len(order) + 2, np.iinfo(np.int64).max, dtype=np.int64)
    low_of = np.full(len(order) + 2, TRUE, dtype=np.int64)
    high_of = np.full(len(order) + 2, TRUE, dtype=np.int64)
    for row, node in enumerate(order, start=2):
        depth, low, high = bdd.succ(node)
        level[row], low_of[row], high_of[row] = depth, reference(low), reference(high)
    return NodeTable(level, low_of, high_of, reference(u))
