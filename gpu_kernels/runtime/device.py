"""The device that kernels run on: array module, compiled kernels, memory; CuPy's current one unless set."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from gpu_kernels.runtime._loader import Kernel, Macros, raw_kernel
from gpu_kernels.runtime.availability import unavailable_reason

if TYPE_CHECKING:
    from gpu_kernels.runtime.transfers import OpenWindow, SideStream, Transfers, Window

# A CUDA graph whose launches keep the priorities of the streams that they were recorded on.

_USE_NODE_PRIORITY = 8
"""CU_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY; without it all launches have the priority of the replay."""


class RecordedGraph:
    """A graph to launch.

    Parameters
    ----------
    graph : cupy.cuda.graph.Graph
        As captured.

    Notes
    -----
    CuPy passes no flags when it instantiates a graph; the driver is called for that. Where it refuses, CuPy's
    graph is launched, whose results are the same.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._executable = _instantiated(graph.graph)
        if self._executable is not None:
            weakref.finalize(self, _driver().cuGraphExecDestroy, self._executable)

    def launch(self, stream: Any) -> None:
        """Queue all launches on a stream."""
        if self._executable is None:
            self._graph.launch(stream)
            return
        status = _driver().cuGraphLaunch(self._executable, ctypes.c_void_p(stream.ptr))
        if status != 0:
            raise RuntimeError(f"cuGraphLaunch ended with status {status} of the CUDA driver")


def _driver() -> Any:
    return ctypes.CDLL("libcuda.so.1")


def _instantiated(graph: int) -> ctypes.c_void_p | None:
    """Return an executable graph, or None where the driver makes none."""
    found = ctypes.c_void_p()
    try:
        instantiate = _driver().cuGraphInstantiateWithFlags
    except (OSError, AttributeError):
        return None
    status = instantiate(ctypes.byref(found), ctypes.c_void_p(graph), ctypes.c_ulonglong(_USE_NODE_PRIORITY))
    return found if status == 0 else None


_UNUSED = 1 << 30
"""Bytes that CuPy's pool may hold unused before they are given back to tell what is free."""

_QUEUED = 8
"""Calls between two events: the host queues the later ones while the device is at work on the first."""


class Place(Protocol):
    """A place of arrays: a device, or the host for those that are copied to one."""

    @property
    def xp(self) -> Any:
        """Array module: CuPy, or NumPy for the host and for an emulator."""


class Device(Place, Protocol):
    """The interface of a device for the wrappers; an emulator of kernels on the host offers the same."""

    @property
    def name(self) -> str:
        """Name for people."""

    def kernel(self, source: str, name: str, macros: Macros) -> Kernel:
        """Return a kernel of a source file for one specialisation, compiled at the first call."""

    def free_bytes(self) -> int:
        """Return the memory that can still be allocated."""

    def synchronise(self) -> None:
        """Wait until all work queued so far is done."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return a function that queues the launches of ``work`` again, with the same arguments."""

    def seconds(self, work: Callable[[], None], repeats: int) -> float:
        """Return the median time of ``work`` on the device, after a first call that is not counted."""

    def transfers(self, outgoing: int, incoming: int) -> Transfers:
        """Return room on the host for so many elements that go out of the device and come in."""

    def card_identity(self) -> bytes:
        """Return the unique identity of the card; empty where there is none."""

    def side_stream(self) -> SideStream:
        """Return a stream for work that goes on beside that of the current one."""

    def window(self, words: int, elements: int) -> Window:
        """Return memory that other processes may open."""

    def open_window(self, handle: bytes) -> OpenWindow:
        """Open another process's memory."""


class CudaDevice:
    """The CUDA device that is current in CuPy.

    Raises
    ------
    RuntimeError
        If there is none; the message says why and what to do.
    """

    def __init__(self) -> None:
        reason = unavailable_reason()
        if reason is not None:
            raise RuntimeError(reason)
        import cupy

        self._cupy = cupy

    @property
    def xp(self) -> Any:
        """CuPy."""
        return self._cupy

    @property
    def name(self) -> str:
        """Name of the card."""
        return _name_of(int(self._cupy.cuda.Device().id))

    def kernel(self, source: str, name: str, macros: Macros) -> Kernel:
        """Return a compiled kernel; see :func:`gpu_kernels.runtime._loader.raw_kernel`."""
        return raw_kernel(self._cupy.cuda.Device().id, source, name, macros)

    def free_bytes(self) -> int:
        """Return the free memory of the card and what CuPy's pool holds unused; waits for a warm-up's end.

        Of much that is unused whole blocks are given back first, and what stays does not count: pieces of
        blocks that other arrays use, in which no long vector finds room.
        """
        from gpu_kernels.runtime.warm_up import end_warm_up

        end_warm_up()
        pool = self._cupy.get_default_memory_pool()
        unused = int(pool.free_bytes())
        if unused > _UNUSED:
            pool.free_all_blocks()
            unused = 0
        free, _ = self._cupy.cuda.runtime.memGetInfo()
        return int(free) + unused

    def synchronise(self) -> None:
        """Wait for the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Capture the launches of ``work`` in a CUDA graph, which replays them without the host's share.

        The kernels must have been launched before, because loading a module cannot be captured, and the
        arrays must live as long as the graph is used. Replays go to the stream that is current then; launches
        keep the priority of the stream that they were recorded on.
        Synchronises: yes, here; replays do not.
        """
        cupy = self._cupy
        stream = cupy.cuda.Stream()
        with stream:
            stream.begin_capture()
            work()
            graph = stream.end_capture()
        self.synchronise()
        repeatable = RecordedGraph(graph)
        return lambda: repeatable.launch(cupy.cuda.get_current_stream())

    def seconds(self, work: Callable[[], None], repeats: int) -> float:
        """Return the median of event times over several queued calls; synchronises."""
        work()
        times = []
        for _ in range(repeats):
            begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
            begin.record()
            for _ in range(_QUEUED):
                work()
            end.record()
            end.synchronize()
            times.append(float(self._cupy.cuda.get_elapsed_time(begin, end)) / 1e3 / _QUEUED)
        import statistics

        return statistics.median(times)

    def transfers(self, outgoing: int, incoming: int) -> Transfers:
        """Return room on the host that is locked in memory, and a stream of its own for copies."""
        from gpu_kernels.runtime.transfers import Transfers

        return Transfers(outgoing, incoming)

    def card_identity(self) -> bytes:
        """Return the card's UUID, its machine's number, and its PCI address: UUIDs may be zeros, or alike."""
        runtime, number = self._cupy.cuda.runtime, self._cupy.cuda.Device().id
        uuid = bytes(runtime.getDeviceProperties(number)["uuid"])
        return uuid + _machine() + str(runtime.deviceGetPCIBusId(number)).encode()

    def side_stream(self) -> SideStream:
        """Return a stream whose launches go before those of the current one where both could."""
        from gpu_kernels.runtime.transfers import SideStream

        return SideStream()

    def window(self, words: int, elements: int) -> Window:
        """Return memory of the card; see `gpu_kernels.runtime.transfers.Window`."""
        from gpu_kernels.runtime.transfers import Window

        return Window(words, elements)

    def open_window(self, handle: bytes) -> OpenWindow:
        """Open memory of another card; see `gpu_kernels.runtime.transfers.OpenWindow`."""
        from gpu_kernels.runtime.transfers import OpenWindow

        return OpenWindow(handle)


