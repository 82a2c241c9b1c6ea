"""Which numbers a process's own states have among those of all, where processes share the states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.build.numbering import keeps_order, sorted_places, text_keys

_ROUND = 1 << 18
"""States whose places in the text's order are found together."""


def own_numbers(model: SymbolicModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the own states among all, ascending, and their indices among the own.

    Parameters
    ----------
    model : SymbolicModel
        As this process has it.  All processes call it at once.

    Returns
    -------
    numbers, indices : ndarray of int64, shape (own states,)

    Raises
    ------
    MemoryError
        There is no room for the numbers.

    Notes
    -----
    Memory: some words for every own state, and the keys of some 260,000 states; a numbering that was given
    to the model is held already.  Time: O(own states) in numpy for every bit where the diagram keeps the
    order of the text; in another order own states are sorted, and merged with those of the others.
    """
    whole = model.whole
    given = None if whole.given is None else whole.given.numbering
    held = vars(whole).get("numbering") if given is None else given
    if held is not None:
        return _given(held, whole.index.places(model.index))
    if "numbering" in vars(whole) or keeps_order(whole.encoding):
        return whole.index.places(model.index), np.arange(model.index.size)
    return _merged(model)


def _given(
    numbering: NDArray[np.int64], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Look for the own states in a list of all, some at a time."""
    numbers, indices = np.empty_like(places), np.empty_like(places)
    done = 0
    for begin in range(0, numbering.size if places.size else 0, _ROUND):
        part = numbering[begin : begin + _ROUND]
        found = np.minimum(np.searchsorted(places, part), places.size - 1)
        own = np.flatnonzero(places[found] == part)
        numbers[done : done + own.size], indices[done : done + own.size] = begin + own, found[own]
        done += own.size
    return numbers, indices


def _merged(model: SymbolicModel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sort the own states in the order of the text, and find their places among those of all processes.

    In every round each process shows its next states.  Up to the least of the last states shown, of those
    processes that have more, all are known.
    """
    communicator, index = model.communicator, model.index
    order = sorted_places(model.encoding, index)
    numbers = np.empty_like(order)
    piece = -(-_ROUND // communicator.size)
    done = told = 0
    while True:
        shown = text_keys(model.encoding, index, order[done : done + piece])
        sizes, more = communicator.gather([shown.shape[1], done + piece < order.size]).T
        found = communicator.gather_bytes(shown.tobytes())
        parts = [np.frombuffer(part, np.int64).reshape(shown.shape[0], -1) for part in found]
        places = np.empty(int(sizes.sum()), np.int64)
        places[np.lexsort(np.concatenate(parts, axis=1)[::-1])] = np.arange(places.size)
        ends = np.cumsum(sizes).astype(np.int64)
        unfinished = ends[more > 0] - 1
        known = int(places[unfinished].min()) + 1 if unfinished.size else places.size
        end = int(ends[communicator.rank])
        own = places[end - shown.shape[1] : end]
        own = own[own < known]
        numbers[done : done + own.size] = told + own
        done, told = done + own.size, told + known
        if not unfinished.size:
            return numbers, order
