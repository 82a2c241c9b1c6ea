"""Linear temporal logic: the product with a deterministic automaton, then reachability.

A run of the product ends almost surely in a bottom component of a chain, or in an end component of an MDP. A
scheduler can visit all of an end component again and again. The acceptance condition is one on the marks
that are met there. (Baier and Katoen, Principles of Model Checking, sections 10.3 and 10.6.4.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.analysis.accepting_sets import accepting_sets
from hybrid.analysis.operator_values import OperatorQuery
from hybrid.analysis.run.options import CheckOptions
from hybrid.analysis.run.statistics import SolveStatistics
from hybrid.analysis.until import until_probabilities
from hybrid.base.errors import PropertyError
from hybrid.base.state_values import StateValues
from hybrid.matrix.levels.curve import least_instance_bytes
from hybrid.properties.automata.automaton import DeterministicAutomaton, cubes, edges, reduced
from hybrid.properties.automata.choosing import ChosenAutomaton, choose_automaton
from hybrid.properties.automata.formulas import FormulaStore, LtlFormula, from_path
from hybrid.properties.automata.hoa import read_hoa
from hybrid.properties.tree import AutomatonPath
from mtbdd.base.communicator import Share
from mtbdd.base.records import Record
from mtbdd.build.automaton_product import AutomatonMove, AutomatonProduct, automaton_product
from mtbdd.build.model import PartModel, SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.errors import listed
from mtbdd.language.names import BUILT_IN_LABELS
from mtbdd.language.syntax import Expression, LabelReference, ModelType

if TYPE_CHECKING:
    from hybrid.analysis.scheduler import SchedulerBuilder


# Formulas of linear temporal logic about a model, and their automata.

_log = logging.getLogger(__name__)


class ModelFormula(Record, eq=False):
    """A formula whose propositions are sets of a model's states.

    Attributes
    ----------
    propositions : list of Node
        Where each proposition holds.
    """

    store: FormulaStore
    formula: LtlFormula
    propositions: list[Node]


def model_formula(
    model: SymbolicModel, path: Expression, states: Callable[[Expression], Node], keeps_steps: bool = False
) -> ModelFormula:
    """Return a path formula over sets of a model's states; see `model_formulas`."""
    (found,) = model_formulas(model, [path], states, keeps_steps)
    return found


def model_formulas(
    model: SymbolicModel,
    paths: Sequence[Expression],
    states: Callable[[Expression], Node],
    keeps_steps: bool = False,
) -> list[ModelFormula]:
    """Return path formulas over sets of a model's states, all with the same propositions.

    State formulas that hold in the same states are one proposition; those that hold everywhere or nowhere are
    none. With `keeps_steps` operators that take a step are kept, see `FormulaStore`. Bounds on time are
    refused, and more than 1000 steps.
    """
    store = FormulaStore(keeps_steps)
    known: list[Node] = []
    made: dict[Expression, LtlFormula] = {}

    def proposition(part: Expression) -> LtlFormula:
        if part not in made:
            made[part] = literal(states(part) & model.reachable)
        return made[part]

    def literal(holds: Node) -> LtlFormula:
        for node, value in ((model.manager.false, store.false), (model.reachable, store.true)):
            if holds == node:
                return value
        for i, node in enumerate(known):
            if holds == node or holds == model.reachable & ~node:
                return store.literal(i, holds != node)
        known.append(holds)
        return store.literal(len(known) - 1)

    formulas = [from_path(path, store, proposition, model.type is ModelType.CTMC) for path in paths]
    return [ModelFormula(store, formula, known) for formula in formulas]


def model_automaton(formula: ModelFormula, tool: str) -> ChosenAutomaton:
    """Return an automaton of a formula, by its source, see `choose_automaton`."""
    _log.info("automaton of the formula")
    names = [f"p{i}" for i in range(len(formula.propositions))]
    found = choose_automaton(formula.store, formula.formula, names, tool)
    _log.info("automaton of %d states (%s)", found.automaton.n_states, found.origin)
    return found


def automaton_moves(automaton: DeterministicAutomaton) -> list[list[AutomatonMove]]:
    """Return an automaton's steps by state, with short guards."""
    k = len(automaton.propositions)
    return [
        [
            AutomatonMove(tuple(cubes(letters, k)), target, marks)
            for letters, target, marks in edges(automaton, q)
        ]
        for q in range(automaton.n_states)
    ]


# The product of a model and an automaton, with the automaton's bits where the level curve wants them.

MOST_STATES_COMPARED = range(1 << 14, (1 << 20) + 1)
"""States of a model for which both orders are built; of fewer and more the automaton's bits stand above."""


