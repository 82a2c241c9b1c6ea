"""The reachable states of a text and their transitions, by a compiled search state by state."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import Ints, Variables
from hybrid.checking.simulation.paths import initial_columns
from hybrid.checking.simulation.rules import Rules
from hybrid.models.exploration.explore import Code, Explored, Programs, StateCodes, Successors
from hybrid.models.exploration.search_kernel import DONE, TROUBLE, Room, add_states, insert_codes, search
from mtbdd.base.budget import check_budget
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.build.events import adds_up, synchronisations, total_weight
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.evaluate import evaluate
from mtbdd.language.syntax import (
    Binary,
    Command,
    Expression,
    Literal,
    ModelType,
    Name,
    Position,
    ResolvedModel,
)

# A model's commands as arrays for the compiled search, with trees that find those that may be enabled.

_FEW = 4
"""Commands that are examined one by one."""

_WIDEST = 1 << 20
"""Greatest range of a variable whose values a tree distinguishes."""

Longs = NDArray[np.int64]


class CommandTables(NamedTuple):
    """Events, components, commands and updates; lists of numbers with where each one's part starts."""

    # low, high, words, shifts and masks: int64, shape (variables,); ranges, and where a variable stands in a
    # state's code
    low: Longs
    high: Longs
    words: Longs
    shifts: Longs
    masks: Longs
    event_starts: Longs
    event_components: Longs
    component_starts: Longs  # int64; first command of each component; its commands follow one another
    roots: Longs  # int64, shape (components,); nodes of trees
    # int64, shape (nodes, 4); row of a variable, its least value distinguished, how many there are, and where
    # the children are in `children`, the first of them for all other commands; of a leaf -1, and where its
    # commands begin and end in `leaves`
    nodes: Longs
    # children and leaves: int64; nodes, -1 for none; commands
    children: Longs
    leaves: Longs
    guards: Longs  # int64, shape (commands,); programs, -1 where there is nothing left to ask
    equal_starts: Longs  # int64, shape (commands + 1,)
    equals: Longs  # int64, shape (m, 2); rows and values that a command asks for
    update_starts: Longs  # int64, shape (commands + 1,)
    # bool, shape (commands,); whether weights are constants that add up to 1 as probabilities must
    adds_up: NDArray[np.bool_]
    weights: Longs  # int64, shape (updates,); programs, -1 for 1
    assignment_starts: Longs  # int64, shape (updates + 1,)
    assignments: Longs  # int64, shape (m, 2); rows and programs


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

    def __init__(
        self, model: ResolvedModel, variables: Variables, codes: StateCodes, takes_all: bool = False
    ) -> None:
        self._variables, self._programs = variables, Programs(variables, takes_all)
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


_STATES = 1 << 14
"""States that there is room for at first."""

_ENTRIES, _FEWEST = 1 << 20, 1 << 12
"""Transitions that are gathered at a time, at most and at least."""

_MOST_OF_STATE = 1 << 24
"""Transitions of one state, which is explored at once: nothing stops the machine meanwhile."""

_UNITS, _MOST_UNITS = 512.0, 2.0**17
"""Relative error of a weight beyond which it is worked out on the reals, at first and after many such."""

_PATIENCE = 8
"""States worked out on the reals from which on errors may be greater."""

_UP = 1.0 + 2.0**-40


@dataclass
class _Gathered:
    """Transitions, a part each call of the search."""

    counts: list[Ints] = field(default_factory=list)
    targets: list[Ints] = field(default_factory=list)
    weights: list[NDArray[np.float64]] = field(default_factory=list)
    events: list[NDArray[np.int32]] = field(default_factory=list)
    choices: list[Ints] = field(default_factory=list)
    entries: int = 0

    def add(self, counts: Ints, *arrays: NDArray[Any]) -> None:
        """Take what the first transitions of some arrays are."""
        size = int(counts.sum())
        self.counts.append(counts)
        held: tuple[list[Any], ...] = (self.targets, self.weights, self.events, self.choices)
        for own, array in zip(held, arrays, strict=True):
            own.append(array[:size].copy())
        self.entries += size


