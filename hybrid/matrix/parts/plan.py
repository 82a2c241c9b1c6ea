"""A plan of parts: which states and which columns of others every part of a compressed matrix has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import OptionError
from hybrid.matrix.parts.groupings import Field, PrefixUses, groupings, prefix_uses, row_work
from hybrid.matrix.parts.prefixes import PrefixGroups, groups_for
from hybrid.matrix.parts.search import choose_parts, consecutive_parts, turned_parts
from hybrid.matrix.parts.uses import ColumnUses, column_uses, nodes_of_parts, transitions_of_groups
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex

Int64Array = NDArray[np.int64]

_MOST_SHARE = 1.05
"""Work of a part over the mean up to which a plan is taken for its shorter exchange."""

_ALIKE = 1.01
"""Ratio of predicted times up to which two plans are told apart by the nodes of their parts."""

_LITTLE = 1.03
"""Ratio of a predicted time to that without any exchange up to which no other groups are searched."""

_FEWER_NODES = 0.75
"""Ratio of nodes from which a plan that is predicted alike is taken instead."""


@dataclass(frozen=True)
class Part:
    """One part of a matrix.

    Attributes
    ----------
    states : int
        Rows of the matrix, elements of every vector.
    transitions : int
    share : float
        Predicted time of its rows over that of a part if all took equally long.
    received : int
        Elements of x that other parts own and its rows need: its halo.
    pieces : int
        Runs of consecutive elements that these are.
    partners : int
        Parts that it receives from.
    prefixes : int
        Prefix groups that it has.
    """

    states: int
    transitions: int
    share: float
    received: int
    pieces: int
    partners: int
    prefixes: int

    def record(self) -> dict[str, Any]:
        """Return the part as plain JSON values, with bytes for one vector of doubles."""
        return {
            "states": self.states,
            "transitions": self.transitions,
            "share": self.share,
            "vector_bytes": 8 * self.states,
            "halo_elements": self.received,
            "halo_bytes": 8 * self.received,
            "halo_pieces": self.pieces,
            "partners": self.partners,
            "prefix_groups": self.prefixes,
        }


@dataclass(frozen=True, eq=False)
class PartPlan:
    """How a matrix is cut into parts.

    Attributes
    ----------
    groups : PrefixGroups
        What is never cut.
    part : ndarray, shape (groups,), int64
        Part of every prefix group.
    uses : ColumnUses
    parts : tuple of Part
    """

    groups: PrefixGroups
    part: Int64Array
    uses: ColumnUses
    parts: tuple[Part, ...]

    @property
    def is_exact(self) -> bool:
        """Whether halos are counted column by column; else ranges of columns are received whole."""
        return bool((self.uses.size <= 1).all())

    def of_prefixes(self, prefixes: PrefixGroups) -> Int64Array:
        """Return the part of every prefix, prefixes as long as those of the groups or longer."""
        return self.part[self.groups.of(prefixes.start)]

    def halo(self, part: int) -> tuple[Int64Array, Int64Array]:
        """Return the columns that a part receives: first columns and lengths of its pieces, in order."""
        start, size, _ = _pieces(self.uses, self.part, part)
        return start, size

    def record(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "prefix_bits": self.groups.bits,
            "tested_bits": list(self.groups.tested),
            "prefix_groups": len(self.groups),
            "exact": self.is_exact,
            "parts": [part.record() for part in self.parts],
        }

    def describe(self) -> str:
        """Return one sentence on how the cut was made."""
        widest = int(self.uses.size.max(initial=0))
        counted = "columns are counted one by one" if self.is_exact else f"ranges of up to {widest:,} columns"
        return (
            f"{len(self.groups):,} prefix groups, {self.groups.describe()}; what a part receives: {counted}"
        )


def plan_parts(
    index: StateIndex, matrices: Sequence[OffsetMTBDD], parts: int, fields: Sequence[Field] = ()
) -> PartPlan:
    """Cut the states into parts along prefix groups of the diagram, before anything is built.

    Parameters
    ----------
    index : StateIndex
        The states, which rows and columns of all matrices stand for.
    matrices : sequence of OffsetMTBDD
        The matrix of a chain, or the layers of a decision process.
    parts : int
    fields : sequence of tuple of int, optional
        Bits of every variable, in their order; groups of equal values are tried, too.

    Returns
    -------
    PartPlan
        Of the groups and parts by which the slowest part is predicted to make a step soonest; or parts turned
        (see `turned_parts`) if these are predicted alike and the one of most nodes has far fewer.

    Raises
    ------
    OptionError
        If there are fewer states than parts, or less than one part is asked for.

    Notes
    -----
    Predicted time is entries and, for each row, what three entries cost.  Rows that share few of the last
    nodes with others take longer, up to a quarter where polling's server is at a station of the last bits;
    this has no number in the prediction, and is shared out.  Time: that of
    `hybrid.matrix.parts.uses.column_uses` and `hybrid.matrix.parts.search.choose_parts`, twice; nothing has
    the length of the state space.
    """
    if parts < 1 or parts > max(index.size, 1):
        raise OptionError(
            f"parts: expected 1 .. {max(index.size, 1):,}, a part for a state at most, got {parts:,}"
        )
    first = groups_for(index, parts)
    prefixes = prefix_uses(index, matrices, first.bits, fields)

    def cost(plan: PartPlan) -> tuple[bool, tuple[float, float]]:
        received = np.array([part.received for part in plan.parts], np.float64)
        seconds = prefixes.seconds(plan.of_prefixes(prefixes.prefixes), parts, received)
        return _greatest_share(plan) > most, seconds

    plans = _plans(matrices, first, parts)
    most = max(_MOST_SHARE, min(map(_greatest_share, plans)))
    if min(cost(plan)[1][0] for plan in plans) > _LITTLE * prefixes.work.sum() / parts:
        for groups in groupings(prefixes, parts, fields):
            plans += _plans(matrices, groups, parts)
    best = min(plans, key=cost)
    over, (seconds, _) = cost(best)
    turned = (plan for plan in _turned(matrices, best, prefixes, parts) if cost(plan)[0] == over)
    alike = [plan for plan in turned if cost(plan)[1][0] <= _ALIKE * seconds]

    def nodes(plan: PartPlan) -> int:
        part = plan.of_prefixes(prefixes.prefixes)
        return int(nodes_of_parts(matrices, prefixes.prefixes, part, parts).max())

    fewest = min(alike, key=nodes, default=best)
    return fewest if nodes(fewest) <= _FEWER_NODES * nodes(best) else best


def _greatest_share(plan: PartPlan) -> float:
    return max(part.share for part in plan.parts)


def _plans(matrices: Sequence[OffsetMTBDD], groups: PrefixGroups, parts: int) -> list[PartPlan]:
    """Return the parts that a search finds for some groups, and consecutive ones."""
    transitions = transitions_of_groups(matrices, groups)
    work = row_work(transitions, groups)
    uses = column_uses(matrices, groups)
    found = choose_parts(uses, work, parts), consecutive_parts(work, parts)
    return [plan_of(groups, uses, transitions, work, part, parts) for part in found]


def _turned(
    matrices: Sequence[OffsetMTBDD], plan: PartPlan, prefixes: PrefixUses, parts: int
) -> list[PartPlan]:
    """Return plans whose parts go round, by what prefixes tell at no cost in time or in elements received."""
    groups, uses = plan.groups, plan.uses
    transitions = transitions_of_groups(matrices, groups)
    work, group = row_work(transitions, groups), groups.of(prefixes.prefixes.start)

    def cost(part: Int64Array) -> NDArray[np.float64]:
        received = prefixes.received(part[group], parts)
        return np.array([prefixes.seconds(part[group], parts, received)[0], received.sum()])

    most = cost(plan.part) * (1 + 1e-9)
    found = [part for part in turned_parts(work, parts) if (cost(part) <= most).all()]
    return [plan_of(groups, uses, transitions, work, part, parts) for part in found]


def plan_of(
    groups: PrefixGroups,
    uses: ColumnUses,
    transitions: Int64Array,
    work: NDArray[np.float64],
    part: Int64Array,
    parts: int,
) -> PartPlan:
    """Return a plan with what its parts have.

    Parameters
    ----------
    groups : PrefixGroups
    uses : ColumnUses
        Of the groups.
    transitions : ndarray, shape (groups,), int64
    work : ndarray, shape (groups,), float64
    part : ndarray, shape (groups,), int64
    parts : int
    """
    found = []
    for p in range(parts):
        own = part == p
        start, size, owners = _pieces(uses, part, p)
        found.append(
            Part(
                int(groups.size[own].sum()),
                int(transitions[own].sum()),
                float(work[own].sum() * parts / work.sum()) if work.sum() > 0 else 1.0,
                int(size.sum()),
                len(start),
                len(np.unique(part[owners])),
                int(own.sum()),
            )
        )
    return PartPlan(groups, part, uses, tuple(found))


def _pieces(uses: ColumnUses, part: Int64Array, p: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return first columns and lengths of the runs that a part receives, and the owners of its ranges."""
    needed = np.unique(uses.range[part[uses.group] == p])
    needed = needed[part[uses.owner[needed]] != p]
    start, size, owner = uses.start[needed], uses.size[needed], uses.owner[needed]
    # A run goes on where the next range follows at once and comes from the same part.
    begins = np.ones(len(start), bool)
    begins[1:] = (start[1:] != start[:-1] + size[:-1]) | (part[owner[1:]] != part[owner[:-1]])
    runs = np.flatnonzero(begins)
    lengths = np.add.reduceat(size, runs) if len(runs) else size
    return start[runs], lengths, owner
