"""A plan of parts: which states every part of a model has, and what its rows receive from other parts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybrid.base.errors import OptionError
from hybrid.matrix.parts.cuts import StateSample, bisect, count_rows, prefix_counts, sample_states
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import index_states

_PREFIXES = 8
"""Prefixes a part, at least, with whose first states consecutive parts may begin."""

_TURNS = 16
"""First states that are tried, at most."""

_NOT_MORE = 1.1
"""Ratio of elements received, on a sample, up to which parts that begin elsewhere receive no more."""

_FEWER_NODES = 0.8
"""Ratio of nodes from which parts that begin elsewhere are taken instead."""

_SHOWN = 3
"""Cuts that a sentence names."""


@dataclass(frozen=True)
class MatrixPart:
    """One part of a matrix.

    Attributes
    ----------
    states : int
        Rows of the matrix, elements of every vector.
    transitions : int
    share : float
        Predicted time of its rows over that of a part if all took equally long.
    received : int
        Elements of x that other parts own and its rows need: its halo.
    partners : int
        Parts that it receives from.
    """

    states: int
    transitions: int
    share: float
    received: int
    partners: int

    def record(self) -> dict[str, Any]:
        """Return the part as plain JSON values, with bytes for one vector of doubles."""
        return {
            "states": self.states,
            "transitions": self.transitions,
            "share": self.share,
            "vector_bytes": 8 * self.states,
            "halo_elements": self.received,
            "halo_bytes": 8 * self.received,
            "partners": self.partners,
        }


@dataclass(frozen=True, eq=False)
class PartPlan:
    """The states of every part.

    Attributes
    ----------
    owners : tuple of Node
        Disjoint sets over row bits.
    cuts : tuple of str
        Sums by which the states were cut in two, one after the other.
    sampled : int
        States by which the cuts were chosen.
    """

    owners: tuple[Node, ...]
    cuts: tuple[str, ...]
    sampled: int

    def record(self, parts: Sequence[MatrixPart]) -> dict[str, Any]:
        """Return the plan, with what its parts have, as plain JSON values."""
        return {
            "cuts": list(self.cuts),
            "sampled_states": self.sampled,
            "parts": [part.record() for part in parts],
        }

    def describe(self) -> str:
        """Return one sentence on how the cuts were made."""
        named = list(dict.fromkeys(self.cuts))
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        by = f"cut by {'; '.join(named[:_SHOWN])}{more}" if named else "not cut"
        return f"{by}; chosen on {self.sampled:,} states"


def plan_parts(model: SymbolicModel, parts: int) -> PartPlan:
    """Cut a model's states into parts of equal work with little to receive, before anything is built.

    Parameters
    ----------
    model : SymbolicModel
    parts : int

    Returns
    -------
    PartPlan
        Every process finds the same one.

    Raises
    ------
    OptionError
        If there are fewer states than parts, or less than one part is requested.

    Notes
    -----
    Where all cuts are by the order of states, parts may begin at another state than the first one: where a
    variable goes round they receive no more, and rows with nodes of their own, which take longer, are shared
    out.  Time: that of `hybrid.matrix.parts.cuts.sample_states` and, for every halving,
    `hybrid.matrix.parts.cuts.Bisection.best`; nothing has the length of the state space.
    """
    size = model.index.size
    if parts < 1 or parts > max(size, 1):
        raise OptionError(f"parts: expected 1 .. {max(size, 1):,}, a part for a state at most, got {parts:,}")
    if parts == 1:
        return PartPlan((model.reachable,), (), 0)
    sample = sample_states(model, parts)
    owners, cuts = bisect(model, sample, parts)
    if not any(any(cut.signs) for cut in cuts):
        owners = _turned(model, sample, owners)
    return PartPlan(owners, tuple(cut.describe(sample.names) for cut in cuts), len(sample.number))


def planned_owners(model: SymbolicModel, parts: int) -> tuple[Node, ...]:
    """Return the states of every part of a plan; see `plan_parts`."""
    return plan_parts(model, parts).owners


def _turned(model: SymbolicModel, sample: StateSample, owners: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return consecutive parts from another first state on, if one of them then has far fewer nodes at most.

    First states are those of a prefix in the first part. Parts that receive more, as far as the sample
    shows, are not taken. Nodes are those below the prefixes.
    """
    parts, work = len(owners), np.cumsum(sample.work) - 0.5 * sample.work
    whole = work[-1] + 0.5 * sample.work[-1]
    counts = prefix_counts(model.index)
    bits = next((k for k, count in enumerate(counts) if count >= _PREFIXES * parts), len(counts) - 1)
    starts = model.index.prefixes(bits)[0]
    starts = starts[starts < sample.number[np.searchsorted(work, whole / parts)]]
    found, most = [owners], np.zeros(2)
    for start in starts[:: -(-len(starts) // _TURNS)].tolist():
        at = (
            work[min(int(np.searchsorted(sample.number, start)), len(work) - 1)]
            + np.arange(parts) * whole / parts
        )
        first = sample.number[np.minimum(np.searchsorted(work, at), len(work) - 1)]
        first[0] = start
        of, by = (np.searchsorted(first, number, "right") - 1 for number in (sample.number, sample.user))
        is_received = np.zeros((parts, len(of)), bool)
        is_received[by, sample.column] = True
        is_received[of, np.arange(len(of))] = False
        received = is_received.sum(axis=1)
        taken = np.array([received.max(), received.sum()])
        if start == 0:
            most = _NOT_MORE * taken
        elif (taken <= most).all() and (np.diff(first) > 0).all():
            before = [_below(model, number) for number in first.tolist()]
            inside = [after & ~own for own, after in zip(before, before[1:], strict=False)]
            found.append(tuple(model.reachable & own for own in (*inside, before[0] | ~before[-1])))
    nodes = [max(count_rows(model, owner, 2 * bits).nodes for owner in each) for each in found]
    least = int(np.argmin(nodes))
    return found[least] if nodes[least] <= _FEWER_NODES * nodes[0] else owners


def _below(model: SymbolicModel, number: int) -> Node:
    """Return the codes before that of a state, as a set over row bits."""
    code = int("".join("1" if bit else "0" for bit in model.index.bits_at(np.array([number]))[0]) or "0", 2)
    return model.manager.at_most(model.manager.rows, code - 1) if code else model.manager.false


def measure_parts(model: SymbolicModel, plan: PartPlan) -> tuple[MatrixPart, ...]:
    """Count what every part has and receives, exactly.

    Time: O(nodes log nodes) in numpy and one image of its states for every part.
    """
    manager = model.manager
    support = manager.disjunction(model.layer_relation(layer) for layer in range(len(model.layers)))
    counts = [count_rows(model, owner) for owner in plan.owners]
    mean, found = max(sum(own.work for own in counts) / len(counts), 1.0), []
    for owner, own in zip(plan.owners, counts, strict=True):
        used = manager.to_rows(manager.and_exists(support, owner, manager.rows))
        received = index_states(manager, used & model.reachable & ~owner).size
        partners = sum(other != owner and manager.meet(used, other) for other in plan.owners)
        found.append(MatrixPart(own.states, own.entries, own.work / mean, received, partners))
    return tuple(found)


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
