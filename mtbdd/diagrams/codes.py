"""Sets given by their members: from a list of codes to a decision diagram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager, Node

Int64Array = NDArray[np.int64]

_SMALL = 1 << 12  # a table of this many places costs no more than numpy's sort


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
    Time: one sort of the codes, then O(n) in numpy for every name (a sort where many subsets are
    distinct), then one package call a distinct subset.
    """
    if codes.size == 0:
        return manager.false
    codes = np.sort(codes)  # several times faster than `np.unique`, which hashes first
    codes = codes[_changes(codes)]
    ids = np.zeros(codes.size, dtype=np.int64)
    layers: list[tuple[str, Int64Array, Int64Array]] = []
    for name in reversed(names):
        prefix = codes >> 1
        first = _changes(prefix)
        width = int(ids.max()) + 2
        # A pair of children is one key; both children of a prefix, where there are two, are neighbours.
        parts = np.where(codes & 1, ids + 1, (ids + 1) * width)
        keys = parts[first]
        second = np.flatnonzero(~first)
        keys[np.cumsum(first)[second] - 1] += parts[second]
        distinct, ids = _numbered(keys, width * width)
        layers.append((name, distinct // width - 1, distinct % width - 1))
        codes = prefix[first]
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


def _changes(values: Int64Array) -> NDArray[np.bool_]:
    """Return where a value differs from the one before."""
    first = np.ones(values.size, dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first


def _numbered(keys: Int64Array, bound: int) -> tuple[Int64Array, Int64Array]:
    """Return the distinct keys, ascending, and every key's place among them; keys lie below the bound."""
    if bound > 4 * keys.size + _SMALL:
        distinct, places = np.unique(keys, return_inverse=True)
        return distinct, places.reshape(-1)
    present = np.zeros(bound, dtype=np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]
