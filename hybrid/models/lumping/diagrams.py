"""The quotient of a model made from its decision diagrams: no state and no transition is listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.models.interchange.compressing import with_loops
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    StateVariable,
    Vector,
    unless_zero,
)
from hybrid.models.lumping.partition import fractions_of
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import symbolic_reward
from mtbdd.diagrams.encoding import EncodedVariable
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.value_diagrams import ZERO, Operation, ValueDiagrams, Values
from mtbdd.graph.bisimulation import CoarseningError, StatePartition, Terms, coarsest_partition
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import index_states

_MOST_COUNT = 1 << 40
"""Greatest common denominator, and greatest multiple of its inverse, of entries that are counted with it."""

_LEAST_ROOM, _MOST_ROOM = 1 << 20, 1 << 26
"""Nodes that are made at least, and at most, before a list is tried."""

_LEAST = 2.0**-1000  # lemma: formal-sums
"""Sums of entries are greater: smaller ones are rounded by more than a unit."""

_UP = 1 + 2.0**-40  # lemma: formal-sums


def listed_quotient(
    model: SymbolicModel,
    sets: Sequence[Node],
    rewards: Sequence[int],
    labels: Sequence[str],
    keep_loops: bool,
    most: float,
) -> tuple[ExplicitModel, StatePartition]:
    """Return the quotient of a model by the coarsest strong bisimulation that distinguishes some sets.

    Parameters
    ----------
    model : SymbolicModel
    sets, rewards, labels, keep_loops
        As for `hybrid.models.lumping.quotient_by_sets`.
    most : float
        Blocks beyond which there is none.

    Returns
    -------
    ExplicitModel
        State k is block k.
    StatePartition

    Raises
    ------
    CoarseningError
        There are more blocks, or numbers are too large or too small.
    MemoryError
    BudgetError

    Notes
    -----
    Time: that of `coarsest_partition`, then O(blocks and their transitions).
    """
    matrices = [layer.matrix for layer in model.layers]
    units = max(matrix.units for matrix in matrices)  # lemma: formal-sums
    skip_own = model.type is ModelType.CTMC and not keep_loops
    work = ValueDiagrams(model.manager.index_level)
    classes = _Classes(work, model.manager, model.reachable)
    for states in sets:
        classes.tell_apart(SymbolicMatrix(model.manager, states, np.array([1.0])), lambda v: v)
    # The only choice of all states is theirs.
    of_choices = [classes]
    if len(matrices) > 1:
        of_choices = [_Classes(work, model.manager, layer.enabled) for layer in model.layers]
    earned = [_Earned(model, number, classes, of_choices) for number in rewards]
    entries = _Entries(np.unique(np.concatenate([matrix.terminals for matrix in matrices])), units)
    table = _joined([own.table for own in of_choices])
    kinds = [own.numbered(table) for own in of_choices] if len(matrices) > 1 else []
    found = coarsest_partition(
        matrices, entries.terms, work, classes.root, choice_classes=kinds, skip_own=skip_own, most=most,
        room=_room(model),
    )  # fmt: skip
    starts, columns, values, is_exact = entries.rows(found)
    told = classes.table[found.classes]
    told_of_choices = table[found.choice_classes] if kinds else told
    initial = np.zeros(found.count, dtype=np.bool_)
    initial[found.met_by(index_states(model.manager, model.initial))] = True
    shown = model.encoding.shown
    listed = ExplicitModel(
        model.type,
        found.count,
        starts,
        columns,
        values,
        initial,
        found.choice_starts if model.is_mdp else None,
        variables=tuple(StateVariable(v.name, v.low, v.high, v.is_bool) for v in shown),
        valuations={v.name: _values(found.first, v) for v in shown},
        labels={name: told[:, k] == 1 for k, name in enumerate(labels)},
        value_units=_units_of_members(units, is_exact),  # lemma: formal-sums
        source=model.source.file,
    )
    listed, _ = with_loops(listed)
    held = {e.number: e.of_blocks(listed, told, told_of_choices) for e in earned}
    structures = (held.get(k, ExplicitReward(r.name)) for k, r in enumerate(model.source.rewards))
    return replace(listed, rewards=tuple(structures)), found


def _room(model: SymbolicModel) -> int:
    """Return the nodes that may be made: one a state takes as long as the list of all transitions."""
    return min(_MOST_ROOM, max(_LEAST_ROOM, model.n_states))


def _units_of_members(units: float, is_exact: bool) -> float:
    """Bound the difference between the double of a block and those of its states, in units of 2^-53.

    Lemma: formal-sums (docs/lumping.md).
    """
    if not units and is_exact:
        return 0.0
    return (2.0 * units * (1.0 + units * 2.0**-51) + 1.0) * _UP  # lemma: formal-sums


def _values(states: Mask, variable: EncodedVariable) -> NDArray[Any]:
    """Return a variable's values in states that are given by their row bits."""
    found = np.zeros(len(states), dtype=np.int64)
    for bit in variable.bits:
        found = 2 * found + states[:, bit]
    return found.astype(np.bool_) if variable.is_bool else found + variable.low


