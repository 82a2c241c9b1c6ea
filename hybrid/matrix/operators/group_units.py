"""Groups of states that are solved together, in the order of their solution, and strips of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.ragged import pointers
from hybrid.base.components import components_from_bottom
from hybrid.matrix.cpu.csr import CsrMatrix
from hybrid.matrix.cpu.csr_components import find_components

Int64Array = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """The components of a graph of groups, each after those it leads to.

    Attributes
    ----------
    members : ndarray, shape (groups,), int64
        The groups, one component after another.
    ptr : ndarray, shape (units + 1,), int64
        Members of unit i are ``ptr[i] .. ptr[i + 1]``.
    """

    members: Int64Array
    ptr: Int64Array

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def sizes(self, size: Int64Array) -> Int64Array:
        """Return the states of every unit, from those of every group."""
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(size[self.members])))
        found: Int64Array = np.diff(ends[self.ptr])
        return found


def ordered_units(graph: CsrMatrix) -> Units:
    """Return the components of the graph of groups.  Time: O(edges + n log n) for n groups."""
    found = find_components(graph)
    levels = np.arange(len(found.single_ptr) - 1)
    level = np.concatenate([levels.repeat(np.diff(ptr)) for ptr in (found.single_ptr, found.joined_ptr)])
    is_joined = np.arange(len(level)) >= len(found.single)
    # Components of one level do not lead to each other: those of one group first, then the others.
    own = np.concatenate((np.arange(len(found.single)), found.component))
    order = np.lexsort((own, is_joined, level))
    keys = level[order], is_joined[order], own[order]
    starts = np.ones(len(order), np.bool_)
    starts[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    members = np.concatenate((found.single, found.joined)).astype(np.int64)[order]
    return Units(members, np.append(np.flatnonzero(starts), len(order)))


def units_from_bottom(groups: int, source: Int64Array, target: Int64Array) -> Units:
    """Return the components of a graph of few groups, without SciPy or compiled code to load.

    Parameters
    ----------
    groups : int
    source, target : ndarray, shape (edges,), int64
        The sources ascending.

    Notes
    -----
    Time: O(edges + n log n) for n groups, in Python.
    """
    ends = np.searchsorted(source, np.arange(1, groups))
    component = components_from_bottom([part.tolist() for part in np.split(target, ends)])
    members = np.argsort(component, kind="stable")
    return Units(members, pointers(np, np.bincount(component)))


def strips_of_units(units: Units, size: Int64Array, least: int) -> list[Int64Array]:
    """Return strips of at least `least` states, but for the last: units in their order, ascending in each."""
    ends = np.cumsum(units.sizes(size))
    cuts = [0]
    while cuts[-1] < len(units):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        cuts.append(min(int(np.searchsorted(ends, before + least)) + 1, len(units)))
    return [np.sort(units.members[units.ptr[begin] : units.ptr[end]]) for begin, end in pairwise(cuts)]
