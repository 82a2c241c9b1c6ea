"""Launch shape and sizes of tiles, as measured, and what the card in use can do: speed, never results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels import Tuning, current_device, device_problem
from hybrid.matrix.injection.row_types import RowTypes
from mtbdd.base.records import Record

# Performance data of a card for predictions: bandwidth, second-level cache, and instructions.

_TWICE = 2
"""Transfers of a memory clock."""


class Card(NamedTuple):
    """Figures of a card.

    Attributes
    ----------
    name : str
    bandwidth : float
        Of its memory, in bytes a second.
    cache_bytes : int
        Size of the second-level cache.
    cycles : float
        Clock rate times multiprocessors, in cycles a second.
    multiprocessors : int
    """

    name: str
    bandwidth: float
    cache_bytes: int
    cycles: float
    multiprocessors: int

    def work(self, reference: Card) -> float:
        """Return how many times longer than on the reference instructions take."""
        return reference.cycles / self.cycles

    def transfer(self, reference: Card) -> float:
        """Return how many times longer than on the reference bytes of vectors take."""
        return reference.bandwidth / self.bandwidth

    def stream(self, nbytes: float, reference: Card) -> float:
        """Return how many times longer than on the reference bytes take that every product reads again.

        Bytes that stay in the cache between products cost a quarter of those from memory.
        """
        return self.transfer(reference) * self._missed(nbytes) / reference._missed(nbytes)

    def _missed(self, nbytes: float) -> float:
        share = 1.0 - self.cache_bytes / nbytes if nbytes > self.cache_bytes else 0.0
        return max(0.25, share)


REFERENCE = Card("NVIDIA H200", 4.8e12, 60 << 20, 132 * 1.98e9, 132)
"""The card that constants of time were measured on."""


def card_of(attributes: dict[str, Any], name: str) -> Card:
    """Return the figures of a card from CUDA's attributes; that of the reference where a driver gives none.

    Parameters
    ----------
    attributes : dict
        As ``cupy.cuda.Device().attributes``: clock rates in kHz, bus width in bits.
    name : str
    """
    clock = 1e3 * float(attributes.get("ClockRate", 0))
    memory_clock = 1e3 * float(attributes.get("MemoryClockRate", 0))
    bandwidth = _TWICE * memory_clock * float(attributes.get("GlobalMemoryBusWidth", 0)) / 8
    multiprocessors = int(attributes.get("MultiProcessorCount", 0))
    cycles = clock * multiprocessors
    cache_bytes = int(attributes.get("L2CacheSize", 0))
    return Card(
        name,
        bandwidth or REFERENCE.bandwidth,
        cache_bytes or REFERENCE.cache_bytes,
        cycles or REFERENCE.cycles,
        multiprocessors or REFERENCE.multiprocessors,
    )


def card_in_use() -> Card:
    """Return the figures of the current device; the reference where there is none, or an emulator."""
    if device_problem() is not None:
        return REFERENCE
    device = current_device()
    if not hasattr(device.xp, "cuda"):
        return REFERENCE
    return _cuda_card(int(device.xp.cuda.Device().id), device.name)


@cache
def _cuda_card(number: int, name: str) -> Card:
    import cupy

    return card_of(dict(cupy.cuda.Device(number).attributes), name)


_THREADS = 128
_SLICES = 16
_MOST_TERMS = 640

_SHORT_ROWS = 2.5
"""Entries of a row in a layer, on average, below which rows are read two entries at a time."""

_FILLED = 0.55
"""Share of the members of chunks that must be taken for four members to be faster than two."""

FEW_TERMS = 16
"""Terms of a tile, on average, up to which a start costs next to nothing but its latency."""

MANY_TERMS = 80
"""Terms of a tile, on average, from which a start costs so much that tiles are not made smaller."""

_SMALL_SIZES: tuple[int, ...] = (12, 8, 4)
"""Slices of a tile to choose from beside `_SLICES`: as many for each of four warps."""

_LARGE_SIZES = (24, 20)
"""Others where blocks take few rounds: then much of x is in use at any time, however large tiles are."""

_FEW_ROUNDS = 8

_LARGEST_SIZES = (64, 48, 32)
"""Others where terms are few: fewer blocks start, and none starts with much work."""

_SPARE = 1.02
"""Blocks that a round takes over those that run at once: blocks do not all end together."""

_START = 3
"""Slices that take as long as what a block does before its first one, about."""


class LayoutOptions(Record):
    """Choices that change the speed of a product or step and not its result; what is left out is chosen.

    Attributes
    ----------
    tuning : Tuning, optional
        Launch shape.
    slices : int, optional
        Slices of 32 rows of a tile at most.
    unit : int, optional
        Entries of a row in a layer that are read at once: 1, 2 or 4; rows are filled up to a multiple.
    terms : int, optional
        Terms of a round at most, fewer where fast memory does not hold as many; with up to 255 an entry
        takes one byte, with more two.
    entries : int
        Entries of a tile of more than 128 rows at most; heeded for layers alone, so that no item lasts much
        longer than others and the end waits for it.
    turns : int
        Slices of 32 rows that every warp of a block has at least, where there is room.
    look_ups : int, optional
        Terms that a thread of the kernel for layers looks up at once: 1 or 4.
    window_rows : int
        Groups of one type are bundled if they begin in the same window of rows.
    wide : bool
        Use 64-bit indices although 32 bits would do.
    """

    tuning: Tuning | None = None
    slices: int | None = None
    unit: int | None = None
    terms: int | None = None
    entries: int = 4096
    turns: int = 1
    look_ups: int | None = None
    window_rows: int = 1 << 27
    wide: bool = False


class TileShape(Record):
    """Sizes of tiles, chosen: attributes as of :class:`LayoutOptions`."""

    slices: int
    unit: int
    terms: int
    entries: int


def choose_tuning(types: RowTypes, k: int) -> Tuning:
    """Choose the launch shape for the row types of level k.

    A thread with four members reads each code once for four groups. Where most types have fewer groups,
    registers of members without a group are wasted, and two members are faster. Eight blocks of 128 threads
    leave 64 registers a thread, which is what the kernel needs.
    """
    level = types[k]
    rows = level.rows
    wanted = float((rows * level.groups).sum())
    offered = float((rows * 4 * -(-level.groups // 4)).sum())
    return Tuning(threads=_THREADS, min_blocks=8, members=4 if wanted >= _FILLED * offered else 2)


def choose_slices(
    rows: NDArray[np.int64], groups: Sequence[NDArray[np.int64]], tuning: Tuning, turns: int, few_terms: bool
) -> int:
    """Choose the slices of a tile by the rounds of blocks that a launch takes.

    A card works off so many blocks at a time; the last round takes as long as the others, however few blocks
    it has. So larger tiles are better where there are many, and smaller ones where they all fit at once.

    Parameters
    ----------
    rows : ndarray, shape (types,), int64
        Rows of a group of every type.
    groups : sequence of ndarray, shape (types,), int64
        Groups of every type, in sets that share no item.
    tuning : Tuning
    turns : int
        See `LayoutOptions`.
    few_terms : bool
        Whether a block starts with next to no work.

    Returns
    -------
    int
        Of equally good sizes the one that tiles have without a choice, or the greatest.

    Notes
    -----
    Constants are fitted to steps of eight chains with 0.5 to 9.5 million states on an H200. Time: O(types).
    """
    blocks, warps = tuning.min_blocks * card_in_use().multiprocessors, tuning.threads // 32
    in_type = -(-rows // 32)

    def rounds_and_cost(slices: int) -> tuple[float, float]:
        in_tile = np.minimum(in_type, slices)
        at_once = tuning.members * np.maximum(-(-turns * warps // in_tile), 1)
        items = -(-in_type // slices) * sum(-(-own // at_once) for own in groups)
        rounds = float(np.ceil(items.sum() / (_SPARE * blocks)))
        return rounds, rounds * float((in_tile * items).sum() / items.sum() + _START)

    rounds, least = rounds_and_cost(_SLICES)
    best, sizes = _SLICES, _SMALL_SIZES
    if few_terms or rounds <= _FEW_ROUNDS:
        sizes = _LARGE_SIZES + sizes
    if few_terms:
        sizes = _LARGEST_SIZES + sizes
    for slices in sizes:
        cost = rounds_and_cost(slices)[1]
        if cost < least:
            best, least = slices, cost
    return best


def choose_shape(options: LayoutOptions, rows: int, entries: int, room: int) -> TileShape:
    """Choose the sizes of tiles that options leave open.

    Parameters
    ----------
    options : LayoutOptions
    rows, entries : int
        Of the matrix, rows once for every layer.
    room : int
        Terms of a round that fast memory holds.

    Notes
    -----
    Tiles of 512 rows read x from the first-level cache as often as larger ones, nearly, and leave the parts
    of x that are in use at the same time small enough for the second-level cache. Rows of one or two entries
    are read two at a time, others four.
    """
    unit = options.unit or (2 if entries < _SHORT_ROWS * rows else 4)
    terms = min(options.terms or _MOST_TERMS, room)
    return TileShape(options.slices or _SLICES, unit, terms, options.entries)
