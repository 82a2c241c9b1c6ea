"""Random models solved strip by strip, against exact answers."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.attack.cases import draw_case
from tests.attack.in_strips import counted_strips, run_in_strips
from tests.attack.open_faults import OPEN_CASES
from tests.exploring import half

SEED = 20261126
CASES = 100
GROUP = 50


@pytest.mark.shortened
@pytest.mark.parametrize("first", range(0, half(CASES), GROUP))
def test_answers_in_strips_agree_with_exact_ones(first: int) -> None:
    failures, strips = [], Counter[str]()
    with counted_strips(strips):
        for number in range(first, first + GROUP):
            if number not in OPEN_CASES:
                failures += run_in_strips(draw_case(SEED, number)).findings
    assert not failures, "\n\n".join(f.report() for f in failures)
    assert strips["TopologicalChoices"] > GROUP // 4
    assert strips["TopologicalStrips"] > 0
