"""Devices that run out of memory at an allocation of one's choice."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpu_kernels import CudaDevice, Device, use_device
from tests.gpu_kernels.host_device import HostDevice

__all__ = ["Failure", "failing_device"]

_OWN = ("/hybrid/", "/gpu_kernels/")


class Failure:
    """Counts allocations, and lets the one with a number fail.

    Parameters
    ----------
    number : int
        1 for the first.

    Attributes
    ----------
    where : str or None
        The line of the package that asked for what failed; None as long as nothing has.
    sites : list of str
        Who asked for which allocation: the two innermost lines of the packages. Only kept if none fails.
    """

    def __init__(self, number: int) -> None:
        self.number, self.count = number, 0
        self.where: str | None = None
        self.sites: list[str] = []

    def now(self) -> bool:
        """Count an allocation, and return whether it is the one that fails."""
        self.count += 1
        if self.number == 0:
            self.sites.append(_site())
        if self.count != self.number:
            return False
        self.where = _site()
        return True


def _site() -> str:
    """Return the two innermost lines of the packages, the outer one first."""
    own: list[str] = []
    frame = inspect.currentframe()
    while frame is not None and len(own) < 2:
        file = frame.f_code.co_filename
        if any(part in file for part in _OWN) and "/tests/" not in file:
            own.append(f"{file}:{frame.f_lineno}")
        frame = frame.f_back
    return " > ".join(reversed(own)) or "outside of the packages"


class _FailingModule:
    """NumPy, one of whose new arrays cannot be had. Methods and operators of arrays are not looked at."""

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __getattr__(self, name: str) -> Any:
        own = getattr(np, name)
        return _Watched(own, self._failure) if callable(own) and not isinstance(own, type) else own


class _Watched:
    """A function whose new arrays count; with the other attributes of a ufunc."""

    def __init__(self, own: Any, failure: Failure) -> None:
        self._own, self._failure = own, failure

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        result = self._own(*arguments, **options)
        is_new = options.get("out") is None and not any(result is argument for argument in arguments)
        if isinstance(result, np.ndarray) and result.nbytes and is_new and self._failure.now():
            raise MemoryError(f"Unable to allocate {result.nbytes} bytes")
        return result


@contextmanager
def failing_device(kind: str, number: int) -> Iterator[tuple[Device, Failure]]:
    """Use a device whose allocation with a number fails.

    Parameters
    ----------
    kind : {"host", "cuda"}
        The emulator, or the real one: there CuPy's allocator raises what it raises when memory is used up.
    number : int
        1 for the first allocation; 0 for none.
    """
    failure = Failure(number)
    if kind == "host":
        host = HostDevice()
        host.xp = _FailingModule(failure)
        with use_device(host):
            yield host, failure
        return
    import cupy

    pool = cupy.get_default_memory_pool()

    def allocate(size: int) -> Any:
        if size and failure.now():
            raise cupy.cuda.memory.OutOfMemoryError(size, pool.total_bytes(), pool.get_limit())
        return pool.malloc(size)

    cuda = CudaDevice()
    before = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(allocate)
    try:
        with use_device(cuda):
            yield cuda, failure
    finally:
        cupy.cuda.set_allocator(before)
