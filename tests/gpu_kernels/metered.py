"""A device on the host whose memory is counted: what is free is what is left of a limit."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.gpu_kernels.host_device import HostDevice

__all__ = ["MeteredDevice", "assert_room_is_asked_for", "peak_bytes"]

_NOISE = 5_000
"""Bytes that Python itself takes meanwhile."""


class MeteredDevice(HostDevice):
    """A host on which all of Python's memory counts; to be used while tracemalloc is on.

    Parameters
    ----------
    limit : int
        Bytes that may be allocated from now on.
    """

    name = "metered host"

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._begin, self._limit = tracemalloc.get_traced_memory()[0], limit

    def free_bytes(self) -> int:
        """Return what is left."""
        return self._limit - (tracemalloc.get_traced_memory()[0] - self._begin)


def peak_bytes(work: Callable[[HostDevice], Any], limit: int = 1 << 40) -> tuple[int, bool]:
    """Return the most bytes that work allocates on a device with so much memory, and whether it was done."""
    thresholds = gc.get_threshold()
    # Launches leave rings of objects behind, which would count. What is there stays frozen: to thaw it would
    # thaw what was collected at the beginning, too, and every full collection afterwards would go through it.
    gc.freeze()
    gc.set_threshold(50, 2, 2)
    tracemalloc.start()
    try:
        device = MeteredDevice(limit)
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        try:
            work(device)
        except MemoryError as error:
            assert "free on metered host" in str(error), error
            return tracemalloc.get_traced_memory()[1] - before, False
        return tracemalloc.get_traced_memory()[1] - before, True
    finally:
        tracemalloc.stop()
        gc.set_threshold(*thresholds)


def assert_room_is_asked_for(work: Callable[[HostDevice], Any], slack: float) -> None:
    """Assert that work is refused wherever its memory would not do, and not where there is plenty.

    Parameters
    ----------
    work : callable
        Taking the device; it allocates so much that Python's own memory does not matter.
    slack : float
        How many times as much as work takes must suffice.
    """
    work(HostDevice())  # kernels compiled, modules loaded
    peak, done = peak_bytes(work)
    assert done
    assert peak > 5 * _NOISE, peak
    for share in (0.02, 0.5, 0.8):
        limit = int(share * peak)
        taken, done = peak_bytes(work, limit)
        assert not done, f"{limit} bytes seemed enough for {peak}"
        assert taken <= limit + _NOISE, f"{taken} bytes were taken where {limit} were free"
    assert peak_bytes(work, int(slack * peak) + _NOISE)[1], f"{slack} times {peak} bytes were refused"
    with pytest.raises(MemoryError, match=r"needs \d+ bytes and 10 are free on host; use"):
        work(HostDevice(free=10))
