"""Groups of states: the kernels against NumPy, over lengths of groups, signs and what is no number."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_kernels import Device, Groups, join_groups
from tests.gpu_kernels.devices import to_numpy

SIZES = {
    "one": [1],
    "pairs": [2] * 40,
    "a warp and one more": [32, 1, 33],
    "longer than a warp's share": [700, 3, 1500, 512, 1],
    "of all lengths": list(range(1, 60)),
}


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_members_have_the_best_value(
    device: Device, rng: np.random.Generator, sizes: list[int], maximise: bool
) -> None:
    count = sum(sizes)
    members = rng.permutation(count + 50)[:count]
    values = rng.choice([-1.0, 1.0], count + 50) * rng.random(count + 50)
    values[members[::7]] = rng.choice([0.0, -np.inf, np.inf], len(members[::7]))
    expected = values.copy()
    for own in np.split(members, np.cumsum(sizes)[:-1]):
        expected[own] = values[own].max() if maximise else values[own].min()
    groups = Groups.create(device, members, np.array(sizes), wide=maximise)
    for _ in range(2):
        held = device.xp.asarray(values)
        join_groups(device, groups, maximise, held)
        np.testing.assert_array_equal(to_numpy(held), expected)


@pytest.mark.parametrize("maximise", [True, False], ids=["max", "min"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_is_no_number_is_seen(device: Device, maximise: bool, sign: float) -> None:
    values = device.xp.asarray(np.array([1.0, np.copysign(np.nan, sign), np.inf, -np.inf, 2.0, 3.0]))
    groups = Groups.create(device, np.array([0, 1, 2, 3, 4, 5]), np.array([4, 2]))
    join_groups(device, groups, maximise, values)
    assert np.isnan(to_numpy(values)[:4]).all()
    assert to_numpy(values)[4:].tolist() == [3.0 if maximise else 2.0] * 2


def test_no_members_are_no_launch(device: Device) -> None:
    values = device.xp.asarray(np.array([1.0]))
    join_groups(device, Groups.create(device, np.zeros(0, np.int64), np.zeros(0, np.int64)), True, values)
    assert to_numpy(values).tolist() == [1.0]


@pytest.mark.parametrize("sizes", [[2], [4], [3, 0]])
def test_sizes_have_to_be_those_of_the_members(device: Device, sizes: list[int]) -> None:
    with pytest.raises(ValueError, match="sizes: expected"):
        Groups.create(device, np.arange(3), np.array(sizes))
