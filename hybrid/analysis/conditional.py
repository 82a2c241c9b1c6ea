"""Conditional probabilities: quotients of chains, and of decision processes a model that returns.

A run of a decision process that does not meet the condition does not count.  So a scheduler that gives the
condition up may as well return to the beginning.  In the product with what the run has decided already, a
choice more leads there, wherever some scheduler never meets the condition.  The greatest probability of both
then is the greatest conditional one (C. Baier, J. Klein, S. Klüppelholz and S. Märcker, Computing conditional
probabilities in Markovian models efficiently, TACAS 2014).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hybrid.analysis.operator_values import OperatorQuery, operator_values, until_form
from hybrid.analysis.precomputation import prob0a, prob0e
from hybrid.analysis.until import until_probabilities
from hybrid.base.directed_rounding import divided
from hybrid.base.errors import UnsupportedError
from hybrid.base.state_values import StateValues
from hybrid.properties.registry import has_path, without_negations
from hybrid.properties.tree import Path, Probability
from mtbdd.build.automaton_product import AutomatonMove, automaton_product
from mtbdd.build.choices import ChoiceLayer, ChoicePart
from mtbdd.build.model import SymbolicModel
from mtbdd.build.model_from_diagrams import model_from_diagrams
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language.syntax import Binary, Expression
from mtbdd.offset.states import states_from

# Conditional probabilities of path formulas: of chains P(A and B) / P(B).
#
# Both are probabilities of a formula of linear temporal logic; their bounds are divided with directed
# rounding.

_SHARE = 0.25  # of epsilon for each of the two probabilities: the distances of their bounds add up


def conditional_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a path formula under the condition of another one, of an MDP the optimal one.

    NaN where the condition has probability 0.
    """
    if a.model.is_mdp:
        return _optimal_probabilities(a)
    path = a.path
    finer = replace(a.options, epsilon=_SHARE * a.options.epsilon)

    def probability(path: Expression) -> StateValues:
        asked = Probability(path.position, None, None, None, path)
        return operator_values(a.model, asked, a.states, finer, a.work)

    condition = probability(path.condition)
    both = probability(Binary(path.position, "&", path.path, path.condition))
    return a.scope.of_values(_quotient(both, condition))


def _quotient(both: StateValues, condition: StateValues) -> StateValues:
    """Return the bounds of ``P(A and B) / P(B)``, the first being no greater than the second."""
    with np.errstate(all="ignore"):
        never = condition.upper == 0.0
        never |= np.isnan(condition.upper) & (condition.values == 0.0)
        values = np.minimum(both.values / condition.values, 1.0)
        lower = divided(both.lower, condition.upper)[0]
        upper = divided(both.upper, condition.lower)[1]
    # States of which only the possibility of the condition is known.
    upper = np.where((condition.lower == 0.0) & ~np.isnan(lower), 1.0, np.minimum(upper, 1.0))
    values = np.where(np.isnan(values) & ~never, 0.5, values)
    values = np.where(np.isnan(lower) | np.isnan(upper), values, np.clip(values, lower, upper))
    for part in (values, lower, upper):
        part[never] = np.nan
    opened = both.open_lower
    return StateValues(values, lower, upper, None if opened is None else opened & (lower == 0.0))


# Of decision processes: the greatest probability of both in a product with a return to the beginning.

_OPEN, _MET, _MISSED = range(3)
"""What a run has decided of an until."""

_MOST_STATES = 1000
"""States of a question, each of which takes a system of its own."""


