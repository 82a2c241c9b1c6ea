"""Schedulers of random processes: the chains that they leave have values within the bounds told."""

from __future__ import annotations

import pytest

from tests.attack.report import reported
from tests.attack.scheduled import run_scheduled
from tests.exploring import rounds

SEED = 20261129
CASES = 200
GROUP = 20


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_chains_of_schedulers_have_their_values(first: int) -> None:
    assert not reported(run_scheduled, SEED, range(first, first + GROUP))
