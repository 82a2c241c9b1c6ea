"""The choice of a level where levels are as fast and as large as others, or cannot be used by some layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybrid.matrix.injection.typed_matrix import TypedMatrix
from hybrid.matrix.levels.curve import layer_curve
from hybrid.matrix.levels.table import CandidateLevel, LevelTable, Weight, choose_level
from tests.builders.matrices import from_dense

LEVEL = CandidateLevel(0, 1, 1, 10, 1, 100, 100, 1, 1, 50, 1.0, False)


class Table(LevelTable, eq=False):
    """Levels with the times that they say."""

    given: tuple[CandidateLevel, ...]

    def __len__(self) -> int:
        return len(self.given)

    def _candidate(self, level: int) -> CandidateLevel:
        return self.given[level]

    def seconds(self, level: int, backend: str) -> float | None:
        return self.given[level].seconds_predicted

    def weights(self, backend: str) -> list[Weight]:
        return []


def table(*levels: tuple[float | None, int]) -> Table:
    """Levels of these seconds and bytes."""
    made = (
        replace(LEVEL, level=k, seconds_predicted=seconds, row_type_bytes=size, bytes_worst_case=size)
        for k, (seconds, size) in enumerate(levels)
    )
    return Table((10, 10), 10, tuple(made))


def test_of_equal_levels_the_first_one_is_chosen() -> None:
    equal = table((2.0, 50), (1.0, 50), (1.0, 50), (1.0, 50))
    assert choose_level(equal, "min-time").level == 1
    assert choose_level(equal, "min-memory").level == 0


def test_among_times_that_cannot_be_told_apart_the_smallest_level_is_chosen() -> None:
    assert choose_level(table((1.0, 70), (1.03, 60), (1.05, 10)), "min-time").level == 1


def test_a_level_of_exactly_the_budget_may_be_used() -> None:
    assert choose_level(table((1.0, 70), (2.0, 60)), memory_budget=60).level == 1
    assert choose_level(table((1.0, 70), (2.0, 60)), memory_budget=70).level == 0


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
def test_layers_use_a_level_only_if_all_of_them_can(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    curve = layer_curve([from_dense(np.eye(2)), from_dense(np.eye(2))])
    times: dict[TypedMatrix, tuple[float | None, ...]] = dict(
        zip(curve.matrices, [(1.0, 1.0, 1.0), (None, 1.0, 2.0)], strict=True)
    )
    monkeypatch.setattr("hybrid.matrix.gpu.cost.predicted_level_seconds", lambda own, k: times[own][k])
    for own in curve.apart:
        for k, seconds in enumerate(times[own.typed]):
            own._counted[k] = replace(own[k], seconds_predicted=seconds)
    assert [curve.seconds(k, backend) for k in range(len(curve))] == [None, 2.0, 3.0]
