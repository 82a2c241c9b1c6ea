"""Layers of choices of which processes have stretches of states, made of dense arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import Quotient
from mtbdd.base.communicator import Communicator
from mtbdd.offset.distributed import DistributedMTBDD, beside
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.choice_systems import Choices
from tests.builders.matrices import from_dense, to_dense

__all__ = ["divided_layers", "own_groups", "own_offers", "received"]

Dense = NDArray[np.float64]


def received(dense: Mapping[int, Dense], cuts: Sequence[int], rank: int) -> list[NDArray[np.int64]]:
    """Return the columns of every process that rows of one read in some layer; none of its own."""
    rows = slice(cuts[rank], cuts[rank + 1])
    read = np.logical_or.reduce([matrix[rows].any(axis=0) for matrix in dense.values()])
    read[rows] = False
    return [begin + np.flatnonzero(read[begin:end]) for begin, end in pairwise(cuts)]


def divided_layers(
    dense: Mapping[int, Dense], cuts: Sequence[int], communicator: Communicator
) -> dict[int, DistributedMTBDD]:
    """Return the own rows of every layer.

    Parameters
    ----------
    dense : mapping of int to ndarray, shape (n, n)
        By layer.
    cuts : sequence of int
        Process p has the states ``cuts[p] .. cuts[p + 1]``.
    communicator : Communicator
    """
    rank, size = communicator.rank, communicator.size
    begin, end = cuts[rank], cuts[rank + 1]
    needed = [received(dense, cuts, process) for process in range(size)]
    bits = max(cuts[-1] - 1, 1).bit_length()
    others = [p for p in range(size) if p != rank]

    def block(matrix: Dense, columns: NDArray[np.int64], first: int) -> OffsetMTBDD:
        codes = np.arange(end - begin)
        return from_dense(matrix[begin:end][:, columns], codes, columns - first, bits)

    found = {}
    for layer, matrix in dense.items():
        blocks = [block(matrix, np.arange(begin, end), begin)]
        together = beside(blocks + [block(matrix, needed[rank][p], cuts[p]) for p in others])
        found[layer] = DistributedMTBDD(
            **{field.name: getattr(together, field.name) for field in fields(OffsetMTBDD)},
            own_columns=end - begin,
            outgoing=tuple(_runs(needed[p][rank] - begin) for p in range(size)),
            incoming=tuple(len(columns) for columns in needed[rank]),
            communicator=communicator,
            has_entries=bool(matrix.any()),
        )
    return found


def own_offers(case: Choices, cuts: Sequence[int], communicator: Communicator) -> list[LayerChoices]:
    """Return the own rows of offers that have one for every state."""
    rows = slice(cuts[communicator.rank], cuts[communicator.rank + 1])
    dense = {o.layer: to_dense(o.matrix) for o in case.offers if o.matrix is not None}
    matrices = divided_layers(dense, cuts, communicator)
    return [
        LayerChoices(
            o.layer, None, matrices.get(o.layer), o.gain[rows], None if o.factor is None else o.factor[rows]
        )
        for o in case.offers
    ]


def own_groups(groups: Quotient, cuts: Sequence[int], rank: int) -> Quotient | None:
    """Return a process's members of groups; None where neither it has one nor several have one together."""
    every = np.split(groups.members, groups.starts[1:])
    owners = [np.unique(np.searchsorted(cuts, members, "right")) for members in every]
    shared = [number for number, own in enumerate(owners) if len(own) > 1]
    begin, end = cuts[rank], cuts[rank + 1]
    mine = [members[(members >= begin) & (members < end)] - begin for members in every]
    held = [number for number, members in enumerate(mine) if len(members)]
    if not held and not shared:
        return None
    sizes = np.array([len(mine[number]) for number in held], np.int64)
    return Quotient(
        np.concatenate([np.zeros(0, np.int64), *(mine[number] for number in held)]),
        np.cumsum(sizes) - sizes,
        np.array([shared.index(n) if n in shared else -1 for n in held], np.int64),
        len(shared),
    )


def _runs(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ascending numbers as ranges, shape (runs, 2)."""
    breaks = np.flatnonzero(np.diff(places) > 1) + 1
    pieces = [piece for piece in np.split(places, breaks) if len(piece)]
    return np.array([(piece[0], piece[-1] + 1) for piece in pieces], np.int64).reshape(-1, 2)
