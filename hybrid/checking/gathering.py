"""Values of states that processes share, brought together where a filter asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import UnknownError, UnsupportedError
from hybrid.base.state_values import StateTruth, StateValues
from mtbdd.base.communicator import Communicator
from mtbdd.build.part_model import PartModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.states import StateIndex, index_states

MOST_GATHERED = 1 << 24
"""States whose values are brought together, at most."""


def gathered(
    communicator: Communicator, found: StateValues | StateTruth, places: NDArray[np.int64]
) -> StateValues | StateTruth:
    """Return the values of some states of all processes, process by process.

    Parameters
    ----------
    communicator : Communicator
    found : StateValues or StateTruth
        Of own states.
    places : ndarray of int64
        Which of them.

    Raises
    ------
    UnsupportedError
        There are too many of them.
    """
    total = int(communicator.total([places.size])[0])
    if total > MOST_GATHERED:
        raise UnsupportedError(
            f"a filter over {total:,} states that several processes share: expected {MOST_GATHERED:,} at "
            "most; ask about fewer states, or with one process"
        )
    some = found.at(places)
    if isinstance(some, StateTruth):
        values = _together(communicator, some.values)
        unknown = _together(communicator, _mask(some.unknown, places.size))
        unproven = _together(communicator, _mask(some.unproven, places.size))
        reason = communicator.first_text(some.reason or None) or ""
        return StateTruth(
            values, unknown if unknown.any() else None, unproven if unproven.any() else None, reason
        )
    if communicator.all(some.is_exact):
        return StateValues.exact(_together(communicator, some.values))
    parts = [_together(communicator, part) for part in (some.values, some.lower, some.upper)]
    below, above = (
        _together(communicator, _mask(m, places.size)) for m in (some.open_lower, some.open_upper)
    )
    return StateValues(parts[0], parts[1], parts[2], below, above)


def gathered_whole(
    model: PartModel, found: StateValues | StateTruth, states: Node, within: StateIndex
) -> tuple[StateValues | StateTruth, StateIndex]:
    """Return the values of some states of all processes, and the index that numbers all of these.

    Parameters
    ----------
    model : PartModel
    found : StateValues or StateTruth
        Over the own states of `within`.
    states : Node
        Those wanted, among `within`.
    within : StateIndex

    Raises
    ------
    UnsupportedError
        There are too many of them.

    Notes
    -----
    Every process owns its states whoever asks, so that places need not be sent.
    """
    share, whole = model.manager.share, model.manager.whole
    assert share is not None
    together = gathered(share.communicator, found, np.flatnonzero(model.indicator(states, within)))
    index = index_states(whole, states)
    places = [index.places(index_states(whole, states & owner)) for owner in share.owners]
    return together.at(np.argsort(np.concatenate(places))), index


def decided_by_all(communicator: Communicator, truth: StateTruth) -> NDArray[np.bool_]:
    """Return the truth in the own states, where no process has one that is unknown.

    Raises
    ------
    UnknownError
    """
    is_unknown = truth.unknown is not None and bool(truth.unknown.any())
    reason = communicator.first_text(truth.reason if is_unknown else None)
    if reason is not None:
        raise UnknownError(reason)
    return truth.values


def _mask(mask: NDArray[np.bool_] | None, size: int) -> NDArray[np.bool_]:
    return np.zeros(size, np.bool_) if mask is None else mask


def _together(communicator: Communicator, own: NDArray[Any]) -> NDArray[Any]:
    """Return the elements of all processes."""
    found = communicator.gather_bytes(np.ascontiguousarray(own).tobytes())
    return np.concatenate([np.frombuffer(part, own.dtype) for part in found])
