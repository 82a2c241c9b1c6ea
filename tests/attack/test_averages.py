"""Long-run averages of random processes against exact ones: every memoryless scheduler, by its classes."""

from __future__ import annotations

import pytest

from tests.attack.averages import run_averages
from tests.attack.report import reported
from tests.exploring import rounds

SEED = 20261128
CASES = 300
GROUP = 10


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_averages_of_processes_agree_with_exact_ones(first: int) -> None:
    assert not reported(run_averages, SEED, range(first, first + GROUP))
