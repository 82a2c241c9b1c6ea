"""Work that goes on beside that of the current stream: begun behind what is queued there, joined later."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol


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
