"""Relaxation of rows whose products have been made before (cuda/vector.cu)."""

from __future__ import annotations

from typing import Any

from gpu_kernels._launch import blocks_for, index_bits, index_type, macros
from gpu_kernels.device import Device
from gpu_kernels.steps import Mode, Step

__all__ = ["relax_rows"]

_THREADS = 256
_MOST_BLOCKS = 1 << 16


def relax_rows(device: Device, step: Step, x: Any, out: Any, wide: bool = False) -> None:
    """Queue the second half of a step whose products lie in ``out``.

    Parameters
    ----------
    device : Device
    step : Step
        Any mode but PRODUCT.
    x : ndarray, shape (n,), float64
        The iterate that was multiplied.
    out : ndarray, shape (n,), float64
        M x on entry, the next iterate afterwards.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(out)
    step.check(device, size, x, out)
    if step.mode == Mode.PRODUCT or size == 0:
        return
    bits = index_bits(size, wide)
    kernel = device.kernel("vector.cu", "relax_rows", macros(INDEX_BITS=bits, **step.macros()))
    blocks = min(blocks_for(size, _THREADS), _MOST_BLOCKS)
    kernel((blocks,), (_THREADS,), (index_type(bits)(size), *step.arguments(), x, out))
