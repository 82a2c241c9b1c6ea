"""Cases of the attack, asked of bisimulation quotients, in turn from diagrams and from lists."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import hybrid
import hybrid.models.lumping.checker as lumping
from hybrid.checking.answer import Answer
from mtbdd.build.model import SymbolicModel
from tests.attack.cases import Case, Record, run_case

REFUSED = ("leave bisimulation out", "depends on the state")
"""What blocks do not tell, in the words of its errors."""


def ask_quotients(model: SymbolicModel, text: str, **options: Any) -> Answer:
    """Answer as `hybrid.check`, of a quotient wherever that tells the answer."""
    with ExitStack() as stack:
        # A quotient wherever two states are alike, and of models that have none such, too.
        stack.enter_context(patch.object(lumping, "_SHARE", 1.01))
        stack.enter_context(patch.object(lumping, "LISTED", 0 if len(text) % 3 else 1 << 62))
        found = hybrid.check(model, text, bisimulation=True, **options)
    if found.error is not None and any(words in found.error for words in REFUSED):
        return hybrid.check(model, text, **options)
    return found


def run_in_quotients(case: Case) -> Record:
    """Check the properties of a case, each in its quotient, and judge the answers."""
    return run_case(case, ask_quotients)
