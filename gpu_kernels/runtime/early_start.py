"""CUDA started beside other work: its driver takes its time, in which a process can do more.

The first call of CUDA in a process initialises the driver and makes the context of a card.  Both happen in
the driver, without the interpreter: a thread asks for them while the process imports its modules and builds
its model, and CuPy finds them done.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading

_DRIVER = "libcuda.so.1"


def begin_start(card: int) -> threading.Thread | None:
    """Have the driver initialised, and a card's context made, in a thread; wait for nothing.

    Parameters
    ----------
    card : int
        Of those that the process sees; its primary context is the one that CuPy works in, and takes some
        hundred megabytes of its memory.

    Returns
    -------
    threading.Thread or None
        The thread, for those who want to wait for it; None where CuPy is not installed.

    Notes
    -----
    What fails here fails again where CuPy asks for it, with a reason; nothing is told here. The context stays
    until the process ends. A process that is forked afterwards cannot use CUDA, as ever.
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
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuDeviceGet(ctypes.byref(device), card) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
