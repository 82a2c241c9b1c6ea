"""The product of an MDP with the automata of all objectives: what has happened becomes part of the state.

On it every objective is one about where a run ends: a probability is that of ending in pairs whose automaton
accepts, a reward that of pairs and choices.  A least probability is one less the greatest of the negation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.choice_rewards import choice_rewards, reward_units
from hybrid.analysis.given_automata import given_automaton
from hybrid.analysis.memory_scheduler import labels_of
from hybrid.analysis.model_automata import model_automaton, model_formulas
from hybrid.analysis.model_products import model_product
from hybrid.analysis.multi.objectives import Objective
from hybrid.analysis.run.options import CheckOptions
from hybrid.base.errors import UnsupportedError
from hybrid.matrix.operators.layer_choices import choice_totals
from hybrid.properties.automata.acceptance import Acceptance
from hybrid.properties.automata.automaton import MOST_PROPOSITIONS, DeterministicAutomaton
from hybrid.properties.automata.from_properties import MOST_STEPS
from hybrid.properties.automata.joining import JoinedAutomata, counting_automaton, joined_automata
from hybrid.properties.automata.reduction import component_fates
from hybrid.properties.tree import AutomatonPath
from mtbdd.build.automaton_product import AutomatonProduct
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression
from mtbdd.offset.states import StateIndex

# The automata of all objectives that are probabilities, over one list of propositions.


@dataclass(frozen=True, eq=False)
class ObjectiveAutomata:
    """What objectives read of a run.

    Attributes
    ----------
    names : tuple of str
        Of the propositions.
    propositions : list of Node
        Where each of them holds.
    automata : dict of int to DeterministicAutomaton
        By objective, all over these propositions.
    """

    names: tuple[str, ...]
    propositions: list[Node]
    automata: dict[int, DeterministicAutomaton]


def objective_automata(
    model: SymbolicModel, objectives: Sequence[Objective], states: Callable[[Expression], Node], tool: str
) -> ObjectiveAutomata:
    """Return automata of formulas, from a tool, and automata of files.

    Parameters
    ----------
    states : callable
        Returns the states that satisfy a state formula.
    tool : str
        See `hybrid.properties.automata.choosing.choose_automaton`.

    Raises
    ------
    UnsupportedError
        A formula that is not translated, or whose automaton nobody can check; too many propositions.
    OptionError, LanguageError, InterchangeError, PropertyError
        There is no such tool or file, or it gives no automaton that fits.
    """
    paths = {i: o.path for i, o in enumerate(objectives) if o.path is not None}
    written = {i: path for i, path in paths.items() if not isinstance(path, AutomatonPath)}
    formulas = model_formulas(model, list(written.values()), states)
    known = list(formulas[0].propositions) if formulas else []
    found: dict[int, tuple[DeterministicAutomaton, list[Node]]] = {}
    for (i, _), formula in zip(written.items(), formulas, strict=True):
        chosen = model_automaton(formula, tool)
        if not chosen.proven:
            raise UnsupportedError(
                f"multi: {objectives[i].text} is too large for our own translation, so that the automaton of "
                "the tool cannot be checked, and nothing could be certified; simplify the formula"
            )
        found[i] = chosen.automaton, formula.propositions
    for i, path in paths.items():
        if isinstance(path, AutomatonPath):
            found[i] = given_automaton(model, path, states)
            for holds in found[i][1]:
                if _place(model, holds, known) is None:
                    known.append(holds)
    if len(known) > MOST_PROPOSITIONS:
        raise UnsupportedError(
            f"multi: expected at most {MOST_PROPOSITIONS} propositions of all objectives together, got "
            f"{len(known)}; ask for fewer objectives"
        )
    names = tuple(f"p{i}" for i in range(len(known)))
    automata = {
        i: automaton.reading(names, [_values(model, node, known) for node in holds])
        for i, (automaton, holds) in found.items()
    }
    return ObjectiveAutomata(names, known, automata)


def _place(model: SymbolicModel, holds: Node, known: Sequence[Node]) -> tuple[int, bool] | None:
    """Return which proposition a set is, and whether that or its negation; -1 for all states or none."""
    everywhere = model.reachable
    for i, node in enumerate((everywhere, *known), start=-1):
        if holds == node or holds == everywhere & ~node:
            return i, holds == node
    return None


def _values(model: SymbolicModel, holds: Node, known: Sequence[Node]) -> NDArray[np.bool_]:
    """Return by letter over known propositions whether a state with that letter is in a set."""
    letters = np.arange(1 << len(known))
    place = _place(model, holds, known)
    assert place is not None
    i, same = place
    true = np.ones(letters.size, np.bool_) if i < 0 else (letters >> i & 1).astype(np.bool_)
    return true if same else ~true


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ObjectiveProduct:
    """Reachable pairs of a state and what the objectives need to know of the past.

    Attributes
    ----------
    model : SymbolicModel
    product : AutomatonProduct
    objectives : tuple of Objective
    accepted : dict of int to Node
        For probabilities that the pair of every end component decides: the pairs that accept.
    conditions : dict of int to Acceptance
        For the other probabilities: the condition on the marks of the product.
    rewards : dict of int to (int, Node or None)
        For rewards the structure of `model`, and the pairs in which it counts; None for all.
    """

    model: SymbolicModel
    product: AutomatonProduct
    objectives: tuple[Objective, ...]
    accepted: dict[int, Node]
    conditions: dict[int, Acceptance]
    rewards: dict[int, tuple[int, Node | None]]

    def earned(self, objective: int, layer: int, rows: StateIndex) -> Vector:
        """Return what a layer's choices earn of a reward objective, shape (rows.size,)."""
        structure, counted = self.rewards[objective]
        found = choice_rewards(self.model, structure, layer, rows)
        if counted is not None:
            found = np.where(self.model.indicator(counted, rows), found, 0.0)
        return found

    def units(self, objective: int) -> float:
        """Return the greatest relative error of what is earned, in units of rounding."""
        return reward_units(self.model, self.rewards[objective][0])


