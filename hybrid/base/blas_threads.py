"""Threads of NumPy's linear algebra: one for small systems, where others cost more than they save."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

_Pool = tuple[Callable[[], int], Callable[[int], object]]

_NAMES = [(prefix, suffix) for prefix in ("scipy_openblas", "openblas") for suffix in ("64_", "")]

_lock = threading.Lock()
_inside = 0
_before = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Have one thread for NumPy's linear algebra in this block, where it is OpenBLAS's; else change nothing.

    On a busy machine to wait for a thread of its pool takes a thousand times as long as to solve a hundred
    equations.  Blocks may be nested, and in several threads at once: the last one to end gives the pool back.
    """
    global _inside, _before
    if (pool := blas_pool()) is None:
        yield
        return
    ask, tell = pool
    with _lock:
        if _inside == 0:
            _before = ask()
            tell(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                tell(_before)


@functools.cache
def blas_pool() -> _Pool | None:
    """Return what asks for the number of threads, and what sets it; None where NumPy has no OpenBLAS."""
    file = import_module("numpy.linalg._umath_linalg").__file__
    try:
        library = ctypes.CDLL(file)  # loaded already: names are looked up in what it was linked to as well
    except (OSError, TypeError):
        return None
    for prefix, suffix in _NAMES:
        ask = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
        tell = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
        if ask is not None and tell is not None:
            return ask, tell
    return None
