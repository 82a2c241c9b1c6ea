"""Elements on their way between the cards of several processes, by NCCL, while kernels are at work."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

Array = Any


class DeviceLinks:
    """A communicator of NCCL, with a stream of its own.

    Parameters
    ----------
    size, rank : int
        How many processes there are, each with a card of its own, and which this one is.
    key : bytes
        Of the first process, from `new_key`.

    Raises
    ------
    RuntimeError
        NCCL cannot join the cards; the message is its own.

    Notes
    -----
    All processes make it, and exchange, at once.
    """

    def __init__(self, size: int, rank: int, key: bytes) -> None:
        import cupy
        from cupy.cuda import nccl

        self._cupy, self._nccl = cupy, nccl
        self._communicator = nccl.NcclCommunicator(size, ast.literal_eval(key.decode()), rank)
        self._stream = cupy.cuda.Stream(non_blocking=True, priority=-1)
        self._ready, self._done = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    @staticmethod
    def new_key() -> bytes:
        """Return what the processes of one communicator have in common."""
        from cupy.cuda import nccl

        # Bytes or a tuple of numbers, depending on the version of CuPy.
        return repr(nccl.get_unique_id()).encode()

    def begin(self, outgoing: Array, lengths: Sequence[int], incoming: Array, awaited: Sequence[int]) -> None:
        """Queue an exchange behind all work queued so far.

        Parameters
        ----------
        outgoing, incoming : cupy.ndarray, float64
            What goes to the processes one after the other, and what comes from them.
        lengths, awaited : sequence of int
            Elements for each process, and from each.
        """
        self._ready.record(self._cupy.cuda.get_current_stream())
        self._stream.wait_event(self._ready)
        double, stream = self._nccl.NCCL_FLOAT64, self._stream.ptr
        source, target = outgoing.data.ptr, incoming.data.ptr
        self._nccl.groupStart()
        for other, (sent, received) in enumerate(zip(lengths, awaited, strict=True)):
            if sent:
                self._communicator.send(source, sent, double, other, stream)
            if received:
                self._communicator.recv(target, received, double, other, stream)
            source, target = source + 8 * sent, target + 8 * received
        self._nccl.groupEnd()
        self._done.record(self._stream)

    def finish(self) -> None:
        """Have work that is queued later wait for the exchange. Synchronises: no."""
        self._cupy.cuda.get_current_stream().wait_event(self._done)


def card_identity() -> bytes:
    """Return what tells the current card from all others; empty where NCCL is not there."""
    try:
        import cupy
        from cupy.cuda import nccl

        nccl.get_version()
        return bytes(cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["uuid"])
    except (ImportError, AttributeError, RuntimeError):
        return b""
