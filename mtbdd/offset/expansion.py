"""Functions of states written out as vectors, from their diagrams, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.manager import Manager
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE, NodeTable
from mtbdd.diagrams.partition import Partition
from mtbdd.offset.states import StateIndex, gather

_FEW = 1 << 12
"""States that follow a diagram in less time than its distinct subvectors are found."""


def expand_values(index: StateIndex, table: NodeTable, values: Any, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a function of the states as a vector in index order, in the place of the index.

    `index`: the states, n of them. `table`: the function as a BDD over row bits and, below them, the bits
    that `values` reads. `values`: maps an array of references below all row bits to an array of values.
    `dtype`: of the result. Returns ndarray, shape (n,): of the module of `index.place`.

    Few states follow the diagram one by one. Of more, equal subvectors are expanded once and then copied as
    blocks. Time: O(n) copying plus O(nodes) in numpy; O(n * bits) for few states. Elsewhere than on the host,
    the host has the distinct blocks alone.
    """
    n = index.n_bits
    size = index.size
    place, result = index.place, np.zeros(0, dtype=dtype)
    if size == 0:
        result = place.array(result)
        return result
    # Long results are put together once, from blocks of an eighth of their length at most.
    place.require(
        size * np.dtype(dtype).itemsize * 9 // 8, f"a vector of {size} states", "choose smaller constants"
    )
    if size <= _FEW:
        refs = np.full(size, table.root, dtype=np.int64)
        for bit, inside in enumerate(index.member_bits):
            refs = table.followed(refs, Manager.row_level(bit), inside)
        result = place.array(np.asarray(values(refs), dtype=dtype))
        return result
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
        if place.block_length is not None and flat.size >= place.block_length * (cuts.size - 1):
            break
        bit -= 1
        flat, cuts = _join(flat, cuts, *links[bit])
    if bit == 0:
        result = place.array(flat)
        return result
    sequence = np.zeros(1, dtype=np.int64)
    for level in range(bit):
        both = np.stack([links[level][0][sequence], links[level][1][sequence]], axis=1).reshape(-1)
        sequence = both[both >= 0]
    result = place.written(flat, cuts, sequence)
    return result


def _join(
    flat: NDArray[Any], cuts: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate every node's else and then subvectors."""
    both = np.stack([low, high], axis=1).reshape(-1)
    present = both >= 0
    lengths = np.zeros(both.size, dtype=np.int64)
    lengths[present] = np.diff(cuts)[both[present]]
    result, _ = gather(flat, cuts, both[present])
    ends = np.cumsum(lengths)[1::2]
    return result, np.concatenate([[0], ends])


# Functions of states as plain vectors in index order.

Vector = NDArray[np.float64]
"""Of the place of an index."""

_PAIRS = 16
_MORE_PAIRS = 256
_LONG = 1 << 24


def expand(function: SymbolicMatrix, index: StateIndex) -> Vector:
    """Return a function of row bits over a set of states, shape (index.size,), in the place of the index."""
    table = function.table()
    padded = np.concatenate([function.terminals, [0.0]])

    def values(refs: NDArray[np.int64]) -> NDArray[np.float64]:
        numbers = function.terminal_numbers(table, refs)
        return padded[np.where(refs == FALSE, function.terminals.size, numbers)]

    return expand_values(index, table, values)


def written_out(part: Partition, index: StateIndex, unite: bool = True) -> Vector:
    """Return a partition over a set of states, shape (index.size,); outside the set it may be anything.

    It is cut to the states last of all: before, the diagrams are those of few variables.  `unite` as in
    `SymbolicMatrix.from_disjoint`.
    """
    return expand(SymbolicMatrix.from_disjoint(part.manager, [(part, index.states)], unite), index)


def absorbed(parts: Iterable[Partition], index: StateIndex) -> Iterator[Partition]:
    """Yield sums of functions over a set of states, as long as they are quick to add as sets; none is empty.

    Outside the set they may be anything.  Sets are worth more work where vectors are long.
    """
    pending: Partition | None = None
    most = _PAIRS if index.size < _LONG else _MORE_PAIRS
    for part in sorted((p.met(index.states) for p in parts), key=len):
        if pending is None:
            pending = part
        elif len(pending) * len(part) <= most:
            pending = pending.plus(part).met(index.states)
        else:
            yield pending
            pending = part
    if pending is not None and len(pending):
        yield pending


def expand_sum(parts: Iterable[Partition], index: StateIndex) -> Vector:
    """Return the sum of many functions over a set of states, shape (index.size,), in the place of the index.

    Functions with few values are added as sets first; the rest meet as vectors, because the
    sums of state-dependent rates take far more values than the rates themselves.  Time: O(n)
    for every function that is not absorbed.
    """
    # Vectors may be gigabytes: the first one becomes the sum.
    total: Vector | None = None
    for part in absorbed((p.nonzero() for p in parts), index):
        values = written_out(part, index)
        if total is None:
            total = values
        else:
            total += values
    return index.place.xp.zeros(index.size) if total is None else total
