"""A model written out, the common form of all exchange formats, with the places of its parts; validation."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.errors import InterchangeError
from mtbdd.base.records import Record
from mtbdd.diagrams.arithmetic import divide, sum_over
from mtbdd.diagrams.encoding import Encoding
from mtbdd.diagrams.manager import Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.partition import Partition
from mtbdd.language.errors import format_state
from mtbdd.language.syntax import Command, ModelType


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


def reward_name(name: str | None, number: int) -> str:
    """Return what messages call a reward structure."""
    return f'reward "{name}"' if name else f"reward {number + 1}"


def require_normal(rewards: Vector, scaled: Vector, place: Callable[[int], str]) -> None:
    """Refuse rewards that were multiplied or divided if one that is not 0 is no normal double.

    A reward that underflows to 0 would change what is earned for ever from infinity to nothing.
    Lemma: underflow (docs/bounds.md).
    """
    size = np.abs(scaled)
    right = (rewards == 0) | ((size >= LEAST_NORMAL) & (size < np.inf))  # lemma: underflow
    told = "expected rewards of a step, or a unit of time, of 0 or at least 2.23e-308 and less than 1.79e308"
    require_all(right, place, told, scaled, "; scale the rewards")


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
    `hybrid.models.interchange.explicit_model` before anything is done with its arrays.

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


# Validation of models given as arrays or diagrams, once for all formats.

TOLERANCE = 1e-5
"""Greatest difference from 1 of a row of probabilities: rounded decimals of a few digits."""

LEAST_NORMAL = 2.0**-1022  # lemma: underflow
"""Below it doubles lack digits."""

_MOST_STATES = 1 << 40


def validate(model: ExplicitModel) -> ExplicitModel:
    """Check a model's arrays, and return it with ascending rows without zeros and repetitions.

    Raises InterchangeError: lengths or types that do not fit, no initial state, states out of range, numbers
    that are no probabilities or rates, rows of probabilities that do not add up to 1 within 1e-5, an empty
    choice, or a label or a reward of another length; reported with the first place. Time: O(states + choices
    + entries), and that of sorting where columns do not ascend. Arrays that are in order are passed on as
    they are.
    """
    source = model.source
    if not 0 < model.n_states <= _MOST_STATES:
        raise InterchangeError(f"{source}: expected at least one state, got {model.n_states}")
    _check_starts(source, "row starts", model.row_starts, model.n_entries)
    if model.is_mdp:
        if model.choice_starts is None:
            raise InterchangeError(f"{source}: expected the choices of every state, got an MDP without them")
        _check_length(source, "choice starts", model.choice_starts, model.n_states + 1)
        _check_starts(source, "choice starts", model.choice_starts, model.n_choices)
        if model.choice_actions is not None:
            _check_length(source, "actions of choices", model.choice_actions, model.n_choices)
            actions, below = model.choice_actions, len(model.actions)
            right = (actions >= -1) & (actions < below)
            require_all(right, model.places.choice, f"expected an action below {below}", actions)
    else:
        _check_length(source, "row starts", model.row_starts, model.n_states + 1)
    _check_length(source, "values", model.values, len(model.columns))
    _check_entries(model)
    _check_vectors(model)
    model = _canonical(model)
    _check_sums(model)
    return model


def _check_length(source: str, what: str, array: NDArray[np.generic], expected: int) -> None:
    if array.ndim != 1 or len(array) != expected:
        raise InterchangeError(f"{source}: {what}: expected {expected} elements, got shape {array.shape}")


def _check_starts(source: str, what: str, starts: Numbers, end: int) -> None:
    """Refuse starts that do not begin at 0, fall, or end elsewhere."""
    if starts.ndim != 1 or not len(starts) or starts[0] != 0 or starts[-1] != end:
        raise InterchangeError(f"{source}: {what}: expected numbers from 0 to {end}")
    require_all(starts[1:] >= starts[:-1], lambda k: f"{source}: {what}[{k + 1}]", "expected no fall")


def _check_entries(model: ExplicitModel) -> None:
    columns, values, place = model.columns, model.values, model.places.entry
    right = (columns >= 0) & (columns < model.n_states)
    require_all(right, place, f"expected a state from 0 to {model.n_states - 1}", columns)
    what = "rate" if model.type is ModelType.CTMC else "probability"
    right = np.isfinite(values) & (values >= 0)
    require_all(right, place, f"expected a {what}, a finite number that is not negative", values)
    right = (values == 0) | (values >= LEAST_NORMAL)
    told = f"expected a {what} of 0 or of at least 2.23e-308"
    require_all(right, place, told, values, "; doubles below lack digits")


def _check_vectors(model: ExplicitModel) -> None:
    """Check initial states, valuations, labels and rewards."""
    source, n = model.source, model.n_states
    _check_length(source, "initial states", model.initial, n)
    if not bool(model.initial.any()):
        raise InterchangeError(f'{source}: expected an initial state, got none; label one "init"')
    for variable in model.variables:
        values = model.valuations[variable.name]
        _check_length(source, f"values of {variable.name}", values, n)
        right = (values >= variable.low) & (values <= variable.high)
        told = f"{variable.name}: expected {variable.low} to {variable.high}"
        require_all(right, model.places.state, told, values)
    for name, mask in model.labels.items():
        _check_length(source, f'label "{name}"', mask, n)
    for number, reward in enumerate(model.rewards):
        name = reward_name(reward.name, number)
        for vector, length, place in (
            (reward.states, n, model.places.state),
            (reward.choices, model.n_choices, model.places.choice),
        ):
            if vector is None:
                continue
            _check_length(source, name, vector, length)
            require_all(np.isfinite(vector), place, f"{name}: expected a finite number", vector)
        if not np.isfinite(reward.units):
            raise InterchangeError(
                f"{source}: {name}: expected rewards whose expectations are normal doubles or 0"
            )


def rounding_of_sums(units: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Return what rounding may add to probabilities near 1 that are known as doubles, at most 1e-9.

    `units` (ndarray or float): roundings of the numbers and of their sum, in units of 2^-53.
    """
    found: NDArray[np.float64] = np.minimum((units + 2.0) * 2.0**-53, 1e-9)
    return found


