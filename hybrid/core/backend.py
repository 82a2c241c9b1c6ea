"""Choice of the backend: one function, one reason, never silently another one than asked for."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from gpu_kernels import current_device, device_problem
from hybrid.errors import OptionError

__all__ = ["BACKENDS", "BackendChoice", "choose_backend"]

BACKENDS = ("auto", "cpu", "gpu", "reference")


@dataclass(frozen=True)
class BackendChoice:
    """The backend in use and why."""

    name: str
    reason: str


def choose_backend(asked: str) -> BackendChoice:
    """Resolve a backend name.

    Parameters
    ----------
    asked : str
        ``auto``, ``cpu``, ``gpu`` or ``reference``.

    Returns
    -------
    BackendChoice
        ``cpu``, ``gpu`` or ``reference``, with a reason in words. For ``auto`` it is ``gpu`` wherever a
        device can be used; :func:`hybrid.inject` goes back to ``cpu`` for a matrix that is too small or too
        large for it, and says so.

    Raises
    ------
    OptionError
        If the name is not one of these, or names a backend that cannot run here.
    """
    if asked == "reference":
        return BackendChoice("reference", "asked for")
    has_numba = importlib.util.find_spec("numba") is not None
    if asked == "cpu":
        if not has_numba:
            raise OptionError(
                "backend: 'cpu' needs the package numba, which is not installed; use 'reference'"
            )
        return BackendChoice("cpu", "asked for")
    if asked == "gpu":
        problem = device_problem()
        if problem is not None:
            raise OptionError(
                f"backend: 'gpu' cannot run here: {problem}; or use 'cpu', or 'auto' for the fastest one"
            )
        return BackendChoice("gpu", "asked for")
    if asked == "auto":
        problem = device_problem()
        if problem is None:
            return BackendChoice("gpu", f"a device is there, {current_device().name}")
        if has_numba:
            return BackendChoice("cpu", f"compiled kernels on all cores; no GPU: {problem}")
        return BackendChoice("reference", "the package numba is not installed, so only NumPy is left")
    raise OptionError(f"backend: expected one of {', '.join(BACKENDS)}, got {asked!r}")
