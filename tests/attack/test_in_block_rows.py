"""Random models solved block row by block row, against exact answers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.attack.in_block_rows import counted_block_rows, run_in_block_rows
from tests.attack.report import reported
from tests.exploring import rounds

SEED = 20261126
CASES = 30
GROUP = 10


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_answers_in_block_rows_agree_with_exact_ones(first: int) -> None:
    block_rows = Counter[str]()
    with counted_block_rows(block_rows):
        assert not reported(run_in_block_rows, SEED, range(first, first + GROUP))
    assert block_rows["choices"] > GROUP // 4
    if first == 0:  # few of the matrices have groups enough
        assert block_rows["chain"] > 0
