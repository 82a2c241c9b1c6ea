"""The product for vectors with infinite or undefined elements: zero coefficients are left out, one by one."""

from __future__ import annotations

import numpy as np

from mtbdd.base.compiled import njit


@njit(cache=True, nogil=True)
def exact_spmv(  # type: ignore[no-untyped-def]
    row, row_type, slot_ptr, base, scale, scaled,
    rows, slice_ptr, pattern, pattern_ptr, slot, shift, vector, coefficients, x, out,
):  # fmt: skip
    """Write M x to ``out``, multiplying stored entries only, so that 0 * inf never arises.

    Parameters are those of :func:`hybrid.matrix.cpu.kernels.block_spmv`. One thread, one entry at a time.
    """
    out[:] = 0.0
    for g in range(len(row)):
        kind, own = row_type[g], slot_ptr[g]
        for q in range(slice_ptr[kind + 1] - slice_ptr[kind]):
            which = pattern[slice_ptr[kind] + q]
            for lane in range(min(8, rows[kind] - 8 * q)):
                total = 0.0
                for t in range(pattern_ptr[which], pattern_ptr[which + 1]):
                    weight = coefficients[vector[t], lane]
                    if weight != 0.0:
                        if scaled:
                            weight *= scale[own + slot[t]]
                        total += weight * x[np.int64(base[own + slot[t]]) + 8 * q + shift[t] + lane]
                out[row[g] + 8 * q + lane] = total
