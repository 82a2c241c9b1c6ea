"""Times of products on a card, by events, with the host's launch overhead hidden where that can be."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

__all__ = ["best_seconds", "relative_difference"]

_BATCH_SECONDS = 0.004
_BATCHES = 15


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
