"""Linear systems are solved on every device."""

from tests.gpu_kernels.devices import device

__all__ = ["device"]
