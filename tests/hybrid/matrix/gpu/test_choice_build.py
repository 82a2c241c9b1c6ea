"""How level and launch shape are chosen where steps are timed: with times that a test makes up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpu_kernels import Device, TileMatrix
from hybrid.matrix.levels import probe as choice_build
from hybrid.matrix.levels.probe import build_choices
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense


@pytest.fixture
def matrices() -> dict[int, OffsetMTBDD]:
    size = 300
    return {
        0: from_dense(0.5 * np.eye(size) + 0.25 * np.eye(size, k=7)),
        1: from_dense(0.75 * np.eye(size, k=-2)),
    }


class Times:
    """Stands for the timing of steps, and remembers what was timed."""

    def __init__(self, seconds: Callable[[TileMatrix], float]) -> None:
        self.seconds_of = seconds
        self.timed: list[TileMatrix] = []

    def seconds(self, tiles: TileMatrix) -> float:
        self.timed.append(tiles)
        return self.seconds_of(tiles)


@pytest.fixture
def timing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[TileMatrix], float]], Times]:
    def install(seconds: Callable[[TileMatrix], float]) -> Times:
        times = Times(seconds)
        monkeypatch.setattr(choice_build, "PROBE_ENTRIES", 0)
        monkeypatch.setattr(choice_build._LevelTrial, "seconds", lambda _, tiles: times.seconds(tiles))
        return times

    return install


Timing = Callable[[Callable[[TileMatrix], float]], Times]


def test_the_fastest_level_and_shape_are_taken(
    device: Device, matrices: dict[int, OffsetMTBDD], timing: Timing
) -> None:
    times = timing(lambda tiles: tiles.tuning.min_blocks + 1e-3 * len(tiles.items))
    found = build_choices(device, matrices, 2, "min-time")
    assert found is not None
    _, tiles = found
    # The shape with the fewest blocks, 256 threads, at the level with the fewest items.
    assert (tiles.tuning.threads, tiles.tuning.min_blocks) == (256, 4)
    assert len(tiles.items) == min(len(t.items) for t in times.timed if t.tuning.min_blocks == 4)
    assert any(t is tiles for t in times.timed)


def test_a_level_that_only_the_better_shape_favours_is_found(
    device: Device, matrices: dict[int, OffsetMTBDD], timing: Timing
) -> None:
    def seconds(tiles: TileMatrix) -> float:
        # Slots are those of the level, whatever the shape: with eight blocks few are better, with nine many.
        slots = 1e-3 * len(tiles.base)
        return {8: 2.0 + slots, 9: 1.0 - slots}.get(tiles.tuning.min_blocks, 5.0)

    times = timing(seconds)
    found = build_choices(device, matrices, 2, "min-time")
    assert found is not None
    _, tiles = found
    assert tiles.tuning.min_blocks == 9
    first = min((t for t in times.timed if t.tuning.min_blocks == 8), key=seconds)
    assert len(tiles.base) > len(first.base)
    assert seconds(tiles) == min(map(seconds, times.timed))


def test_launches_that_differ_in_blocks_alone_share_one_layout(
    device: Device, matrices: dict[int, OffsetMTBDD], timing: Timing
) -> None:
    times = timing(lambda tiles: float(tiles.tuning.min_blocks == 8))
    build_choices(device, matrices, 2, "min-time")
    first = times.timed[0]
    assert {t.tuning.min_blocks for t in times.timed if t.codes is first.codes} == {8, 9, 7}


def test_auto_times_nothing(device: Device, matrices: dict[int, OffsetMTBDD], timing: Timing) -> None:
    times = timing(lambda tiles: float(len(tiles.items)))
    found = build_choices(device, matrices, 2)
    assert found is not None
    assert times.timed == []


def test_a_given_level_is_kept(device: Device, matrices: dict[int, OffsetMTBDD], timing: Timing) -> None:
    timing(lambda tiles: float(len(tiles.items)))
    found = [build_choices(device, matrices, 2, k) for k in range(20)]
    kept = [k for k, built in enumerate(found) if built is not None and built[0] == k]
    assert len(kept) > 1
    assert len(kept) == sum(built is not None for built in found)
