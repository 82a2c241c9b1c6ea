"""CUDA kernels, arrays in and arrays out; this package imports without CuPy and without a device.

This version holds no kernel yet: it answers whether a device could be used, and if not, why.
"""

from __future__ import annotations

from gpu_kernels.availability import is_available, unavailable_reason

__all__ = ["is_available", "unavailable_reason"]
