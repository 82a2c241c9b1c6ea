"""Random models whose checks are ended and gone on with, against exact answers."""

from __future__ import annotations

import pytest

from tests.attack.report import reported
from tests.attack.resumed import run_resumed
from tests.exploring import rounds

SEED = 20261124
CASES = 30
GROUP = 10


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_answers_gone_on_with_agree_with_exact_ones(first: int) -> None:
    assert not reported(run_resumed, SEED, range(first, first + GROUP))
