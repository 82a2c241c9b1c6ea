"""A model's commands as arrays for the compiled search, with trees that find those that may be enabled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import Variables
from hybrid.models.exploration.explore import StateCodes
from hybrid.models.exploration.programs import Code, Programs
from mtbdd.build.events import adds_up, synchronisations, total_weight
from mtbdd.language.evaluate import evaluate
from mtbdd.language.model_syntax import Command, ResolvedModel
from mtbdd.language.syntax import Binary, Expression, Literal, ModelType, Name

_FEW = 4
"""Commands that are looked at one by one."""

_WIDEST = 1 << 20
"""Greatest range of a variable whose values a tree tells apart."""

Longs = NDArray[np.int64]


class CommandTables(NamedTuple):
    """Events, components, commands and updates; lists of numbers with where each one's part starts.

    Attributes
    ----------
    low, high, words, shifts, masks : ndarray of int64, shape (variables,)
        Ranges, and where a variable stands in a state's code.
    event_starts, event_components : ndarray of int64
    component_starts : ndarray of int64
        First command of each component; its commands follow one another.
    roots : ndarray of int64, shape (components,)
        Nodes of trees.
    nodes : ndarray of int64, shape (nodes, 4)
        Row of a variable, its least value told apart, how many there are, and where the children are in
        `children`, the first of them for all other commands; of a leaf -1, and where its commands begin and
        end in `leaves`.
    children, leaves : ndarray of int64
        Nodes, -1 for none; commands.
    guards : ndarray of int64, shape (commands,)
        Programs, -1 where there is nothing left to ask.
    equal_starts : ndarray of int64, shape (commands + 1,)
    equals : ndarray of int64, shape (m, 2)
        Rows and values that a command asks for.
    update_starts : ndarray of int64, shape (commands + 1,)
    adds_up : ndarray of bool, shape (commands,)
        Whether weights are constants that add up to 1 as probabilities must.
    weights : ndarray of int64, shape (updates,)
        Programs, -1 for 1.
    assignment_starts : ndarray of int64, shape (updates + 1,)
    assignments : ndarray of int64, shape (m, 2)
        Rows and programs.
    """

    low: Longs
    high: Longs
    words: Longs
    shifts: Longs
    masks: Longs
    event_starts: Longs
    event_components: Longs
    component_starts: Longs
    roots: Longs
    nodes: Longs
    children: Longs
    leaves: Longs
    guards: Longs
    equal_starts: Longs
    equals: Longs
    update_starts: Longs
    adds_up: NDArray[np.bool_]
    weights: Longs
    assignment_starts: Longs
    assignments: Longs


class CompiledCommands:
    """A model for the compiled search.

    Time: O(commands and expressions), those that are shared counted as often as they occur.

    Attributes
    ----------
    places : list of (int, int)
        For every event of `hybrid.checking.simulation.rules.Rules` its number here, and that of its first
        choice: commands that act alone are one event here.
    actions : tuple of (str or None)
        Of every event.
    commands : tuple of sequences of sequences of Command
        Of every event the commands of each module that takes part.
    updates, values : int
        Greatest numbers of updates, and of values assigned, of an event.

    Raises
    ------
    UnsuitableError
        An expression is none for the machine.
    OverflowError
        An action can be taken in too many ways.
    """

    def __init__(self, model: ResolvedModel, variables: Variables, codes: StateCodes) -> None:
        self._variables, self._programs = variables, Programs(variables)
        self._safe: dict[int, bool] = {}
        self._nodes: list[tuple[int, int, int, int]] = []
        self._children: list[int] = []
        self._leaves: list[int] = []
        self._guards: list[int] = []
        self._equals: list[dict[int, int]] = []
        self._updates: list[int] = []
        self._adds_up: list[bool] = []
        self._weights: list[int] = []
        self._assigned = [0]
        self._assignments: list[tuple[int, int]] = []
        components: dict[int, int] = {}
        firsts, roots, sizes = [0], [], []

        def component(commands: Sequence[Command]) -> int:
            first = len(self._guards)
            begun = len(self._weights), len(self._assignments)
            for command in commands:
                self._command(command)
            firsts.append(len(self._guards))
            roots.append(self._tree(list(range(first, firsts[-1])), set()))
            sizes.append((len(self._weights) - begun[0], len(self._assignments) - begun[1]))
            return len(roots) - 1

        together = synchronisations(model)
        alone = [s for s in together if s.action is None and len(s.parts) == 1]
        events: list[list[int]] = []
        self.places: list[tuple[int, int]] = []
        actions: list[str | None] = []
        held: list[Sequence[Sequence[Command]]] = []
        if alone:
            every = [c for s in alone for c in s.parts[0]]
            events.append([component(every)])
            actions.append(None)
            held.append((every,))
        done = 0
        for s in together:
            if s.action is None and len(s.parts) == 1:
                self.places.append((0, done))
                done += len(s.parts[0])
                continue
            for commands in s.parts:
                if id(commands) not in components:
                    components[id(commands)] = component(commands)
            self.places.append((len(events), 0))
            events.append([components[id(commands)] for commands in s.parts])
            actions.append(s.action)
            held.append(s.parts)
        self.actions, self.commands = tuple(actions), tuple(held)
        self.updates = max((sum(sizes[c][0] for c in e) for e in events), default=0)
        self.values = max((sum(sizes[c][1] for c in e) for e in events), default=0)
        self.is_mdp = model.type is ModelType.MDP
        self.tables = CommandTables(
            _longs(variables.low),
            _longs(variables.high),
            _longs([word for word, _ in codes.places]),
            _longs([shift for _, shift in codes.places]),
            _longs([(1 << width) - 1 for width in codes.widths]),
            _starts([len(e) for e in events]),
            _longs([c for e in events for c in e]),
            _longs(firsts),
            _longs(roots),
            _longs(self._nodes).reshape(-1, 4),
            _longs(self._children),
            _longs(self._leaves),
            _longs(self._guards),
            _starts([len(own) for own in self._equals]),
            _longs([pair for own in self._equals for pair in own.items()]).reshape(-1, 2),
            _starts(self._updates),
            np.array(self._adds_up, dtype=np.bool_),
            _longs(self._weights),
            _longs(self._assigned),
            _longs(self._assignments).reshape(-1, 2),
        )
        self.code: Code = self._programs.code()

    def _command(self, command: Command) -> None:
        """Add a command."""
        equals, rest = self._asked(command.guard)
        self._equals.append(equals)
        is_true = isinstance(rest, Literal) and rest.value is True
        self._guards.append(-1 if is_true else self._programs.number(rest))
        self._updates.append(len(command.updates))
        total = total_weight(command)
        constant = isinstance(total, Literal) and math.isfinite(total.value)
        self._adds_up.append(constant and evaluate(adds_up(total), {}) is True)
        for update in command.updates:
            self._weights.append(-1 if update.weight is None else self._programs.number(update.weight))
            self._assignments += [
                (self._variables.place[a.variable], self._programs.number(a.expression))
                for a in update.assignments
            ]
            self._assigned.append(len(self._assignments))

    def _asked(self, guard: Expression) -> tuple[dict[int, int], Expression]:
        """Return which values of variables a guard asks for, and what else."""
        chain = []
        left: Expression = guard
        while isinstance(left, Binary) and left.operator == "&":
            chain.append(left)
            left = left.left
        operands = [left, *(node.right for node in reversed(chain))]
        equals: dict[int, int] = {}
        others = []
        for operand in operands:
            found = self._equation(operand)
            if found is not None and equals.setdefault(*found) == found[1]:
                continue
            if not self._is_safe(operand):
                return {}, guard  # it is asked in the order of the text
            others.append(operand)
        rest: Expression = others[0] if others else Literal(guard.position, True)
        for operand in others[1:]:
            rest = Binary(guard.position, "&", rest, operand)
        return equals, rest

    def _equation(self, e: Expression) -> tuple[int, int] | None:
        """Return the row and the value of `variable = number`."""
        if isinstance(e, Name) and e.name in self._variables.place:
            return self._variables.place[e.name], 1
        if not isinstance(e, Binary) or e.operator != "=":
            return None
        name, number = (e.left, e.right) if isinstance(e.left, Name) else (e.right, e.left)
        if not isinstance(name, Name) or not isinstance(number, Literal) or isinstance(number.value, float):
            return None
        return self._variables.place[name.name], int(number.value)

    def _is_safe(self, e: Expression) -> bool:
        """Return whether a condition has a value in every state."""
        key = self._programs.interner.number(e)
        if key not in self._safe:
            defined = self._variables.definedness(e)
            self._safe[key] = isinstance(defined, Literal) and defined.value is True
        return self._safe[key]

    def _tree(self, commands: list[int], asked: set[int]) -> int:
        """Return the node that finds some commands."""
        counts: dict[int, int] = {}
        if len(commands) > _FEW:
            for command in commands:
                for row in self._equals[command]:
                    counts[row] = counts.get(row, 0) + 1
        for row in asked:
            counts.pop(row, None)
        row = max(counts, key=lambda r: (counts[r], -r), default=-1)
        values: dict[int, list[int]] = {}
        others: list[int] = []
        for command in commands if row >= 0 else ():
            value = self._equals[command].get(row)
            (others if value is None else values.setdefault(value, [])).append(command)
        least = min(values, default=0)
        width = max(values, default=0) - least + 1
        if row < 0 or width > _WIDEST or width > 64 * len(commands):
            self._leaves += commands
            self._nodes.append((-1, len(self._leaves) - len(commands), len(self._leaves), 0))
            return len(self._nodes) - 1
        place = len(self._children)
        self._children += [-1] * (width + 1)
        node = len(self._nodes)
        self._nodes.append((row, least, width, place))
        further = {*asked, row}
        if others:
            self._children[place] = self._tree(others, further)
        for value, own in values.items():
            self._children[place + 1 + value - least] = self._tree(own, further)
        return node


def _longs(numbers: Sequence[object]) -> Longs:
    return np.array(numbers, dtype=np.int64)


def _starts(counts: Sequence[int]) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(_longs(counts), dtype=np.int64)])
