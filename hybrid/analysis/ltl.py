"""Linear temporal logic: the product with a deterministic automaton, then reachability.

A run of the product ends almost surely in a bottom component of a chain, or in an end component of an MDP,
all of which a scheduler can visit again and again (Baier and Katoen, Principles of Model Checking, sections
10.3 and 10.6.4); the acceptance condition is one on the marks that are met there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.analysis.acceptance_sets import accepting_sets
from hybrid.analysis.model_automata import model_automaton, model_formula
from hybrid.analysis.model_products import model_product
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.work import Work
from hybrid.analysis.until import until_probabilities
from hybrid.base.state_values import StateValues
from hybrid.properties.automata.automaton import DeterministicAutomaton
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker


def ltl_probabilities(a: Asked) -> StateValues:
    """Return the probability of a formula of linear temporal logic.

    The least of an MDP is one less the greatest of the negation; an optimal scheduler remembers what the
    automaton has read.

    Raises
    ------
    UnsupportedError
        Bounds on time, or a formula too large to be translated.
    OptionError, InterchangeError
        There is no such tool for automata, or it fails.
    NotConvergedError
    """
    formula = model_formula(a.model, a.path, a.states)
    chosen = model_automaton(formula, a.options.automaton_tool)
    found = automaton_probabilities(
        a.model, chosen.automaton, formula.propositions, a.maximise, a.options, a.work, a.maker
    )
    return a.scope.of_values(found if chosen.proven else found.without_bounds())


def automaton_probabilities(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    maximise: bool,
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
) -> StateValues:
    """Return the probability that a run is accepted, from every state.

    Parameters
    ----------
    automaton : DeterministicAutomaton
        State 0 is the initial one.
    propositions : sequence of Node
        Where its propositions hold.
    maximise : bool
        Of an MDP: whether the greatest is asked for, or the least.
    maker : SchedulerMaker, optional
        Given an optimal scheduler of an MDP.

    Raises
    ------
    NotConvergedError
    """
    negate = model.is_mdp and not maximise
    if maker is not None:
        found = remembering_probabilities(model, automaton, propositions, negate, options, work, maker)
        return found.complement() if negate else found
    product = model_product(model, automaton, propositions, options)
    target = accepting_sets(product, automaton, negate).states
    pairs = product.model
    found = until_probabilities(pairs, pairs.reachable, target, True, options, work)
    found = found.at(pairs.indicator(product.first))
    return found.complement() if negate else found


def remembering_probabilities(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    negate: bool,
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker,
) -> StateValues:
    """Return the greatest probability that a run of an MDP is accepted, or with `negate` that it is not.

    Parameters
    ----------
    automaton, propositions, options, work
        As for `automaton_probabilities`.
    negate : bool
    maker : SchedulerMaker
        Given a scheduler that attains it.

    Notes
    -----
    In an accepted end component the scheduler goes to one set after the other that is to be met again and
    again, and waits for them in turn: a second product, with a counter, where there are several.

    Raises
    ------
    NotConvergedError
    """
    from hybrid.analysis.memory_scheduler import Remembering, labels_of, regions_of, stay_accepted
    from hybrid.analysis.scheduler import SchedulerMaker

    structures = range(len(model.source.rewards))
    product = model_product(model, automaton, propositions, options, structures, labels_of(model))
    accepted = accepting_sets(product, automaton, negate)
    regions = regions_of(accepted)
    remembering = Remembering.of(model, product, regions)
    pairs, own = remembering.pairs, SchedulerMaker(remembering.pairs)
    stay_accepted(own, remembering, regions)
    target = remembering.lifted(accepted.states) & pairs.reachable
    found = until_probabilities(pairs, pairs.reachable, target, True, options, work, own)
    maker.remember(remembering.finish(own))
    return found.at(pairs.indicator(remembering.first))
