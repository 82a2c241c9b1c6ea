"""A model written out: what all exchange formats are read into and written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.faults import ArrayPlaces, Places
from mtbdd.language.model_syntax import Command
from mtbdd.language.syntax import ModelType

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]

MOST_UNITS = 2.0**26  # lemma: entry-units
"""Units that a file may declare: of more, errors of errors are no longer less than a unit."""


@dataclass(frozen=True)
class StateVariable:
    """A variable of the states, `name`: an integer from `low` to `high`; if `is_bool` a boolean, 0 or 1."""

    name: str
    low: int
    high: int
    is_bool: bool = False


@dataclass(frozen=True, eq=False)
class ExplicitReward:
    """A reward structure.

    Attributes
    ----------
    name : str or None
    states : ndarray of float64, shape (n_states,), or None
        Earned in a state: a step, in a CTMC a unit of time. None: nowhere.
    choices : ndarray of float64, shape (n_choices,), or None
        Earned when a choice is taken, expected over its branches: in a chain when the state is left.
    units : float
        Bound on the relative error of every number, in units of 2^-53; 0 where they are the numbers that the
        source has.
    """

    name: str | None
    states: Vector | None = None
    choices: Vector | None = None
    units: float = 0.0


@dataclass(frozen=True, eq=False)
class ExplicitModel:
    """A DTMC, CTMC or MDP with all its states, choices and transitions, as arrays on the host.

    States are numbered as their source does. A chain has one choice a state, so that its choices are its
    states. Readers make it from files, `hybrid.interchange.write_out` from a symbolic model; it passes
    `hybrid.interchange.validate` before anything is done with its arrays.

    Attributes
    ----------
    type : ModelType
    n_states : int
    row_starts : ndarray of int64, shape (n_choices + 1,)
        Entries of choice c are ``row_starts[c] .. row_starts[c + 1]``.
    columns : ndarray of int64, shape (n_entries,)
        The states that they lead to; they need not ascend within a row, and may repeat (they then add up).
    values : ndarray of float64, shape (n_entries,)
        Probabilities, of a CTMC rates.
    initial : ndarray of bool, shape (n_states,)
    choice_starts : ndarray of int64, shape (n_states + 1,), or None
        Choices of state s are ``choice_starts[s] .. choice_starts[s + 1]``; None for chains.
    actions : tuple of str
        Names of actions.
    choice_actions : ndarray of int64, shape (n_choices,), or None
        A number in `actions` for every choice, -1 for none; None if no choice has one, and for chains.
    variables : tuple of StateVariable
        In the order of the source; empty without valuations.
    valuations : mapping of str to ndarray, shape (n_states,)
        Every variable's values, signed integers or bool.
    labels : mapping of str to ndarray of bool, shape (n_states,)
        Without ``init``, which is `initial`; ``deadlock`` is kept only where the source names it.
    rewards : tuple of ExplicitReward
    value_units : float
        Bound on the relative error of every entry, in units of 2^-53.
    source : str
        File name, or what it was made from; for messages.
    places : Places
        Tells where parts stand in the source.
    commands : tuple of tuple of Command
        Of states listed from a text, the ways to take a choice: commands, one a module.
    choice_commands : ndarray of int32, shape (n_choices,), or None
        A place in `commands` for every choice, -1 for none; None where the source has no commands.
    warnings : tuple of str
        What the reader passed over.
    """

    type: ModelType
    n_states: int
    row_starts: Numbers
    columns: Numbers
    values: Vector
    initial: Mask
    choice_starts: Numbers | None = None
    actions: tuple[str, ...] = ()
    choice_actions: Numbers | None = None
    variables: tuple[StateVariable, ...] = ()
    valuations: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    labels: Mapping[str, Mask] = field(default_factory=dict)
    rewards: tuple[ExplicitReward, ...] = ()
    value_units: float = 0.0
    source: str = "arrays"
    places: Places = field(default_factory=lambda: ArrayPlaces("arrays"))
    commands: tuple[tuple[Command, ...], ...] = ()
    choice_commands: NDArray[np.int32] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_mdp(self) -> bool:
        """Whether states have choices."""
        return self.type is ModelType.MDP

    @property
    def n_choices(self) -> int:
        """Number of choices of all states together; of a chain its states."""
        return len(self.row_starts) - 1

    @property
    def n_entries(self) -> int:
        """Number of transitions."""
        return len(self.values)

    @cached_property
    def state_of_choice(self) -> Numbers:
        """The state of every choice, shape (n_choices,)."""
        if self.choice_starts is None:
            return np.arange(self.n_states, dtype=np.int64)
        return np.repeat(np.arange(self.n_states, dtype=np.int64), np.diff(self.choice_starts))

    @cached_property
    def row_sums(self) -> Vector:
        """The sum of every choice's entries, shape (n_choices,), off by a unit a term; may be infinite."""
        sums = np.zeros(self.n_choices)
        filled = np.flatnonzero(np.diff(self.row_starts))
        if filled.size:
            with np.errstate(over="ignore"):
                sums[filled] = np.add.reduceat(self.values, self.row_starts[filled])
        return sums


def narrowed(numbers: NDArray[np.int64]) -> NDArray[Any]:
    """Return numbers in the fewest bytes that they fit in; the same array if these are eight."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return numbers.astype(kind)
    return numbers
