"""Functions of states as plain vectors in index order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.nodes import FALSE
from mtbdd.diagrams.partition import Partition
from mtbdd.offset.expansion import expand_values
from mtbdd.offset.states import StateIndex

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
