"""Ways to group states before they are cut into parts: by the values of two variables.

Parts of consecutive prefixes are near each other in the order of variables, and far from each other in the
model where another variable changes seldom.  So groups of equal values of every two of the first variables
are cut, too, as far as prefixes tell what the parts would exchange; the best of them are searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.parts.prefixes import MOST_PREFIXES, PrefixGroups, prefix_groups, told_by
from hybrid.matrix.parts.search import consecutive_parts
from hybrid.matrix.parts.uses import prefix_pairs
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex

Int64Array = NDArray[np.int64]
Field = tuple[int, ...]

MOST_PAIRS = 1 << 17
"""Pairs of a prefix of rows and one of columns beyond which prefixes are not made longer."""

_ROW_ENTRIES = 3.0
"""Entries that take as long as what a row costs by itself: reading x, writing y and the steps of a solver."""

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
        groups = told_by(uses.prefixes, uses.values, tested)
        if len(groups) <= MOST_PREFIXES:
            work = np.bincount(groups.number, uses.work, len(groups)).astype(np.float64)
            part = consecutive_parts(work, parts)[groups.number]
            found.append((uses.seconds(part, parts), len(found), groups))
    return [groups for _, _, groups in sorted(found, key=lambda one: one[:2])]
