"""Elements of a vector written straight to the windows of other cards (cuda/windows.cu)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import check_vector, macros
from gpu_kernels.runtime.device import Device
from gpu_kernels.runtime.transfers import OpenWindow, Window

Array = Any

MOST_BLOCKS = 64
"""Blocks of threads that write to a card at once: nearly enough for a link, and few beside a product's."""

MOST_BLOCKS_OF_PLACES = 128
"""The same where elements go one by one: places are read first, so that each element takes twice as long."""

_THREADS = 128
_AT_ONCE = 8  # elements of a thread at a time, where they go one by one
_WARP = 32


@dataclass(frozen=True, eq=False)
class Leaving:
    """Which elements of a vector leave, in their order: ranges, or elements one by one.

    Attributes
    ----------
    size : int
    places : ndarray, shape (size,), int32 or int64, or None
        On the device; None where they are ranges.
    starts, ends : ndarray, shape (ranges,), int64, or None
        Where in the vector every range begins, and where among the leaving elements it ends.
    """

    size: int
    places: Array | None = None
    starts: Array | None = None
    ends: Array | None = None


class WindowPushes:
    """Exchanges between the cards of processes, which all make them in the same order.

    Parameters
    ----------
    device : Device
    rank : int
        Number of this process.
    window : Window
        Its own, with `window_words` words.
    others : sequence of OpenWindow or None
        Those of all processes; None for this one.
    leaving : sequence of Leaving
        What goes to every process.
    sizes : ndarray, shape (processes, processes), int64
        Elements that go from process to process: rows send.

    Notes
    -----
    Every method queues launches on the current stream and waits for nothing. The methods of an exchange are
    `announce`, `push`, `await_arrivals`, in this order.
    """

    def __init__(
        self,
        device: Device,
        rank: int,
        window: Window,
        others: Sequence[OpenWindow | None],
        leaving: Sequence[Leaving],
        sizes: Any,
    ) -> None:
        xp, count = device.xp, len(others)
        self._device, self._leaving = device, leaving
        senders = np.flatnonzero(sizes[:, rank]).tolist()
        self._senders = xp.asarray(np.array(senders, np.int32))
        words = [_opened(others[k]).words + 8 * rank for k in senders]
        self._announced = xp.asarray(np.array(words, np.uint64).view(np.int64))
        self._ready, self._arrived = window.words[:count], window.words[count : 2 * count]
        self._turn = window.words[2 * count : 2 * count + 1]
        self._finished = window.words[2 * count + 1 : 2 * count + 2]
        # A process begins with the one behind it, so that not all write to the same card.
        self._receivers = [k % count for k in range(rank + 1, rank + count) if sizes[rank, k % count]]
        before = sizes[:rank].sum(axis=0)
        self._targets = {
            k: (
                np.uint64(_opened(others[k]).room + 8 * int(before[k])),
                np.uint64(_opened(others[k]).words + 8 * (count + rank)),
            )
            for k in self._receivers
        }

    def announce(self) -> None:
        """Signal to the senders of elements that there is room for the next ones."""
        if not len(self._senders) and not self._receivers:
            return
        kernel = self._device.kernel("windows.cu", "announce", macros(INDEX_BITS=32))
        arguments = (np.int32(len(self._senders)), self._announced, self._turn)
        kernel((1,), (_WARP,), arguments)

    def push(self, x: Array) -> None:
        """Write elements to all who receive some, each once it has announced room.

        Parameters
        ----------
        x : ndarray, shape (own columns,), float64
            On the device.
        """
        check_vector(self._device, x, len(x), "x")
        for other in self._receivers:
            leaving, (target, arrived) = self._leaving[other], self._targets[other]
            size = np.int64(leaving.size)
            bits, name, told = _form(leaving)
            kernel = self._device.kernel("windows.cu", name, macros(INDEX_BITS=bits))
            if leaving.places is None:
                blocks = min(MOST_BLOCKS, -(-leaving.size // _THREADS))
            else:
                blocks = min(MOST_BLOCKS_OF_PLACES, -(-leaving.size // (_THREADS * _AT_ONCE)))
            words = self._ready[other : other + 1], self._turn, arrived, self._finished
            before, behind = told
            kernel((blocks,), (_THREADS,), (size, *before, x, *behind, target, *words))

    def await_arrivals(self) -> None:
        """Have later work of the stream wait for what others write in this exchange."""
        if not len(self._senders) and not self._receivers:
            return
        kernel = self._device.kernel("windows.cu", "await_arrivals", macros(INDEX_BITS=32))
        arguments = (np.int32(len(self._senders)), self._senders, self._arrived, self._turn)
        kernel((1,), (_WARP,), arguments)


def window_words(count: int) -> int:
    """Return the words that a window needs.

    Parameters
    ----------
    count : int
        Processes that exchange elements.

    Returns
    -------
    int
    """
    return 2 * count + 2


def _form(leaving: Leaving) -> tuple[int, str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Return index width, kernel, and its arguments before and behind the vector."""
    if leaving.places is not None:
        return 8 * leaving.places.dtype.itemsize, "push_elements", ((), (leaving.places,))
    assert leaving.starts is not None
    return 32, "push_ranges", ((np.int64(len(leaving.starts)),), (leaving.starts, leaving.ends))


def _opened(window: OpenWindow | None) -> OpenWindow:
    assert window is not None
    return window