class CompiledSearch:
    """A search that may be stopped, and goes on where it was.

    `takes_all`: whether to ask the text, state by state, what expressions are that are none for the machine.
    `explored`, `met`, `entries`: states explored, states met, and transitions. Raises UnsuitableError: an
    expression is none for the machine. Raises BuildError: a range is too wide, or there is no initial state.
    """

    def __init__(self, model: ResolvedModel, takes_all: bool = False) -> None:
        self._model = model
        self._variables = Variables(model)
        self._codes = StateCodes(self._variables)
        self._commands = CompiledCommands(model, self._variables, self._codes, takes_all)
        self._is_chain = model.type is not ModelType.MDP
        self._found = _Gathered()
        self._units = np.zeros(2)
        self._most_units, self._asked = _UNITS, 0
        self._rules: Successors | None = None
        self._room = _room(self._commands, self._codes.words)
        self._held = np.zeros((0, self._codes.words), dtype=np.int64)
        self._slots = np.zeros(0, dtype=np.int64)
        self._ends = np.zeros(3, dtype=np.int64)
        starts = initial_columns(model, self._variables)
        self._grow(max(_STATES, 2 * starts.shape[1]))
        self._add(starts)
        self._start = starts.shape[1]

    @property
    def explored(self) -> int:
        """States explored."""
        return int(self._ends[0])

    @property
    def met(self) -> int:
        """States met."""
        return int(self._ends[1])

    @property
    def entries(self) -> int:
        """Transitions."""
        return self._found.entries

    def run(self, entries: int | None = None, progress: Callable[[str], None] | None = None) -> bool:
        """Explore; return whether all reachable states are explored.

        `entries`: transitions from which on to stop, those before included; also where one state has more.
        `progress`: called with a line of text about every million transitions. Time: about a microsecond a
        transition of short expressions. Memory: 20 bytes a transition, and 8 for every 62 bits of a state, 24
        more a state. Raises BuildError: the text gives a reachable state no rate, or an update leads out of a
        variable's range, or a state has some millions of transitions. Raises BudgetError, MemoryError.
        """
        size, least = _ENTRIES, _FEWEST
        while self.explored < self.met:
            if entries is not None:
                if self.entries >= entries:
                    return False
                size = max(min(size, entries - self.entries), least)
            check_budget()
            if progress is not None:
                progress(f"{self.explored:,} of {self.met:,} states, {self.entries:,} transitions")
            if not self._step(size):
                needed = self._units[1]
                if entries is not None and needed > entries:
                    return False
                if needed > _MOST_OF_STATE:
                    self._refuse_state(needed)
                require_memory(20 * int(needed), "the transitions of a state", "choose smaller constants")
                least = size = max(2 * size, int(needed))
        return True

    def _refuse_state(self, needed: float) -> NoReturn:
        """Refuse the state at hand, which has too many transitions."""
        message = (
            f"expected at most {_MOST_OF_STATE:,} transitions of a state where states are listed, got "
            f"{needed:.3g}; choose {option('build', 'symbolic')}"
        )
        raise BuildError([Fault(Position(self._model.file, 1, 1), message)])

    def _step(self, size: int) -> bool:
        """Explore until some room is full; return whether a state was explored."""
        events = np.empty(size, dtype=np.int32)
        choices = np.empty(0 if self._is_chain else size, dtype=np.int64)
        targets, weights = np.empty(size, dtype=np.int64), np.empty(size)
        ends = np.empty(len(self._held), dtype=np.int64)
        first, self._ends[2], self._units[1] = self.explored, 0, 0.0
        stopped = search(
            self._commands.tables,
            self._commands.code,
            self._room,
            self._is_chain,
            self._model.type is not ModelType.CTMC,
            self._most_units,
            self._held,
            self._slots,
            self._ends,
            ends,
            targets,
            weights,
            events,
            choices,
            self._units,
        )
        counts = np.diff(ends[first : self.explored], prepend=0)
        if not counts.size:
            counts = counts[:0]
        self._found.add(counts, targets, weights, events, choices)
        if stopped == TROUBLE:
            self._ask_the_text()
        elif stopped != DONE and 2 * self.met > len(self._held):
            self._grow(2 * len(self._held))
        return self.explored > first

    def _ask_the_text(self) -> None:
        """Explore one state that is none for the machine."""
        self._asked += 1
        if self._asked % _PATIENCE == 0:
            self._most_units = min(16.0 * self._most_units, _MOST_UNITS)
        if self._rules is None:
            self._rules = Successors(Rules(self._model, entries=1))
        state = self._codes.unpacked(self._held[self.explored : self.explored + 1].T)
        found = list(self._rules.of(state))
        targets = np.concatenate([m.targets for m in found], axis=1) if found else state[:, :0]
        if len(self._held) < self.met + targets.shape[1]:
            self._grow(2 * (self.met + targets.shape[1]))
        numbers = self._add(targets)
        places = [self._commands.places[m.event] for m in found]
        self._found.add(
            np.array([numbers.size], dtype=np.int64),
            numbers,
            np.concatenate([m.weights for m in found]) if found else np.zeros(0),
            np.array([place for place, _ in places], dtype=np.int32),
            np.array(
                []
                if self._is_chain
                else [first + m.choice for m, (_, first) in zip(found, places, strict=True)],
                dtype=np.int64,
            ),
        )
        self._units[0] = max(float(self._units[0]), self._rules.units)
        self._ends[0] += 1

    def _add(self, states: Ints) -> Ints:
        """Return the numbers of some states, shape (variables, count)."""
        numbers = np.empty(states.shape[1], dtype=np.int64)
        own = np.ascontiguousarray(states.T)
        add_states(own, self._commands.tables, self._room.words, self._held, self._slots, self._ends, numbers)
        return numbers

    def _grow(self, states: int) -> None:
        """Make room for more states."""
        width = self._codes.words
        slots = 1 << (2 * states - 1).bit_length()
        require_memory(
            8 * (width * states + slots), f"a list of {states:,} states", "choose smaller constants"
        )
        held = np.empty((states, width), dtype=np.int64)
        held[: self.met] = self._held[: self.met]
        self._held = held
        if slots > len(self._slots):
            self._slots = np.full(slots, -1, dtype=np.int64)
            insert_codes(held, self.met, self._slots)

    def result(self) -> Explored:
        """Return the states in the order of the text, and their transitions by source.

        Time: O(states log states + transitions).  What was gathered is given up.
        """
        n, found = self.met, self._found
        require_memory(
            32 * found.entries, f"a list of {found.entries:,} transitions", "choose smaller constants"
        )
        words = self._held[:n].T
        order = np.argsort(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n)
        self._slots = np.zeros(0, dtype=np.int64)
        states = self._codes.unpacked(words[:, order])
        counts = _joined(found.counts, np.int64)
        sources = np.repeat(rank, counts)
        targets = rank[_joined(found.targets, np.int64)]
        found.targets = []
        choices = _joined(found.choices, np.int64)
        return Explored(
            states,
            np.sort(rank[: self._start]),
            sources,
            targets,
            _joined(found.weights, np.float64),
            _joined(found.events, np.int32),
            choices if choices.size else np.zeros(sources.size, dtype=np.int32),
            float(self._units[0]) * _UP,
            self._variables,
            self._commands.actions,
            self._commands.commands,
        )


def _joined(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    """Return arrays as one."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=kind)


def _room(commands: CompiledCommands, words: int) -> Room:
    """Return the memory that a state is worked out in."""
    tables, depth = commands.tables, max(commands.code.depth, 1)
    parts = int(np.diff(tables.event_starts).max(initial=0))
    return Room(
        np.zeros(depth, dtype=np.int64),
        np.zeros(depth),
        np.zeros(depth),
        np.zeros(len(tables.low), dtype=np.int64),
        np.zeros(len(tables.low), dtype=np.int64),
        np.zeros(words, dtype=np.int64),
        np.zeros(2 * len(tables.low) + 2, dtype=np.int64),
        np.zeros(commands.updates + 1),
        np.zeros(commands.updates + 1),
        np.zeros((commands.updates + 1, 3), dtype=np.int64),
        np.zeros(commands.values + 1, dtype=np.int64),
        np.zeros(parts + 2, dtype=np.int64),
        np.zeros(parts + 2, dtype=np.int64),
    )
