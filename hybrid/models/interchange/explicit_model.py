"""A model written out, the common form of all exchange formats, with the places of its parts."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from mtbdd.base.records import Record
from mtbdd.language.model_syntax import Command
from mtbdd.language.syntax import ModelType


@dataclass(frozen=True, eq=False)
class Places:
    """Places of a model's parts in their source; each is the beginning of a message.

    The parts have numbers and names here; of a text `hybrid.models.interchange.text.source.TextPlaces` has
    their lines, ``"m.tra:17"``.
    """

    source: str
    choices_are: str = "row"
    entries_are: str = "entry"

    def state(self, number: int) -> str:
        """Return where a state stands."""
        return f"{self.source}: state {number}"

    def choice(self, number: int) -> str:
        """Return where a choice stands (of a chain: the row of a state)."""
        return f"{self.source}: {self.choices_are} {number}"

    def entry(self, number: int) -> str:
        """Return where a transition stands."""
        return f"{self.source}: {self.entries_are} {number}"


Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def require_all(
    right: Mask, place: Callable[[int], str], told: str, got: NDArray[Any] | None = None, advice: str = ""
) -> None:
    """Refuse the first element that is not right; `place` returns where the element of a number stands."""
    if not bool(right.all()):
        k = int(np.argmin(right))
        came = "" if got is None else f", got {got[k]}"
        raise InterchangeError(f"{place(k)}: {told}{came}{advice}")


def unless_zero(vector: Vector | None) -> Vector | None:
    """Return a vector, None for nothing but zeros."""
    return vector if vector is not None and vector.any() else None


MOST_UNITS = 2.0**26  # lemma: entry-units
"""Units that a file may declare: of more, errors of errors are no longer less than a unit."""


class StateVariable(Record):
    """A variable of the states, `name`: an integer from `low` to `high`; if `is_bool` a boolean, 0 or 1."""

    name: str
    low: int
    high: int
    is_bool: bool = False

    @classmethod
    def of(cls, name: str, values: NDArray[Any]) -> StateVariable:
        """Return the variable of some values, with the smallest range that has them."""
        if values.dtype == np.bool_:
            return cls(name, 0, 1, True)
        return cls(name, int(values.min()), int(values.max()))


class ExplicitReward(Record, eq=False):
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
    is_sure : bool
        Whether a choice earns that on whichever branch, so that it may distinguish paths.
    """

    name: str | None
    states: Vector | None = None
    choices: Vector | None = None
    units: float = 0.0
    is_sure: bool = False


class ExplicitModel(Record, eq=False):
    """A DTMC, CTMC or MDP with all its states, choices and transitions, as arrays on the host.

    States are numbered as their source does. A chain has one choice a state, so that its choices are its
    states. Readers make it from files, `hybrid.models.interchange.write_out` from a symbolic model; it passes
    `hybrid.models.interchange.validate` before anything is done with its arrays.

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
        Places of the parts in the source.
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
    places: Places = field(default_factory=lambda: Places("arrays"))
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


def folded(row_starts: Numbers, values: Vector, rewards: Vector, per_jump: bool) -> tuple[Vector, float]:
    """Return the expected reward of every choice, and a bound on its relative error.

    Sums of one sign lose at most a unit a term; where signs meet in a row, the row is added up in rationals.
    Time: O(entries).

    Parameters
    ----------
    row_starts : ndarray of int64, shape (n_choices + 1,)
    values : ndarray of float64, shape (n_entries,)
        Probabilities or rates, not negative.
    rewards : ndarray of float64, shape (n_entries,)
        What a transition earns when it is taken; finite.
    per_jump : bool
        Divide by the row's sum: the values are rates, or probabilities that add up to 1 only roughly.

    Returns
    -------
    expected : ndarray of float64, shape (n_choices,)
    units : float
        Relative error in units of 2^-53; infinite if a number is beyond the normal doubles.
    """
    n = len(row_starts) - 1
    expected = np.zeros(n)
    lengths = np.diff(row_starts)
    filled = np.flatnonzero(lengths)
    if not filled.size or not rewards.any():
        return expected, 0.0
    first = row_starts[filled]
    units = float(lengths.max()) + 1.0  # lemma: entry-units
    with np.errstate(over="ignore", invalid="ignore"):
        terms = values * rewards
        expected[filled] = np.add.reduceat(terms, first)
        if per_jump:
            sums = np.add.reduceat(values, first)
            expected[filled] = np.divide(expected[filled], sums, out=np.zeros(filled.size), where=sums > 0)
            # lemma: entry-units
            units = 2.0 * units + 1.0
    if not bool(np.isfinite(expected).all() and np.isfinite(terms).all() and np.isfinite(values).all()):
        return np.zeros(n), math.inf
    # Signs that meet may cancel, and products below the normal doubles lose digits.
    positive, negative = (np.logical_or.reduceat(mask, first) for mask in (rewards > 0, rewards < 0))
    # lemma: underflow
    tiny = np.logical_or.reduceat((np.abs(terms) < 2.0**-900) & (rewards != 0) & (values != 0), first)
    for k in np.flatnonzero((positive & negative) | tiny).tolist():
        own = slice(int(row_starts[filled[k]]), int(row_starts[filled[k] + 1]))
        weights = [Fraction(v) for v in values[own].tolist()]
        total = sum(
            (w * Fraction(r) for w, r in zip(weights, rewards[own].tolist(), strict=True)), Fraction(0)
        )
        if per_jump:
            total = total / sum(weights) if any(weights) else Fraction(0)
        if total and not 2.0**-1022 <= abs(total) <= sys.float_info.max:  # lemma: underflow
            units = math.inf
        else:
            expected[filled[k]] = float(total)
    return expected, units * (1.0 + 2.0**-40)  # lemma: entry-units
