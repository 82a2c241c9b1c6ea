"""Blocks of long vectors copied on all cores; importing it needs Numba."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbdd.base.compiled import njit


def copy_blocks(
    flat: NDArray[Any], sources: NDArray[np.int64], ends: NDArray[np.int64], result: NDArray[Any]
) -> None:
    """Fill `result` with blocks of `flat`, one after the other.

    Memory that is written for the first time is given out page by page, which takes longer than copying and
    goes faster on several cores. The threads are Python's and end with the call: those of Numba's parallel
    loops neither survive a fork nor stand calls from several threads at once.

    Parameters
    ----------
    flat : ndarray, shape (m,)
    sources : ndarray, shape (blocks,), int64
        Where each block begins in `flat`.
    ends : ndarray, shape (blocks,), int64
        Where each block ends in `result`; the next one begins there.
    result : ndarray, shape (``ends[-1]``,)
        Written to.

    Notes
    -----
    Time: O(``ends[-1]``), shared by the cores that the process may run on.
    """
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cuts = [len(result) * k // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [
            pool.submit(_copy_part, flat, sources, ends, result, begin, end)
            for begin, end in zip(cuts[:-1], cuts[1:], strict=True)
        ]
    for part in parts:
        part.result()


@njit(cache=True, nogil=True)
def _copy_part(flat, sources, ends, result, begin, end):  # type: ignore[no-untyped-def]
    """Fill the elements begin .. end of `result`."""
    i, at = np.searchsorted(ends, begin, "right"), begin
    while at < end:
        last = min(end, ends[i])
        source = sources[i] + at - (ends[i - 1] if i > 0 else 0)
        for k in range(last - at):
            result[at + k] = flat[source + k]
        at = last
        i += 1
