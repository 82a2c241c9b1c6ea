"""Where matrices are held and multiplied: one object a backend, with its name, reason and representations."""

from hybrid.backends.base import Backend, Product
from hybrid.backends.choose import BACKENDS, choose_backend
from hybrid.backends.device import GpuBackend
from hybrid.backends.host import CpuBackend, ReferenceBackend

__all__ = [
    "BACKENDS",
    "Backend",
    "CpuBackend",
    "GpuBackend",
    "Product",
    "ReferenceBackend",
    "choose_backend",
]
