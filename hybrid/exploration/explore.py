"""The reachable states of a text and their transitions, by breadth-first search over arrays of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.exploration.codes import Codes, KnownStates, StateCodes
from hybrid.exploration.moves import Successors
from hybrid.simulation.rules import Rules
from hybrid.simulation.start import initial_columns
from hybrid.simulation.variables import Ints, Variables
from mtbdd.budget import check_budget
from mtbdd.composition import synchronisations
from mtbdd.language.model_syntax import Command
from mtbdd.memory import require_memory

_BATCH = 1 << 18
"""States whose successors are worked out at a time."""


@dataclass(frozen=True)
class Explored:
    """Reachable states in the order of the text, and their transitions in no order.

    Attributes
    ----------
    states : ndarray of int64, shape (variables, n)
    initial : ndarray of int64
        Numbers of the initial states.
    sources, targets : ndarray of int64, shape (entries,)
        Numbers of states.
    weights : ndarray of float64, shape (entries,)
    events, choices : ndarray of int32, shape (entries,)
        The event of each entry, and in decision processes the choice among those of the event.
    units : float
        Bound on the relative error of every weight, in units of 2^-53.
    variables : Variables
    actions : tuple of (str or None)
        Of every event.
    commands : tuple of sequences of sequences of Command
        Of every event the commands of each module that takes part: the digits of a choice are places in them.
    """

    states: Ints
    initial: Ints
    sources: Ints
    targets: Ints
    weights: NDArray[np.float64]
    events: NDArray[np.int32]
    choices: NDArray[np.int32]
    units: float
    variables: Variables
    actions: tuple[str | None, ...]
    commands: tuple[Sequence[Sequence[Command]], ...]


@dataclass
class _Found:
    """What the search has gathered, a part an event and batch."""

    sources: list[Codes]
    targets: list[Codes]
    weights: list[NDArray[np.float64]]
    marks: list[tuple[int, int, int]]
    entries: int = 0


def explore(rules: Rules, progress: Callable[[str], None] | None = None) -> Explored:
    """Return the reachable states of a model and their transitions.

    Parameters
    ----------
    rules : Rules
    progress : callable, optional
        Called with a line of text about every twentieth level.

    Raises
    ------
    BuildError
        The text gives a reachable state no rate, or an update leads out of a variable's range.
    BudgetError, MemoryError

    Notes
    -----
    Time: O(events) array operations a level of the search, O(entries log entries) in all.  Memory: 32 bytes a
    transition, and twice that while they are numbered.
    """
    codes, successors, known = StateCodes(rules.variables), Successors(rules), KnownStates()
    start = codes.of(initial_columns(rules.model, rules.variables))
    frontier = known.add_new(start)
    found = _Found([], [], [], [])
    level = 0
    while frontier.size:
        if progress is not None and level % 20 == 0:
            progress(f"level {level}: {known.size:,} states, {found.entries:,} transitions")
        new = [_expand(frontier[k : k + _BATCH], codes, successors, known, found)
               for k in range(0, frontier.size, _BATCH)]  # fmt: skip
        frontier = np.concatenate(new)
        level += 1
    require_memory(64 * found.entries, f"a list of {found.entries:,} transitions", "choose smaller constants")
    every = known.all()
    events, choices = (
        np.concatenate([np.full(m[0], m[k], dtype=np.int32) for m in found.marks] or [np.zeros(0, np.int32)])
        for k in (1, 2)
    )
    return Explored(
        codes.states(every),
        np.searchsorted(every, np.unique(start)),
        _numbers(every, found.sources),
        _numbers(every, found.targets),
        np.concatenate(found.weights) if found.weights else np.zeros(0),
        events,
        choices,
        successors.units,
        rules.variables,
        tuple(event.action for event in rules.events),
        tuple(s.parts for s in synchronisations(rules.model)),
    )


def _expand(
    frontier: Codes, codes: StateCodes, successors: Successors, known: KnownStates, found: _Found
) -> Codes:
    """Gather the transitions of some states; return the states that are new."""
    check_budget()
    targets = []
    for moves in successors.of(codes.states(frontier)):
        reached = codes.of(moves.targets)
        found.sources.append(frontier[moves.sources])
        found.targets.append(reached)
        found.weights.append(moves.weights)
        found.marks.append((reached.size, moves.event, moves.choice))
        found.entries += reached.size
        targets.append(reached)
    if not targets:
        return frontier[:0]
    return known.add_new(np.concatenate(targets))


def _numbers(every: Codes, parts: list[Codes]) -> Ints:
    """Return the numbers of states of some codes."""
    return np.searchsorted(every, np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
