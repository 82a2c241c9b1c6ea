"""Cases of the attack, asked of models that are built no further than the question needs; the same judge."""

from __future__ import annotations

import re
from typing import Any

import hybrid
from hybrid.checking.answer import Answer
from hybrid.models.exploration import build_explicitly
from hybrid.models.settled_states import ended_in, settled_states
from hybrid.properties import parse_properties, resolve_properties
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.language.errors import BuildError
from tests.attack.cases import Case, Record, run_case

REFUSED_BY_LISTS = re.compile(
    "rewards (that add up to (0 or to a normal double|less than 1.79e308)|of 0 or at least 2.23e-308)"
)


def ask_directed(model: SymbolicModel, text: str, **options: Any) -> Answer:
    """Answer as `hybrid.check`, of a model whose commands end where the question is settled.

    Where rewards below zero may be earned for ever behind the states that settle it alone, there is an
    answer. The oracle knows all states and has none, so that the refusal of the whole model is judged.
    """
    found = _answer(model, text, **options)
    if found.error is None and text.startswith("R") and "F<=" in text:
        whole = hybrid.check(model, text, **options)
        return whole if whole.error is not None and "may be earned for ever" in whole.error else found
    return found


def _answer(model: SymbolicModel, text: str, **options: Any) -> Answer:
    (prop,) = resolve_properties(parse_properties(text), model.source, keep_faults=True).properties
    formulas = [] if prop.error is not None else [prop.formula]
    source = ended_in(model.source, settled_states(model.source, formulas))
    if len(text) % 3 == 0:
        try:
            return hybrid.check(build_explicitly(source), text, **options)
        except BuildError as refusal:
            if not REFUSED_BY_LISTS.search(str(refusal)):
                raise
    return hybrid.check(build_model(source), text, **options)


def run_directed(case: Case) -> Record:
    """Check the properties of a case, each of a model built for it, and judge the answers."""
    return run_case(case, ask_directed)
