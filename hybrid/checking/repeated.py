"""What happens again and again, or always from some time on: ``G F a`` and ``F G a``, through end components."""

from __future__ import annotations

from collections.abc import Callable

from hybrid.checking.quantities import StateValues
from hybrid.properties.tree import Path
from mtbdd.components import model_end_components
from mtbdd.language.syntax import Expression
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

__all__ = ["repeated_form", "repeated_probabilities"]


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
    false = model.manager.false
    if always and model.is_mdp:
        return until(model_end_components(model, states).states, True)
    components = model_end_components(model)
    met = [c.states for c in components.components]
    if always:
        met = [c for c in met if c & ~states == false]
    else:
        met = [c for c in met if c & states != false]
    return until(model.manager.disjunction([components.single.states & states, *met]), True)
