"""Sweeps over vectors alone (cuda/vector.cu): relaxation of rows multiplied before, differences, sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_kernels.compressed.steps import NULL, IterationState, Mode, Step, finish_iteration
from gpu_kernels.runtime._launch import blocks_for, check_vector, index_type, loop_bits, macros
from gpu_kernels.runtime._loader import Kernel, Macros
from gpu_kernels.runtime.device import Device

_THREADS = 256
_MOST_BLOCKS = 1 << 16

_NO_STEP = {"MODE": int(Mode.JACOBI), "DIAGONAL_BITS": 64, "RIGHT_BITS": 0}
"""The specialisation of kernels that have no step."""


def relax_rows(
    device: Device, step: Step, x: Any, out: Any, wide: bool = False, product: Any | None = None
) -> None:
    """Queue the second half of a step whose products have been made before.

    Parameters
    ----------
    device : Device
    step : Step
        Any mode but PRODUCT.
    x : ndarray, shape (n,), float64
        The iterate that was multiplied.
    out : ndarray, shape (n,), float64
        The next iterate afterwards.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    product : ndarray, shape (n,), float64, optional
        M x; left out, it lies in ``out``. Held apart, ``out`` stays as it is once the iteration has ended.

    Notes
    -----
    Synchronises: no.
    """
    size = len(out)
    step.check(device, size, x, out)
    if product is not None:
        check_vector(device, product, size, "product")
    if step.mode == Mode.PRODUCT or size == 0:
        return
    arguments = (*step.arguments(), x, out if product is None else product, out)
    _launch(device, "relax_rows", step.macros(), size, wide, arguments)


def compare_rows(device: Device, state: IterationState, x: Any, y: Any, wide: bool = False) -> None:
    """Queue the measurement of how far apart two vectors are.

    Parameters
    ----------
    device : Device
    state : IterationState
        Its differences become the greatest ``|x - y|`` and the greatest ``|x - y| / |x|``; elements that are
        equal count as zero, others where x is zero as infinite.
    x, y : ndarray, shape (n,), float64
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(x)
    check_vector(device, x, size, "x")
    check_vector(device, y, size, "y")
    if size:
        _launch(device, "compare_rows", _NO_STEP, size, wide, (x, y, state.changes))
    finish_iteration(device, state, -1.0, False)


def add_scaled(
    device: Device, weight: float, x: Any, total: Any, factor: Any | None = None, wide: bool = False
) -> None:
    """Queue ``total += weight * factor * x``.

    Parameters
    ----------
    device : Device
    weight : float
    x, total : ndarray, shape (n,), float64
        They must not overlap.
    factor : ndarray, shape (), float64, optional
        A number on the device, read when the kernel runs; 1 if left out.
    wide : bool
        Use 64-bit indices although 32 bits would do.

    Notes
    -----
    Synchronises: no.
    """
    size = len(total)
    check_vector(device, x, size, "x")
    check_vector(device, total, size, "total")
    if device.xp.may_share_memory(x, total):
        raise ValueError("total: shares memory with x, which is added to it; pass another array")
    if factor is not None:
        if not isinstance(factor, device.xp.ndarray):
            raise TypeError(f"factor: expected an array on the device, got {type(factor).__name__}")
        if factor.shape != () or factor.dtype != np.float64:
            raise ValueError(f"factor: expected one float64 number, got {factor.dtype} {factor.shape}")
    if size:
        number = NULL if factor is None else factor
        _launch(device, "add_scaled", _NO_STEP, size, wide, (np.float64(weight), number, x, total))


def _launch(
    device: Device, name: str, values: dict[str, int], size: int, wide: bool, arguments: tuple[Any, ...]
) -> None:
    """Launch a kernel with a thread a row, up to a number of blocks that fills every card."""
    bits = loop_bits(size, _MOST_BLOCKS, _THREADS, wide)
    special: Macros = macros(INDEX_BITS=bits, **values)
    kernel: Kernel = device.kernel("vector.cu", name, special)
    blocks = min(blocks_for(size, _THREADS), _MOST_BLOCKS)
    kernel((blocks,), (_THREADS,), (index_type(bits)(size), *arguments))
