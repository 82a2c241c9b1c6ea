"""In which format a device multiplies an explicit matrix fastest: the one place where that is decided.

A format that gives a row to a thread is as slow as its longest row, about 0.1 microseconds an entry, and
formats that cut entries into equal parts take over where there are long rows.  Among the first, sliced ELL
reads whole lines at once and pads rows to the longest of their slice; row-compressed storage pads nothing.
On an H200 sliced ELL was a tenth faster where padding made up 18 % (kanban), and a tenth slower where it made
up 30 % (polling); both took less than half of cuSPARSE's time.  With rows of up to 32,768 entries (herman) a
thread a row took 3 ms and more, equal parts 0.044 ms, cuSPARSE 0.060 ms.  Values go by a dictionary
wherever its numbers have 16 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.explicit import FORMATS
from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import array_module
from hybrid.base.arrays import Array
from hybrid.matrix.explicit.extract import ExplicitSizes
from hybrid.matrix.space.base import DEFAULT_VECTORS

_LONG_ROW = 256
"""Entries of a row beyond which one thread keeps all others waiting."""

_LONG_MEAN = 64
"""Entries a row, on average, beyond which neighbouring threads have no line in common."""

_MOST_PADDING = 1.25
"""Elements an entry beyond which sliced ELL loses to row-compressed storage."""

_DICTIONARY = 1 << 16
"""Distinct values, at most, of a dictionary whose numbers have 16 bits."""

_CHUNK = 1 << 24
"""Values sorted together."""

_SLICE = 32
"""Rows of a slice of sliced ELL."""

_SORTED_BYTES = 32
"""Bytes of temporary arrays a value of a chunk, where the dictionary is made."""


def choose_storage(matrix: CsrArrays, free_bytes: int, n_values: int | None = None) -> str:
    """Return the name of the format, one of `gpu_kernels.FORMATS`.

    Parameters
    ----------
    matrix : CsrArrays
        On the host or on the device.
    free_bytes : int
        What the conversion may take.
    n_values : int, optional
        A bound on the number of distinct values, such as a diagram's number of terminals; without it
        they are counted.

    Returns
    -------
    str
        "cmsr-stream" where rows are long, "csell" where they are short and alike, else "cmsr";
        without the first c where a dictionary does not pay.

    Notes
    -----
    Time: O(rows), and O(entries log(values)) to count values.  Synchronises: yes.
    """
    known_few = n_values is not None and n_values <= _DICTIONARY
    compact = known_few or _has_few(matrix.values)
    return _layout(matrix, free_bytes, "c" if compact else "")


def least_device_bytes(sizes: ExplicitSizes, n_values: int) -> int:
    """Return the bytes that a device needs to extract a matrix, to store it and to solve with it.

    Parameters
    ----------
    sizes : ExplicitSizes
        For the backend gpu.
    n_values : int
        A bound on the number of distinct values.

    Notes
    -----
    With the storage that needs least; formats that need more are chosen only if there is room for them.
    """
    numbers = (1 if n_values <= 1 << 8 else 2) if n_values <= _DICTIONARY else 0
    conversion = numbers * sizes.entries + (_SORTED_BYTES * min(sizes.entries, _CHUNK) if numbers else 0)
    return max(sizes.peak_bytes, sizes.matrix_bytes + conversion) + 8 * DEFAULT_VECTORS * max(sizes.shape)


def _layout(matrix: CsrArrays, free_bytes: int, prefix: str) -> str:
    """Return the format by the lengths of the rows; `prefix` says whether values go by a dictionary."""
    xp, rows, entries = matrix.xp, matrix.shape[0], matrix.nnz
    if rows == 0 or entries == 0:
        return f"{prefix}msr"
    lengths = xp.diff(matrix.row_starts)
    if entries > _LONG_MEAN * rows or int(lengths.max()) > _LONG_ROW:
        return f"{prefix}msr-stream"
    padded = xp.zeros(-(-rows // _SLICE) * _SLICE, lengths.dtype)
    padded[:rows] = lengths
    elements = _SLICE * int(padded.reshape(-1, _SLICE).max(axis=1).sum())
    sliced = f"{prefix}sell"
    required = FORMATS[sliced].conversion_bytes(rows, entries, elements)
    return sliced if elements <= _MOST_PADDING * entries and required <= free_bytes else f"{prefix}msr"


def _has_few(values: Array) -> bool:
    """Tell whether the distinct values fit a dictionary; stops at the first part that has too many."""
    xp: Any = array_module(values)
    known = xp.zeros(0, np.int64)
    for begin in range(0, len(values), _CHUNK):
        part = xp.unique(values[begin : begin + _CHUNK].view(np.int64))
        known = xp.unique(xp.concatenate((known, part)))
        if len(known) > _DICTIONARY:
            return False
    return True
