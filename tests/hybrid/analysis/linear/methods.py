"""Krylov solvers of the libraries that have them, and names of methods for the ids of tests."""

from __future__ import annotations

from typing import Any

from gpu_kernels import Device

__all__ = ["krylov", "method_name"]


def method_name(method: Any) -> str:
    """Name a method for a test's id; that of a function must not be its address, which no other run has."""
    return method if isinstance(method, str) else f"scipy-{method.__name__}"


def krylov(device: Device, name: str) -> Any:
    """A Krylov solver of the library whose arrays the device has."""
    if device.name == "host":
        import scipy.sparse.linalg as linalg
    else:
        import cupyx.scipy.sparse.linalg as linalg
    return getattr(linalg, name)
