"""Which prefix group goes to which part: balanced work, and as few columns from other parts as can be found.

The groups are the vertices of a hypergraph. Its nets are ranges of columns; the pins of a net are the groups
that use the range. One group owns the range. The halo of a part, the columns that it receives, consists of
the nets that its groups use and that groups of other parts own. The search is that of Fiduccia and Mattheyses
[FM82], over two parts or more; it minimises the greatest halo, where theirs minimises the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtbdd.offset.convert import descend
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex
from mtbdd.offset.tuples import distinct_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


# Prefix groups: the states that share some of the first bits of their codes.

Int64Array = NDArray[np.int64]

MOST_PREFIXES = 256
"""Prefix groups beyond which no deeper cut is tried; the search takes time with their square."""

_WANTED = 16
"""Prefix groups a part from which a deeper cut is not needed."""


@dataclass(frozen=True, eq=False)
class PrefixGroups:
    """The states cut by some of their first bits.

    Attributes
    ----------
    bits : int
        How many bits of a state's code are its prefix; the states of a prefix are consecutive.
    start : ndarray, shape (prefixes,), int64
        First state of every prefix, in the order of states.
    tested : tuple of int
        Those of the first bits that distinguish groups.
    number : ndarray, shape (prefixes,), int64
        Group of every prefix.
    size : ndarray, shape (groups,), int64
        States of every group.
    """

    bits: int
    start: Int64Array
    tested: tuple[int, ...]
    number: Int64Array
    size: Int64Array

    def __len__(self) -> int:
        return len(self.size)

    def of(self, state: Int64Array) -> Int64Array:
        """Return the group of every state.  Time: O(len(state) log prefixes)."""
        return self.number[np.searchsorted(self.start, state, "right") - 1]

    def describe(self) -> str:
        """Return which bits distinguish groups, in words."""
        if self.tested == tuple(range(self.bits)):
            return f"the first {self.bits} bits of the states"
        return f"{len(self.tested)} of the first {self.bits} bits of the states"


def prefix_groups(index: StateIndex, bits: int) -> PrefixGroups:
    """Cut the states by their first bits.

    Parameters
    ----------
    index : StateIndex
    bits : int
        0 .. index.n_bits

    Notes
    -----
    Time: O(groups) for every bit.
    """
    node = np.zeros(min(index.size, 1), np.int64)
    start = np.zeros(len(node), np.int64)
    for bit in range(bits):
        low, high = index.low[bit][node], index.high[bit][node]
        below = np.where(low >= 0, index.counts[bit + 1][low], 0)
        child = np.stack((low, high), axis=1).ravel()
        first = np.stack((start, start + below), axis=1).ravel()
        kept = child >= 0
        node, start = child[kept].astype(np.int64), first[kept]
    size = index.counts[bits][node]
    return PrefixGroups(bits, start, tuple(range(bits)), np.arange(len(size)), size)


def groups_by_bits(prefixes: PrefixGroups, values: NDArray[np.bool_], tested: Sequence[int]) -> PrefixGroups:
    """Make prefixes one group whose bits agree in some places.

    Parameters
    ----------
    prefixes : PrefixGroups
        Every prefix a group.
    values : ndarray, shape (prefixes, bits), bool
        Their bits.
    tested : sequence of int
        Bits of a prefix; groups are in the order of their values, the first bit counting most.
    """
    number = np.zeros(len(prefixes), np.int64)
    for bit in tested:
        # Numbered afresh after every bit, so that any number of bits will do.
        _, number = np.unique(2 * number + values[:, bit], return_inverse=True)
    size = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    np.add.at(size, number, prefixes.size)
    return PrefixGroups(prefixes.bits, prefixes.start, tuple(tested), number, size)


def groups_for(index: StateIndex, parts: int) -> PrefixGroups:
    """Return the cut with the fewest bits that leaves enough groups to choose parts from.

    Enough are 16 groups a part; a cut into more than 256 groups is taken only where those before it have
    fewer groups than there are parts.

    Parameters
    ----------
    index : StateIndex
    parts : int
        At least 1.
    """
    chosen = prefix_groups(index, 0)
    for bits in range(1, index.n_bits + 1):
        deeper = prefix_groups(index, bits)
        if len(deeper) > MOST_PREFIXES and len(chosen) >= parts:
            break
        chosen = deeper
        if len(chosen) >= _WANTED * parts:
            break
    return chosen


# Which columns the rows of every prefix group use, found on the diagram itself.


MOST_USES = 1 << 19
"""Pairs of a prefix group and a range of columns beyond which ranges are not cut any finer."""


@dataclass(frozen=True, eq=False)
class ColumnUses:
    """Ranges of columns, and which prefix groups have an entry in which.

    Attributes
    ----------
    start, size : ndarray, shape (ranges,), int64
        First column of every range and how many it has, in order, disjoint.
    owner : ndarray, shape (ranges,), int64
        The prefix group whose states the columns of a range are.
    group, range : ndarray, shape (uses,), int64
        Rows of the group use columns of the range; every pair once.
    level : int
        Level of the diagram at which the ranges are the columns of a node; at the last level they are
        single columns, and what is used is exact; before it, a range counts as used if one column is.
    """

    start: Int64Array
    size: Int64Array
    owner: Int64Array
    group: Int64Array
    range: Int64Array
    level: int


def transitions_of_groups(matrices: Sequence[OffsetMTBDD], groups: PrefixGroups) -> Int64Array:
    """Count the entries in the rows of every prefix group, shape (groups,), of all matrices together.

    Notes
    -----
    Time: O(paths to the level below the prefixes), by counts of entries kept on the diagram.
    """
    total = np.zeros(len(groups), np.int64)
    for matrix in matrices:
        node, row, _ = _paths(matrix, 2 * groups.bits)
        np.add.at(total, groups.of(row), matrix.entries_below[2 * groups.bits][node])
    return total


def prefix_pairs(
    matrices: Sequence[OffsetMTBDD], least: int, ends: Sequence[int], most: int
) -> tuple[int, Int64Array, Int64Array, Int64Array]:
    """Find the prefixes of rows and columns between which there are entries.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
    least : int
        Bits that a prefix has in any case.
    ends : sequence of int
        Other lengths that a prefix may have.
    most : int
        Pairs beyond which none of them is tried.

    Returns
    -------
    bits : int
        Length of a prefix, the greatest that may be.
    row, column : ndarray, shape (pairs,), int64
        First row and first column of every pair, which is once for each matrix, or more often.
    entries : ndarray, shape (pairs,), int64
        How many there are.
    """
    paths = [_paths(matrix, 2 * least) for matrix in matrices]
    bits, found = least, paths
    for bit in range(least, max((m.n_levels // 2 for m in matrices), default=0)):
        for k in (2 * bit, 2 * bit + 1):
            paths = [descend(np, m, k, *own) for m, own in zip(matrices, paths, strict=True)]
        if sum(len(own[0]) for own in paths) > most:
            break
        if bit + 1 in ends:
            bits, found = bit + 1, paths
    none = np.zeros(0, np.int64)
    entries = [m.entries_below[2 * bits][own[0]] for m, own in zip(matrices, found, strict=True)]
    row, column = (np.concatenate([own[i] for own in found] or [none]) for i in (1, 2))
    return bits, row, column, np.concatenate(entries or [none])


def column_uses(matrices: Sequence[OffsetMTBDD], groups: PrefixGroups, most: int = MOST_USES) -> ColumnUses:
    """Find the columns that the rows of every prefix group use.

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
        Square matrices over the states of the groups: one of a chain, the layers of a decision process.
    groups : PrefixGroups
    most : int
        Ranges are cut finer, level by level, until there are more pairs than this.

    Returns
    -------
    ColumnUses

    Notes
    -----
    Below the prefixes only columns are distinguished: triples (group, column, node), each once, are taken
    down level by level.  Time and memory: O(most log most) a level.
    """
    depth = 2 * groups.bits
    found = []
    for matrix in matrices:
        node, row, column = _paths(matrix, depth)
        found.append(_distinct(groups.of(row), column, node.astype(np.int64)))
    level = depth
    for k in range(depth, max((m.n_levels for m in matrices), default=0), 2):
        finer = [_below(matrix, k, *uses) for matrix, uses in zip(matrices, found, strict=True)]
        if sum(len(uses[0]) for uses in finer) > most:
            break
        found, level = finer, k + 2
    group = np.concatenate([uses[0] for uses in found] or [np.zeros(0, np.int64)])
    column = np.concatenate([uses[1] for uses in found] or [np.zeros(0, np.int64)])
    width = np.concatenate(
        [matrix.columns[level][uses[2]] for matrix, uses in zip(matrices, found, strict=True)]
        or [np.zeros(0, np.int64)]
    )
    first, number = distinct_rows((group, column))
    group, column, width = group[first], column[first], width[first]
    start, place = np.unique(column, return_inverse=True)
    size = np.zeros(len(start), np.int64)
    size[place] = width
    return ColumnUses(start, size, groups.of(start), group, place.astype(np.int64), level)


def nodes_of_parts(
    matrices: Sequence[OffsetMTBDD], groups: PrefixGroups, part: Int64Array, parts: int
) -> Int64Array:
    """Count the nodes below the prefixes that the rows of every part lead to, shape (parts,).

    Parameters
    ----------
    matrices : sequence of OffsetMTBDD
    groups : PrefixGroups
    part : ndarray, shape (groups,), int64
    parts : int

    Notes
    -----
    Time: O(parts * nodes).
    """
    depth, total = 2 * groups.bits, np.zeros(parts, np.int64)
    for matrix in matrices:
        node, row, _ = _paths(matrix, depth)
        there = np.zeros((parts, matrix.nodes[depth]), bool)
        there[part[groups.of(row)], node] = True
        for k in range(depth, matrix.n_levels):
            total += there.sum(axis=1)
            own, node = np.nonzero(there)
            there = np.zeros((parts, matrix.nodes[k + 1]), bool)
            for child in (matrix.levels[k].low[node], matrix.levels[k].high[node]):
                there[own[child >= 0], child[child >= 0]] = True
    return total


def _paths(matrix: OffsetMTBDD, depth: int) -> tuple[Int64Array, ...]:
    """Return the nodes of a level with the row and the column of every path to them."""
    size = matrix.nodes[0]
    found: tuple[Int64Array, ...] = tuple(np.zeros(size, np.int64) for _ in range(3))
    for k in range(depth):
        found = descend(np, matrix, k, *found)
    return found


def _distinct(*columns: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    first, _ = distinct_rows(columns)
    group, column, node = (values[first] for values in columns)
    return group, column, node


def _below(
    matrix: OffsetMTBDD, k: int, group: Int64Array, column: Int64Array, node: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Take triples two levels down: rows are forgotten, columns kept."""
    rows, columns = matrix.levels[k], matrix.levels[k + 1]
    child = np.concatenate((rows.low[node], rows.high[node])).astype(np.int64)
    there = child >= 0
    group, column, node = _distinct(np.tile(group, 2)[there], np.tile(column, 2)[there], child[there])
    child = np.concatenate((columns.low[node], columns.high[node])).astype(np.int64)
    there = child >= 0
    column = np.concatenate((column, column + columns.offset[node]))
    return _distinct(np.tile(group, 2)[there], column[there], child[there])


