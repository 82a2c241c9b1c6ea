"""Which prefix group goes to which part: balanced work, and as few columns from other parts as can be found.

The groups are the vertices of a hypergraph.  Its nets are ranges of columns; the pins of a net are the groups
that use the range.  One group owns the range.  The halo of a part, the columns that it receives, consists of
the nets that a group of the part uses and that a group of another part owns.  The search is that of Fiduccia
and Mattheyses [FM82], over two parts or more; it minimises the greatest halo, where theirs minimises the sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.parts.uses import ColumnUses

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Int64Array = NDArray[np.int64]

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
    # What every move asks for is made once.
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
