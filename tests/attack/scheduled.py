"""Cases of decision processes asked with schedulers; the chains that these leave are asked the same."""

from __future__ import annotations

import re
from typing import Any

import hybrid
from hybrid.base.errors import UnsupportedError
from hybrid.models.model import Model
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Record, run_case
from tests.attack.judge import ENCLOSING

__all__ = ["run_scheduled"]

# Operators in one another ask something else of a chain, where few pairs are initial.
_ALONE = re.compile(r'[PSRT](\{[^}]*\})?(min|max)=\? \[((?!"init")[^\[])*\]')
_FAINT = 1e-300  # below, products underflow


def run_scheduled(case: Case) -> Record:
    """Check the properties of a decision process with schedulers, and the chains that these leave."""
    if case.spec.kind != "mdp":
        return Record(case.number, case.spec.kind, case.spec.family)
    return run_case(case, _ask)


def _ask(model: SymbolicModel, text: str, **options: Any) -> hybrid.Answer:
    answer = hybrid.check(model, text, scheduler=True, **options)
    if isinstance(answer.fault, UnsupportedError):
        return hybrid.check(model, text, **options)
    if answer.scheduler is None or not _ALONE.fullmatch(text) or options["method"] not in ENCLOSING:
        return answer
    chain = Model.of(model).with_scheduler(answer.scheduler)
    own = hybrid.check(chain, text.replace("min=?", "=?").replace("max=?", "=?"), throw=False)
    if own.error is None and answer.error is None and None not in (own.lower, answer.lower):
        apart = max(own.lower - answer.upper, answer.lower - own.upper)
        assert not apart > _FAINT, (text, own, answer)
    return answer
