"""Elements on their way to the host and to other cards, while kernels are at work."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Work that goes on beside that of the current stream: begun behind what is queued there, joined later.


class SideStream:
    """A stream of its own, of high priority; within a ``with`` block launches go there.

    Recording a sequence of launches records both streams.
    """

    def __init__(self) -> None:
        import cupy

        self._current = cupy.cuda.get_current_stream
        self._stream = cupy.cuda.Stream(non_blocking=True, priority=-1)
        self._begin, self._end = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    @property
    def ptr(self) -> int:
        """CUDA's handle of the stream."""
        return int(self._stream.ptr)

    def begin(self) -> None:
        """Have what is queued here from now on wait for all work queued so far on the current stream."""
        self._begin.record(self._current())
        self._stream.wait_event(self._begin)

    def __enter__(self) -> SideStream:
        """Send launches here."""
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send launches to where they went before."""
        self._stream.__exit__(kind, error, trace)

    def join(self) -> None:
        """Have work that is queued later on the current stream wait for all blocks. Synchronises: no."""
        self._end.record(self._stream)
        self._current().wait_event(self._end)


Array = Any


class Transfers:
    """Room on the host for elements that go out of a device, and for those that come in.

    Copies go on in a stream of their own, from and to memory that is page-locked.

    Parameters
    ----------
    outgoing, incoming : int
        Elements.

    Raises
    ------
    MemoryError
        The host has no room that can be locked.

    Attributes
    ----------
    outgoing, incoming : ndarray, float64
        On the host.
    """

    def __init__(self, outgoing: int, incoming: int) -> None:
        import cupy
        import cupyx

        self._cupy = cupy
        try:
            self.outgoing: NDArray[np.float64] = cupyx.empty_pinned(outgoing)
            self.incoming: NDArray[np.float64] = cupyx.empty_pinned(incoming)
        except cupy.cuda.runtime.CUDARuntimeError as fault:
            raise MemoryError(
                f"no room on the host for {8 * (outgoing + incoming)} bytes that stay in memory: {fault}"
            ) from fault
        self._stream = cupy.cuda.Stream(non_blocking=True)
        self._ready, self._done = (cupy.cuda.Event(disable_timing=True) for _ in range(2))

    def send(self, elements: Array) -> None:
        """Queue the copy of an array of the device to `outgoing`, behind all work queued so far."""
        runtime = self._cupy.cuda.runtime
        self._ready.record(self._cupy.cuda.get_current_stream())
        self._stream.wait_event(self._ready)
        if elements.nbytes:
            runtime.memcpyAsync(
                self.outgoing.ctypes.data, elements.data.ptr, elements.nbytes, runtime.memcpyDeviceToHost,
                self._stream.ptr,
            )  # fmt: skip
        self._done.record(self._stream)

    def sent(self) -> None:
        """Wait until `outgoing` has what was sent last, and `incoming` may be written to.

        Synchronises: yes, with the copies alone.
        """
        self._done.synchronize()

    def receive(self, elements: Array) -> None:
        """Queue the copy of `incoming` to an array of the device; work queued later waits for it."""
        runtime = self._cupy.cuda.runtime
        if elements.nbytes:
            runtime.memcpyAsync(
                elements.data.ptr, self.incoming.ctypes.data, elements.nbytes, runtime.memcpyHostToDevice,
                self._stream.ptr,
            )  # fmt: skip
        self._done.record(self._stream)
        self._cupy.cuda.get_current_stream().wait_event(self._done)


# Memory of a card that processes of other cards write to: windows, opened by CUDA's handles for it.

# Elements on their way between the cards of several processes, by NCCL, while kernels are at work.


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
        self.aside = SideStream()

    @staticmethod
    def is_there() -> bool:
        """Return whether NCCL can be used."""
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
            Elements sent to the processes one after the other, and received from them.
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


_ALIGNED = 32
"""Words are rounded up to so many, so that the room behind them begins at 256 bytes."""


class Window:
    """Memory of this process's card that others may open.

    Parameters
    ----------
    words, elements : int

    Raises
    ------
    MemoryError
        The card has no room.

    Attributes
    ----------
    words : ndarray, int64
        Numbers that processes write to signal their progress to each other; zero at first.
    room : ndarray, float64
        Room for elements that others write.
    handle : bytes
        What others open it with.
    """

    def __init__(self, words: int, elements: int) -> None:
        import cupy

        runtime, padded = cupy.cuda.runtime, _padded(words)
        size = 8 * (padded + elements)
        # A block of CuPy's pool is part of a larger allocation, which others would have to know.
        cupy.get_default_memory_pool().free_all_blocks()
        try:
            self._address = runtime.malloc(size)
        except runtime.CUDARuntimeError as fault:
            raise MemoryError(f"no room for {size} bytes that other cards write to: {fault}") from fault
        self._runtime = runtime
        memory = cupy.cuda.UnownedMemory(self._address, size, None)
        self.words = cupy.ndarray((words,), np.int64, cupy.cuda.MemoryPointer(memory, 0))
        self.room = cupy.ndarray((elements,), np.float64, cupy.cuda.MemoryPointer(memory, 8 * padded))
        self.words.fill(0)
        cupy.cuda.get_current_stream().synchronize()
        self.handle: bytes = np.int64(words).tobytes() + runtime.ipcGetMemHandle(self._address)

    def close(self) -> None:
        """Free the memory, once no process has it open any more. Synchronises: yes."""
        self._runtime.free(self._address)


class OpenWindow:
    """Another process's window.

    Parameters
    ----------
    handle : bytes
        Of a window of another process of this machine.

    Raises
    ------
    RuntimeError
        The cards cannot read and write each other's memory; the message is CUDA's.

    Attributes
    ----------
    words, room : int
        Addresses, as kernels of this process take them.
    """

    def __init__(self, handle: bytes) -> None:
        import cupy

        self._runtime = cupy.cuda.runtime
        self.words = int(self._runtime.ipcOpenMemHandle(handle[8:]))
        self.room = self.words + 8 * _padded(int(np.frombuffer(handle[:8], np.int64)[0]))

    def close(self) -> None:
        """Let it go; no kernel that uses it may be under way."""
        self._runtime.ipcCloseMemHandle(self.words)


def _padded(words: int) -> int:
    return -(-words // _ALIGNED) * _ALIGNED
