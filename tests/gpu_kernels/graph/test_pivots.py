"""Races for pivots: every region has one, in a place that no other region shares."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device
from gpu_kernels.graph.format import launch
from tests.gpu_kernels.devices import to_numpy

CANDIDATE, FRONTIER, EXPLORED = 1 << 31, 1 << 30, 1 << 29
REACHED = (0, FRONTIER, EXPLORED)
"""What the last search reached of a region: nothing, ahead, behind. Both together are a component."""


@pytest.mark.parametrize("aggregate", [0, 1])
@pytest.mark.parametrize("members", [1, 2])
def test_neighbouring_regions_do_not_share_a_place(device: Device, aggregate: int, members: int) -> None:
    """Regions 0, 1, 2, ..., each in three parts, as the last search has left them."""
    xp, regions = device.xp, 30
    own = [name | reached for name in range(regions) for reached in REACHED]
    n = len(own) * members
    results = xp.array(own * members, np.uint32)
    before = to_numpy(results).copy()
    offsets = xp.full(n + 1, CANDIDATE, np.uint32)
    trans = xp.arange(3 * n, dtype=np.uint32)
    n_pivots = xp.zeros(1, np.uint32)
    places = len(trans)
    arguments = (n, places, 0, np.int32(aggregate), trans, offsets, results, n_pivots)
    launch(device, 32, "fbt.cu", "select_pivots", n, arguments)
    assert int(n_pivots[0]) == len(own)
    info = to_numpy(offsets)[:n]
    pivots = np.flatnonzero((info & (FRONTIER | EXPLORED)) == FRONTIER)
    assert sorted(before[pivots].tolist()) == sorted(own)
    # The others name a pivot of their own region.
    others = np.flatnonzero(info & EXPLORED)
    assert len(others) == n - len(own)
    np.testing.assert_array_equal(before[to_numpy(results)[others]], before[others])
    launch(device, 32, "fbt.cu", "restore_places", places, (places, trans, results))
    np.testing.assert_array_equal(to_numpy(trans), np.arange(3 * n))
