"""Places of vectors over states: the host, or the memory of a backend."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory

# Whether masks are true everywhere or somewhere, by reductions that no library has to compile for it.
#
# CuPy compiles a kernel with thousands of lines, two seconds of them, for the first ``mask.all()`` and
# another for ``mask.any()``; those for the least and the greatest byte come with it.

Array = Any
"""An array of NumPy or CuPy."""

_PART = 1 << 28
"""Elements processed together: bounds the temporary memory, and libraries count elements by 32 bits."""


def is_all(mask: Array) -> bool:
    """Return whether all elements of a mask are true, shape (n,), bool."""
    return not len(mask) or bool(mask.view(np.uint8).min())


def is_any(mask: Array) -> bool:
    """Return whether some element of a mask is true, shape (n,), bool."""
    return bool(len(mask)) and bool(mask.view(np.uint8).max())


def all_finite(xp: Any, vector: Array) -> bool:
    """Return whether all elements of a vector of a module are finite, shape (n,), float64; part by part."""
    parts = (vector[begin : begin + _PART] for begin in range(0, len(vector), _PART))
    return all(is_all(xp.isfinite(part)) for part in parts)


Int64Array = NDArray[np.int64]

_SHARED_BYTES = 1 << 29
"""Bytes of a result from which several cores copy it."""


class VectorPlace:
    """A place of vectors: the memory of the host, or in a subclass that of a device.

    `xp`: NumPy, or another one with its functions. `block_length`: mean length of blocks from which on they
    are written out; None: from as long ones as there are.
    """

    xp: Any = np
    block_length: int | None = None

    def written(
        self, flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]
    ) -> NDArray[Any]:
        """Return blocks one after the other as a vector.

        `flat` (ndarray, shape (cuts[-1],)): all distinct blocks, one after the other. `cuts` (ndarray of
        int64, shape (blocks + 1,)): where they begin. `sequence`: which blocks the vector has.
        """
        return gather(flat, cuts, sequence)[0]

    def array(self, values: Any) -> NDArray[Any]:
        """Return a vector here, the same one if it is here already."""
        here: NDArray[Any] = values.get() if hasattr(values, "get") else values
        return here

    def compressed(self, vector: NDArray[Any]) -> Any:
        """Return a vector of this place, float64, as operands of solutions are best held here."""
        return vector

    def require(self, needed: int, what: str, advice: str) -> None:
        """Refuse a vector that there is no room for; see `mtbdd.base.memory.require_memory`."""
        require_memory(needed, what, f"{advice}, or {option('spill', 'DIR')}, which has vectors on a disk")


HOST = VectorPlace()
"""The memory that NumPy has."""


def gather(
    flat: NDArray[Any], cuts: NDArray[np.int64], sequence: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Concatenate the blocks of `flat` named by `sequence`; return their ends as well."""
    lengths = np.diff(cuts)[sequence]
    ends = np.cumsum(lengths)
    if sequence.size and lengths.mean() > 64:
        result = np.empty(int(ends[-1]), dtype=flat.dtype)
        if result.nbytes >= _SHARED_BYTES and importlib.util.find_spec("numba") is not None:
            from mtbdd.offset.block_kernels import copy_blocks

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