def model_product(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    options: CheckOptions,
    structures: Sequence[int] = (),
    labels: Mapping[str, Node] | None = None,
    start: Node | None = None,
) -> AutomatonProduct:
    """Return the product of a model and an automaton, in the order whose level curve has the lower minimum.

    State 0 of the automaton is the initial one; for `structures`, `labels` and `start` see
    `automaton_product`. The explicit engine, which writes the matrix out, takes the order with the
    automaton's bits above, and so do few states. Time: two products and their level curves.
    """
    moves, n_marks = automaton_moves(automaton), automaton.n_marks
    above = automaton_product(model, propositions, moves, n_marks, structures, labels=labels, start=start)
    if len(moves) == 1 or options.engine == "explicit" or model.n_states not in MOST_STATES_COMPARED:
        chosen = above
    else:
        below = automaton_product(model, propositions, moves, n_marks, structures, True, labels, start)
        chosen = min(above, below, key=_min_memory_bytes)
    _log.info(
        "product with an automaton of %d states: %d pairs, its bits %s the model's",
        automaton.n_states, chosen.model.n_states, "above" if chosen is above else "below",
    )  # fmt: skip
    return _divided(model, chosen)


def _divided(model: SymbolicModel, product: AutomatonProduct) -> AutomatonProduct:
    """Return a product whose states belong to the process that has those of the model."""
    share = model.manager.share
    if share is None or product.model is model:
        return product
    owners = tuple(product.model.reachable & product.lifted(owner) for owner in share.owners)
    return replace(product, model=PartModel(product.model, Share(share.communicator, owners)))


def _min_memory_bytes(product: AutomatonProduct) -> int:
    """Return what the level of least memory takes, of all layers."""
    model = product.model
    return least_instance_bytes([model.layer_transitions(k) for k in range(len(model.layers))])


def ltl_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability of a formula of linear temporal logic.

    The least of an MDP is one less the greatest of the negation; an optimal scheduler remembers what the
    automaton has read.
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
    work: SolveStatistics,
    maker: SchedulerBuilder | None = None,
) -> StateValues:
    """Return the probability that a run is accepted, from every state, of an MDP the least or the greatest.

    State 0 of the automaton is the initial one. A `maker` is given an optimal scheduler of an MDP.
    """
    negate = model.is_mdp and not maximise
    if maker is not None:
        found = acceptance_probabilities(model, automaton, propositions, negate, options, work, maker)
        return found.complement() if negate else found
    product = model_product(model, automaton, propositions, options)
    target = accepting_sets(product, automaton, negate).states
    pairs = product.model
    found = until_probabilities(pairs, pairs.reachable, target, True, options, work)
    found = found.at(pairs.indicator(product.first))
    return found.complement() if negate else found


def acceptance_probabilities(
    model: SymbolicModel,
    automaton: DeterministicAutomaton,
    propositions: Sequence[Node],
    negate: bool,
    options: CheckOptions,
    work: SolveStatistics,
    maker: SchedulerBuilder,
) -> StateValues:
    """Return the greatest probability that a run of an MDP is accepted, or with `negate` that it is not.

    The maker is given a scheduler that attains it. In an accepted end component it goes to one set after the
    other that is to be met again and again, and waits for them in turn: a second product, with a counter,
    where there are several.
    """
    from hybrid.analysis.memory_scheduler import Remembering, labels_of, regions_of, stay_accepted
    from hybrid.analysis.scheduler import SchedulerBuilder

    structures = range(len(model.source.rewards))
    product = model_product(model, automaton, propositions, options, structures, labels_of(model))
    accepted = accepting_sets(product, automaton, negate)
    regions = regions_of(accepted)
    remembering = Remembering.of(model, product, regions)
    pairs, own = remembering.pairs, SchedulerBuilder(remembering.pairs)
    stay_accepted(own, remembering, regions)
    target = remembering.lifted(accepted.states) & pairs.reachable
    found = until_probabilities(pairs, pairs.reachable, target, True, options, work, own)
    maker.remember(remembering.finish(own))
    return found.at(pairs.indicator(remembering.first))


# Probabilities of automata that a property names in place of a path formula.


def hoa_probabilities(a: OperatorQuery) -> StateValues:
    """Return the probability that the automaton of a file accepts a run."""
    automaton, holds = hoa_automaton(a.model, a.path, a.states)
    return a.scope.of_values(
        automaton_probabilities(a.model, automaton, holds, a.maximise, a.options, a.work, a.maker)
    )


def hoa_automaton(
    model: SymbolicModel, path: AutomatonPath, states: Callable[[Expression], Node]
) -> tuple[DeterministicAutomaton, list[Node]]:
    """Return the automaton of a file in the HOA format, and where its propositions hold.

    Propositions that the path does not bind are labels of the model; others are refused, and bindings of
    propositions that the automaton does not have.
    """
    automaton = reduced(read_hoa(path.file))
    bound = dict(zip(path.names, path.states, strict=True))
    foreign = [name for name in path.names if name not in automaton.propositions]
    if foreign:
        known = listed([f'"{name}"' for name in automaton.propositions]) or "none"
        raise PropertyError(
            f'{path.file}: expected the automaton to have the proposition "{foreign[0]}", got {known}'
        )
    labels = {label.name: label.expression for label in model.source.labels}
    labels |= {name: LabelReference(path.position, name) for name in BUILT_IN_LABELS}
    holds = []
    for name in automaton.propositions:
        meaning = bound.get(name, labels.get(name))
        if meaning is None:
            raise PropertyError(
                f'{path.file}: expected the proposition "{name}" to be a label of the model, or to be bound, '
                f'as in HOA: {{"{path.file}", "{name}" <- x=1}}'
            )
        holds.append(states(meaning) & model.reachable)
    return automaton, holds
