"""Policies of decision processes whose states are shared: fewer products, the same bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.solvers.policy_bounds import PolicyBounds
from hybrid.solvers.policy_course import PolicyCourse
from tests.exploring import taken_in_turn
from tests.source_tree import ROOT

QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "coin": ({"K": 8}, 'Pmax=? [ F "all_heads" ]'),
    "relay": ({"H": 20, "M": 12}, 'R{"power"}min=? [ F "over" ]'),
}


def asked(name: str) -> tuple[Any, str]:
    constants, question = QUESTIONS[name]
    return hybrid.load(ROOT / f"examples/{name}.prism", constants=constants), question


@pytest.mark.parametrize("name", QUESTIONS)
def test_parts_choose_and_solve_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, question = asked(name)
    tried: list[float] = []
    own = PolicyCourse.approach

    def noted(self: PolicyCourse, target: float) -> float | None:
        found = own(self, target)
        tried.append(np.nan if found is None else found)
        return found

    monkeypatch.setattr(PolicyCourse, "approach", noted)
    monkeypatch.setattr(PolicyBounds, "budget", lambda self, held, difference: np.inf * (held.made >= 20))
    alone = hybrid.check(model, question)
    for parts in taken_in_turn((2, 3, 5), list(QUESTIONS).index(name), 2):
        tried.clear()
        found = hybrid.check(model, question, ranks=parts)
        assert found.kind == alone.kind == "certified"
        assert found.lower <= alone.upper and alone.lower <= found.upper
        # Residuals are those of all parts.
        assert tried and len(set(tried)) * parts == len(tried)
