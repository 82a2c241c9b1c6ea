"""Transports of vector elements between devices of processes: direct copies, NCCL, or through the hosts."""

from __future__ import annotations

import logging
import os
import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import (
    Device,
    DeviceLinks,
    Leaving,
    OpenWindow,
    SideStream,
    Window,
    WindowPushes,
    copy_blocks,
    window_words,
)
from hybrid.base.arrays import Array
from hybrid.base.errors import OptionError
from mtbdd.base.communicator import AgreedMemoryError, Communicator
from mtbdd.offset.distributed import places_of

# Windows of processes whose cards, in one machine, can write to each other's memory.


class Neighbours:
    """Makes windows that all processes have open, and closes those that are no longer needed.

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
            fault = f"{int(isinstance(failure, MemoryError))}process {alike.rank}: {failure}"
        told = alike.first_text(fault)
        if own is None or told is not None:
            if own is not None:
                own.close()
            assert told is not None
            raise (AgreedMemoryError if told[0] == "1" else RuntimeError)(told[1:])
        handles = alike.gather_bytes(own.handle)
        others: list[OpenWindow | None] = [None] * alike.size
        try:
            for rank, handle in enumerate(handles):
                if rank != alike.rank:
                    others[rank] = self._device.open_window(handle)
        except RuntimeError as failure:
            fault = f"process {alike.rank}: {failure}"
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
        self.communicator.gather([0.0])  # no process has them open now
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
    if not communicator.all(communicator.local_rank()[1] == communicator.size):
        reasons.append("the cards are in several machines")
        return None
    found = Neighbours(device, communicator)
    try:
        found.open_windows(_TransportTrial(), 1)
    except (MemoryError, RuntimeError) as failure:
        reasons.append(f"cards cannot write to each other's memory: {failure}")
        return None
    return found


class _TransportTrial:
    """Holds the first windows, which are made to see whether there can be any."""


# Which own elements go to other processes, as kernels take them.

_SPAN = 1024
"""Elements that a warp writes at a time."""

_MOST_RANGES = 16
"""Ranges in a span up to which they are copied as such: a warp takes them in turn."""

_LISTED = 1 << 27
"""Elements from which on their list would take too much memory."""


def leaving_elements(device: Device, runs: NDArray[np.int64], own: int) -> Leaving:
    """Return ranges as such where they are long, or very many, else their elements one by one.

    Parameters
    ----------
    device : Device
    runs : ndarray, shape (ranges, 2), int64
        Begins and ends.
    own : int
        Length of the vector.

    Notes
    -----
    Memory: O(ranges) on the device, or four bytes (eight from 2**31 own elements on) an element.
    """
    xp, lengths = device.xp, runs[:, 1] - runs[:, 0]
    size, ends = int(lengths.sum()), np.cumsum(lengths)
    in_span = np.diff(np.searchsorted(ends, np.arange(0, size + _SPAN, _SPAN)))
    if size >= _LISTED or in_span.max(initial=0) <= _MOST_RANGES:
        starts = xp.asarray(np.ascontiguousarray(runs[:, 0]))
        return Leaving(size, starts=starts, ends=xp.asarray(ends))
    return Leaving(size, places=xp.asarray(places_of(runs).astype(np.int32 if own < 2**31 else np.int64)))


def gather(device: Device, leaving: Leaving, x: Array, out: Array) -> None:
    """Queue writing elements of x one after the other to `out`, shape (leaving.size,)."""
    if leaving.places is None:
        copy_blocks(device, x, leaving.starts, leaving.ends, out)
    else:
        device.xp.take(x, leaving.places, out=out)


Int64Array = NDArray[np.int64]

VARIABLE = "HYBRID_CARRIER"
"""Environment variable that forces a way."""

WAYS = ("straight", "nccl", "hosts")
"""Its values."""

_log = logging.getLogger(__name__)


class Transport(ABC):
    """Transport of elements from process to process.

    Attributes
    ----------
    name : str
        How they go, in words.
    host_waits : bool
        Whether the host waits in every exchange; where it does not, launches can be recorded.
    others : array, float64
        On the device: elements of other processes, one after the other, which kernels read between `finish`
        and the next `begin`.
    aside : SideStream or None
        Where the exchange runs concurrently; what is queued there behind `begin` may read `others`, too.
    """

    name: str
    host_waits: bool
    others: Array
    aside: SideStream | None = None

    @abstractmethod
    def begin(self, x: Array) -> None:
        """Queue an exchange of elements of x behind all work queued so far."""

    @abstractmethod
    def finish(self) -> None:
        """Make later work wait for the elements of other processes."""


class _GatheringTransport(Transport):
    """A carrier that first puts what leaves side by side.

    Parameters
    ----------
    device : Device
    outgoing : sequence of ndarray, shape (ranges, 2), int64
        Ranges of own elements for each process.
    awaited : sequence of int
        Elements from each.
    own : int
        Elements of x.
    """

    def __init__(
        self, device: Device, outgoing: Sequence[Int64Array], awaited: Sequence[int], own: int
    ) -> None:
        self._device, self._awaited = device, awaited
        self._lengths = lengths_of(outgoing)
        self._where = leaving_elements(device, np.concatenate(outgoing), own)
        self._leaving = device.xp.empty(sum(self._lengths))
        self.others = device.xp.empty(sum(awaited))

    def begin(self, x: Array) -> None:
        """See `Transport.begin`."""
        gather(self._device, self._where, x, self._leaving)
        self._send()

    @abstractmethod
    def _send(self) -> None:
        """Queue the exchange of the gathered elements."""


class HostTransport(_GatheringTransport):
    """See `Transport`; by messages of the host, from and to memory that the device copies to and from."""

    name = "by way of the hosts"
    host_waits = True

    def __init__(
        self,
        device: Device,
        communicator: Communicator,
        outgoing: Sequence[Int64Array],
        awaited: Sequence[int],
        own: int,
        reason: str = "",
    ) -> None:
        super().__init__(device, outgoing, awaited, own)
        if reason:
            self.name = f"{self.name}: {reason}"
        self._communicator = communicator
        self._transfers = device.transfers(sum(self._lengths), sum(awaited))
        self._outgoing = _cut(self._transfers.outgoing, self._lengths)
        self._incoming = _cut(self._transfers.incoming, awaited)

    def _send(self) -> None:
        self._transfers.send(self._leaving)

    def finish(self) -> None:
        """See `Transport.finish`. Synchronises: with the copy to the host; then waits for the messages."""
        self._transfers.sent()
        self._communicator.exchange(self._outgoing, self._incoming)
        self._transfers.receive(self.others)


class NcclTransport(_GatheringTransport):
    """See `Transport`; from card to card. Synchronises: no."""

    name = "by NCCL"
    host_waits = False

    def __init__(
        self,
        device: Device,
        links: DeviceLinks,
        outgoing: Sequence[Int64Array],
        awaited: Sequence[int],
        own: int,
        reason: str = "",
    ) -> None:
        super().__init__(device, outgoing, awaited, own)
        if reason:
            self.name = f"{self.name}: {reason}"
        self._links, self.aside = links, links.aside

    def _send(self) -> None:
        self._links.begin(self._leaving, self._lengths, self.others, self._awaited)

    def finish(self) -> None:
        """See `Transport.finish`."""
        self._links.aside.join()


class PeerTransport(Transport):
    """See `Transport`; kernels write to the memory of other cards. Synchronises: no.

    Notes
    -----
    All processes make it at once. Its `others` are the room of a window.
    """

    name = "straight to other cards"
    host_waits = False

    def __init__(
        self,
        device: Device,
        neighbours: Neighbours,
        outgoing: Sequence[Int64Array],
        awaited: Sequence[int],
        own: int,
    ) -> None:
        self.alike = alike = neighbours.communicator
        sizes = alike.gather(lengths_of(outgoing)).astype(np.int64)
        window, others = neighbours.open_windows(self, sum(awaited))
        leaving = [leaving_elements(device, runs, own) for runs in outgoing]
        self._pushes = WindowPushes(device, alike.rank, window, others, leaving, sizes)
        self.aside: SideStream = device.side_stream()
        self.others = window.room

    def begin(self, x: Array) -> None:
        """See `Transport.begin`."""
        self.aside.begin()
        with self.aside:
            self._pushes.announce()
            self._pushes.push(x)
            self._pushes.await_arrivals()

    def finish(self) -> None:
        """See `Transport.finish`."""
        self.aside.join()


def transport_of(
    device: Device,
    communicator: Communicator,
    outgoing: Sequence[Int64Array],
    awaited: Sequence[int],
    own: int,
) -> Transport:
    """Return how elements are carried.

    Straight where every process has a card of its own in one machine, whose cards can write to each other; by
    NCCL where every process has one and NCCL is there; else by way of the hosts.  Why it is not the way
    before stands in the carrier's name; a warning says so where there are several cards and the hosts carry.
    The environment variable HYBRID_CARRIER, one of `WAYS`, has one way tried and no other.

    Parameters
    ----------
    device : Device
    communicator : Communicator
        It keeps what was found, which all its exchanges share.
    outgoing : sequence of ndarray, shape (ranges, 2), int64
        Ranges of own elements for each process.
    awaited : sequence of int
        Elements from each.
    own : int
        Own elements.

    Raises
    ------
    OptionError
        In all processes: the variable names no way, or one that is not there; or they have different ones.

    Notes
    -----
    All processes call it at once.
    """
    if communicator.carries and communicator.links is None:
        links, reasons = _joined(device, communicator)
        communicator.links, communicator.links_reason = links or False, "; ".join(reasons)
        _log.info("elements of other processes go %s", _words(links, communicator.links_reason))
    links, reason = communicator.links, communicator.links_reason
    if isinstance(links, Neighbours):
        return PeerTransport(device, links, outgoing, awaited, own)
    if links:
        return communicator.with_room(lambda: NcclTransport(device, links, outgoing, awaited, own, reason))
    return communicator.with_room(lambda: HostTransport(device, communicator, outgoing, awaited, own, reason))


def _words(links: Neighbours | DeviceLinks | None, reason: str) -> str:
    """Return how elements go, and why no other way."""
    kind = HostTransport if not links else PeerTransport if isinstance(links, Neighbours) else NcclTransport
    return f"{kind.name}: {reason}" if reason else kind.name


def _joined(device: Device, communicator: Communicator) -> tuple[Neighbours | DeviceLinks | None, list[str]]:
    """Join the cards of all processes, if each has one of its own; return why not, too."""
    forced = _forced_way(communicator)
    cards, reasons = _cards_of_all(device, communicator)
    found: Neighbours | DeviceLinks | None = None
    if forced == "hosts":
        reasons = [f"{VARIABLE}=hosts"]
    elif not reasons:
        if forced != "nccl":
            found = joined_neighbours(device, communicator, reasons)
        if found is None and forced != "straight":
            found = joined_links(communicator, reasons)
    if found is None and forced in ("straight", "nccl"):
        raise OptionError(f"{VARIABLE}={forced}: no such way between the cards: {'; '.join(reasons)}")
    if found is not None and forced is not None:
        reasons.append(f"{VARIABLE}={forced}")
    if found is None and forced is None and len(cards - {b""}) > 1 and communicator.rank == 0:
        warnings.warn(
            f"elements go from card to card by way of the hosts, which is slow: {'; '.join(reasons)}",
            RuntimeWarning,
            stacklevel=2,
        )
    return found, reasons


def _forced_way(communicator: Communicator) -> str | None:
    """Return the way that the environment names, the same in all processes; None where it names none."""
    found = [text.decode() for text in communicator.gather_bytes(os.environ.get(VARIABLE, "").encode())]
    unknown = next((way for way in found if way not in ("", *WAYS)), None)
    if unknown is not None:
        raise OptionError(f"{VARIABLE}: expected {', '.join(WAYS[:-1])} or {WAYS[-1]}, got {unknown!r}")
    if len(set(found)) > 1:
        raise OptionError(f"{VARIABLE}: processes have different values, {', '.join(map(repr, found))}")
    return found[0] or None


def _cards_of_all(device: Device, communicator: Communicator) -> tuple[set[bytes], list[str]]:
    """Return the identities of all processes' cards, and why they are not one for each."""
    own, fault = b"", None
    try:
        own = device.card_identity()
    except RuntimeError as failure:
        fault = f"process {communicator.rank} cannot tell its card from others: {failure}"
    cards = communicator.gather_bytes(own)
    if b"" in cards:
        unknown = f"process {cards.index(b'')} has no card that others could reach"
        return set(cards), [communicator.first_text(fault) or unknown]
    repeated = next((k for k, card in enumerate(cards) if card in cards[:k]), None)
    if repeated is not None:
        return set(cards), [f"processes {cards.index(cards[repeated])} and {repeated} share a card"]
    return set(cards), []


