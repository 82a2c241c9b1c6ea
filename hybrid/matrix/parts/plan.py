"""A plan of parts: which states and which columns of others every part of a compressed matrix has."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import OptionError
from hybrid.matrix.parts.search import (
    MOST_PREFIXES,
    ColumnUses,
    PrefixGroups,
    choose_parts,
    column_uses,
    consecutive_parts,
    groups_by_bits,
    groups_for,
    nodes_of_parts,
    prefix_groups,
    prefix_pairs,
    transitions_of_groups,
    turned_parts,
)
from mtbdd.base.communicator import Communicator
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex

# Ways to group states before they are cut into parts: by the values of two variables.
#
# Parts of consecutive prefixes are near each other in the order of variables, and far from each other in the
# model where another variable changes seldom.  So groups of equal values of every two of the first variables
# are cut, too, as far as prefixes show what the parts would exchange; the best of them are searched.

Int64Array = NDArray[np.int64]
Field = tuple[int, ...]

MOST_PAIRS = 1 << 17
"""Pairs of a prefix of rows and one of columns beyond which prefixes are not made longer."""

_ROW_ENTRIES = 3.0
"""Cost of a row without entries, in entries: reading x, writing y and the steps of a solver."""

_EXCHANGED = 16.0
"""Entries of a card that take as long as an element that it receives from another one beside it."""

_HIDDEN = 0.8
"""Share of an exchange that is hidden where rows that need nothing of others take as long, as measured."""

_LEADING = 4
"""Variables that are combined with every other one."""

_SEARCHED = 1
"""Groupings by two variables that are searched: those behind the first take as long each, and hardly ever
lead to shorter steps."""


@dataclass(frozen=True, eq=False)
class PrefixUses:
    """Prefixes of states, what their rows take, and whose columns they use.

    Attributes
    ----------
    prefixes : PrefixGroups
        Every prefix a group.
    values : ndarray, shape (prefixes, bits), bool
        Their bits.
    work : ndarray, shape (prefixes,), float64
        Predicted time of the rows, in entries.
    user, owner : ndarray, shape (pairs,), int64
        Some row of prefix `user` has an entry in a column of prefix `owner`; every pair once.
    """

    prefixes: PrefixGroups
    values: NDArray[np.bool_]
    work: NDArray[np.float64]
    user: Int64Array
    owner: Int64Array

    def seconds(
        self, part: Int64Array, parts: int, received: NDArray[np.float64] | None = None
    ) -> tuple[float, float]:
        """Predict a step of the slowest part, in entries, and return the greatest halo.

        Parameters
        ----------
        part : ndarray, shape (prefixes,), int64
        parts : int
        received : ndarray, shape (parts,), float64, optional
            Halos; if left out prefixes are received whole.
        """
        away = part[self.user] != part[self.owner]
        own = np.bincount(part, self.work, parts)
        waits = np.zeros(len(part), bool)
        waits[self.user[away]] = True
        late = np.bincount(part[waits], self.work[waits], parts)
        if received is None:
            received = self.received(part, parts)
        exchange = _EXCHANGED * received
        each = own + exchange - _HIDDEN * np.minimum(exchange, own - late)
        return float(each.max()), float(received.max())

    def received(self, part: Int64Array, parts: int) -> NDArray[np.float64]:
        """Return the halos of parts whose prefixes are received whole, shape (parts,)."""
        away = part[self.user] != part[self.owner]
        taken = np.zeros((parts, len(part)), bool)
        taken[part[self.user[away]], self.owner[away]] = True
        return taken @ self.prefixes.size.astype(np.float64)


def prefix_uses(
    index: StateIndex, matrices: Sequence[OffsetMTBDD], least: int, fields: Sequence[Field]
) -> PrefixUses:
    """Find which prefixes use which, the prefixes as long as there are not too many pairs.

    Parameters
    ----------
    index : StateIndex
    matrices : sequence of OffsetMTBDD
    least : int
        Bits that a prefix has in any case.
    fields : sequence of tuple of int
        Bits of every variable, in their order; a prefix ends with a variable.
    """
    ends = [0, *(field[-1] + 1 for field in fields if field)]
    bits, row, column, entries = prefix_pairs(matrices, least, ends, MOST_PAIRS)
    prefixes = prefix_groups(index, bits)
    user, owner = prefixes.of(row), prefixes.of(column)
    work = row_work(np.bincount(user, entries, len(prefixes)), prefixes)
    values = index.bits_at(prefixes.start)[:, :bits]
    pairs = np.unique(user * max(len(prefixes), 1) + owner)
    return PrefixUses(prefixes, values, work, *np.divmod(pairs, max(len(prefixes), 1)))


def row_work(entries: NDArray[Any], groups: PrefixGroups) -> NDArray[np.float64]:
    """Return the predicted time of groups, in entries; ``entries``: of the rows of each."""
    return entries.astype(np.float64) + _ROW_ENTRIES * groups.size


def groupings(uses: PrefixUses, parts: int, fields: Sequence[Field]) -> list[PrefixGroups]:
    """Return groups by the values of two variables each that are worth a search, the best first.

    Parameters
    ----------
    uses : PrefixUses
    parts : int
    fields : sequence of tuple of int
        Bits of every variable.

    Notes
    -----
    Every grouping is cut once, in the order of its values, and the cuts are compared.  Variables are taken
    by themselves first, and the best ones together with all others.  Time: O(pairs log pairs) for each.
    """
    known = [field for field in fields if field and field[-1] < uses.prefixes.bits]
    if parts == 1 or len(known) < 2:
        return []
    alone = _ranked(uses, parts, known)
    leading = [groups.tested for groups in alone[:_LEADING]]
    pairs = [first + second for first in leading for second in known if first != second]
    return _ranked(uses, parts, pairs)[:_SEARCHED]


def _ranked(uses: PrefixUses, parts: int, told: Sequence[Field]) -> list[PrefixGroups]:
    """Return groupings by some bits each that are not too many groups, by what they take if cut in order."""
    found: list[tuple[tuple[float, float], int, PrefixGroups]] = []
    for tested in told:
        groups = groups_by_bits(uses.prefixes, uses.values, tested)
        if len(groups) <= MOST_PREFIXES:
            work = np.bincount(groups.number, uses.work, len(groups)).astype(np.float64)
            part = consecutive_parts(work, parts)[groups.number]
            found.append((uses.seconds(part, parts), len(found), groups))
    return [groups for _, _, groups in sorted(found, key=lambda one: one[:2])]


_MOST_SHARE = 1.05
"""Work of a part over the mean up to which a plan is taken for its shorter exchange."""

_ALIKE = 1.01
"""Ratio of predicted times up to which two plans are distinguished by the nodes of their parts."""

_LITTLE = 1.03
"""Ratio of a predicted time to that without any exchange up to which no other groups are searched."""

_FEWER_NODES = 0.75
"""Ratio of nodes from which a plan that is predicted alike is taken instead."""


@dataclass(frozen=True)
class MatrixPart:
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
    """A partition of a matrix into parts.

    Attributes
    ----------
    groups : PrefixGroups
        What is never cut.
    part : ndarray, shape (groups,), int64
        Part of every prefix group.
    uses : ColumnUses
    parts : tuple of MatrixPart
    """

    groups: PrefixGroups
    part: Int64Array
    uses: ColumnUses
    parts: tuple[MatrixPart, ...]

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
        If there are fewer states than parts, or less than one part is requested.

    Notes
    -----
    Predicted time is entries and, for each row, what three entries cost.  Rows that share few of the last
    nodes with others take longer, up to a quarter where polling's server is at a station of the last bits;
    this has no number in the prediction, and is shared out.  Time: that of
    `hybrid.matrix.parts.search.column_uses` and `hybrid.matrix.parts.search.choose_parts`, twice; nothing has
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
    """Return plans whose parts go round, as far as prefixes show no cost in time or in elements received."""
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
            MatrixPart(
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


# Ownership of states: a plan of parts as sets of states.


def owners_of(model: SymbolicModel, plan: PartPlan) -> tuple[Node, ...]:
    """Return for every part its states, disjoint sets over row bits.

    Time: O(prefix groups) calls of the package.
    """
    manager, groups = model.manager, plan.groups
    _, first = np.unique(groups.number, return_index=True)
    prefixes = model.index.bits_at(groups.start[first])[:, list(groups.tested)].tolist()
    names = [manager.rows[bit] for bit in groups.tested]
    cubes = [_cube(manager, dict(zip(names, row, strict=True))) for row in prefixes]
    return tuple(
        model.reachable & manager.disjunction(cubes[group] for group in np.flatnonzero(plan.part == part))
        for part in range(len(plan.parts))
    )


def _cube(manager: Manager, values: dict[str, bool]) -> Node:
    return manager.bdd.cube(values) if values else manager.true


def planned_owners(model: SymbolicModel, parts: int) -> tuple[Node, ...]:
    """Cut a model's states into parts of equal work with little to exchange; see `plan_parts`.

    Raises
    ------
    OptionError
        If there are fewer states than parts.
    """
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    return owners_of(model, plan_parts(model.index, matrices, parts, fields_of(model)))


def fields_of(model: SymbolicModel) -> list[tuple[int, ...]]:
    """Return the bits of every variable, in their order."""
    return [variable.bits for variable in model.encoding.variables]


def require_same(model: SymbolicModel, communicator: Communicator) -> None:
    """Refuse to go on where processes have built different models.

    Raises
    ------
    OptionError
        In all processes alike.

    Notes
    -----
    Digests of the diagrams are compared.  Time: O(nodes).
    """
    if len(set(communicator.gather_bytes(matrix_digest(model)))) > 1:
        raise OptionError(
            "the processes have built different models: start all of them with the same files, constants and "
            "versions"
        )


def matrix_digest(model: SymbolicModel) -> bytes:
    """Return a digest of a model's kind, variables and matrices, 32 bytes.  Time: O(nodes)."""
    digest = hashlib.sha256(repr((model.type.value, len(model.layers), model.encoding.shown)).encode())
    for layer in range(len(model.layers)):
        matrix = model.layer_transitions(layer)
        for level in matrix.levels:
            for array in (level.low, level.high, level.offset):
                digest.update(array.tobytes())
        digest.update(matrix.terminals.tobytes())
    return digest.digest()
