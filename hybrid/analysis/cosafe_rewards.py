"""Rewards until a co-safe formula of linear temporal logic holds.

A run satisfies a co-safe formula by a prefix: whatever follows, the formula holds.  What is earned before
the first such prefix ends is a reward until a set is reached, that of the pairs in which the automaton's
next step leads to where it accepts everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.model_automata import model_automaton, model_formula
from hybrid.analysis.model_products import model_product
from hybrid.analysis.rewards import reachability_rewards
from hybrid.automata.acceptance import ALL
from hybrid.automata.automaton import DeterministicAutomaton
from hybrid.automata.comparing import distinguishing_word
from hybrid.automata.reduction import component_fates
from hybrid.errors import UnsupportedError
from hybrid.run.options import CheckOptions
from hybrid.run.state_values import StateValues
from hybrid.run.work import Work
from mtbdd.language.model_syntax import ELAPSED
from mtbdd.language.syntax import Expression
from mtbdd.manager import Node
from mtbdd.model import SymbolicModel

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerMaker


def cosafe_rewards(
    model: SymbolicModel,
    structure: int,
    path: Expression,
    maximise: bool,
    states: Callable[[Expression], Node],
    options: CheckOptions,
    work: Work,
    maker: SchedulerMaker | None = None,
) -> StateValues:
    """Return the expected reward earned until a co-safe formula holds, of an MDP the least or the greatest.

    Zero where the formula holds at once, that is of every run from the state on.  Infinite where it does not
    hold almost surely: by some scheduler of an MDP (greatest), by every one (least).

    Parameters
    ----------
    path : Expression
        Resolved; path formulas may stand in each other.
    states : callable
        Returns the states that satisfy a state formula.
    maker : SchedulerMaker, optional
        Given an optimal scheduler of an MDP, which remembers what the automaton has read.

    Raises
    ------
    UnsupportedError
        The formula is not co-safe, has bounds on time, or is too large to be translated.
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    """
    formula = model_formula(model, path, states)
    if formula.formula.has_weak:
        raise UnsupportedError(
            "R: expected a co-safe formula, which some prefix of a run decides (X, F, U, and G, W, R with a "
            "bound, negations of state formulas alone), got one with G, W or R, or a negated F or U; ask for "
            "its probability with P, or for rewards until a set is reached with R [ F states ]"
        )
    chosen = model_automaton(formula, options.automaton_tool)
    automaton = chosen.automaton
    sure = universal_states(automaton)
    if automaton.n_states == 1:
        target = model.reachable if sure[0] else model.manager.false
        found = reachability_rewards(model, structure, target, maximise, options, work, maker)
        return found if chosen.proven else found.without_bounds()
    if maker is None:
        own_structures = [] if structure == ELAPSED else [structure]
        product = model_product(model, automaton, formula.propositions, options, own_structures)
        won = product.stepping_into(q for q in range(automaton.n_states) if sure[q])
        found = reachability_rewards(product.model, min(structure, 0), won, maximise, options, work)
    else:
        from hybrid.analysis.memory_scheduler import Remembering, labels_of
        from hybrid.analysis.scheduler import SchedulerMaker

        structures = range(len(model.source.rewards))
        labels = labels_of(model)
        product = model_product(model, automaton, formula.propositions, options, structures, labels)
        won = product.stepping_into(q for q in range(automaton.n_states) if sure[q])
        own = SchedulerMaker(product.model)
        found = reachability_rewards(product.model, structure, won, maximise, options, work, own)
        maker.remember(Remembering.of(model, product, ()).finish(own))
    found = found.at(product.model.indicator(product.first))
    return found if chosen.proven else found.without_bounds()


def universal_states(automaton: DeterministicAutomaton) -> list[bool]:
    """Return from which states of an automaton all words are accepted.

    Those from which no cycle is reached that is not accepted.
    """
    components, fates = component_fates(automaton)
    if any(fate is None for fate in fates):
        # Of another program's: marks do not tell; a search for a rejected word does.
        none = np.zeros((1, automaton.successors.shape[1]), np.int64)
        everything = DeterministicAutomaton(automaton.propositions, 0, none, none, ALL)
        starts = (replace(automaton, initial=q) for q in range(automaton.n_states))
        return [distinguishing_word(start, everything) is None for start in starts]
    rejecting = np.zeros(automaton.n_states, np.bool_)
    for number, fate in enumerate(fates):
        rows = np.flatnonzero(components == number)
        cyclic = bool(np.isin(automaton.successors[rows], rows).any())
        rejecting[rows] = cyclic and fate is not True
    while True:
        wider = rejecting | rejecting[automaton.successors].any(axis=1)
        if (wider == rejecting).all():
            return [not lost for lost in rejecting.tolist()]
        rejecting = wider