def _optimal_probabilities(a: OperatorQuery) -> StateValues:
    """Return the least or greatest probability of a path formula of an MDP under a condition, in a scope.

    Schedulers under which the condition has probability 0 do not count; NaN where it has under all of them.
    Both are untils without bounds, of which the first may be negated. Time: that of an until over up to nine
    pairs a state, for every state of the scope.
    """
    model, index = a.model, a.scope.index
    if model.communicator.size > 1 or a.maker is not None:
        raise UnsupportedError(
            "conditional probabilities of an MDP are found by one process, without parts and schedulers: "
            "leave these out"
        )
    if index.size > _MOST_STATES:
        raise UnsupportedError(
            f"conditional probabilities of an MDP take a system for every state asked for, got "
            f"{index.size:,} states and expected {_MOST_STATES:,} at most: ask of some, as in filter(max, "
            "Pmax=? [ ... ], x=0)"
        )
    (path, negated), (condition, is_missed) = (_until(a, part) for part in (a.path.path, a.path.condition))
    if is_missed:
        raise UnsupportedError(
            "the condition after '||' has to be F or U on an MDP, with states as operands: G, W, R and "
            "negations are conditions of chains alone"
        )
    decided = [s for safe, target in (path, condition) for s in (target, model.reachable & ~safe & ~target)]
    product = automaton_product(model, decided, _moves(), 0, start=model.initial | index.states)
    pairs = product.model
    met = product.stepping_into(range(_MET, 9, 3))
    reached = product.stepping_into(range(3 * _MET, 3 * _MET + 3))
    # The greatest of one formula is one less the least of its negation.
    if negated == a.maximise:
        reached = prob0e(pairs, pairs.reachable, reached)  # lemma: conditions
    given_up = prob0e(pairs, pairs.reachable, met)  # lemma: conditions
    possible = ~prob0a(pairs, pairs.reachable, met)
    found = np.full((3, index.size), np.nan)
    for i, own in enumerate(np.eye(index.size, dtype=np.bool_)):
        first = product.first & product.lifted(states_from(model.manager, index, own))
        if first & possible == pairs.manager.false:
            continue
        returning = _returning(pairs, given_up, first)
        # lemma: conditions
        value = until_probabilities(returning, returning.reachable, reached & met, True, a.options, a.work)
        value = value.at(returning.indicator(first))
        value = value if a.maximise else value.complement()
        found[:, i] = value.values[0], value.lower[0], value.upper[0]
    return StateValues(*found)


def _until(a: OperatorQuery, formula: Expression) -> tuple[tuple[Node, Node], bool]:
    """Return safe and target states of a path formula as an until, and whether it is the complement."""
    path, negations = without_negations(formula)
    negated = negations % 2 == 1
    if not has_path(path):
        return (a.model.manager.false, a.states(path)), negated
    parts = (path.left, path.right) if isinstance(path, Path) else ()
    if not parts or path.bound or path.operator == "X" or any(p is not None and has_path(p) for p in parts):
        raise UnsupportedError(
            "conditional probabilities of an MDP are those of F, G, U, W and R without bounds, with states "
            "as operands, on both sides of '||'"
        )
    safe, target, complement = until_form(a.model, path, a.states)
    return (safe, target), complement != negated


def _moves() -> list[list[AutomatonMove]]:
    """Return the automaton of two untils: three times what is decided of the first one, and of the second.

    Propositions are the targets of each, and where it is missed.
    """

    def steps(state: int, first: int) -> list[tuple[int, int, int]]:
        """Return guards, true and false propositions, with what is decided then."""
        if state != _OPEN:
            return [(0, 0, state)]
        target, missed = 1 << first, 2 << first
        return [(target, 0, _MET), (missed, target, _MISSED), (0, target | missed, _OPEN)]

    return [
        [
            AutomatonMove(((yes | also, no | nor),), 3 * own + other, 0)
            for yes, no, own in steps(state // 3, 0)
            for also, nor, other in steps(state % 3, 2)
        ]
        for state in range(9)
    ]


def _returning(model: SymbolicModel, where: Node, beginning: Node) -> SymbolicModel:
    """Return an MDP with a choice more in some states, which leads to one state.

    Lemma: conditions (docs/bounds.md).
    """
    manager = model.manager
    entries = Partition(manager, {1.0: where & manager.to_columns(beginning)})
    # lemma: conditions
    layer = ChoiceLayer(SymbolicMatrix.from_partition(entries), where, (ChoicePart(None, where, None),))
    return model_from_diagrams(
        model.encoding,
        model.source.variables,
        model.type,
        (*model.layers, layer),
        beginning,
        model.reachable,
        source=model.source.file,
    )