def _double(value: Fraction) -> float:
    """Return the double next to a number that is 0 or normal."""
    try:
        found = value.numerator / value.denominator
    except OverflowError:
        raise CoarseningError("a sum is beyond the largest double") from None
    if value and abs(found) < _LEAST:  # lemma: formal-sums
        raise CoarseningError("a sum is too small for doubles")
    return found


class _Classes:
    """Classes of states that a partition begins with, distinguished by one function after another.

    `states`: the states that have a class. `root`: the classes, from 1. `table` (ndarray of int64, shape
    (classes + 1, functions)): the code of every function in every class.
    """

    def __init__(self, work: ValueDiagrams, manager: Manager, states: Node) -> None:
        self._work = work
        self.root = work.load(SymbolicMatrix(manager, states, np.array([1.0])))
        self.table: Numbers = np.zeros((2, 0), dtype=np.int64)

    def tell_apart(self, function: SymbolicMatrix, codes: Callable[[Values], Values]) -> int:
        """Split classes by a function's values, or their codes from 0; return its column in the table."""
        work = self._work
        told = work.mapped(work.load(function), codes)
        width = float(work.values(told).max()) + 1.0
        both = Operation(
            lambda a, b: np.where(a == 0, 0.0, a * width + b),
            lambda x, y: np.where(x == ZERO, ZERO, -1),
            commutes=False,
        )
        joined = int(work.apply(both, np.array([self.root]), np.array([told]))[0])
        distinct = np.append(0.0, np.setdiff1d(work.values(joined), [0.0]))
        self.root = work.mapped(joined, lambda v: np.searchsorted(distinct, v).astype(np.float64))
        before, code = np.divmod(distinct, width)
        rows = self.table[before.astype(np.int64)]
        self.table = np.column_stack([rows, code.astype(np.int64)])
        return int(self.table.shape[1]) - 1

    def numbered(self, table: Numbers) -> int:
        """Return the classes by their places in a table that has the rows of the own one."""
        places = np.array([np.flatnonzero((table == row).all(axis=1))[-1] for row in self.table])
        return self._work.mapped(self.root, lambda v: np.where(v == 0, 0.0, places[v.astype(np.int64)]))


def _joined(tables: Sequence[Numbers]) -> Numbers:
    """Return the rows of classes' tables, each once behind a first one of 0."""
    rows = np.unique(np.concatenate([table[1:] for table in tables]), axis=0)
    return np.concatenate([tables[0][:1], rows])


