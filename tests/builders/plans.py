"""Random matrices over sets of codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex
from tests.builders.matrices import from_dense, random_codes, random_sparse

BITS = 5


def index_of(codes: np.ndarray, n_bits: int) -> StateIndex:
    """The ODD of a set of codes as a tree, no node shared."""
    low, high, counts = [], [], []
    for bit in range(n_bits + 1):
        prefixes, size = np.unique(codes >> (n_bits - bit), return_counts=True)
        counts.append(size.astype(np.int64))
        if bit < n_bits:
            below = np.unique(codes >> (n_bits - bit - 1))
            links = [np.searchsorted(below, 2 * prefixes + side) for side in (0, 1)]
            there = [np.isin(2 * prefixes + side, below) for side in (0, 1)]
            for links_of, place, is_there in zip((low, high), links, there, strict=True):
                links_of.append(np.where(is_there, place, -1).astype(np.int32))
    nothing: Any = None
    return StateIndex(nothing, tuple(low), tuple(high), tuple(counts))


def random_case(seed: int, layers: int) -> tuple[StateIndex, list[OffsetMTBDD], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 2**BITS + 1))
    codes = random_codes(rng, BITS, size)
    dense = [random_sparse(rng, size, size, rng.uniform(0.02, 0.3)) for _ in range(layers)]
    return index_of(codes, BITS), [from_dense(d, codes, codes, BITS) for d in dense], dense