def objective_product(
    model: SymbolicModel,
    objectives: Sequence[Objective],
    states: Callable[[Expression], Node],
    options: CheckOptions,
) -> ObjectiveProduct:
    """Return the product of an MDP with the automata of some objectives.

    Parameters
    ----------
    states : callable
        Returns the states that satisfy a state formula.

    Raises
    ------
    UnsupportedError
        A formula that is not translated, too many propositions or states of the automata, or probabilities
        that add up to 1 only roughly.
    PropertyError
        A reward is negative, or an automaton of a file does not fit.
    OptionError, LanguageError, InterchangeError
        A tool or a file gives no automaton.
    """
    for layer in range(len(model.layers)):
        if choice_totals(model, layer, model.index) is not None:
            raise UnsupportedError(
                "multi: expected probabilities that add up to 1, got choices where they do so only roughly; "
                "write them with more digits or as fractions"
            )
    read = objective_automata(model, objectives, states, options.automaton_tool)
    automata = list(read.automata.values())
    place = {i: k for k, i in enumerate(read.automata)}
    counters: dict[int, int] = {}
    for objective in objectives:
        if objective.steps is not None and objective.steps not in counters:
            if objective.steps > MOST_STEPS:
                raise UnsupportedError(
                    f"multi: expected rewards of at most {MOST_STEPS} steps, got C<={objective.steps}"
                )
            counters[objective.steps] = len(automata)
            automata.append(counting_automaton(read.names, objective.steps))
    if not automata:
        automata = [counting_automaton((), 0)]
    joined = joined_automata(automata)
    structures = sorted({o.structure for o in objectives if o.structure is not None})
    labels = labels_of(model)
    product = model_product(
        model, joined.automaton, read.propositions, options, structures, labels, model.initial
    )
    # An automaton of one state leaves the model with all of its structures.
    earned = structures if product.model is model else range(len(structures))
    accepted: dict[int, Node] = {}
    conditions: dict[int, Acceptance] = {}
    rewards: dict[int, tuple[int, Node | None]] = {}
    for i, objective in enumerate(objectives):
        if objective.structure is not None:
            structure = earned[structures.index(objective.structure)]
            counted = None
            if objective.steps is not None:
                counted = _within(product, joined, counters[objective.steps], set(range(objective.steps)))
            rewards[i] = (structure, counted)
            continue
        components, fates = component_fates(automata[place[i]])
        if None in fates:
            condition = joined.conditions[place[i]]
            conditions[i] = condition if objective.maximise else condition.negated()  # lemma: turned
        else:
            wanted = {q for q, c in enumerate(components.tolist()) if fates[c] == objective.maximise}
            accepted[i] = _within(product, joined, place[i], wanted)
    return ObjectiveProduct(product.model, product, tuple(objectives), accepted, conditions, rewards)


def _within(product: AutomatonProduct, joined: JoinedAutomata, automaton: int, states: set[int]) -> Node:
    """Return the pairs in which one of the automata is in one of some states."""
    own = joined.states[:, automaton].tolist()
    return product.within(q for q, state in enumerate(own) if state in states)
