"""Some cases of the attack asked of bisimulation quotients: their answers against exact ones."""

from __future__ import annotations

import pytest

from tests.attack.cases import draw_case
from tests.attack.quotients import run_in_quotients


@pytest.mark.nightly
def test_answers_from_quotients_agree_with_exact_ones() -> None:
    records = [run_in_quotients(draw_case(4242, number, "cpu")) for number in range(10)]
    assert not [finding for record in records for finding in record.findings]
    assert sum(record.verdicts.get("right", 0) for record in records) > 10
