"""Probabilities of automata that a property names in place of a path formula."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hybrid.analysis.ltl import automaton_probabilities
from hybrid.analysis.operator_values import Asked
from hybrid.base.errors import PropertyError
from hybrid.base.state_values import StateValues
from hybrid.properties.automata.automaton import DeterministicAutomaton
from hybrid.properties.automata.hoa_reading import read_hoa
from hybrid.properties.automata.reduction import reduced
from hybrid.properties.tree import AutomatonPath
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.errors import listed
from mtbdd.language.names import BUILT_IN_LABELS
from mtbdd.language.syntax import Expression, LabelReference

if TYPE_CHECKING:
    pass


def given_automaton_probabilities(a: Asked) -> StateValues:
    """Return the probability that the automaton of a file accepts a run.

    Raises
    ------
    LanguageError
        The file cannot be read.
    InterchangeError
        It holds no deterministic automaton in the HOA format.
    PropertyError
        A proposition is neither bound nor a label, or one is bound that the automaton does not have.
    NotConvergedError
    """
    automaton, holds = given_automaton(a.model, a.path, a.states)
    return a.scope.of_values(
        automaton_probabilities(a.model, automaton, holds, a.maximise, a.options, a.work, a.maker)
    )


def given_automaton(
    model: SymbolicModel, path: AutomatonPath, states: Callable[[Expression], Node]
) -> tuple[DeterministicAutomaton, list[Node]]:
    """Return the automaton of a file, and where its propositions hold.

    Parameters
    ----------
    path : AutomatonPath
        Resolved; propositions that it does not bind are labels of the model.
    states : callable
        Returns the states that satisfy a state formula.

    Raises
    ------
    LanguageError, InterchangeError, PropertyError
        As from `given_automaton_probabilities`.
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
