"""The reachable states of a text and their transitions, by a compiled search state by state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hybrid.checking.simulation.functions import Ints, Variables
from hybrid.checking.simulation.paths import initial_columns
from hybrid.checking.simulation.rules import Rules
from hybrid.models.exploration.commands import CompiledCommands
from hybrid.models.exploration.explore import Explored, StateCodes, Successors
from hybrid.models.exploration.search_kernel import DONE, TROUBLE, Room, add_states, insert_codes, search
from mtbdd.base.budget import check_budget
from mtbdd.base.errors import option
from mtbdd.base.memory import require_memory
from mtbdd.language.errors import BuildError, Fault
from mtbdd.language.model_syntax import ResolvedModel
from mtbdd.language.syntax import ModelType, Position

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

    Attributes
    ----------
    explored, met, entries : int
        States explored, states met, and transitions.

    Raises
    ------
    UnsuitableError
        An expression is none for the machine.
    BuildError
        A range is too wide, or there is no initial state.
    """

    def __init__(self, model: ResolvedModel) -> None:
        self._model = model
        self._variables = Variables(model)
        self._codes = StateCodes(self._variables)
        self._commands = CompiledCommands(model, self._variables, self._codes)
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
        transition of short expressions.  Memory: 20 bytes a transition, and 8 for every 62 bits of a state,
        24 more a state.

        Raises
        ------
        BuildError
            The text gives a reachable state no rate, or an update leads out of a variable's range, or a state
            has some millions of transitions.
        BudgetError, MemoryError
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
