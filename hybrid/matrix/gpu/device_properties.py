"""What a card can do, as far as predictions need it: bandwidth, second-level cache, and instructions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from gpu_kernels import current_device, device_problem

_TWICE = 2
"""Transfers of a memory clock."""


class Card(NamedTuple):
    """Figures of a card.

    Attributes
    ----------
    name : str
    bandwidth : float
        Of its memory, in bytes a second.
    cache_bytes : int
        Size of the second-level cache.
    cycles : float
        Clock rate times multiprocessors, in cycles a second.
    multiprocessors : int
    """

    name: str
    bandwidth: float
    cache_bytes: int
    cycles: float
    multiprocessors: int

    def work(self, reference: Card) -> float:
        """Return how many times longer than on the reference instructions take."""
        return reference.cycles / self.cycles

    def transfer(self, reference: Card) -> float:
        """Return how many times longer than on the reference bytes of vectors take."""
        return reference.bandwidth / self.bandwidth

    def stream(self, nbytes: float, reference: Card) -> float:
        """Return how many times longer than on the reference bytes take that every product reads again.

        What the cache holds from one product to the next costs a quarter of what comes from memory.
        """
        return self.transfer(reference) * self._missed(nbytes) / reference._missed(nbytes)

    def _missed(self, nbytes: float) -> float:
        share = 1.0 - self.cache_bytes / nbytes if nbytes > self.cache_bytes else 0.0
        return max(0.25, share)


REFERENCE = Card("NVIDIA H200", 4.8e12, 60 << 20, 132 * 1.98e9, 132)
"""The card that constants of time were measured on."""


def card_of(attributes: dict[str, Any], name: str) -> Card:
    """Return the figures of a card from CUDA's attributes; the reference's where a driver tells nothing.

    Parameters
    ----------
    attributes : dict
        As ``cupy.cuda.Device().attributes``: clock rates in kHz, bus width in bits.
    name : str
    """
    clock = 1e3 * float(attributes.get("ClockRate", 0))
    memory_clock = 1e3 * float(attributes.get("MemoryClockRate", 0))
    bandwidth = _TWICE * memory_clock * float(attributes.get("GlobalMemoryBusWidth", 0)) / 8
    multiprocessors = int(attributes.get("MultiProcessorCount", 0))
    cycles = clock * multiprocessors
    cache_bytes = int(attributes.get("L2CacheSize", 0))
    return Card(
        name,
        bandwidth or REFERENCE.bandwidth,
        cache_bytes or REFERENCE.cache_bytes,
        cycles or REFERENCE.cycles,
        multiprocessors or REFERENCE.multiprocessors,
    )


def card_in_use() -> Card:
    """Return the figures of the current device; the reference where there is none, or an emulator."""
    if device_problem() is not None:
        return REFERENCE
    device = current_device()
    if not hasattr(device.xp, "cuda"):
        return REFERENCE
    return _cuda_card(int(device.xp.cuda.Device().id), device.name)


@cache
def _cuda_card(number: int, name: str) -> Card:
    import cupy

    return card_of(dict(cupy.cuda.Device(number).attributes), name)
