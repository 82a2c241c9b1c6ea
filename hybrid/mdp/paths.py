"""Path formulas on MDPs: optimal probabilities, the optimum turned round by every complement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hybrid.analysis.bounded_until import Window
from hybrid.analysis.path_formulas import has_path, refuse_ltl, until_form
from hybrid.analysis.repeated import repeated_form, repeated_probabilities
from hybrid.errors import UnsupportedError
from hybrid.mdp.scheduler import SchedulerMaker
from hybrid.mdp.until import next_probabilities, until_probabilities, window_probabilities
from hybrid.properties.tree import Path
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.syntax import Expression, Unary
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

__all__ = ["optimal_probabilities"]


def optimal_probabilities(
    model: SymbolicModel,
    path: Expression,
    maximise: bool,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
) -> StateValues:
    """Return the least or greatest probability of a path formula from every state.

    Parameters
    ----------
    path : Expression
        Resolved.
    states : callable
        Returns the states that satisfy a state formula.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler; there is a memoryless one for U, F, G, W and R without
        bounds.

    Raises
    ------
    UnsupportedError
        A formula of LTL other than ``G F a`` and ``F G a``, or a method that has no meaning for choices.
    NotConvergedError
    """
    if isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        found = optimal_probabilities(model, path.operand, not maximise, states, options, work, maker)
        return found.complement()
    if not isinstance(path, Path):
        refuse_ltl(path)
        return StateValues.exact(model.indicator(states(path)).astype(np.float64))
    if maker is not None and (path.operator == "X" or path.bound is not None or has_path(path.right)):
        raise UnsupportedError(
            "a scheduler is given for U, F, G, W and R without bounds on steps, where one that forgets the "
            "past is optimal; ask without a scheduler"
        )
    repeated = repeated_form(path)
    if repeated is not None:
        refuse_ltl(repeated[0])

        def reach(target: Node, largest: bool) -> StateValues:
            return until_probabilities(model, model.reachable, target, largest, options, work)

        return repeated_probabilities(model, states(repeated[0]), repeated[1], maximise, reach)
    for operand in (path.left, path.right):
        if operand is not None:
            refuse_ltl(operand)
    if path.operator == "X":
        return next_probabilities(model, states(path.right), maximise, options, work)
    safe, target, complement = until_form(model, path, states)
    window, maximise = Window.of(path.bound, False), maximise != complement
    if path.bound is None:
        found = until_probabilities(model, safe, target, maximise, options, work, maker)
    else:
        found = window_probabilities(model, safe, target, window, maximise, options, work)
    return found.complement() if complement else found
