"""Choice of the backend: one function, one reason, never silently another one than asked for."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

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
        ``cpu`` or ``reference``, with a reason in words.

    Raises
    ------
    ValueError
        If the name is not one of these, or names a backend that cannot run here.
    """
    if asked == "reference":
        return BackendChoice("reference", "asked for")
    has_numba = importlib.util.find_spec("numba") is not None
    if asked == "cpu":
        if not has_numba:
            raise ValueError(
                "backend: 'cpu' needs the package numba, which is not installed; use 'reference'"
            )
        return BackendChoice("cpu", "asked for")
    if asked == "gpu":
        raise ValueError("backend: this version has no GPU backend; use 'cpu', or 'auto' for the fastest one")
    if asked == "auto":
        if has_numba:
            return BackendChoice(
                "cpu", "compiled kernels on all cores are the fastest backend of this version"
            )
        return BackendChoice("reference", "the package numba is not installed, so only NumPy is left")
    raise ValueError(f"backend: expected one of {', '.join(BACKENDS)}, got {asked!r}")
