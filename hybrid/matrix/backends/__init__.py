"""Backends that hold and multiply matrices: one object each, with its name, reason and representations.

The backend is chosen by one function, for one reason, and never silently another one than requested.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from gpu_kernels import current_device, device_problem
from hybrid.base.errors import OptionError
from hybrid.base.units import counted
from hybrid.matrix.backends.base import Backend
from hybrid.matrix.backends.host import CpuBackend, ReferenceBackend
from hybrid.matrix.space.base import Product
from mtbdd.base.lazy_loading import lazy_names
from mtbdd.language.errors import suggestion

if TYPE_CHECKING:
    from hybrid.matrix.backends.device import GpuBackend

__all__ = [
    "BACKENDS",
    "Backend",
    "CpuBackend",
    "GpuBackend",
    "Product",
    "ReferenceBackend",
    "choose_backend",
]

if not TYPE_CHECKING:  # type checkers have the import above
    __getattr__ = lazy_names(__name__, {"GpuBackend": "device"})

BACKENDS = ("auto", "cpu", "gpu", "reference")


FEW_EQUATIONS = 10_000
"""Equations up to which NumPy solves most systems in the third of a second that compiled code loads for."""


def choose_backend(asked: str | Backend, equations: int | None = None) -> Backend:
    """Resolve a backend's name.

    Parameters
    ----------
    asked : str or Backend
        ``auto``, ``cpu``, ``gpu`` or ``reference``; a backend stays what it is.
    equations : int, optional
        Of the one system that it is for: without a device ``auto`` takes plain NumPy for few.

    Returns
    -------
    Backend
        With a reason in words. For ``auto`` it is free: the GPU wherever a device can be used, and
        :func:`hybrid.inject` goes back to the CPU for a matrix that is too small or too large for it, and
        says so.

    Raises
    ------
    OptionError
        If the name is not one of these, or names a backend that cannot run here.
    """
    if isinstance(asked, Backend):
        return asked
    if asked == "reference":
        return ReferenceBackend()
    has_numba = importlib.util.find_spec("numba") is not None
    if asked == "cpu":
        if not has_numba:
            raise OptionError(
                "backend: 'cpu' needs the package numba, which is not installed; use 'reference'"
            )
        return CpuBackend()
    if asked == "gpu":
        problem = device_problem()
        if problem is not None:
            raise OptionError(
                f"backend: 'gpu' cannot run here: {problem}; or use 'cpu', or 'auto' for the fastest one"
            )
        from hybrid.matrix.backends.device import GpuBackend

        return GpuBackend()
    if asked == "auto":
        problem = device_problem()
        if problem is None:
            from hybrid.matrix.backends.device import GpuBackend

            return GpuBackend(f"a device is there, {current_device().name}", True)
        if equations is not None and equations <= FEW_EQUATIONS:
            few = f"NumPy solves {counted(equations, 'equation')} before compiled kernels are loaded"
            return ReferenceBackend(f"{few}; no GPU: {problem}")
        if has_numba:
            return CpuBackend(f"compiled kernels on {_threads()}; no GPU: {problem}", True)
        return ReferenceBackend("the package numba is not installed, so only NumPy is left", True)
    near = suggestion(str(asked), BACKENDS)
    raise OptionError(f"backend: expected one of {', '.join(BACKENDS)}, got {asked!r}{near}")


def _threads() -> str:
    """Say how many threads work: all cores that the process may use, or as many as were requested."""
    from hybrid.matrix.cpu.threads import available_cores, thread_count

    asked, cores = thread_count(), available_cores()
    return "all cores" if asked == cores else f"{asked} thread{'s' if asked > 1 else ''} of {cores} cores"
