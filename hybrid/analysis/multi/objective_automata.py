"""The automata of all objectives that are probabilities, over one list of propositions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.analysis.given_automata import given_automaton
from hybrid.analysis.model_automata import model_automaton, model_formulas
from hybrid.analysis.multi.objectives import Objective
from hybrid.base.errors import UnsupportedError
from hybrid.properties.automata.automaton import MOST_PROPOSITIONS, DeterministicAutomaton
from hybrid.properties.tree import AutomatonPath
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.language.syntax import Expression


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
