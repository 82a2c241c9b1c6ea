"""Path formulas of PCTL and CSL: each is an until, a complement of one, or a single step.

``F b = true U b``, ``G b = !F !b``, ``a W b = !((a & !b) U (!a & !b))``, ``a R b = !(!a U !b)``, with the
same window of steps or time on both sides ([Tealdi13] §2.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.bounded_until import Window, window_probabilities
from hybrid.analysis.repeated import repeated_form, repeated_probabilities
from hybrid.analysis.scope import Scope
from hybrid.analysis.until import next_probabilities, until_probabilities
from hybrid.properties.path_operators import has_path
from hybrid.properties.tree import AutomatonPath, Path, RewardBound
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.syntax import Expression, ModelType, Unary
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker


def path_probabilities(
    model: SymbolicModel,
    path: Expression,
    maximise: bool,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
    scope: Scope | None = None,
) -> StateValues:
    """Return the probability of a path formula.

    Parameters
    ----------
    path : Expression
        Resolved.
    maximise : bool
        Of an MDP: whether the greatest is asked for, or the least; every complement turns it round.
    states : callable
        Returns the states that satisfy a state formula.
    maker : SchedulerMaker, optional
        Given the choices of an optimal scheduler: one that forgets the past for U, F, G, W and R without
        bounds, else one with memory.
    scope : Scope, optional
        The states whose values are returned; default every state.

    Raises
    ------
    UnsupportedError
        A formula of LTL that is not translated, or a method that has no meaning for choices.
    NotConvergedError
    """
    scope = scope or Scope.every(model)
    if isinstance(path, AutomatonPath):
        from hybrid.analysis.given_automata import given_automaton_probabilities

        found = given_automaton_probabilities(model, path, maximise, states, options, work, maker)
        return scope.of_values(found)
    if is_ltl(path) or (maker is not None and _needs_memory(path)):
        from hybrid.analysis.ltl import ltl_probabilities

        return scope.of_values(ltl_probabilities(model, path, maximise, states, options, work, maker))
    if isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        found = path_probabilities(model, path.operand, not maximise, states, options, work, maker, scope)
        return found.complement()
    if not isinstance(path, Path):
        # A state formula is a path formula about the first state.
        return StateValues.exact(scope.indicator(states(path)).astype(np.float64))
    repeated = repeated_form(path)
    if repeated is not None:

        def reach(target: Node, largest: bool) -> StateValues:
            return until_probabilities(model, model.reachable, target, largest, options, work, None, scope)

        return repeated_probabilities(
            model, states(repeated[0]), repeated[1], maximise or not model.is_mdp, reach
        )
    if path.operator == "X":
        return scope.of_values(next_probabilities(model, states(path.right), maximise, options, work))
    safe, target, complement = until_form(model, path, states)
    if isinstance(path.bound, RewardBound):
        from hybrid.analysis.reward_bounded import reward_bounded_probabilities

        bound, least = path.bound, maximise == complement
        found = reward_bounded_probabilities(model, safe, target, bound, not least, options, work)
        found = scope.of_values(found)
        return found.complement() if complement else found
    window, maximise = Window.of(path.bound, model.type is ModelType.CTMC), maximise != complement
    if path.bound is None:
        found = until_probabilities(model, safe, target, maximise, options, work, maker, scope)
    else:
        found = window_probabilities(model, safe, target, window, maximise, options, work, scope)
    return found.complement() if complement else found


def until_form(
    model: SymbolicModel, path: Path, states: Callable[[Expression], Node]
) -> tuple[Node, Node, bool]:
    """Return the safe and target states of a path operator as an until, and whether to take the complement.

    Parameters
    ----------
    path : Path
        Any operator but X, over state formulas.
    states : callable
        Returns the states that satisfy a state formula.
    """
    right, every = states(path.right), model.reachable
    left = every if path.left is None else states(path.left)
    no_left, no_right = every & ~left, every & ~right
    return {
        "U": (left, right, False),
        "F": (every, right, False),
        "G": (every, no_right, True),
        "W": (left & no_right, no_left & no_right, True),
        "R": (no_left, no_right, True),
    }[path.operator]


def _needs_memory(path: Expression) -> bool:
    """Return whether optimal schedulers of a path formula remember how many steps, or what, is past."""
    while isinstance(path, Unary) and path.operator == "!":
        path = path.operand
    return isinstance(path, Path) and (path.operator == "X" or path.bound is not None or has_path(path.right))


def is_ltl(path: Expression) -> bool:
    """Return whether a path formula needs an automaton: more than one path operator, or one beside others.

    ``G F a`` and ``F G a`` over state formulas, and negations, need none.
    """
    while isinstance(path, Unary) and path.operator == "!" and has_path(path.operand):
        path = path.operand
    if not isinstance(path, Path):
        return has_path(path)
    repeated = repeated_form(path)
    operands = (path.left, path.right) if repeated is None else (repeated[0],)
    return any(operand is not None and has_path(operand) for operand in operands)
