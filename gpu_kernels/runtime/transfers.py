"""Elements on their way to the host and back, while kernels are at work."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Work that goes on beside that of the current stream: begun behind what is queued there, joined later.


class SideStream(Protocol):
    """A stream of its own; within a ``with`` block launches go there."""

    def begin(self) -> None:
        """Have what is queued here from now on wait for all work queued so far on the current stream."""

    def __enter__(self) -> object:
        """Send launches here."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send launches to where they went before."""

    def join(self) -> None:
        """Have work that is queued later on the current stream wait for all blocks. Synchronises: no."""


class CudaSideStream:
    """See `SideStream`; of high priority. Recording a sequence of launches records both streams."""

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
        """See `SideStream.begin`."""
        self._begin.record(self._current())
        self._stream.wait_event(self._begin)

    def __enter__(self) -> CudaSideStream:
        """See `SideStream`."""
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """See `SideStream`."""
        self._stream.__exit__(kind, error, trace)

    def join(self) -> None:
        """See `SideStream.join`."""
        self._end.record(self._stream)
        self._current().wait_event(self._end)


Array = Any


class Transfers(Protocol):
    """Room on the host for elements that go out of a device, and for those that come in.

    Attributes
    ----------
    outgoing, incoming : ndarray, float64
        On the host.
    """

    outgoing: NDArray[np.float64]
    incoming: NDArray[np.float64]

    def send(self, elements: Array) -> None:
        """Queue the copy of an array of the device to `outgoing`, behind all work queued so far."""

    def sent(self) -> None:
        """Wait until `outgoing` has what was sent last, and `incoming` may be written to."""

    def receive(self, elements: Array) -> None:
        """Queue the copy of `incoming` to an array of the device; work queued later waits for it."""


class CudaTransfers:
    """See `Transfers`: copies of a stream of their own, from and to memory that is page-locked.

    Parameters
    ----------
    outgoing, incoming : int
        Elements.

    Raises
    ------
    MemoryError
        The host has no room that can be locked.
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
        """See `Transfers.send`."""
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
        """See `Transfers.sent`. Synchronises: yes, with the copies alone."""
        self._done.synchronize()

    def receive(self, elements: Array) -> None:
        """See `Transfers.receive`."""
        runtime = self._cupy.cuda.runtime
        if elements.nbytes:
            runtime.memcpyAsync(
                elements.data.ptr, self.incoming.ctypes.data, elements.nbytes, runtime.memcpyHostToDevice,
                self._stream.ptr,
            )  # fmt: skip
        self._done.record(self._stream)
        self._cupy.cuda.get_current_stream().wait_event(self._done)
