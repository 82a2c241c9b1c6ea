"""Groups of states that share a value: the best of any member, given to all (cuda/groups.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_kernels.runtime._launch import blocks_for, index_bits, index_type, macros
from gpu_kernels.runtime.device import Device

Array = Any

_THREADS = 256
_SPAN = 512 // 32
"""Members that a thread of a warp looks at."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Members of groups, and a word for each group.

    Attributes
    ----------
    members : ndarray, shape (m,), int32 or int64
        Rows, group by group.
    owners : ndarray, shape (m,), int32
        The group of each member.
    keys : ndarray, shape (groups,), uint64
        Overwritten.
    """

    members: Array
    owners: Array
    keys: Array

    @classmethod
    def create(cls, device: Device, members: Any, sizes: Any, wide: bool = False) -> Groups:
        """Put groups on a device.

        Parameters
        ----------
        device : Device
        members : array, shape (m,)
            Rows, group by group, on the host.
        sizes : array, shape (groups,)
            Members of every group, one at least.
        wide : bool
            Use 64-bit indices although 32 bits would do.

        Raises
        ------
        ValueError
            If members and sizes do not belong together.
        """
        if len(sizes) and (min(sizes) < 1 or sum(sizes.tolist()) != len(members)):
            raise ValueError(f"sizes: expected positive numbers that add up to the {len(members)} members")
        xp, largest = device.xp, max(int(members.max(initial=0)), len(members) + _THREADS * _SPAN)
        index = index_type(index_bits(largest, wide))
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        keys = xp.zeros(len(sizes), np.uint64)
        return cls(xp.asarray(members, dtype=index), xp.asarray(owners), keys)


def join_groups(device: Device, groups: Groups, maximise: bool, values: Array) -> None:
    """Queue the best value of every group into all its members.

    Parameters
    ----------
    device : Device
    groups : Groups
    maximise : bool
        Whether the greatest value is best; one that is not a number is better than all others.
    values : ndarray, shape (n,), float64
        On the device, contiguous; changed in place.

    Notes
    -----
    Synchronises: no. Allocates nothing, so that it can be recorded. Time: O(members).
    """
    count = len(groups.members)
    if count == 0:
        return
    bits = 8 * int(groups.members.dtype.itemsize)
    options = macros(INDEX_BITS=bits, MAXIMISE=int(maximise))
    size = index_type(bits)(count)
    operands = size, groups.members, groups.owners
    groups.keys.fill(0)
    maxima = device.kernel("groups.cu", "group_maxima", options)
    maxima((blocks_for(count, _THREADS * _SPAN),), (_THREADS,), (*operands, values, groups.keys))
    spread = device.kernel("groups.cu", "spread_maxima", options)
    spread((blocks_for(count, _THREADS),), (_THREADS,), (*operands, groups.keys, values))
