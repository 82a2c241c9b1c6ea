"""A set of states that processes have found parts of, made whole in all of them."""

from __future__ import annotations

import numpy as np

from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.nodes import NodeTable, read_nodes
from mtbdd.diagrams.transfer import made_of_table

_BOTTOM = np.iinfo(np.int64).max


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
        tested = np.unique(level[level != _BOTTOM])
        variables = {n: manager.bdd.var(f"b{n}") for n in tested.tolist()}
        found.append(made_of_table(NodeTable(level, low, high, int(numbers[0])), manager.bdd, variables))
    return manager.disjunction(found)
