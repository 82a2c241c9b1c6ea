"""Random models against exact answers: every value within its bounds, every truth right or unknown."""

from __future__ import annotations

import pytest

from tests.attack.cases import draw_case, run_case
from tests.attack.open_faults import OPEN_CASES
from tests.exploring import rounds

SEED = 20261122
CASES = 60
GROUP = 10


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_answers_agree_with_exact_ones(first):
    failures = []
    for number in range(first, first + GROUP):
        if number not in OPEN_CASES:
            failures += run_case(draw_case(SEED, number)).findings
    assert not failures, "\n\n".join(f.report() for f in failures)


@pytest.mark.xfail
@pytest.mark.parametrize("number", sorted(OPEN_CASES))
def test_open_case(number):
    failures = run_case(draw_case(SEED, number)).findings
    assert not failures, "\n\n".join(f.report() for f in failures)
