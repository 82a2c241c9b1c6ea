"""Whether CuPy and a CUDA device are there; asked at run time, never at import."""

from __future__ import annotations

import functools


@functools.cache
def unavailable_reason() -> str | None:
    """Say why no CUDA device can be used.

    CuPy is imported here, on the first call, and the answer is kept for the life of the process.

    Returns
    -------
    str or None
        None if CuPy imports and sees at least one device; otherwise one sentence that names what is
        missing and what to do about it.

    Notes
    -----
    Synchronises: no.  The first call may take a second, the time CuPy takes to import.
    """
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name not in (None, "cupy"):
            return (
                f"CuPy is installed but its dependency {error.name!r} is missing; reinstall the 'gpu' extra"
            )
        return "CuPy is not installed; it comes with the extra 'gpu', in a checkout: pip install '.[gpu]'"
    except ImportError as error:
        return f"CuPy is installed but does not import ({error}); reinstall the 'gpu' extra"
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except RuntimeError as error:  # CUDARuntimeError, for example where there is no driver
        return f"CuPy finds no CUDA device ({error}); check the driver with: nvidia-smi"
    if count == 0:
        return "CuPy finds no CUDA device; check the driver with nvidia-smi, and CUDA_VISIBLE_DEVICES"
    return None


def is_available() -> bool:
    """Whether a CUDA device can be used through CuPy.

    Returns
    -------
    bool
        True exactly if `unavailable_reason` returns None.
    """
    return unavailable_reason() is None
