"""Which part of a property a scheduler is for."""

from __future__ import annotations

from hybrid.errors import UnsupportedError
from hybrid.properties.tree import Filter, Probability, Reward
from mtbdd.language.syntax import Expression
from mtbdd.model import SymbolicModel


def schedulable(formula: Expression, model: SymbolicModel) -> Expression:
    """Return the operator that a scheduler is for: the property itself, or what a filter is about.

    Raises
    ------
    UnsupportedError
        There is none.
    """
    operand = formula.operand if isinstance(formula, Filter) else formula
    if not model.is_mdp or not isinstance(operand, (Probability, Reward)):
        raise UnsupportedError(
            "a scheduler is given for P and R on an MDP, alone or in a filter: ask without one"
        )
    return operand
