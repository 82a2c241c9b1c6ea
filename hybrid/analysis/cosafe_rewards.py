"""Rewards until a co-safe formula of linear temporal logic holds.

A run satisfies a co-safe formula by a prefix that tells it, read letter by letter.  What is earned before
the first such prefix ends is a reward until a set is reached, that of the pairs in which the automaton's
next step leads to where the formula is told.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from hybrid.analysis.model_automata import model_formula
from hybrid.analysis.model_products import model_product
from hybrid.analysis.operator_values import Asked
from hybrid.analysis.rewards import reachability_rewards
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.properties.automata.translation import prefixes
from mtbdd.language.model_syntax import ELAPSED

if TYPE_CHECKING:
    pass

_log = logging.getLogger(__name__)


def cosafe_rewards(a: Asked) -> StateValues:
    """Return the expected reward earned until a co-safe formula holds, of an MDP the least or the greatest.

    Zero where the state itself tells that the formula holds; ``X true`` takes the first step, though all runs
    satisfy it.  Infinite where the formula does not hold almost surely: by some scheduler of an MDP
    (greatest), by every one (least).

    An optimal scheduler of an MDP remembers what the automaton has read.

    Raises
    ------
    UnsupportedError
        The formula is not co-safe, has bounds on time, or is too large to be translated.
    PropertyError
        A reward of an MDP is negative.
    NotConvergedError
    """
    model, structure, maximise = a.model, a.formula.place, a.maximise
    options, work, maker = a.options, a.work, a.maker
    formula = model_formula(model, a.formula.target, a.states, keeps_steps=True)
    if formula.formula.has_weak:
        raise UnsupportedError(
            "R: expected a co-safe formula, which some prefix of a run decides (X, F, U, and G, W, R with a "
            "bound, negations of state formulas alone), got one with G, W or R, or a negated F or U; ask for "
            "its probability with P, or for rewards until a set is reached with R [ F states ]"
        )
    if options.automaton_tool not in ("auto", "own"):
        work.warnings.append(
            "the automaton tool has no part in rewards until a formula holds, which take our own automaton"
        )
    names = [f"p{i}" for i in range(len(formula.propositions))]
    automaton = prefixes(formula.store, formula.formula, names)
    _log.info("automaton of %d states that reads the formula", automaton.n_states)
    told = np.flatnonzero(automaton.marks.all(axis=1)).tolist()
    if automaton.n_states == 1:
        target = model.reachable if told else model.manager.false
        return reachability_rewards(model, structure, target, maximise, options, work, maker, a.scope)
    if maker is None:
        own_structures = [] if structure == ELAPSED else [structure]
        product = model_product(model, automaton, formula.propositions, options, own_structures)
        won = product.stepping_into(told)
        found = reachability_rewards(product.model, min(structure, 0), won, maximise, options, work)
    else:
        from hybrid.analysis.memory_scheduler import Remembering, labels_of
        from hybrid.analysis.scheduler import SchedulerMaker

        structures = range(len(model.source.rewards))
        labels = labels_of(model)
        product = model_product(model, automaton, formula.propositions, options, structures, labels)
        won = product.stepping_into(told)
        own = SchedulerMaker(product.model)
        found = reachability_rewards(product.model, structure, won, maximise, options, work, own)
        maker.remember(Remembering.of(model, product, ()).finish(own))
    return a.scope.of_values(found.at(product.model.indicator(product.first)))
