"""Choices of a decision process that came as a list, gathered into layers of at most one a state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.explicit_model import ExplicitModel, Mask, Numbers

_MOST_CLASSES = 1024
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class ListedLayer:
    """Choices of which no state has two.

    Attributes
    ----------
    choices : ndarray of int64
        Their numbers in the source, ascending.
    states : ndarray of int64
        Their states.
    """

    choices: Numbers
    states: Numbers


def choice_layers(model: ExplicitModel, moves: NDArray[np.integer] | None) -> list[ListedLayer]:
    """Return the choices of all states in layers.

    Parameters
    ----------
    model : ExplicitModel
        An MDP.
    moves : ndarray of integers, shape (n_entries,), or None
        Every entry's move, see `hybrid.interchange.compressing.moves`.

    Notes
    -----
    Choices with the same action and moves are of one class, as the choices that a command offers are. A class
    goes to the first layer in which none of its states has a choice. Without moves, or with very many
    classes, the k-th choice of a state goes to layer k. Time: O(entries) and O(choices) for every layer.
    """
    states = model.state_of_choice
    starts = model.choice_starts
    assert starts is not None
    rank = np.arange(model.n_choices, dtype=np.int64) - starts[:-1][states]
    classes = rank
    if moves is not None:
        own = _classes(model, moves)
        own = _apart(states, own)
        if int(own.max(initial=0)) < _MOST_CLASSES:
            classes = own
    order = np.argsort(classes, kind="stable")
    ends = np.cumsum(np.bincount(classes))
    taken: list[Mask] = []
    held: list[list[Numbers]] = []
    for begin, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        chosen = order[begin:end]
        if not len(chosen):
            continue
        here = states[chosen]
        for mask, members in zip(taken, held, strict=True):
            if not bool(mask[here].any()):
                mask[here] = True
                members.append(chosen)
                break
        else:
            mask = np.zeros(model.n_states, dtype=np.bool_)
            mask[here] = True
            taken.append(mask)
            held.append([chosen])
    layers = [np.sort(np.concatenate(members)) for members in held]
    return [ListedLayer(choices, states[choices]) for choices in layers]


def _classes(model: ExplicitModel, moves: NDArray[np.integer]) -> Numbers:
    """Return a number for every choice, equal for those with the same action and moves (up to hashing)."""
    mixed = (moves.astype(np.uint64) + np.uint64(1)) * _MIX
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    sums = np.add.reduceat(mixed, model.row_starts[:-1])  # no choice is empty
    if model.choice_actions is not None:
        sums += (model.choice_actions + 2).astype(np.uint64) * np.uint64(0x94D049BB133111EB)
    _, first, classes = np.unique(sums, return_index=True, return_inverse=True)
    # Classes in the order of their first choice: layers then follow the source.
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(first))
    found: Numbers = place[classes.reshape(-1)]
    return found


def _apart(states: Numbers, classes: Numbers) -> Numbers:
    """Return classes of which no state has two choices: the second ones have classes of their own."""
    order = np.lexsort((classes, states))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (states[order][1:] == states[order][:-1]) & (classes[order][1:] == classes[order][:-1])
    if not bool(same.any()):
        return classes
    begin = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    repeats = np.empty(len(order), dtype=np.int64)
    repeats[order] = np.arange(len(order)) - begin
    count = int(classes.max()) + 1
    _, apart = np.unique(repeats * count + classes, return_inverse=True)
    found: Numbers = apart.reshape(-1).astype(np.int64)
    return found