def _check_sums(model: ExplicitModel) -> None:
    """Refuse rows of probabilities that do not add up to 1, and empty choices of MDPs."""
    lengths, place = np.diff(model.row_starts), model.places.choice
    if model.is_mdp:
        require_all(lengths > 0, place, "expected a choice with a transition, got none")
    if model.type is ModelType.CTMC:
        require_all(np.isfinite(model.row_sums), place, "expected rates that add up to less than 1.79e308")
        return
    rounding = rounding_of_sums(lengths + model.value_units)
    wrong = (lengths > 0) & ~(np.abs(model.row_sums - 1.0) <= TOLERANCE + rounding)
    told = f"expected probabilities that add up to 1 within {TOLERANCE:g}"
    require_all(~wrong, place, told, model.row_sums, "; if these are rates, the model is a ctmc")


def _canonical(model: ExplicitModel) -> ExplicitModel:
    """Return the model with ascending columns in every row, equal ones added up, and without zeros."""
    columns, values, starts, units = model.columns, model.values, model.row_starts, model.value_units
    n_rows = model.n_choices
    if not bool((values != 0).all()):
        kept = values != 0
        columns, values, starts = columns[kept], values[kept], pointers(np, kept)[starts]
    falls = columns[1:] <= columns[:-1]
    if len(columns):
        inner = np.ones(len(columns), dtype=np.bool_)
        inner[starts[:-1][starts[:-1] < len(columns)]] = False
        if bool((falls & inner[1:]).any()):
            rows = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(starts))
            columns, values, starts, most = _sorted(rows, columns, values, n_rows)
            # lemma: entry-units
            units += most
    if columns is model.columns and values is model.values:
        return model
    return replace(model, row_starts=starts, columns=columns, values=values, value_units=units)


