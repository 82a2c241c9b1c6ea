"""Path formulas of PCTL and CSL: each is an until, a complement of one, or a single step.

``F b = true U b``, ``G b = !F !b``, ``a W b = !((a & !b) U (!a & !b))``, ``a R b = !(!a U !b)``, with the
same window of steps or time on both sides (thesis 003, section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.checking.bounded import Window, window_probabilities
from hybrid.checking.errors import UnsupportedError
from hybrid.checking.options import CheckOptions
from hybrid.checking.quantities import StateValues, Work
from hybrid.checking.until import next_probabilities
from hybrid.properties.tree import Filter, Path, Probability, Reward, SteadyState
from mtbdd.language.syntax import Expression, ModelType, Unary
from mtbdd.language.walk import children
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

__all__ = ["has_path", "path_probabilities"]

_STATE_OPERATORS = (Probability, SteadyState, Reward, Filter)


def has_path(formula: Expression) -> bool:
    """Return whether a path operator occurs outside of P, S, R and filters."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Path):
            return True
        if not isinstance(part, _STATE_OPERATORS):
            waiting.extend(children(part))
    return False


def path_probabilities(
    model: SymbolicModel,
    path: Expression,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the probability of a path formula from every state.

    Parameters
    ----------
    path : Expression
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.

    Raises
    ------
    UnsupportedError
        A formula of LTL: path operators inside path operators or joined with others.
    NotConvergedError
    """
    if isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        return path_probabilities(model, path.operand, states, options, work).complement()
    if not isinstance(path, Path):
        _refuse_ltl(path)
        # A state formula is a path formula about the first state.
        return StateValues.exact(model.indicator(states(path)).astype(np.float64))
    for operand in (path.left, path.right):
        if operand is not None:
            _refuse_ltl(operand)
    right = states(path.right)
    if path.operator == "X":
        return next_probabilities(model, right, options)
    every = model.reachable
    left = every if path.left is None else states(path.left)
    window = Window.of(path.bound, model.type is ModelType.CTMC)
    no_left, no_right = every & ~left, every & ~right
    safe, target, complement = {
        "U": (left, right, False),
        "F": (every, right, False),
        "G": (every, no_right, True),
        "W": (left & no_right, no_left & no_right, True),
        "R": (no_left, no_right, True),
    }[path.operator]
    found = window_probabilities(model, safe, target, window, options, work)
    return found.complement() if complement else found


def _refuse_ltl(formula: Expression) -> None:
    """Refuse path operators where only state formulas are checked."""
    if has_path(formula):
        raise UnsupportedError(
            "LTL is not checked by this version: path operators may not stand inside path operators or "
            "beside others; put P>=1 [ ... ] around the inner ones if that is what is meant"
        )
