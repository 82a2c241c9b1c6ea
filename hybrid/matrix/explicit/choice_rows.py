"""The layers of a decision process in one: a row a choice, the choices of every state one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpu_kernels import ChoiceRows
from gpu_kernels.runtime.csr import index_types
from gpu_kernels.runtime.ragged import pointers
from hybrid.base.lists import concatenated_ranges


@dataclass(frozen=True, eq=False)
class LayerRows:
    """The choices of one layer, by state.

    Attributes
    ----------
    number : int
        The layer's.
    states : ndarray, shape (choices,), int64, or None
        The states that have a choice, ascending; None for those with transitions.
    lengths : ndarray, shape (choices,), integers
        Transitions of every choice; where `states` is None, of every state.
    columns : ndarray, shape (transitions,), int32 or int64
        Their targets, choice after choice.
    values : ndarray, shape (transitions,), float64, or None
        Their probabilities, for all layers or for none.
    gains : ndarray, shape (choices,), float64, or None
        What each choice is worth by itself, for all layers or for none.
    """

    number: int
    states: NDArray[np.int64] | None
    lengths: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[np.float64] | None = None
    gains: NDArray[np.float64] | None = None


def merge_layers(
    layers: Sequence[LayerRows], n_states: int, number: DTypeLike = np.uint16, n_columns: int | None = None
) -> ChoiceRows:
    """Merge layers by counting.

    Parameters
    ----------
    layers : sequence of LayerRows
        In the order that the choices of a state shall have.
    n_states : int
        Sources.
    number : dtype
        Of the layers' numbers.
    n_columns : int, optional
        Targets; default as many.

    Returns
    -------
    ChoiceRows
        On the host; with values and gains if the layers have them.

    Notes
    -----
    Time: O(transitions + states * layers).
    """
    choices, transitions = np.zeros(n_states, np.int64), np.zeros(n_states, np.int64)
    for own in layers:
        if own.states is None:
            choices += own.lengths > 0
            transitions += own.lengths
        else:
            choices[own.states] += 1
            transitions[own.states] += own.lengths
    choice, cursor = pointers(np, choices), pointers(np, transitions)[:-1]
    total, entries = int(choice[-1]), int(transitions.sum())
    index, column = index_types(n_states if n_columns is None else n_columns, max(entries, total))
    choice_ptr = choice.astype(index)
    offsets: NDArray[Any] = np.full(total + 1, entries, index)
    columns: NDArray[Any] = np.empty(entries, column)
    values = None if any(own.values is None for own in layers) else np.empty(entries)
    gains = None if any(own.gains is None for own in layers) else np.empty(total)
    numbers: NDArray[Any] = np.empty(total, number)
    for own in layers:
        states = np.flatnonzero(own.lengths) if own.states is None else own.states
        lengths = (own.lengths[states] if own.states is None else own.lengths).astype(np.int64)
        here, starts = choice[states], cursor[states]
        where = concatenated_ranges(starts, lengths)
        columns[where] = own.columns
        if values is not None:
            values[where] = own.values
        offsets[here], numbers[here] = starts, own.number
        if gains is not None:
            gains[here] = own.gains
        cursor[states] += lengths
        choice[states] += 1
    return ChoiceRows(choice_ptr, offsets, columns, values, gains, numbers)
