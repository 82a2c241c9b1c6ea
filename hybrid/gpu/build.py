"""The GPU backend's product for a matrix and a level: memory checked, layout built on the device."""

from __future__ import annotations

from gpu_kernels import current_device
from hybrid.gpu.choice import check_memory
from hybrid.gpu.cost import types_of_level
from hybrid.gpu.layout import LayoutOptions, build_layout
from hybrid.gpu.product import GpuProduct
from hybrid.levels.curve import LevelCurve

__all__ = ["build_product"]


def build_product(curve: LevelCurve, k: int, options: LayoutOptions | None = None) -> GpuProduct:
    """Build the representation of a level on the current device.

    Parameters
    ----------
    curve : LevelCurve
        The matrix with its row types.
    k : int
        Level.
    options : LayoutOptions, optional
        Choices of speed.

    Returns
    -------
    GpuProduct

    Raises
    ------
    MemoryError
        If the device has no room; the message says what is needed, what is free, and what to do.
    ValueError
        If the level has too many row types.
    """
    device = current_device()
    types = types_of_level(curve, k)
    check_memory(device, types, k)
    layout = build_layout(device, types, k, options)
    if layout is None:
        # Sharing up to a scale would cost accuracy here.
        check_memory(device, curve.plain, k)
        layout = build_layout(device, curve.plain, k, options)
    if layout is None:
        raise RuntimeError("classes of equal blocks are exact, yet were refused as inexact")
    return GpuProduct(device, layout)
