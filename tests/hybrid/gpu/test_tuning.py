"""Sizes of tiles: as large as blocks fill the card."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hybrid.gpu.tuning as tuning
from gpu_kernels import Tuning
from hybrid.gpu.device_properties import REFERENCE
from hybrid.gpu.tuning import choose_slices

LAUNCH = Tuning(threads=128, min_blocks=8, members=4)


def types_of(rows: list[int], groups: list[int]) -> Any:
    return SimpleNamespace(levels=[SimpleNamespace(rows=np.array(rows), groups=np.array(groups))])


@pytest.mark.parametrize(
    ("rows", "groups", "few_terms", "wanted"),
    [
        (2048, 4, False, 4),  # less than the card at any size
        (2048, 4, True, 4),
        (2048, 1024, False, 16),  # 1,024 tiles of 16 slices fit at once, 2,048 of 8 do not
        (2048, 512, False, 8),  # and here 1,024 of 8
        (2048, 100_000, False, 16),
        (2048, 100_000, True, 64),
        (2048, 4 * 1056, True, 64),  # one round of the largest
        (2048, 4 * 1057, True, 16),  # a second one for one block alone: five rounds of a quarter take less
        (96, 4, False, 16),  # types of three slices: all sizes make the same tiles
    ],
)
def test_tiles_are_as_large_as_blocks_fill_the_card(
    rows: int, groups: int, few_terms: bool, wanted: int
) -> None:
    assert choose_slices(types_of([rows], [groups]), 0, LAUNCH, 1, few_terms) == wanted


def test_a_smaller_card_takes_larger_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    types = types_of([2048, 512], [64, 900])
    found = []
    for multiprocessors in (264, 132, 66, 20):
        card = REFERENCE._replace(multiprocessors=multiprocessors)
        monkeypatch.setattr(tuning, "card_in_use", lambda card=card: card)
        found.append(choose_slices(types, 0, LAUNCH, 1, False))
    assert found == sorted(found) and found[0] < found[-1]


def test_all_types_count() -> None:
    few, many = types_of([2048], [4]), types_of([2048, 2048], [4, 100_000])
    assert choose_slices(few, 0, LAUNCH, 1, False) < choose_slices(many, 0, LAUNCH, 1, False)
