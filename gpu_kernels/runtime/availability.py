"""Availability of CuPy and a CUDA device, found at run time and never at import; CUDA started early."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading

# CUDA started beside other work: its driver takes its time, in which a process can do more.
#
# The first call of CUDA in a process initialises the driver and makes the context of a card.  Both happen in
# the driver, without the interpreter: a thread asks for them while the process imports its modules and builds
# its model, and CuPy finds them done.

_DRIVER = "libcuda.so.1"


def begin_start(card: int) -> threading.Thread | None:
    """Have the driver initialised, and a card's context made, in a thread; wait for nothing.

    Parameters
    ----------
    card : int
        Of those that the process sees, which are taken in turn; its primary context is the one that CuPy
        works in, and takes some hundred megabytes of its memory.

    Returns
    -------
    threading.Thread or None
        The thread, for those who want to wait for it; None where CuPy is not installed.

    Notes
    -----
    What fails here fails again where CuPy asks for it, with a reason; nothing is reported here. The context
    stays until the process ends. A process that is forked afterwards cannot use CUDA, as ever.
    """
    if importlib.util.find_spec("cupy") is None:
        return None
    thread = threading.Thread(target=_start, args=(card,), name="cuda-start")
    thread.start()
    return thread


def _start(card: int) -> None:
    # `ctypes` lets other threads run during calls, CuPy's do not.
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return
    if driver.cuInit(0) != 0:
        return
    count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    if card and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value:
        card %= count.value
    if driver.cuDeviceGet(ctypes.byref(device), card) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)


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
    """Return whether a CUDA device can be used through CuPy.

    Returns
    -------
    bool
        True exactly if `unavailable_reason` returns None.
    """
    return unavailable_reason() is None