_chosen: Device | None = None


def _machine() -> bytes:
    """Return the identity of this start of the machine, the same in its containers."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        import platform

        return platform.node().encode()


@cache
def _name_of(number: int) -> str:
    """Return a card's name; CUDA takes milliseconds to say it, and the cost of every level asks."""
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(number)["name"].decode())


def current_device() -> Device:
    """Return the device in use.

    Returns
    -------
    Device

    Raises
    ------
    RuntimeError
        If no device can be used; the message says why and what to do.
    """
    return _chosen if _chosen is not None else CudaDevice()


def device_problem() -> str | None:
    """Say why no device can be used; None if one can.

    Returns
    -------
    str or None
    """
    return None if _chosen is not None else unavailable_reason()


def take_card(number: int) -> None:
    """Make a card the current one of this thread.

    Parameters
    ----------
    number : int
        Of a process or part among those of the machine: they take the cards in turn.

    Notes
    -----
    The same number takes the same card every time. Nothing happens where there is one card, or where a device
    has been set by `use_device`.
    """
    if _chosen is not None or unavailable_reason() is not None:
        return
    import cupy

    cards = cupy.cuda.runtime.getDeviceCount()
    if cards > 1:
        cupy.cuda.Device(number % cards).use()


@contextmanager
def use_device(device: Device) -> Iterator[Device]:
    """Make a device, such as an emulator, the one in use within a ``with`` block.

    Parameters
    ----------
    device : Device

    Yields
    ------
    Device
        The same one.
    """
    global _chosen
    before, _chosen = _chosen, device
    try:
        yield device
    finally:
        _chosen = before


# Arrays made on the host and then copied to a device.
#
# CuPy compiles a kernel for every operation on arrays and every combination of types when it first meets them
# on a machine. NumPy makes a small record in less time than CuPy needs to compile the first few kernels.

Record = TypeVar("Record")

HOST_ITEMS = 1 << 20
"""Items up to which the host makes a record, in a fifth of a second: as long as a device takes, in a process
that has loaded none of the kernels of its many small operations."""

_TIMES_UNCOMPILED = 4
"""Factor on these counts while the device's operations are not compiled, which takes several seconds."""


class Host:
    """The host as a place where arrays are made."""

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np


def made_for(device: Device, items: int, make: Callable[[Place], Record]) -> Record:
    """Return a record on a device, made on the host and copied where it is little work.

    Parameters
    ----------
    device : Device
    items : int
        What the work grows with: entries and slots of a layout, gains of all layers.
    make : callable
        Returns the record, a frozen dataclass or None, made in the place that it is called with.

    Returns
    -------
    dataclass or None
        What `make` returned, its arrays on the device.

    Notes
    -----
    Up to 2**20 items a record is made on the host; up to 2**22 where the operations that make it on a device
    have not been compiled on this machine. Time: that of `make`, and O(bytes). Synchronises: yes where the
    record is copied.
    """
    # Here: what compiles ahead runs other processes, and takes as long to load as a small answer to compute.
    from gpu_kernels.runtime.warm_up import begin_warm_up, end_warm_up, is_compiled

    if items <= HOST_ITEMS or (items <= _TIMES_UNCOMPILED * HOST_ITEMS and not is_compiled("layouts")):
        return copied_to(device, make(Host()))
    begin_warm_up("layouts")
    end_warm_up()
    return make(device)


def copied_to(device: Device, record: Record) -> Record:
    """Return a record whose arrays lie on a device; records within it as well.

    Parameters
    ----------
    device : Device
    record : dataclass or None
        Frozen; its NumPy arrays are copied, all else is kept.

    Returns
    -------
    dataclass or None
        Of the same type as `record`.

    Notes
    -----
    Time: O(bytes). Synchronises: yes.
    """
    if record is None:
        return record
    changed: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if isinstance(value, np.ndarray):
            changed[field.name] = device.xp.asarray(value)
        elif is_dataclass(value):
            changed[field.name] = copied_to(device, value)
    return replace(record, **changed)  # type: ignore[type-var]
