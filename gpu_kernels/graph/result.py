"""Decompositions as results: components named by their least state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.device import Device
from gpu_kernels.graph._launch import launch, none_word, word_type

Array = Any


@dataclass(frozen=True, eq=False)
class ComponentResult:
    """The strongly connected components of a graph.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component; on the device.
    count : int
        Number of components.
    rounds : dict of str to int
        How often each phase was repeated: what an explanation of the time needs.
    variant : str
        The variant that ran.
    """

    labels: Array
    count: int
    rounds: dict[str, int]
    variant: str


@dataclass(frozen=True, eq=False)
class MecResult:
    """The maximal end components of a graph.

    Attributes
    ----------
    labels : ndarray, shape (n_states,), int64
        The least state of each state's component, -1 for states in none; on the device.
    count : int
        Number of components.
    choice_kept : ndarray, shape (n_choices,), bool
        The choices that stay inside the component of their state; False for all choices of other states.
    rounds : dict of str to int
        How often each phase was repeated.
    variant : str
        The variant that ran.
    """

    labels: Array
    count: int
    choice_kept: Array
    rounds: dict[str, int]
    variant: str


def canonical_labels(
    device: Device, bits: int, component: Array, order: Array | None = None
) -> tuple[Array, int]:
    """Name components by their least states, and count them.

    Parameters
    ----------
    device : Device
    bits : int
        Width of the words.
    component : ndarray, shape (n_states,), words
        Equal for states of one component, below n_states; the two greatest words for none.
    order : ndarray, shape (n_states,), words, optional
        The state that each position stands for.

    Returns
    -------
    labels : ndarray, shape (n_states,), int64
    count : int

    Notes
    -----
    Time: O(n_states). Synchronises: yes, for the count.
    """
    xp, word, n = device.xp, word_type(bits), len(component)
    least = xp.full(n, none_word(bits), word)
    labels, count = xp.empty(n, word), xp.zeros(1, word)
    launch(device, bits, "format.cu", "find_least", n, (n, component, order, least))
    launch(device, bits, "format.cu", "name_components", n, (n, component, order, least, labels, count))
    # The word for nothing has all bits set and becomes -1.
    signed = labels.view(np.int64 if bits == 64 else np.int32).astype(np.int64)
    return signed, int(count[0])
