"""A matrix larger than the card: its rows in parts, each copied there while the one before is multiplied.

[BESW10] §II (last paragraph) copies the parts one after the other and finds the copies dearer than the
products. Here the parts lie in pinned memory, and two buffers and two streams let the copy of a part run
beside the product of the one before it; the vectors stay on the device. The product then takes as long as
copying the matrix does.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels import CodedVector, Device
from gpu_kernels.explicit import Msr
from gpu_kernels.runtime.csr import CsrArrays

__all__ = ["PartTimes", "StreamedMatrix", "parts_by_bytes"]

Array = Any

_PartEvents = tuple[Any, Any, Any]
"""Of a part: its buffer is free, its copy is done, its product is done."""


@dataclass(frozen=True)
class PartTimes:
    """When a part was copied and multiplied, in seconds since the product began.

    Attributes
    ----------
    copy_begin : float
        When the part's buffer was free and the copies of the parts before it were done.
    copy_end : float
        Its product begins then.
    product_end : float
    """

    copy_begin: float
    copy_end: float
    product_end: float


def parts_by_bytes(matrix: CsrArrays, budget: int) -> list[int]:
    """Return the first rows of as few parts as there are that take at most so many bytes each, and the end.

    Raises
    ------
    ValueError
        If a single row is larger than the budget.
    """
    starts = np.asarray(matrix.row_starts, dtype=np.int64)
    entry = matrix.columns.dtype.itemsize + matrix.values.dtype.itemsize
    index = matrix.row_starts.dtype.itemsize
    # Bytes up to a row; each part has one row start more than rows.
    size = starts * entry + np.arange(len(starts), dtype=np.int64) * index
    cuts, n_rows = [0], len(starts) - 1
    while cuts[-1] < n_rows:
        end = int(np.searchsorted(size, size[cuts[-1]] + budget - index, "right")) - 1
        if end <= cuts[-1]:
            row = cuts[-1]
            needed = int(size[row + 1] - size[row]) + index
            raise ValueError(f"budget: row {row} alone takes {needed} bytes, expected at most {budget}")
        cuts.append(min(end, n_rows))
    return cuts


class StreamedMatrix:
    """Multiplies by a matrix that lies on the host, part by part.

    Parameters
    ----------
    matrix : CsrArrays
        On the host, with int32 columns.
    cuts : list of int
        First row of every part, and the number of rows.
    device : Device
        Where products are made.

    Raises
    ------
    MemoryError
        If two buffers do not fit on the device.
    """

    def __init__(self, matrix: CsrArrays, cuts: list[int], device: Device) -> None:
        self.xp, self.device = device.xp, device
        self._shape, self._rows = matrix.shape, list(zip(cuts[:-1], cuts[1:], strict=True))
        parts = [matrix.rows(begin, end) for begin, end in self._rows]
        self.nbytes = sum(part.nbytes for part in parts)
        largest = max(part.nbytes for part in parts)
        needed, free = 2 * largest, device.free_bytes()
        if needed > free:
            raise MemoryError(
                f"two buffers of the largest part need {needed} bytes on {device.name}, {free} are free; "
                "cut the matrix into more parts"
            )
        self._streams = [_BufferStream(device, largest) for _ in range(2)]
        self._parts = [_pinned(device.xp, part) for part in parts]

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers on the device."""
        return sum(stream.nbytes for stream in self._streams)

    def multiply(self, x: Array, out: Array) -> None:
        """Queue ``out = M x``, vectors on the device; work queued later waits. Synchronises: no."""
        self._run(x, out)

    def copy_parts(self) -> None:
        """Queue the copies of all parts through the buffers, without a product. Synchronises: no."""
        self._run(None, None)

    def trace(self, x: Array, out: Array) -> list[PartTimes]:
        """Multiply once, and return when every part that has rows was copied and multiplied.

        The times are those of events on the streams of the two buffers; they cost some microseconds a part.
        Synchronises: yes.
        """
        events: list[_PartEvents] = []
        begin = _event(self.xp, None)
        self._run(x, out, events)
        self.device.synchronise()
        times, copied_before = [], 0.0
        for of_part in events:
            ready, copied, done = (_seconds_between(self.xp, begin, event) for event in of_part)
            # A buffer may be free while the copy of the part before is still under way.
            times.append(PartTimes(min(max(ready, copied_before), copied), copied, done))
            copied_before = copied
        return times

    def _run(self, x: Array | None, out: Array | None, events: list[_PartEvents] | None = None) -> None:
        """Queue copies, and products unless there is no x, on the two streams in turn."""
        for stream in self._streams:
            stream.begin()
        for i, ((begin, end), part) in enumerate(zip(self._rows, self._parts, strict=True)):
            if end > begin:
                self._streams[i % 2].run(part, x, None if out is None else out[begin:end], events)
        for stream in self._streams:
            stream.end()


