"""Blocks of long vectors copied on all cores; importing it needs Numba."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from numba import njit, prange

__all__ = ["copy_blocks"]


@njit(cache=True, nogil=True, parallel=True)
def copy_blocks(flat, sources, targets, lengths, result):  # type: ignore[no-untyped-def]
    """Copy block i, ``lengths[i]`` elements of `flat` from ``sources[i]`` on, to ``targets[i]`` of `result`.

    Memory that is written for the first time is given out page by page, which takes longer than copying and
    goes faster on several cores. The targets must not overlap.
    """
    for i in prange(len(sources)):
        source, target = sources[i], targets[i]
        for k in range(lengths[i]):
            result[target + k] = flat[source + k]
