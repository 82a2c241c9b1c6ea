"""What happens again and again, or always from some time on: ``G F a``, ``F G a``, by end components."""

from __future__ import annotations

from hybrid.analysis.operator_values import Asked
from hybrid.analysis.until import until_probabilities
from hybrid.base.state_values import StateValues
from hybrid.properties.registry import repeated_form
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.graph.components import model_end_components


def repeated_probabilities(a: Asked) -> StateValues:
    """Return the probability of ``G F states`` or ``F G states``.

    Notes
    -----
    In the long run a scheduler stays in an end component, and can visit all of it again and again: the
    greatest probability of ``G F`` is that of reaching one that meets the states, of ``F G`` that of reaching
    one inside them.  The least is one less the greatest of the negation.  A chain's end components are its
    bottom components (Baier and Katoen, Principles of Model Checking, sections 10.1.2 and 10.6.4).
    """
    form = repeated_form(a.path)
    assert form is not None
    model, states, always = a.model, a.states(form[0]), form[1]
    is_least = model.is_mdp and not a.maximise
    if is_least:
        states, always = model.reachable & ~states, not always
    ends = repeated_target(model, states, always)
    found = until_probabilities(model, model.reachable, ends, True, a.options, a.work, None, a.scope)
    return found.complement() if is_least else found


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