def joined_links(communicator: Communicator, reasons: list[str] | None = None) -> DeviceLinks | None:
    """Join the cards of all processes by NCCL, if all have it; each has a card of its own.

    Parameters
    ----------
    communicator : Communicator
    reasons : list of str, optional
        Why they cannot be joined is added to it, the same in all processes.
    """
    reasons = [] if reasons is None else reasons
    missing = communicator.first_text(
        None if DeviceLinks.is_there() else f"process {communicator.rank} has no NCCL"
    )
    if missing is not None:
        reasons.append(missing)
        return None
    found, own, fault = None, b"", None
    try:
        own = DeviceLinks.new_key() if communicator.rank == 0 else b""
    except RuntimeError as failure:
        fault = f"NCCL makes no communicator: {failure}"
    key = communicator.gather_bytes(own)[0]
    try:
        found = DeviceLinks(communicator.size, communicator.rank, key) if key else None
    except RuntimeError as failure:
        fault = f"NCCL does not join the cards: process {communicator.rank}: {failure}"
    told = communicator.first_text(fault)
    if told is not None:
        reasons.append(told)
        return None
    return found


def lengths_of(outgoing: Sequence[Int64Array]) -> list[int]:
    """Return how many elements ranges have, for each process."""
    return [int((runs[:, 1] - runs[:, 0]).sum()) for runs in outgoing]


def _cut(array: NDArray[np.float64], lengths: Sequence[int]) -> list[NDArray[np.float64]]:
    """Return an array in consecutive pieces of given lengths."""
    return np.split(array, np.cumsum(lengths)[:-1])
