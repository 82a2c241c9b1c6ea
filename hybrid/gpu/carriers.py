"""How elements get from the device of one process to those of others: by NCCL, or by way of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Device, DeviceLinks
from mtbdd.communicator import Communicator

Array = Any


class Carrier(Protocol):
    """What brings elements from process to process.

    Attributes
    ----------
    name : str
        How they go, in words.
    """

    name: str

    def begin(self, leaving: Array, others: Array) -> None:
        """Queue the exchange behind all work queued so far; both arrays are left alone meanwhile."""

    def finish(self, others: Array) -> None:
        """Have later work wait for what comes from others."""


class HostCarrier:
    """See `Carrier`; by messages of the host, from and to memory that the device copies to and from.

    Parameters
    ----------
    device : Device
    communicator : Communicator
    lengths, awaited : sequence of int
        Elements for each process, and from each.
    """

    name = "by way of the hosts"

    def __init__(
        self, device: Device, communicator: Communicator, lengths: Sequence[int], awaited: Sequence[int]
    ) -> None:
        self._communicator = communicator
        self._transfers = device.transfers(sum(lengths), sum(awaited))
        self._outgoing = _cut(self._transfers.outgoing, lengths)
        self._incoming = _cut(self._transfers.incoming, awaited)

    def begin(self, leaving: Array, others: Array) -> None:
        """See `Carrier.begin`."""
        self._transfers.send(leaving)

    def finish(self, others: Array) -> None:
        """See `Carrier.finish`. Synchronises: with the copy to the host; then waits for the messages."""
        self._transfers.sent()
        self._communicator.exchange(self._outgoing, self._incoming)
        self._transfers.receive(others)


class LinkedCarrier:
    """See `Carrier`; from card to card. Synchronises: no.

    Parameters
    ----------
    links : DeviceLinks
    lengths, awaited : sequence of int
        Elements for each process, and from each.
    """

    name = "by NCCL"

    def __init__(self, links: DeviceLinks, lengths: Sequence[int], awaited: Sequence[int]) -> None:
        self._links, self._lengths, self._awaited = links, lengths, awaited

    def begin(self, leaving: Array, others: Array) -> None:
        """See `Carrier.begin`."""
        self._links.begin(leaving, self._lengths, others, self._awaited)

    def finish(self, others: Array) -> None:
        """See `Carrier.finish`."""
        self._links.finish()


def carrier_of(
    device: Device, communicator: Communicator, lengths: Sequence[int], awaited: Sequence[int]
) -> HostCarrier | LinkedCarrier:
    """Return how elements are carried: by NCCL where every process has a card of its own, and NCCL is there.

    Parameters
    ----------
    device : Device
    communicator : Communicator
        It keeps the links, which all its exchanges share.
    lengths, awaited : sequence of int
        Elements for each process, and from each.

    Notes
    -----
    All processes call it at once.
    """
    if communicator.carries and communicator.links is None:
        communicator.links = _linked(device, communicator) or False
    if communicator.links:
        return LinkedCarrier(communicator.links, lengths, awaited)
    return HostCarrier(device, communicator, lengths, awaited)


def _linked(device: Device, communicator: Communicator) -> DeviceLinks | None:
    """Join the cards of all processes, if each has one of its own."""
    cards = communicator.gather_bytes(device.card_identity())
    if b"" in cards or len(set(cards)) < len(cards):
        return None
    own = DeviceLinks.new_key() if communicator.rank == 0 else b""
    key = communicator.gather_bytes(own)[0]
    return DeviceLinks(communicator.size, communicator.rank, key)


def _cut(array: NDArray[np.float64], lengths: Sequence[int]) -> list[NDArray[np.float64]]:
    """Return an array in consecutive pieces of given lengths."""
    return np.split(array, np.cumsum(lengths)[:-1])