def _sorted(
    rows: Numbers, columns: Numbers, values: Vector, n_rows: int
) -> tuple[Numbers, Vector, Numbers, float]:
    """Return entries by row and column, equal places added up, their row starts, and the additions' units."""
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first: Mask = np.ones(len(rows), dtype=np.bool_)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    places = np.flatnonzero(first)
    most = int(np.diff(np.append(places, len(rows))).max(initial=1)) - 1
    if most:
        values = np.add.reduceat(values, places)
        rows, columns = rows[places], columns[places]
    starts = pointers(np, np.bincount(rows, minlength=n_rows))
    return columns, values, starts, float(most)


# lemma: entry-units
_NEAR = 2.0**-50  # of 1: rows that add up so closely only have rounding errors
_MOST_NODES = 1 << 20  # of sums of rows: seconds; more values of rows than that are no use as a diagram
_NEAR_UNITS = 9.0  # the same in units of 2^-53, its own computation included


def row_sums(matrix: SymbolicMatrix) -> SymbolicMatrix:
    """Return what the rows of a matrix add up to, over row bits.

    Raises InterchangeError: the sums take far more values than the entries, too many for a diagram.
    """
    try:
        return sum_over(matrix, matrix.manager.columns, _MOST_NODES)
    except MemoryError as error:
        raise InterchangeError(
            f"the sums of the rows are too large as a diagram: {error}; models whose states have millions of "
            "different exit rates are better given as a text"
        ) from None


def divided_rows(
    encoding: Encoding, matrix: SymbolicMatrix, sums: SymbolicMatrix, source: str
) -> SymbolicMatrix:
    """Return a matrix with every row divided by what it adds up to.

    `matrix`: probabilities. `sums`: what its rows add up to, over row bits; 0 for rows without entries.
    `source`: what messages begin with. Returns SymbolicMatrix: rows that add up to 1 but for rounding errors
    stay as they are. Raises InterchangeError: a row adds up to another number than 1, by more than 1e-5; the
    message names a state.
    """
    values = sums.terminals
    off = np.abs(values - 1)
    rounding = rounding_of_sums(matrix.units + sums.units)
    for k in np.flatnonzero(~(off <= TOLERANCE + rounding)).tolist():
        wrong = _where(sums, k)
        if wrong != encoding.manager.false:
            state = format_state(encoding.pick(wrong))
            raise InterchangeError(
                f"{source}: state {state}: expected probabilities that add up to 1, got {values[k]}; "
                "add what is missing, or use type='ctmc' for rates"
            )
    near = off <= _NEAR
    if near.all():
        exact = bool((values == 1).all()) and _adds_exactly(matrix)
        # lemma: entry-units
        units = matrix.units + (0.0 if exact else _NEAR_UNITS)
        return SymbolicMatrix(matrix.manager, matrix.node, matrix.terminals, units)
    pieces: dict[float, list[Node]] = {}
    for k, value in enumerate(values.tolist()):
        pieces.setdefault(1.0 if near[k] else value, []).append(_where(sums, k))
    united = {value: encoding.manager.disjunction(sets) for value, sets in pieces.items()}
    # lemma: entry-units
    divisors = Partition(encoding.manager, united, sums.units + _NEAR_UNITS)
    return divide(matrix, SymbolicMatrix.from_partition(divisors, unite=False))


def _where(function: SymbolicMatrix, number: int) -> Node:
    """Return where a function has the terminal of a number."""
    manager, index = function.manager, function.index_bits
    if not index:
        return function.node
    return manager.exists(index, function.node & manager.cube(index, number))


def _adds_exactly(matrix: SymbolicMatrix) -> bool:
    """Return whether sums of the entries up to 2 round nothing: they are multiples of 2^-52."""
    scaled = np.ldexp(matrix.terminals, 52)
    return bool((scaled == np.floor(scaled)).all())
