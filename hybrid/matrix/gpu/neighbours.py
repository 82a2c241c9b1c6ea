"""Windows of processes whose cards, in one machine, can write to each other's memory."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from gpu_kernels import Device, OpenWindow, Window, window_words
from mtbdd.base.communicator import Communicator


class Neighbours:
    """Makes windows that all processes have open, and closes those that nobody needs any more.

    Parameters
    ----------
    device : Device
    communicator : Communicator

    Notes
    -----
    A window is freed when the holders in all processes are gone, at the next call of `open_windows`: what
    another process has open may not be freed, and each lets go of its holders at times of its own.
    """

    def __init__(self, device: Device, communicator: Communicator) -> None:
        self.communicator, self._device = communicator, device
        self._made: dict[int, tuple[Window, list[OpenWindow | None]]] = {}
        self._left: list[int] = []
        self._next = 0

    def open_windows(self, holder: object, elements: int) -> tuple[Window, Sequence[OpenWindow | None]]:
        """Return a window of this process, and those of all others.

        Parameters
        ----------
        holder : object
            The windows are kept as long as it lives.
        elements : int
            Room in the own one.

        Returns
        -------
        Window
        list of OpenWindow or None
            One a process; None for this one.

        Raises
        ------
        MemoryError
            Some card has no room; in all processes.
        RuntimeError
            Some card has no such memory, or cannot write to another one's; in all processes.

        Notes
        -----
        All processes call it at once. Synchronises: yes.
        """
        self._close_unneeded()
        alike, own, fault = self.communicator, None, None
        try:
            own = self._device.window(window_words(alike.size), elements)
        except (MemoryError, RuntimeError) as failure:
            fault = f"{int(isinstance(failure, MemoryError))}{failure}"
        told = alike.first_text(fault)
        if own is None or told is not None:
            if own is not None:
                own.close()
            assert told is not None
            raise (MemoryError if told[0] == "1" else RuntimeError)(told[1:])
        handles = alike.gather_bytes(own.handle)
        others: list[OpenWindow | None] = [None] * alike.size
        try:
            for rank, handle in enumerate(handles):
                if rank != alike.rank:
                    others[rank] = self._device.open_window(handle)
        except RuntimeError as failure:
            fault = str(failure)
        told = alike.first_text(fault)
        number, self._next = self._next, self._next + 1
        self._made[number] = own, others
        if told is not None:
            self._left.append(number)
            self._close_unneeded()
            raise RuntimeError(told)
        weakref.finalize(holder, self._left.append, number)
        return own, others

    def _close_unneeded(self) -> None:
        """Close windows whose holders are gone in all processes."""
        own = np.array(sorted(self._left), np.int64)
        found = [
            set(np.frombuffer(text, np.int64).tolist())
            for text in self.communicator.gather_bytes(own.tobytes())
        ]
        unneeded = sorted(set.intersection(*found))
        if not unneeded:
            return
        self._device.synchronise()
        for number in unneeded:
            for other in self._made[number][1]:
                if other is not None:
                    other.close()
        self.communicator.gather([0.0])  # nobody has them open now
        for number in unneeded:
            self._made.pop(number)[0].close()
            self._left.remove(number)


def joined_neighbours(
    device: Device, communicator: Communicator, reasons: list[str] | None = None
) -> Neighbours | None:
    """Return what makes windows, if the cards of all processes can write to each other's memory.

    Parameters
    ----------
    reasons : list of str, optional
        Why they cannot is added to it, the same in all processes.

    Notes
    -----
    All processes call it at once, each with a card of its own.
    """
    reasons = [] if reasons is None else reasons
    if not communicator.all(communicator.beside()[1] == communicator.size):
        reasons.append("the cards are in several machines")
        return None
    found = Neighbours(device, communicator)
    try:
        found.open_windows(_Trial(), 1)
    except (MemoryError, RuntimeError) as failure:
        reasons.append(f"cards cannot write to each other's memory: {failure}")
        return None
    return found


class _Trial:
    """Holds the first windows, which are made to see whether there can be any."""