_PASSES = 6
"""Passes of one descent at most."""

_KICKS = 8
"""Descents after the first one, each from the best assignment so far with some groups exchanged (a kick)."""

_KICKED = 12
"""A kick exchanges one group in so many."""

_TOLERANCE = 0.02
"""Work of a part over the mean that is allowed in exchange for a smaller halo, if groups are that small."""


@dataclass(frozen=True, eq=False)
class _Nets:
    """Ranges of columns with the same pins and owner as one net.

    Attributes
    ----------
    pins : csr_array, shape (nets, groups), float64
        Ones where a group uses a net.
    owned : csr_array, shape (nets, groups), float64
        Ones where a group owns a net.
    owner : ndarray, shape (nets,), int64
    weight : ndarray, shape (nets,), float64
        Columns.
    users, owners : csr_array, shape (groups, nets), float64
        `pins` and `owned` transposed.
    own_use : ndarray, shape (nets, 1), float64
        Ones where the owner of a net uses it.
    """

    pins: csr_array
    owned: csr_array
    owner: Int64Array
    weight: NDArray[np.float64]
    users: csr_array
    owners: csr_array
    own_use: NDArray[np.float64]


def choose_parts(uses: ColumnUses, work: NDArray[np.float64], parts: int) -> Int64Array:
    """Assign every prefix group to a part.

    Parameters
    ----------
    uses : ColumnUses
    work : ndarray, shape (groups,), float64
        Predicted time of every group's rows, in any unit, not negative.
    parts : int
        At least 1.

    Returns
    -------
    ndarray, shape (groups,), int64
        The parts in the order of their first states.  Where there are fewer groups than parts, the last parts
        are empty.

    Notes
    -----
    Begins with consecutive groups of about equal work.  A pass moves every group once, always the one that
    leaves the least halo among the moves that keep the balance, and keeps the best of the assignments on its
    way.  Time: O(passes * groups * pins * parts), the pins after equal nets are made one.
    """
    groups = len(work)
    part = consecutive_parts(work, parts)
    if parts == 1 or groups <= parts:
        return part
    nets = _nets(uses, groups)
    limit = max(_loads(part, work, parts).max(), work.sum() / parts * (1 + _TOLERANCE))
    best, part = _descended(nets, part, work, parts, limit)
    rng = np.random.default_rng(0)
    for _ in range(_KICKS):
        # Away from the optimum nearby: some groups change places at random.
        kicked = part.copy()
        some = rng.permutation(groups)[: max(2, groups // _KICKED)]
        kicked[some] = part[np.roll(some, 1)]
        found, other = _descended(nets, kicked, work, parts, limit)
        if found < best and _loads(other, work, parts).max() <= limit * (1 + 1e-12):
            best, part = found, other
    return _in_order(part, parts)


def _descended(
    nets: _Nets, part: Int64Array, work: NDArray[np.float64], parts: int, limit: float
) -> tuple[tuple[float, float], Int64Array]:
    """Make passes until one finds nothing better; return the cost (see `_cost`) and the assignment."""
    best = (np.inf, np.inf)
    for _ in range(_PASSES):
        found, part = _pass(nets, part, work, parts, limit)
        if not found < best:
            break
        best = found
    return best, part


def consecutive_parts(work: NDArray[np.float64], parts: int) -> Int64Array:
    """Cut the groups in their order where the work is nearest to equal; leave no part empty."""
    groups = len(work)
    if groups <= parts:
        return np.arange(groups, dtype=np.int64)
    total = np.concatenate(([0.0], np.cumsum(work)))
    wanted = total[-1] * np.arange(1, parts) / parts
    cuts = np.searchsorted(0.5 * (total[1:] + total[:-1]), wanted)
    # Cuts ascend strictly, and leave a group for each part before and behind them.
    places = np.arange(parts - 1)
    cuts = np.maximum.accumulate(np.maximum(cuts, 1) - places) + places
    cuts = np.minimum(cuts, groups - (parts - 1 - places))
    return np.searchsorted(cuts, np.arange(groups), "right").astype(np.int64)


def turned_parts(work: NDArray[np.float64], parts: int) -> list[Int64Array]:
    """Cut the groups as if the first one followed the last one, from every group of the first part on.

    Where a variable goes round, as in rings, such parts receive as little as consecutive ones.
    """
    found: list[Int64Array] = []
    if parts == 1:
        return found
    for first in range(1, int((consecutive_parts(work, parts) == 0).sum())):
        part = np.roll(consecutive_parts(np.roll(work, -first), parts), first)
        found.append(_in_order(part, parts))
    return found


def _in_order(part: Int64Array, parts: int) -> Int64Array:
    """Give the parts numbers by their first groups."""
    first = np.full(parts, len(part), np.int64)
    np.minimum.at(first, part, np.arange(len(part)))
    number = np.empty(parts, np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(parts)
    return number[part]


def _loads(part: Int64Array, work: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    return np.bincount(part, work, parts).astype(np.float64)


def _nets(uses: ColumnUses, groups: int) -> _Nets:
    """Make ranges with the same pins and owner one net; nets that their owner alone uses are left out."""
    # Here: one process, which has no parts to plan, goes without SciPy.
    from scipy.sparse import csr_array

    # Sets of pins by two sums of random numbers; if two sets met, the search would be misled, nothing else.
    codes = np.random.default_rng(0).integers(2**62, size=(2, groups))
    key = np.zeros((2, len(uses.start)), np.int64)
    for code, sums in zip(codes, key, strict=True):
        np.add.at(sums, uses.range, code[uses.group])
    _, first, net = np.unique(np.stack((*key, uses.owner)), axis=1, return_index=True, return_inverse=True)
    net = net.ravel()
    weight = np.bincount(net, uses.size, len(first)).astype(np.float64)
    is_first = np.zeros(len(uses.start), bool)
    is_first[first] = True
    kept = is_first[uses.range]
    row, column = net[uses.range[kept]], uses.group[kept]
    owner = uses.owner[first]
    shared = np.zeros(len(first), bool)
    shared[row[column != owner[row]]] = True
    number = np.cumsum(shared) - 1
    kept = shared[row]
    row, column = number[row[kept]], column[kept]
    owner, weight = owner[shared], weight[shared]
    shape = (len(owner), groups)
    pins = csr_array((np.ones(len(row)), (row, column)), shape=shape)
    owned = csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=shape)
    # Data that every move needs is made once.
    users, owners = csr_array(pins.T), csr_array(owned.T)
    own_use = pins.multiply(owned).sum(axis=1)[:, None]
    return _Nets(pins, owned, owner, weight, users, owners, own_use)


def _halos(nets: _Nets, part: Int64Array, parts: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the pins of every net in every part, (nets, parts), and the halo of every part, (parts,)."""
    count = nets.pins @ np.eye(parts)[part]
    received = count > 0
    received[np.arange(len(nets.owner)), part[nets.owner]] = False
    return count, nets.weight @ received


def _cost(nets: _Nets, part: Int64Array, parts: int) -> tuple[float, float]:
    """Return the greatest halo and the sum of all halos: compared in this order."""
    halo = _halos(nets, part, parts)[1]
    return float(halo.max(initial=0.0)), float(halo.sum())


def _pass(
    nets: _Nets, start: Int64Array, work: NDArray[np.float64], parts: int, limit: float
) -> tuple[tuple[float, float], Int64Array]:
    """Move every group once; return the least cost on the way, and its assignment."""
    part = start.copy()
    loads = _loads(part, work, parts)
    free = np.ones(len(part), bool)
    best, best_part = (np.inf, np.inf), part.copy()
    if loads.max() <= limit * (1 + 1e-12):
        best = _cost(nets, part, parts)
    # On the way the balance may be off by one group, so that two groups can change places.
    loose = max(limit, float(loads.max())) + float(work.max(initial=0.0))
    for _ in range(len(part)):
        after = _moves(nets, part, parts)
        target = loads[None, :] + work[:, None] <= loose
        target &= free[:, None]
        target[np.arange(len(part)), part] = False
        # A part keeps one group at least.
        target &= (np.bincount(part, minlength=parts)[part] > 1)[:, None]
        # From parts that carry too much first.
        heavy = loads > limit
        if heavy.any():
            target &= heavy[part][:, None]
        if not target.any():
            break
        greatest, total = after.max(axis=2), after.sum(axis=2)
        greatest[~target] = np.inf
        least = np.flatnonzero(greatest.ravel() == greatest.min())
        group, to = divmod(int(least[np.argmin(total.ravel()[least])]), parts)
        loads[part[group]] -= work[group]
        loads[to] += work[group]
        part[group] = to
        free[group] = False
        if loads.max() <= limit * (1 + 1e-12):
            found = _cost(nets, part, parts)
            if found < best:
                best, best_part = found, part.copy()
    return best, best_part


def _moves(nets: _Nets, part: Int64Array, parts: int) -> NDArray[np.float64]:
    """Return the halo of every part after every move of one group, shape (groups, parts, parts)."""
    groups = np.arange(len(part))
    count, halo = _halos(nets, part, parts)
    at_home = np.eye(parts)[part[nets.owner]].astype(bool)
    weight = nets.weight[:, None]
    # A group that leaves: nets that it alone uses there are no longer received, nets of its own are from now
    # on, if others there use them.
    alone = weight * ((count == 1) & ~at_home)
    kept = weight * (count - nets.own_use * at_home > 0) * at_home
    # A group that comes: nets that nobody used there are received, nets of its own no longer. Of the nets new
    # there, its own are not received.
    new = weight * ((count == 0) & ~at_home)
    home = nets.own_use * new + weight * ((count > 0) & ~at_home)
    # Sums over the nets of a group: of those that it uses, and of those that it owns.
    alone, new = np.split(nets.users @ np.hstack((alone, new)), 2, axis=1)
    kept, home = np.split(nets.owners @ np.hstack((kept, home)), 2, axis=1)
    after = np.broadcast_to(halo, (len(part), parts, parts)).copy()
    after[groups, :, part] += (kept - alone)[groups, part][:, None]
    to = np.arange(parts)
    after[:, to, to] += new - home
    return after
