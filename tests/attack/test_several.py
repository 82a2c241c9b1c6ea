"""Several objectives of random processes, long-run averages among them, against a linear program."""

from __future__ import annotations

import pytest

from tests.attack.report import reported
from tests.attack.several import run_several
from tests.exploring import rounds

SEED = 20261129
CASES = 75
GROUP = 5


@pytest.mark.parametrize("first", range(0, rounds(CASES), GROUP))
def test_several_objectives_agree_with_a_linear_program(first: int) -> None:
    assert not reported(run_several, SEED, range(first, first + GROUP))