class _BufferStream:
    """A buffer and the stream that its copies and products are queued on.

    Two of them take turns. On one stream a copy waits for the product before it, because both use the buffer;
    meanwhile the product of the other stream runs.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        xp = device.xp
        self._device = device
        self._buffer = xp.empty(max(nbytes, 1), np.uint8)
        self._stream = None if xp is np else xp.cuda.Stream(non_blocking=True)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer."""
        return int(self._buffer.nbytes)

    def begin(self) -> None:
        """Let this stream wait for what is queued on the current one: x and out may come from there."""
        if self._stream is not None:
            self._stream.wait_event(self._device.xp.cuda.get_current_stream().record())

    def end(self) -> None:
        """Let the current stream wait for this one."""
        if self._stream is not None:
            self._device.xp.cuda.get_current_stream().wait_event(self._stream.record())

    def run(
        self, part: CsrArrays, x: Array | None, out: Array | None, events: list[_PartEvents] | None = None
    ) -> None:
        """Queue the copy of a part and, with an x, its product; add their events to a list."""
        if self._stream is None:
            self._queue(part, x, out, events)
            return
        with self._stream:
            self._queue(part, x, out, events)

    def _queue(
        self, part: CsrArrays, x: Array | None, out: Array | None, events: list[_PartEvents] | None
    ) -> None:
        xp = self._device.xp
        ready = None if events is None else _event(xp, self._stream)
        sources = (part.row_starts, part.columns, part.values)
        starts, columns, values = targets = self._room(sources)
        for target, source in zip(targets, sources, strict=True):
            if self._stream is None:
                target[...] = source
            elif target.size:
                target.data.copy_from_host_async(source.ctypes.data, source.nbytes, self._stream)
        copied = None if events is None else _event(xp, self._stream)
        if x is not None:
            matrix = Msr(part.shape, CodedVector(part.nnz, 64, values, None), starts, columns)
            matrix.multiply(self._device, x, out)
        if events is not None:
            events.append((ready, copied, _event(xp, self._stream)))

    def _room(self, sources: tuple[Array, ...]) -> list[Array]:
        """Return a view of the buffer for the copy of every array.

        Arrays of the widest elements come first, so that each begins at a multiple of its element size
        without padding.
        """
        room: list[Array] = [None] * len(sources)
        begin = 0
        for k in sorted(range(len(sources)), key=lambda k: -sources[k].dtype.itemsize):
            end = begin + sources[k].nbytes
            room[k] = self._buffer[begin:end].view(sources[k].dtype)
            begin = end
        return room


def _event(xp: Any, stream: Any) -> Any:
    """Return an event on a stream, the current one unless given; on a host the time."""
    if xp is np:
        return time.perf_counter()
    return (xp.cuda.get_current_stream() if stream is None else stream).record(xp.cuda.Event())


def _seconds_between(xp: Any, begin: Any, end: Any) -> float:
    """Return the seconds between two events that have been reached."""
    return float(end - begin if xp is np else xp.cuda.get_elapsed_time(begin, end) / 1e3)


def _pinned(xp: Any, part: CsrArrays) -> CsrArrays:
    """Return a part in memory that the device can read while the host goes on."""
    if xp is np:
        return part

    def pin(array: Any) -> Any:
        from cupyx import empty_pinned

        if array.size == 0:
            return array
        copy = empty_pinned(array.shape, array.dtype)
        copy[...] = array
        return copy

    return CsrArrays(part.shape, pin(part.row_starts), pin(part.columns), pin(part.values))
