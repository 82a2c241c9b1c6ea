"""Vectors that were kept by other processes than those that go on with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.checkpoints.digests import states_digest
from hybrid.analysis.checkpoints.folder import Description, KeptPart, damaged, vectors_of
from hybrid.matrix.parts.sharing import planned_owners
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import StateIndex, index_states

Put = Callable[[str, NDArray[np.int64], NDArray[np.float64]], None]
"""Takes the name of a vector, places among the own states, ascending, and elements for them."""


def former_owners(model: SymbolicModel, parts: int) -> tuple[Node, ...]:
    """Return whose states were whose where so many processes shared a model."""
    whole = model.whole
    return (whole.reachable,) if parts == 1 else planned_owners(whole, parts)


def take_over(model: SymbolicModel, states: StateIndex, told: Description, folder: Path, put: Put) -> None:
    """Read those elements of kept vectors that are of own states.

    Parameters
    ----------
    model : SymbolicModel
        As this process has it.
    states : StateIndex
        What the vectors are over; it numbers the own states.

    Raises
    ------
    CheckpointError
        Files are damaged, or states were divided in another way than this version does.

    Notes
    -----
    Time: O(elements kept) for the checks, and O(own states) in numpy for every bit.
    """
    manager = model.manager.whole
    own = states.states if model.manager.share is None else states.states & model.manager.share.own
    mine = index_states(manager, own)
    for part, owner in zip(told.parts, former_owners(model, len(told.parts)), strict=True):
        theirs = index_states(manager, states.states & owner)
        if theirs.size != part.size or states_digest(theirs) != part.states:
            raise damaged(folder / part.file, "its states are not those that such a process has")
        both = index_states(manager, own & owner)
        _take(folder, part, told.vectors, theirs.places(both), mine.places(both), put)


def _take(
    folder: Path,
    part: KeptPart,
    names: list[str],
    sources: NDArray[np.int64],
    places: NDArray[np.int64],
    put: Put,
) -> None:
    """Hand on the elements of one file."""
    for name, vector in vectors_of(folder, part, names).items():
        done = 0
        for place, chunk in vector.chunks():
            end = int(np.searchsorted(sources, place.stop))
            if end > done:
                put(name, places[done:end], chunk[sources[done:end] - place.start])
            done = end
