"""Where matrices are held and multiplied: one object a backend, with its name, reason and representations."""

from hybrid.matrix.backends.base import Backend, Product
from hybrid.matrix.backends.choose import BACKENDS, choose_backend
from hybrid.matrix.backends.device import GpuBackend
from hybrid.matrix.backends.host import CpuBackend, ReferenceBackend

__all__ = [
    "BACKENDS",
    "Backend",
    "CpuBackend",
    "GpuBackend",
    "Product",
    "ReferenceBackend",
    "choose_backend",
]
