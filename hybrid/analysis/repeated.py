"""What happens again and again, or always from some time on: ``G F a``, ``F G a``, by end components."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.properties.tree import Path
from hybrid.run.state_values import StateValues
from mtbdd.graph.components import model_end_components
from mtbdd.language.syntax import Expression
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel


def repeated_form(path: Path) -> tuple[Expression, bool] | None:
    """Return the formula below ``G F`` or ``F G`` without bounds, and whether it is the latter; or None."""
    inner = path.right
    if path.operator not in ("F", "G") or not isinstance(inner, Path) or path.bound or inner.bound:
        return None
    if inner.operator not in ("F", "G") or inner.operator == path.operator:
        return None
    return inner.right, path.operator == "F"


def repeated_probabilities(
    model: SymbolicModel,
    states: Node,
    always: bool,
    maximise: bool,
    until: Callable[[Node, bool], StateValues],
) -> StateValues:
    """Return the probability of ``G F states``, or with `always` of ``F G states``.

    Parameters
    ----------
    model : SymbolicModel
        A chain or an MDP.
    until : callable
        Returns the probability of reaching a set, the greatest one if its second argument is true.

    Notes
    -----
    In the long run a scheduler stays in an end component, and can visit all of it again and again: the
    greatest probability of ``G F`` is that of reaching one that meets the states, of ``F G`` that of reaching
    one inside them.  The least is one less the greatest of the negation.  A chain's end components are its
    bottom components (Baier and Katoen, Principles of Model Checking, sections 10.1.2 and 10.6.4).
    """
    if not maximise:
        outside = model.reachable & ~states
        return repeated_probabilities(model, outside, not always, True, until).complement()
    return until(repeated_target(model, states, always), True)


def repeated_target(model: SymbolicModel, states: Node, always: bool) -> Node:
    """Return the end components, as one set, where ``G F states`` (`always`: ``F G states``) can hold."""
    if always and model.is_mdp:
        return model_end_components(model, states).states
    components = model_end_components(model)
    met = [c.states for c in components.components]
    if always:
        met = [c for c in met if c & ~states == model.manager.false]
    else:
        met = [c for c in met if c & states != model.manager.false]
    return model.manager.disjunction([components.single.states & states, *met])
