"""Where path operators stand in a property."""

from __future__ import annotations

from hybrid.properties.tree import STATE_OPERATORS, AutomatonPath, ConditionalPath, Path
from mtbdd.language.syntax import Expression
from mtbdd.language.walk import children


def has_path(formula: Expression) -> bool:
    """Return whether a path operator or an automaton occurs outside of P, S, R, A, E and filters."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, (Path, AutomatonPath, ConditionalPath)):
            return True
        if not isinstance(part, STATE_OPERATORS):
            waiting.extend(children(part))
    return False
