"""The card: whether there is one, its memory, and times of calls with launch overhead hidden."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from typing import Any

from gpu_kernels import is_available

__all__ = ["best_seconds", "free_device_memory", "has_device", "relative_difference", "require_device"]

_BATCH_SECONDS = 0.004
_BATCHES = 15


def has_device() -> bool:
    """Return whether kernels can run on a card here."""
    return is_available()


def require_device(instead: str = "") -> None:
    """End the program where kernels cannot run on a card.

    Parameters
    ----------
    instead : str
        What can be done without one.

    Raises
    ------
    SystemExit
        With one line; the exit status is 1.
    """
    if not has_device():
        raise SystemExit("no CUDA device, or no CuPy to reach it" + (f": {instead}" if instead else ""))


def free_device_memory(collect: bool = True) -> None:
    """Give unused memory back to the card, so that what comes next finds all of it.

    Parameters
    ----------
    collect : bool
        Look for arrays in cycles of references, too, which takes some tenths of a second.
    """
    if has_device():
        import cupy

        if collect:
            gc.collect()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def event_seconds(cupy: Any, call: Callable[[], None]) -> float:
    """Return the median seconds of a call, from events around batches of queued calls."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()

    def batch(count: int) -> float:
        begin.record()
        for _ in range(count):
            call()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / count

    call()
    once = batch(3)
    count = max(1, min(100, int(_BATCH_SECONDS / max(once, 1e-6))))
    return statistics.median(batch(count) for _ in range(_BATCHES))


def graph_seconds(cupy: Any, call: Callable[[], None], count: int = 20) -> float | None:
    """Return the median seconds of a call replayed from a CUDA graph; None where it cannot be captured."""
    call()
    stream = cupy.cuda.Stream(non_blocking=True)
    try:
        with stream:
            stream.begin_capture()
            for _ in range(count):
                call()
            graph = stream.end_capture()
    except Exception:
        return None
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    with stream:
        for _ in range(_BATCHES + 1):
            begin.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(float(cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / count)
    return statistics.median(times[1:])


def best_seconds(cupy: Any, call: Callable[[], None]) -> float:
    """Return the time of a call with launch overhead hidden: long ones queued, short ones from a graph."""
    queued = event_seconds(cupy, call)
    if queued > 2e-4:
        return queued
    replayed = graph_seconds(cupy, call)
    return queued if replayed is None else min(queued, replayed)


def relative_difference(z: Any, y: Any) -> float:
    """Return the greatest difference of two vectors, relative to the greatest element."""
    return float(abs(z - y).max() / abs(y).max())
