"""How local a matrix is: bandwidth, mean distance from the diagonal, cache lines of x that a warp reads.

A warp is 32 consecutive rows, a thread a row, as in the row-per-thread kernels of [WB13]. The bytes that it
touches are 128 times the number of distinct 128-byte lines of x, 16 doubles each, that hold an element
for any of its rows: what the warp must be given even if nothing is ever read twice.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from gpu_kernels.runtime.csr import CsrArrays
from gpu_kernels.runtime.ragged import owners
from hybrid.base.arrays import to_host

WARP_ROWS = 32
LINE_BYTES = 128
_LINE = LINE_BYTES // 8
_CHUNK = 1 << 22


@dataclass(frozen=True)
class StructureMeasures:
    """Measures of a matrix's structure.

    Attributes
    ----------
    bandwidth : int
        Greatest ``|row - column|`` of an entry; 0 for a diagonal or empty matrix.
    mean_distance : float
        Mean ``|row - column|`` over the entries; 0 without entries.
    bytes_per_warp : float
        Mean bytes of x touched by 32 consecutive rows, in lines of 128 bytes.
    least_bytes_per_warp : float
        What it would be if the elements that a warp reads lay side by side.
    """

    bandwidth: int
    mean_distance: float
    bytes_per_warp: float
    least_bytes_per_warp: float

    def record(self) -> dict[str, float]:
        """Return the measures as plain JSON values."""
        return asdict(self)


def measure_structure(matrix: CsrArrays) -> StructureMeasures:
    """Measure a matrix.

    Parameters
    ----------
    matrix : CsrArrays
        On the host or on the device.

    Returns
    -------
    StructureMeasures

    Notes
    -----
    Time: O(entries log entries), some rows at a time. Synchronises: yes.
    """
    xp, n_rows = matrix.xp, matrix.shape[0]
    if matrix.nnz == 0:
        return StructureMeasures(0, 0.0, 0.0, 0.0)
    ptr = matrix.row_starts.astype(np.int64)
    warp_ptr = np.append(np.arange(0, n_rows, WARP_ROWS), n_rows)
    entries = to_host(ptr[xp.asarray(warp_ptr)])
    bandwidth, total, lines, elements = 0, 0, 0, 0
    begin, warps = 0, len(warp_ptr) - 1
    while begin < warps:
        end = max(begin + 1, int(np.searchsorted(entries, entries[begin] + _CHUNK, "right")) - 1)
        first, last = int(warp_ptr[begin]), int(warp_ptr[end])
        low, high = int(entries[begin]), int(entries[end])
        if high > low:
            row = first + owners(xp, ptr[first : last + 1] - low, high - low)
            column = matrix.columns[low:high].astype(np.int64)
            distance = abs(row - column)
            bandwidth = max(bandwidth, int(distance.max()))
            total += int(distance.sum())
            # A number for (warp, element); the lines follow from the sorted elements.
            key = xp.sort((row - first) // WARP_ROWS * (-(-matrix.shape[1] // _LINE) * _LINE) + column)
            elements += 1 + int((key[1:] != key[:-1]).sum())
            key //= _LINE
            lines += 1 + int((key[1:] != key[:-1]).sum())
        begin = end
    # At least one line a warp that reads anything; counted per warp on average.
    return StructureMeasures(bandwidth, total / matrix.nnz, lines * LINE_BYTES / warps, elements * 8 / warps)
