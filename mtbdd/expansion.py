"""Functions of states written out as vectors, from their diagrams, block by block."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.manager import Manager
from mtbdd.memory import require_memory
from mtbdd.nodes import NodeTable
from mtbdd.states import StateIndex

_SHARED_BYTES = 1 << 29
"""Bytes of a result from which several cores copy it."""


def expand_values(index: StateIndex, table: NodeTable, values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a function of the states as a vector in index order.

    Parameters
    ----------
    index : StateIndex
        The states, n of them.
    table : NodeTable
        The function as a BDD over row bits and, below them, whatever `values` reads.
    values : callable
        Maps an array of references below all row bits to an array of values.
    dtype : dtype
        Of the result.

    Returns
    -------
    ndarray, shape (n,)

    Notes
    -----
    Equal subvectors are expanded once and then copied as blocks.  Time: O(n) copying plus
    O(nodes) in numpy.
    """
    n = index.n_bits
    size = index.size
    if size == 0:
        return np.zeros(0, dtype=dtype)
    # Long results are put together once, from blocks of an eighth of their length at most.
    require_memory(
        size * np.dtype(dtype).itemsize * 9 // 8,
        f"a vector of {size} states",
        "choose smaller constants",
    )
    pair_refs = np.array([table.root], dtype=np.int64)
    pair_nodes = np.zeros(1, dtype=np.int64)
    links: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for bit in range(n):
        low_ref, high_ref = table.cofactors(pair_refs, Manager.row_level(bit))
        refs = np.concatenate([low_ref, high_ref])
        nodes = np.concatenate([index.low[bit][pair_nodes], index.high[bit][pair_nodes]]).astype(np.int64)
        live = nodes >= 0
        width = int(index.counts[bit + 1].size)
        keys, inverse = np.unique(refs[live] * width + nodes[live], return_inverse=True)
        link = np.full(refs.size, -1, dtype=np.int64)
        link[live] = inverse.reshape(-1)
        half = refs.size // 2
        links.append((link[:half], link[half:]))
        pair_refs, pair_nodes = keys // width, keys % width
    # From the bottom up: subvectors of a level as one flat array and its cuts, until they are long.
    flat = np.asarray(values(pair_refs), dtype=dtype)
    cuts = np.arange(flat.size + 1, dtype=np.int64)
    bit = n
    while bit > 0 and (flat.size < 4096 or flat.size * 8 < size):
        bit -= 1
        flat, cuts = _join(flat, cuts, *links[bit])
    if bit == 0:
        return flat
    sequence = np.zeros(1, dtype=np.int64)
    for level in range(bit):
        both = np.stack([links[level][0][sequence], links[level][1][sequence]], axis=1).reshape(-1)
        sequence = both[both >= 0]
    return _gather(flat, cuts, sequence)[0]


def _join(
    flat: NDArray[Any], cuts: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate every node's else and then subvectors."""
    both = np.stack([low, high], axis=1).reshape(-1)
    present = both >= 0
    lengths = np.zeros(both.size, dtype=np.int64)
    lengths[present] = np.diff(cuts)[both[present]]
    result, _ = _gather(flat, cuts, both[present])
    ends = np.cumsum(lengths)[1::2]
    return result, np.concatenate([[0], ends])


def _gather(
    flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate the blocks of `flat` named by `sequence`."""
    lengths = np.diff(cuts)[sequence]
    ends = np.cumsum(lengths)
    if sequence.size and lengths.mean() > 64:
        result = np.empty(int(ends[-1]), dtype=flat.dtype)
        if result.nbytes >= _SHARED_BYTES and importlib.util.find_spec("numba") is not None:
            from mtbdd.block_kernels import copy_blocks

            copy_blocks(flat, cuts[sequence], ends, result)
            return result, ends
        starts = cuts[sequence].tolist()
        position = 0
        for start, length in zip(starts, lengths.tolist(), strict=True):
            result[position : position + length] = flat[start : start + length]
            position += length
        return result, ends
    index = np.arange(int(ends[-1]) if sequence.size else 0, dtype=np.int64)
    index += np.repeat(cuts[sequence] - (ends - lengths), lengths)
    return flat[index], ends
