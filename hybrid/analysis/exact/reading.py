"""A small model in rational numbers, read from its text.

Weights and rewards are evaluated as the text means them, once for all values of their variables. They are
multiplied and added up over the commands that act together. A row of probabilities is divided by its sum,
which a text with rounded decimals leaves short of 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotExactError
from hybrid.matrix.explicit.extract import explicit_matrix
from mtbdd.base.budget import check_budget
from mtbdd.build.events import synchronisations
from mtbdd.build.model import SymbolicModel
from mtbdd.build.state_order import for_diagram, some_states
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.language.enclosing import enclose
from mtbdd.language.errors import EvaluationError
from mtbdd.language.evaluate import evaluate
from mtbdd.language.reals import real_of
from mtbdd.language.syntax import (
    ELAPSED,
    Command,
    Expression,
    LabelReference,
    ModelType,
    ResolvedModel,
    RewardItem,
    Update,
)
from mtbdd.language.walk import expression_variables, walk
from mtbdd.offset.convert import offset_label
from mtbdd.offset.expansion import expand

# The rows and rewards of a model without a text, as the rational numbers that its doubles are.

Row = dict[int, Fraction]

_MOST_TERMINALS = 2_000
_ROUNDED = "numbers of the source were divided, multiplied or united, and are known as doubles only"


def given_rows(model: SymbolicModel, layer: int) -> dict[int, Row]:
    """Return the rows of a layer's matrix: successor -> probability or rate; refuse rounded entries.

    Entries of one value at a time: blocks that are stored up to a scale lose nothing so. Time: O(entries),
    and some milliseconds a value.
    """
    matrix = model.layers[layer].matrix
    if matrix.units:
        raise NotExactError(_ROUNDED)
    if len(matrix.terminals) > _MOST_TERMINALS:
        raise NotExactError(f"{len(matrix.terminals)} different numbers are too many for exact solution")
    manager, rows = model.manager, dict[int, Row]()
    for number, value in enumerate(matrix.terminals.tolist()):
        cube = manager.cube(matrix.index_bits, number)
        support = manager.exists(matrix.index_bits, matrix.node & cube)
        ones = offset_label(SymbolicMatrix(manager, support, np.ones(1)), model.index, model.index)
        found = explicit_matrix(ones)
        lengths = np.diff(found.row_starts)
        sources = np.repeat(np.arange(model.n_states), lengths).tolist()
        for i, j in zip(sources, found.columns.tolist(), strict=True):
            rows.setdefault(i, {})[j] = Fraction(value)
    return rows


def given_gains(model: SymbolicModel, structure: int, layer: int | None) -> list[Fraction]:
    """Return what states earn by themselves, or (with a layer) by their choice in it; refuse rounded ones."""
    assert model.given is not None
    reward = model.given.rewards[structure]
    own = reward.states if layer is None else reward.choices[layer]
    if own is None:
        return [Fraction(0)] * model.n_states
    if own.units:
        raise NotExactError(_ROUNDED)
    return [Fraction(value) for value in expand(own, model.index).tolist()]


MAX_TRANSITIONS = 20_000
"""Transitions of a model that is read in rational numbers."""

_LOOK_EVERY = 1000  # states between checks of the time and the memory that are left

Commands = Sequence[Sequence[Command]]


class ExactModel:
    """The states, transitions and rewards of a model, as its text means them.

    Parameters
    ----------
    most : int, optional
        Transitions that the model may have; None: as many as there is time and memory for.

    Attributes
    ----------
    text : ResolvedModel or None
        What the model was built from, by diagrams or by listing its states; None: there was no text.
    choices : list of list of dict
        For every state its choices, one in a chain: successor -> probability, or rate in a CTMC.
    layers : list of list of int
        The layers that these choices are of.
    actions : list of list of dict
        What the choices are made of: action (None: without one) -> its share of the probability, or its rate
        in a CTMC; in an MDP there is one, with the share 1.

    Raises
    ------
    NotExactError
        The model has more than `most` transitions, or a number that is not known to be rational.

    Notes
    -----
    Time: O(states × commands) in NumPy, and some microseconds for every transition.
    """

    def __init__(self, model: SymbolicModel, most: int | None = MAX_TRANSITIONS) -> None:
        if most is not None and model.n_transitions > most:
            raise NotExactError(f"{model.n_transitions} transitions are too many for exact solution")
        self.model = model
        self.text = model.source if model.given is None else model.given.text
        size = model.n_states
        self.choices: list[list[Row]] = [[] for _ in range(size)]
        self.layers: list[list[int]] = [[] for _ in range(size)]
        self.actions: list[list[dict[str | None, Fraction]]] = [[] for _ in range(size)]
        table = some_states(model.index, model.encoding.variables, None, None)
        self._columns: dict[str, NDArray[Any]] = {v.name: table[v.name] for v in model.encoding.variables}
        self._values: dict[int, tuple[Expression, _Function]] = {}
        self._guards: dict[int, tuple[Expression, frozenset[int]]] = {}
        names = list(self._columns)
        rows = zip(*(self._columns[name].tolist() for name in names), strict=True) if names else [()]
        self._numbers = {row: i for i, row in enumerate(rows)}
        self._read()

    # ------------------------------------------------------------------ transitions

    def _read(self) -> None:
        """Fill in the choices of all states, scaled to probabilities unless they are rates.

        How many commands share a state of a DTMC needs no count: dividing the row by its sum takes it out.
        """
        model = self.model
        if self.text is None:
            self._read_given()
            return
        for number in range(len(model.layers)):
            rows: dict[int, Row] = {}
            shares: dict[int, dict[str | None, Fraction]] = {}
            for action, commands, states in self._parts(number, self.text):
                if commands is None:
                    for i in states:
                        rows[i] = {i: Fraction(1)}
                    continue
                for place, i in enumerate(states):
                    if place % _LOOK_EVERY == 0:
                        check_budget()
                    row = rows.setdefault(i, {})
                    total = Fraction(0)
                    for j, weight in self._moves(commands, i):
                        row[j] = row.get(j, Fraction(0)) + weight
                        total += weight
                    own = shares.setdefault(i, {})
                    own[action] = own.get(action, Fraction(0)) + total
            for i, row in rows.items():
                share = shares.get(i, {})
                if model.type is not ModelType.CTMC:
                    total = sum(row.values(), Fraction(0))
                    row = {j: weight / total for j, weight in row.items()}
                    share = {action: weight / total for action, weight in share.items()}
                self.choices[i].append(row)
                self.layers[i].append(number)
                self.actions[i].append(share)

    def _parts(
        self, layer: int, text: ResolvedModel
    ) -> Iterator[tuple[str | None, Commands | None, list[int]]]:
        """Yield a layer's parts: action, commands of each module (None: a deadlock's loop), states."""
        model = self.model
        if model.given is None:
            for part in model.layers[layer].parts:
                event = part.event
                yield part.action, None if event is None else event.commands, self._members(part.states)
        elif model.given.taken is not None:
            taken = model.given.taken
            ways = for_diagram(model, taken.layers[layer])
            for part in model.layers[layer].parts:
                states: dict[int, list[int]] = {}
                for i in self._members(part.states):
                    states.setdefault(int(ways[i]), []).append(i)
                for way, own in states.items():
                    yield part.action, tuple((c,) for c in taken.commands[way]) if way >= 0 else None, own
        else:
            for together in synchronisations(text):
                inside = [set().union(*map(self._enabled, commands)) for commands in together.parts]
                yield together.action, together.parts, sorted(set.intersection(*inside))
            yield None, None, self._members(model.deadlocks)

    def _members(self, states: Node) -> list[int]:
        """Return the numbers of a set's states."""
        found: list[int] = np.flatnonzero(self.model.indicator(states)).tolist()
        return found

    def _read_given(self) -> None:
        """Fill in the choices of a model without a text, whose rows are scaled already."""
        for number in range(len(self.model.layers)):
            for i, row in sorted(given_rows(self.model, number).items()):
                self.choices[i].append(row)
                self.layers[i].append(number)
                self.actions[i].append({})

    def _moves(self, commands: Commands, state: int) -> Iterator[tuple[int, Fraction]]:
        """Yield where commands lead from a state, one of each module, and with which weight."""
        offers = [list(self._offers(own, state)) for own in commands]
        names = list(self._columns)
        here = [self._columns[name][state].item() for name in names]
        place = {name: k for k, name in enumerate(names)}
        for together in product(*offers):
            weight = Fraction(1)
            there = list(here)
            for update, own in together:
                weight *= own
                for assignment in update.assignments:
                    there[place[assignment.variable]] = self._value(assignment.expression, state)
            if weight:
                yield self._numbers[tuple(there)], weight

    def _offers(self, commands: Sequence[Command], state: int) -> Iterator[tuple[Update, Fraction]]:
        """Yield the updates that a module's enabled commands have in a state, with their weights."""
        for command in commands:
            if state in self._enabled(command):
                for update in command.updates:
                    weight = Fraction(1) if update.weight is None else self._at(update.weight, state)
                    if weight:
                        yield update, weight

    def _enabled(self, command: Command | RewardItem) -> frozenset[int]:
        """Return the states where the guard of a command, or of a reward, holds."""
        guard = command.guard
        known = self._guards.get(id(guard))
        if known is None:
            # By arrays: as a diagram, a guard of states that were listed may be what listing them avoids.
            found = enclose(guard, self._environment(guard), (self.model.n_states,)).values
            known = self._guards[id(guard)] = guard, frozenset(np.flatnonzero(found).tolist())
        return known[1]

    # ------------------------------------------------------------------ rewards and other numbers

    def gains(self, structure: int) -> list[list[Fraction]]:
        """Return what every choice of every state earns: a step, a unit of time in a CTMC.

        State rewards count fully, transition rewards with the probability or rate of their transitions.
        """
        own = self.state_rewards(structure)
        found = [[reward] * len(choices) for reward, choices in zip(own, self.choices, strict=True)]
        if structure == ELAPSED:
            return found
        if self.text is None:
            for number in range(len(self.model.layers)):
                earned = given_gains(self.model, structure, number)
                for i, layers in enumerate(self.layers):
                    if number in layers:
                        found[i][layers.index(number)] += earned[i]
            return found
        for item in self.text.rewards[structure].items:
            if not item.is_transition:
                continue
            for i in sorted(self._enabled(item)):
                for k, shares in enumerate(self.actions[i]):
                    if item.action in shares:
                        often = Fraction(1) if self.model.is_mdp else shares[item.action]
                        found[i][k] += often * self._at(item.value, i)
        return found

    def state_rewards(self, structure: int) -> list[Fraction]:
        """Return the state rewards."""
        if structure == ELAPSED:
            return [Fraction(1)] * self.model.n_states
        if self.text is None:
            return given_gains(self.model, structure, None)
        total = [Fraction(0)] * self.model.n_states
        for item in self.text.rewards[structure].items:
            if not item.is_transition:
                for i in sorted(self._enabled(item)):
                    total[i] += self._at(item.value, i)
        return total

    def values(self, expression: Expression) -> list[Fraction]:
        """Return the value of a number without operators in every state."""
        return [self._at(expression, i) for i in range(self.model.n_states)]

    def _at(self, expression: Expression, state: int) -> Fraction:
        """Return an expression's value in a state as a rational number; refuse what may be irrational."""
        found = self._value(expression, state)
        exact = real_of(found)
        if not isinstance(exact, Fraction):
            raise NotExactError(f"{found!r} comes from a number that may be irrational, or is very long")
        return exact

    def _value(self, expression: Expression, state: int) -> Any:
        """Return an expression's value in a state, worked out once for all values of its variables."""
        known = self._values.get(id(expression))
        if known is None:
            # The expression is kept, so that its identity stays its own.
            function = _Function(expression, self._environment(expression))
            known = self._values[id(expression)] = expression, function
        return known[1].at(state)

    def _environment(self, expression: Expression) -> dict[str, NDArray[Any]]:
        """Return the values in every state of what an expression mentions."""
        found = {name: self._columns[name] for name in sorted(expression_variables(expression))}
        for node in walk(expression):
            if isinstance(node, LabelReference):
                found[f'"{node.name}"'] = self.model.indicator(self.model.translator.labels[node.name])
        return found


class _Function:
    """The values of an expression, by state, each worked out once for all values of its variables."""

    def __init__(self, expression: Expression, environment: dict[str, NDArray[Any]]) -> None:
        self._expression = expression
        self._names = list(environment)
        self._columns = list(environment.values())
        self._known: dict[tuple[Any, ...], Any] = {}

    def at(self, state: int) -> Any:
        """Return the value in a state; refuse a state in which there is none."""
        key = tuple(column[state].item() for column in self._columns)
        value = self._known.get(key)
        if value is None:
            try:
                value = evaluate(self._expression, dict(zip(self._names, key, strict=True)))
            except EvaluationError as error:
                raise NotExactError(str(error)) from None
            self._known[key] = value
        return value
