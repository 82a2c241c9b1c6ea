"""Explicit matrices are made and multiplied on every device."""

from tests.gpu_kernels.devices import device

__all__ = ["device"]
