"""Launches of graph kernels: grids, typed words, and queues that the device drains by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_kernels._launch import blocks_for, macros
from gpu_kernels.device import Device

Array = Any

THREADS = 256
"""Threads of a block."""

_QUEUE_STATE = 8
_WIDE = 16384
_BLOCKS_EACH = 4
_EMULATED_THREADS = 64


def word_type(bits: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of words of 32 or 64 bits."""
    return np.uint64 if bits == 64 else np.uint32


def none_word(bits: int) -> int:
    """Return the word that stands for nothing."""
    return (1 << bits) - 1


def check_room(device: Device, nbytes: int, what: str) -> None:
    """Refuse work that does not fit.

    Raises
    ------
    MemoryError
        If fewer bytes are free; the message says how many are needed and how many are there.
    """
    free = device.free_bytes()
    if nbytes > free:
        raise MemoryError(
            f"{what} needs {nbytes} bytes and {free} are free on {device.name}; use a smaller model, or "
            "decompose it on the host"
        )


def launch(
    device: Device, bits: int, source: str, name: str, count: int, arguments: tuple[Any, ...], limit: int = 0
) -> None:
    """Queue a kernel with a thread for each of ``count``, on at most ``limit`` blocks (0: as many as needed).

    Integers among the arguments become words, None a null pointer; arrays and typed scalars stay. Nothing
    is launched for a count of zero. Synchronises: no.
    """
    if count == 0:
        return
    word = word_type(bits)
    typed = tuple(word(a) if type(a) is int else np.uint64(0) if a is None else a for a in arguments)
    threads = THREADS if _has_cards(device) else _EMULATED_THREADS
    blocks = blocks_for(count, threads)
    kernel = device.kernel(f"graph/{source}", name, macros(INDEX_BITS=bits, THREADS=threads))
    kernel((min(blocks, limit) if limit else blocks,), (threads,), typed)


def _has_cards(device: Device) -> bool:
    """Whether the device's arrays live on a card, not on the host as those of an emulator."""
    return hasattr(device.xp, "cuda")


def resident_blocks(device: Device) -> int:
    """Return how many blocks share the work of a queue: a few for every multiprocessor."""
    if not _has_cards(device):
        return 2
    return _BLOCKS_EACH * int(device.xp.cuda.Device().attributes["MultiProcessorCount"])


class Queue:
    """A queue on the device in which every item comes at most once; see cuda/graph/worklist.cuh.

    Parameters
    ----------
    device : Device
    bits : int
        Width of words.
    capacity : int
        Items that can come.
    n_edges : int
        Edges of all items together, for the room of those that have very many.

    Attributes
    ----------
    items, wide, state : ndarray
        Arguments of the kernels.
    launches : int
        Launches made so far.
    """

    def __init__(self, device: Device, bits: int, capacity: int, n_edges: int) -> None:
        xp, word = device.xp, word_type(bits)
        self.device = device
        self.items: Array = xp.empty(max(1, capacity), word)
        self.wide: Array = xp.empty(n_edges // _WIDE + 1, word)
        self.state: Array = xp.zeros(_QUEUE_STATE, word)
        self.blocks = resident_blocks(device)
        self.launches = 0

    def clear(self) -> None:
        """Make the queue empty. Synchronises: no."""
        self.state[:] = 0

    def drain(self, once: Callable[[], None], look_every: int, most: int | None = None) -> bool:
        """Repeat a launch until the queue is empty, and return True; False after ``most`` launches or more.

        Synchronises: yes, once for every ``look_every`` launches; launches on an empty queue do nothing.
        """
        while True:
            for _ in range(look_every):
                once()
            self.launches += look_every
            state = self.state.tolist()
            if state[0] == state[1] and state[3] == state[4]:
                return True
            if most is not None and self.launches >= most:
                return False
