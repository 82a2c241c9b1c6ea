"""Elements on their way to the host and to other cards, while kernels are at work."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime._launch import check_vector, macros
from gpu_kernels.runtime.device import Device

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


# Elements of a vector written straight to the windows of other cards (cuda/windows.cu).


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
