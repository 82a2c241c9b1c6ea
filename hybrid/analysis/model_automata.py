"""Formulas of linear temporal logic about a model, and their automata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.choosing import ChosenAutomaton, choose_automaton
from hybrid.properties.automata.formulas import Formula, FormulaStore
from hybrid.properties.automata.from_properties import from_path
from hybrid.properties.automata.guards import cubes, edges
from mtbdd.build.automaton_product import AutomatonMove
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression, ModelType

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ModelFormula:
    """A formula whose propositions are sets of a model's states.

    Attributes
    ----------
    store : FormulaStore
    formula : Formula
    propositions : list of Node
        Where each proposition holds.
    """

    store: FormulaStore
    formula: Formula
    propositions: list[Node]


def model_formula(
    model: SymbolicModel,
    path: Expression,
    states: Callable[[Expression], Node],
    keeps_steps: bool = False,
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
    none. With `keeps_steps` what takes a step stays, see `FormulaStore`.

    Raises
    ------
    UnsupportedError
        Bounds on time, or more than 1000 steps.
    """
    store = FormulaStore(keeps_steps)
    known: list[Node] = []
    made: dict[Expression, Formula] = {}

    def proposition(part: Expression) -> Formula:
        if part not in made:
            made[part] = literal(states(part) & model.reachable)
        return made[part]

    def literal(holds: Node) -> Formula:
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
    """Return an automaton of a formula, by its source, see `choose_automaton`.

    Raises
    ------
    UnsupportedError
        The formula is too large to be translated.
    OptionError, InterchangeError
        There is no such tool, or it fails.
    """
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
