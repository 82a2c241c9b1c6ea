"""Some cases of the attack asked of bisimulation quotients: their answers against exact ones."""

from __future__ import annotations

import pytest

import hybrid
from tests.attack.cases import draw_case, run_case

REFUSED = ("leave bisimulation out", "depends on the state")
"""What blocks do not tell, in the words of its errors."""


@pytest.mark.nightly
def test_answers_from_quotients_agree_with_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hybrid.check
    monkeypatch.setattr(
        hybrid, "check", lambda *given, **options: asked(*given, bisimulation=True, **options)
    )
    # A quotient wherever two states are alike, and of models that have none such, too.
    monkeypatch.setattr("hybrid.models.lumping.checker._SHARE", 1.01)
    records = [run_case(draw_case(4242, number, "cpu")) for number in range(10)]
    findings = [f for record in records for f in record.findings]
    assert not [f for f in findings if not any(words in f.detail for words in REFUSED)]
    assert sum(record.verdicts.get("right", 0) for record in records) > 10
