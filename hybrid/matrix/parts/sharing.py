"""Whose states are whose: a plan of parts as sets of states."""

from __future__ import annotations

import hashlib

import numpy as np

from hybrid.base.errors import OptionError
from hybrid.matrix.parts.plan import PartPlan, plan_parts
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node


def owners_of(model: SymbolicModel, plan: PartPlan) -> tuple[Node, ...]:
    """Return for every part its states, disjoint sets over row bits.

    Time: O(prefix groups) calls of the package.
    """
    manager, groups = model.manager, plan.groups
    _, first = np.unique(groups.number, return_index=True)
    prefixes = model.index.bits_at(groups.start[first])[:, list(groups.tested)].tolist()
    names = [manager.rows[bit] for bit in groups.tested]
    cubes = [_cube(manager, dict(zip(names, row, strict=True))) for row in prefixes]
    return tuple(
        model.reachable & manager.disjunction(cubes[group] for group in np.flatnonzero(plan.part == part))
        for part in range(len(plan.parts))
    )


def _cube(manager: Manager, values: dict[str, bool]) -> Node:
    return manager.bdd.cube(values) if values else manager.true


def planned_owners(model: SymbolicModel, parts: int) -> tuple[Node, ...]:
    """Cut a model's states into parts of equal work with little to exchange; see `plan_parts`.

    Raises
    ------
    OptionError
        If there are fewer states than parts.
    """
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    return owners_of(model, plan_parts(model.index, matrices, parts, fields_of(model)))


def fields_of(model: SymbolicModel) -> list[tuple[int, ...]]:
    """Return the bits of every variable, in their order."""
    return [variable.bits for variable in model.encoding.variables]


def require_same(model: SymbolicModel, communicator: Communicator) -> None:
    """Refuse to go on where processes have built different models.

    Raises
    ------
    OptionError
        In all processes alike.

    Notes
    -----
    Digests of the diagrams are compared.  Time: O(nodes).
    """
    if len(set(communicator.gather_bytes(matrix_digest(model)))) > 1:
        raise OptionError(
            "the processes have built different models: start all of them with the same files, constants and "
            "versions"
        )


def matrix_digest(model: SymbolicModel) -> bytes:
    """Return a digest of a model's kind, variables and matrices, 32 bytes.  Time: O(nodes)."""
    digest = hashlib.sha256(repr((model.type.value, len(model.layers), model.encoding.shown)).encode())
    for layer in range(len(model.layers)):
        matrix = model.layer_transitions(layer)
        for level in matrix.levels:
            for array in (level.low, level.high, level.offset):
                digest.update(array.tobytes())
        digest.update(matrix.terminals.tobytes())
    return digest.digest()
