"""Elements on their way between the cards of several processes, by NCCL, while kernels are at work."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from gpu_kernels.runtime.side_stream import CudaSideStream

Array = Any


class DeviceLinks:
    """A communicator of NCCL.

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

    Attributes
    ----------
    aside : SideStream
        Where exchanges go on.

    Notes
    -----
    All processes make it, and exchange, at once.
    """

    def __init__(self, size: int, rank: int, key: bytes) -> None:
        from cupy.cuda import nccl

        self._nccl = nccl
        self._communicator = nccl.NcclCommunicator(size, ast.literal_eval(key.decode()), rank)
        self.aside = CudaSideStream()

    @staticmethod
    def is_there() -> bool:
        """Whether NCCL can be used."""
        try:
            from cupy.cuda import nccl

            nccl.get_version()
        except (ImportError, AttributeError, RuntimeError):
            return False
        return True

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
        double, source, target = self._nccl.NCCL_FLOAT64, outgoing.data.ptr, incoming.data.ptr
        self.aside.begin()
        with self.aside as stream:
            self._nccl.groupStart()
            for other, (sent, received) in enumerate(zip(lengths, awaited, strict=True)):
                if sent:
                    self._communicator.send(source, sent, double, other, stream.ptr)
                if received:
                    self._communicator.recv(target, received, double, other, stream.ptr)
                source, target = source + 8 * sent, target + 8 * received
            self._nccl.groupEnd()
