"""Functions moved between `dd` managers: a caller's into ours, ours into a caller's, whatever their orders.

A diagram is read out as arrays once, and rebuilt with one call of the target's package a node, from
the leaves up.  If the target orders its variables otherwise, its own if-then-else puts them in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.budget import check_budget
from mtbdd.base.sorting import sorted_values
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import TRUE, NodeTable, constant_nodes, dump_nodes, read_nodes, walk_nodes

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
