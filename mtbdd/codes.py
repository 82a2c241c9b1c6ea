"""Sets given by their members: from a list of codes to a decision diagram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.manager import Manager, Node

__all__ = ["spell", "union_of_codes"]

Int64Array = NDArray[np.int64]


def spell(numbers: Sequence[tuple[Int64Array, Sequence[str]]], names: Sequence[str]) -> Int64Array:
    """Return codes over `names` in which several numbers are spelled by their own bits.

    Parameters
    ----------
    numbers : sequence of (ndarray, names)
        Numbers, shape (n,), and the bits that spell them, most significant first.
    names : sequence of str
        All bits of the code, most significant first; at most 62.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    place = {name: len(names) - 1 - i for i, name in enumerate(names)}
    codes = np.zeros(len(numbers[0][0]) if numbers else 1, dtype=np.int64)
    for values, bits in numbers:
        for position, name in enumerate(reversed(bits)):
            codes |= (values >> position & 1) << place[name]
    return codes


def union_of_codes(manager: Manager, names: Sequence[str], codes: Int64Array) -> Node:
    """Return the set of the assignments that some codes spell.

    Parameters
    ----------
    manager : Manager
    names : sequence of str
        Variables from top to bottom of the order; the first is the codes' most significant bit.
    codes : ndarray of int64, shape (n,)
        Repetitions allowed.

    Notes
    -----
    Time: O(n log n) in numpy for every name, then one package call a distinct subset.
    """
    codes = np.unique(codes)
    if codes.size == 0:
        return manager.false
    ids = np.zeros(codes.size, dtype=np.int64)
    layers: list[tuple[str, Int64Array, Int64Array]] = []
    for name in reversed(names):
        prefix, place = np.unique(codes >> 1, return_inverse=True)
        children = np.full((prefix.size, 2), -1, dtype=np.int64)
        children[place.reshape(-1), codes & 1] = ids
        width = int(ids.max()) + 2
        keys, numbered = np.unique((children[:, 0] + 1) * width + children[:, 1] + 1, return_inverse=True)
        layers.append((name, keys // width - 1, keys % width - 1))
        codes, ids = prefix, numbered.reshape(-1)
    bdd = manager.bdd
    below: list[Node] = [manager.true]
    for name, low, high in layers:
        variable = bdd.var(name)
        nodes = [*below, manager.false]  # -1 finds the last one
        below = [
            bdd.ite(variable, nodes[b], nodes[a]) if a != b else nodes[a]
            for a, b in zip(low.tolist(), high.tolist(), strict=True)
        ]
    return below[0]
