"""Sizes of tiles: as large as blocks fill the card."""

from __future__ import annotations

import numpy as np
import pytest

import hybrid.matrix.gpu.tuning as tuning
from gpu_kernels import Tuning
from hybrid.matrix.gpu.tuning import REFERENCE, choose_slices

LAUNCH = Tuning(threads=128, min_blocks=8, members=4)


def slices_of(rows: list[int], *groups: list[int], few_terms: bool = False) -> int:
    return choose_slices(np.array(rows), [np.array(own) for own in groups], LAUNCH, 1, few_terms)


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
        (2048, 4 * 1077, True, 64),  # a round has room for some more, since blocks do not end together
        (2048, 4 * 1078, True, 16),  # a second one for few blocks alone: five rounds of a quarter take less
        (96, 4, False, 16),  # types of three slices: all sizes make the same tiles
    ],
)
def test_tiles_are_as_large_as_blocks_fill_the_card(
    rows: int, groups: int, few_terms: bool, wanted: int
) -> None:
    assert slices_of([rows], [groups], few_terms=few_terms) == wanted


def test_a_smaller_card_takes_larger_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for multiprocessors in (264, 132, 66, 20):
        card = REFERENCE._replace(multiprocessors=multiprocessors)
        monkeypatch.setattr(tuning, "card_in_use", lambda card=card: card)
        found.append(slices_of([2048, 512], [64, 900]))
    assert found == sorted(found) and found[0] < found[-1]


def test_all_types_count() -> None:
    assert slices_of([2048], [4]) < slices_of([2048, 2048], [4, 100_000])


def test_sizes_between_fill_rounds() -> None:
    # One round of 12 slices; 8 take two rounds, and 16 one that lasts longer.
    assert slices_of([96 * 32], [4 * 100]) == 12
    # Two rounds of 20 for what takes three of 16.
    assert slices_of([160 * 32], [4 * 250]) == 20
    # Where there are many rounds tiles are no larger than those that the second-level cache likes.
    assert slices_of([160 * 32], [4 * 25_000]) == 16


def test_groups_apart_share_no_item() -> None:
    # 1,056 blocks of 16 slices where all groups share items; a few more where two sets of them do not, and
    # more than a round takes where thirteen do not.
    assert slices_of([2048], [4 * 264]) == 16
    assert slices_of([2048], [4 * 263], [4]) == 16
    assert slices_of([2048], [4 * 264 - 2], [2]) == slices_of([2048], [4 * 265]) == 16
    assert slices_of([2048], [4 * 264 - 24], *[[2]] * 12) == slices_of([2048], [4 * 270]) != 16
