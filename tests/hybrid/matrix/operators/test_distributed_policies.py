"""Policies of decision processes whose states are shared: fewer products, the same bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.matrix.space.idr import IDR
from hybrid.matrix.space.repeated import RepeatedIDR
from hybrid.matrix.space.vector_space import RecurrenceStatus
from hybrid.solvers.policy_bounds import PolicyBounds, PolicyIteration
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
    own = PolicyIteration.approach

    def noted(self: PolicyIteration, target: float) -> float | None:
        found = own(self, target)
        tried.append(np.nan if found is None else found)
        return found

    monkeypatch.setattr(PolicyIteration, "approach", noted)
    monkeypatch.setattr(PolicyBounds, "budget", lambda self, held, difference: np.inf * (held.made >= 20))
    alone = hybrid.check(model, question)
    for parts in [(2, 3, 5)[list(QUESTIONS).index(name) % 3]]:
        tried.clear()
        found = hybrid.check(model, question, ranks=parts)
        assert found.kind == alone.kind == "certified"
        assert found.lower <= alone.upper and alone.lower <= found.upper
        # Residuals are those of all parts.
        assert tried and len(set(tried)) * parts == len(tried)


def test_parts_take_several_steps_where_products_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    model, question = asked("coin")
    alone, own = hybrid.check(model, question), IDR.advance
    kinds: list[type] = []

    def advance(self: IDR, most: int) -> RecurrenceStatus:
        kinds.append(type(self))
        return own(self, most) if isinstance(self, RepeatedIDR) else RecurrenceStatus(1, np.inf, True, True)

    monkeypatch.setattr(IDR, "advance", advance)
    monkeypatch.setattr(PolicyBounds, "budget", lambda self, held, difference: np.inf * (held.made >= 20))
    found = hybrid.check(model, question, ranks=2)
    # Both parts turn to them, once a component.
    assert set(kinds) == {IDR, RepeatedIDR} and kinds.count(IDR) % 2 == kinds.count(RepeatedIDR) % 2 == 0
    assert kinds.count(IDR) < kinds.count(RepeatedIDR)
    assert found.kind == "certified"
    assert found.lower <= alone.upper and alone.lower <= found.upper


def test_where_one_part_has_no_room_for_them_none_has(monkeypatch: pytest.MonkeyPatch) -> None:
    model, question = asked("coin")
    alone, own, made = hybrid.check(model, question), IDR.advance, RepeatedIDR.__init__
    tried: list[int] = []

    def full(self: RepeatedIDR, *arguments: Any, **named: Any) -> None:
        tried.append(1)
        if len(tried) % 2:
            raise MemoryError("no piece is large enough")
        made(self, *arguments, **named)

    def advance(self: IDR, most: int) -> RecurrenceStatus:
        assert not isinstance(self, RepeatedIDR)
        return RecurrenceStatus(1, np.inf, True, True) if len(tried) < 2 else own(self, most)

    monkeypatch.setattr(RepeatedIDR, "__init__", full)
    monkeypatch.setattr(IDR, "advance", advance)
    monkeypatch.setattr(PolicyBounds, "budget", lambda self, held, difference: np.inf * (held.made >= 20))
    found = hybrid.check(model, question, ranks=2)
    assert tried and found.kind == "certified"
    assert found.lower <= alone.upper and alone.lower <= found.upper