class _Entries:
    """The entries of a matrix as multiples of one fraction, and of themselves where they are none.

    `terminals`: ndarray of float64, shape (m,). `units`: bound on their relative errors, in units of 2^-53.
    """

    def __init__(self, terminals: Vector, units: float) -> None:
        meant = fractions_of(terminals, units)
        self._denominator, counted, largest = 1, list[int](), Fraction(0)
        for place in sorted(range(len(meant)), key=lambda k: (meant[k].denominator, meant[k])):
            together = lcm(self._denominator, meant[place].denominator)
            if together <= _MOST_COUNT and max(largest, meant[place]) * together <= _MOST_COUNT:
                self._denominator, largest = together, max(largest, meant[place])
                counted.append(place)
        symbols = np.zeros(len(meant), dtype=np.int64)
        counts = np.ones(len(meant), dtype=np.int64)
        is_counted = np.zeros(len(meant), dtype=np.bool_)
        is_counted[counted] = True
        symbols[~is_counted] = np.arange(1, int((~is_counted).sum()) + 1)
        for place in counted:
            counts[place] = int(meant[place] * self._denominator)
        self.terms = Terms(symbols, counts)
        own = [Fraction(value) for value in terminals[~is_counted].tolist()]
        self._of_symbol = [Fraction(1, self._denominator), *own]

    def rows(self, found: StatePartition) -> tuple[Numbers, Numbers, Vector, bool]:
        """Return the sums as rows of a matrix: starts, columns, values, and whether all are exact."""
        n_rows = len(found.starts) - 1
        of_row = np.repeat(np.arange(n_rows), np.diff(found.starts))
        new = np.ones(len(of_row), dtype=np.bool_)
        new[1:] = (np.diff(of_row) != 0) | (np.diff(found.targets) != 0)
        begins = np.flatnonzero(new)
        starts = np.append(0, np.cumsum(np.bincount(of_row[new], minlength=n_rows)))
        sizes = np.diff(np.append(begins, len(new)))
        one = sizes == 1
        pairs = np.stack([found.symbols[begins], found.counts[begins]], axis=1)
        distinct, places = np.unique(pairs[one], axis=0, return_inverse=True)
        numbers = [self._of_symbol[symbol] * count for symbol, count in distinct.tolist()]
        values = np.empty(len(begins))
        values[one] = np.array([_double(number) for number in numbers])[places.reshape(-1)]
        for group in np.flatnonzero(~one).tolist():
            own = slice(begins[group], begins[group] + sizes[group])
            terms = zip(found.symbols[own].tolist(), found.counts[own].tolist(), strict=True)
            numbers.append(sum((self._of_symbol[symbol] * count for symbol, count in terms), Fraction(0)))
            values[group] = _double(numbers[-1])
        is_exact = all(Fraction(_double(number)) == number for number in numbers)
        return starts, found.targets[new], values, is_exact


class _Earned:
    """A reward structure over all states and choices, in a CTMC all of it in a unit of time."""

    def __init__(
        self, model: SymbolicModel, number: int, states: _Classes, choices: Sequence[_Classes]
    ) -> None:
        reward = symbolic_reward(model, number)
        self.number, self._name = number, reward.name
        self._states = _Codes([states], [reward.states])
        self._choices = _Codes(choices, reward.choices)

    def of_blocks(self, listed: ExplicitModel, of_states: Numbers, of_choices: Numbers) -> ExplicitReward:
        """Return the structure of the quotient, from the codes of its states and choices."""
        states, units = self._states.values(of_states)
        choices, choice_units = self._choices.values(of_choices)
        if choices is not None and listed.type is ModelType.CTMC:
            with np.errstate(over="ignore"):
                choices = choices / listed.row_sums
            # lemma: formal-sums, entry-units
            choice_units += listed.value_units + float(np.diff(listed.row_starts).max()) + 1.0
        units = max(units, choice_units)  # lemma: formal-sums
        return ExplicitReward(self._name, states, choices, units * _UP)  # lemma: formal-sums


class _Codes:
    """Rewards as codes of fractions, which classes are distinguished by: of states, or of layers' choices."""

    def __init__(self, classes: Sequence[_Classes], parts: Sequence[SymbolicMatrix | None]) -> None:
        self._column: int | None = None
        earned = [None if part is None or not part.terminals.size else part for part in parts]
        self._units = max((p.units for p in earned if p is not None), default=0.0)  # lemma: formal-sums
        known: dict[Fraction, int] = {}
        for own, part in zip(classes, earned, strict=True):
            if part is not None:
                numbers = fractions_of(part.terminals, part.units)
                codes = [known.setdefault(number, len(known) + 1) for number in numbers]
                codes_of = np.array([0, *codes], dtype=np.float64)
                self._column = own.tell_apart(part, _looked_up(part.terminals, codes_of))
            elif any(other is not None for other in earned):
                own.table = np.column_stack([own.table, np.zeros(len(own.table), dtype=np.int64)])
        self._numbers = [Fraction(0), *known]

    def values(self, told: Numbers) -> tuple[Vector | None, float]:
        """Return the reward of each block or choice, and a bound on its difference from the states' ones."""
        if self._column is None:
            return None, 0.0
        doubles = [_double(number) for number in self._numbers]
        is_exact = all(Fraction(own) == number for own, number in zip(doubles, self._numbers, strict=True))
        values = unless_zero(np.array(doubles)[told[:, self._column]])
        return values, _units_of_members(self._units, is_exact)  # lemma: formal-sums


def _looked_up(terminals: Vector, codes: Vector) -> Callable[[Values], Values]:
    """Return the function of values that gives the terminals' codes, and 0 for 0."""

    def found(values: Values) -> Values:
        places = np.searchsorted(terminals, values)
        return np.where(values == 0, 0.0, codes[1:][np.minimum(places, len(terminals) - 1)])

    return found
