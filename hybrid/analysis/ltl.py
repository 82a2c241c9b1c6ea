"""Linear temporal logic: the product with a deterministic automaton, then reachability.

A run of the product ends almost surely in a bottom component of a chain, or in an end component of an MDP,
all of which a scheduler can visit again and again (Baier and Katoen, Principles of Model Checking, sections
10.3 and 10.6.4); the acceptance condition is one on the marks that are met there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hybrid.analysis.model_automata import model_automaton, model_formula
from hybrid.analysis.model_products import model_product
from hybrid.analysis.until import until_probabilities
from hybrid.automata.acceptance import Acceptance
from hybrid.automata.automaton import DeterministicAutomaton
from hybrid.automata.guards import mark_list
from hybrid.automata.reduction import component_fates
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.automaton_product import AutomatonProduct
from mtbdd.graph.components import EndComponents, model_end_components
from mtbdd.language.syntax import Expression
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel


def ltl_probabilities(
    model: SymbolicModel,
    path: Expression,
    maximise: bool,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the probability of a formula of linear temporal logic from every state.

    Parameters
    ----------
    path : Expression
        Resolved; path formulas may stand in each other.
    maximise : bool
        Of an MDP: whether the greatest is asked for, or the least, which is one less the greatest of
        the negation.
    states : callable
        Returns the states that satisfy a state formula.

    Raises
    ------
    UnsupportedError
        Bounds on time, or a formula too large to be translated.
    OptionError, InterchangeError
        There is no such tool for automata, or it fails.
    NotConvergedError
    """
    formula = model_formula(model, path, states)
    chosen = model_automaton(formula, options.automaton_tool)
    found = automaton_probabilities(model, chosen.automaton, formula.propositions, maximise, options, work)
    return found if chosen.proven else found.without_bounds()


def automaton_probabilities(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    maximise: bool,
    options: CheckOptions,
    work: Work,
) -> StateValues:
    """Return the probability that a run is accepted, from every state.

    Parameters
    ----------
    automaton : DeterministicAutomaton
        State 0 is the initial one.
    propositions : sequence of Node
        Where its propositions hold.
    maximise : bool
        As for `ltl_probabilities`.

    Raises
    ------
    NotConvergedError
    """
    product = model_product(model, automaton, propositions, options)
    negate = model.is_mdp and not maximise
    target = accepting_states(product, automaton, negate)
    pairs = product.model
    found = until_probabilities(pairs, pairs.reachable, target, True, options, work)
    found = found.at(pairs.indicator(product.first))
    return found.complement() if negate else found


def accepting_states(product: AutomatonProduct, automaton: DeterministicAutomaton, negate: bool) -> Node:
    """Return where the automaton accepts for certain, or for some scheduler: to be reached.

    Parameters
    ----------
    negate : bool
        Take the words that it does not accept.

    Notes
    -----
    Time: one decomposition of a chain; of an MDP one for every generalised Rabin pair of the condition.
    """
    acceptance = automaton.acceptance.negated() if negate else automaton.acceptance
    components, fates = component_fates(automaton)
    fate = [None if fates[c] is None else fates[c] != negate for c in components.tolist()]
    final = [bool((automaton.successors[q] == q).all()) for q in range(automaton.n_states)]
    won = product.within(q for q in range(automaton.n_states) if final[q] and fate[q])
    left = product.within(q for q in range(automaton.n_states) if not final[q] and fate[q] is not False)
    left = left | product.within(q for q in range(automaton.n_states) if final[q] and fate[q] is None)
    if left == product.model.manager.false:
        return won
    find = _of_end_components if product.model.is_mdp else _of_bottom_components
    return won | find(product, acceptance, left)


def _of_bottom_components(product: AutomatonProduct, acceptance: Acceptance, left: Node) -> Node:
    """Return the bottom components of a chain whose marks are accepted."""
    manager = product.model.manager
    found = model_end_components(product.model, left)
    accepted = [found.single.states & _pointwise(product, acceptance)]
    for component in found.components:
        met = sum(
            1 << i for i, marked in enumerate(product.marks) if component.states & marked != manager.false
        )
        if acceptance.holds(met):
            accepted.append(component.states)
    return manager.disjunction(accepted)


def _pointwise(product: AutomatonProduct, acceptance: Acceptance) -> Node:
    """Return the pairs whose own marks are accepted."""
    manager = product.model.manager
    if acceptance.kind in ("t", "f"):
        return manager.true if acceptance.kind == "t" else manager.false
    if acceptance.kind in ("Inf", "Fin"):
        marked = product.marks[acceptance.mark]
        return marked if acceptance.kind == "Inf" else ~marked
    parts = [_pointwise(product, part) for part in acceptance.parts]
    found = parts[0]
    for part in parts[1:]:
        found = found & part if acceptance.kind == "&" else found | part
    return found


def _of_end_components(product: AutomatonProduct, acceptance: Acceptance, left: Node) -> Node:
    """Return the end components of an MDP in which a scheduler can meet marks that are accepted."""
    manager = product.model.manager
    accepted = manager.false
    for finite, infinite in acceptance.pairs():
        allowed = left & ~manager.disjunction(product.marks[i] for i in mark_list(finite))
        if allowed == manager.false:
            continue
        needed = [product.marks[i] for i in mark_list(infinite)]
        accepted = accepted | _meeting(manager.false, model_end_components(product.model, allowed), needed)
    return accepted


def _meeting(false: Node, found: EndComponents, needed: list[Node]) -> Node:
    """Return the end components, as one set, that meet each of some sets."""
    alone = found.single.states
    for marked in needed:
        alone = alone & marked
    for component in found.components:
        if all(component.states & marked != false for marked in needed):
            alone = alone | component.states
    return alone
