"""What can be chosen in a decomposition: the variant, and the options of the published one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

SccVariant = Literal["auto", "fbt", "max-id", "multistep"]
MecVariant = Literal["auto", "attractor", "trim"]


class VariantError(ValueError):
    """An option that does not exist, or that does not suit a graph."""


@dataclass(frozen=True)
class SccOptions:
    """How strongly connected components are found.

    Attributes
    ----------
    variant : {"auto", "fbt", "max-id", "multistep"}
        ``fbt`` is the published algorithm, forward-backward search with trimming ([WKB16] §5), with the
        options below. ``max-id`` trims by counting, then propagates greatest names over the edges that are
        left. ``multistep`` trims by counting, takes the component of one pivot by a search both ways, and
        goes on as ``max-id``. ``auto`` begins as ``multistep`` and gives up a search of over 24 launches, to
        go on as ``max-id``: the search finds one large component of a flat graph up to three times as fast,
        and takes up to twice as long in a deep graph.
    trim : bool
        Remove trivial components first, and in ``fbt`` before every search.
    transpose : bool
        ``fbt``: search backwards on the transposed graph; without it by scans of the graph. The other
        variants always make the transposed graph, unless they do not trim and do not search.
    bounded : bool
        ``fbt``: the variant BFBT: once one direction is done, the other goes on inside its states only.
    combined : bool
        ``fbt``: one kernel for a step of both searches; else one for each.
    segment_interval : int
        ``fbt``: u of [WKB16] §5.1.1: transitions of states with at most so many of them are interleaved,
        a warp's worth of states at a time; 0 leaves the graph as it is.
    iterations : int
        ``fbt``: NrIters of [WKB16] §5.2, the search steps in a launch; those after the first one work on
        states that the block keeps in shared memory. At least 1, which uses no cache.
    aggregate : bool
        ``fbt``: one lane of a warp competes for each pivot ([WKB16] §5.3.1).
    look_every : int
        Launches between two looks of the host at how far the device is.
    rounds : int
        Rounds that a block goes on by itself within a launch, in the variants with queues.
    tile_rounds : int
        ``max-id``: how often a block repeats its tile of edges in a sweep.
    """

    variant: SccVariant = "auto"
    trim: bool = True
    transpose: bool = True
    bounded: bool = False
    combined: bool = True
    segment_interval: int = 7
    iterations: int = 1
    aggregate: bool = True
    look_every: int = 4
    rounds: int = 32
    tile_rounds: int = 128

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.variant not in get_args(SccVariant):
            raise VariantError(f"variant: expected one of {get_args(SccVariant)}, got {self.variant!r}")
        least_values = {
            "segment_interval": 0, "iterations": 1, "look_every": 1, "rounds": 1, "tile_rounds": 1,
        }  # fmt: skip
        for name, least in least_values.items():
            if getattr(self, name) < least:
                raise VariantError(f"{name}: expected at least {least}, got {getattr(self, name)}")


@dataclass(frozen=True)
class MecOptions:
    """How maximal end components are found.

    Attributes
    ----------
    variant : {"auto", "attractor", "trim"}
        ``attractor`` is the published algorithm ([WKB16] §6) on top of ``fbt``. ``trim`` removes choices
        that leave, with the states that this removes in turn, by a queue, and decomposes what is left again
        as a graph of its own. ``auto`` is ``trim``.
    scc : SccOptions
        How components are found inside; in ``attractor`` always by the variant ``fbt``. In ``trim``, ``auto``
        is ``max-id`` for parts of the graph, which have no transposed graph yet.
    join_sets : bool
        ``attractor``: only states next to removed ones can become pivots (sets J, [WKB16] §5.3.2).
    reuse_regions : bool
        ``attractor``: the components of one iteration are the regions that the next one starts with, each
        with a pivot of its own.
    """

    variant: MecVariant = "auto"
    scc: SccOptions = field(default_factory=SccOptions)
    join_sets: bool = False
    reuse_regions: bool = True

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.variant not in get_args(MecVariant):
            raise VariantError(f"variant: expected one of {get_args(MecVariant)}, got {self.variant!r}")
