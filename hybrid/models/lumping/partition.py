"""Partitions of states into blocks, made from lists of transitions or on diagrams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.analysis.graphs import graph_bytes
from hybrid.base.arrays import few_values
from hybrid.base.errors import UnsupportedError
from hybrid.models.interchange.compressing import with_loops
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    StateVariable,
    Vector,
    require_normal,
    reward_name,
    unless_zero,
)
from hybrid.models.interchange.write_out import ListedChoices, listed_choices
from mtbdd.base.budget import check_budget
from mtbdd.base.memory import require_memory
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import symbolic_reward
from mtbdd.diagrams.encoding import EncodedVariable
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix
from mtbdd.diagrams.value_diagrams import ZERO, Operation, ValueDiagrams, Values
from mtbdd.graph.bisimulation import CoarseningError, StatePartition, Terms, coarsest_partition
from mtbdd.language.syntax import ModelType
from mtbdd.offset.states import index_states

# The coarsest partition of a model's states that a first one leaves stable: strong bisimulation.
#
# Refinement by signatures, a round at a time. The signature of a state is a hash of the sums of its
# probabilities or rates into every block. In a decision process it is a hash of the set of its choices' sums.
# When states get another block, only the hashes of their predecessors change, and only these are examined
# again.

# Numbers that add up exactly in any order: rational numbers modulo a prime.
#
# Whether two states are alike is a question about sums: 0.1 + 0.2 and 0.3 are one number on paper, and two as
# doubles.  Every distinct number of a model is taken for the simplest fraction that it may stand for, and
# fractions are added modulo the prime 2^61 - 1.  Equal sums have equal residues; different sums have
# different ones but for an accident, which the proof of the quotient (`hybrid.models.lumping.quotient`) would
# find.

PRIME = (1 << 61) - 1
"""A Mersenne prime: products are reduced by shifts."""

_MOST_FRACTIONS = 20_000
"""Distinct numbers that are taken for fractions; more are the doubles that they are."""


def simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of the least denominator in a closed interval, ``0 < low <= high``.

    By the continued fractions of both ends. Time: O(their length).
    """
    terms = []
    while True:
        whole = low.numerator // low.denominator
        if low == whole or whole + 1 <= high:
            terms.append(whole if low == whole else whole + 1)
            break
        terms.append(whole)
        low, high = 1 / (high - whole), 1 / (low - whole)
    found = Fraction(terms.pop())
    while terms:
        found = terms.pop() + 1 / found
    return found


def meant_by(value: float, units: float) -> Fraction:
    """Return the simplest rational number that a double, off by some units of 2^-53, may stand for.

    Lemma: simplest-fractions (docs/lumping.md).
    """
    exact = Fraction(value)
    if not units or not value:
        return exact
    distance = abs(exact) * Fraction(units) / 2**53  # lemma: simplest-fractions
    if value < 0:
        return -simplest_between(-exact - distance, -exact + distance)
    return simplest_between(exact - distance, exact + distance)


def fractions_of(values: NDArray[np.float64], units: float) -> list[Fraction]:
    """Return the numbers that distinct doubles are taken for.

    Raises UnsupportedError: a number is not finite. Time: some 20 microseconds a number. `values`: ndarray of
    float64, shape (m,). `units`: bound on their relative errors, in units of 2^-53; doubles that may stand
    for one number may get one fraction.
    """
    if not bool(np.isfinite(values).all()):
        raise UnsupportedError("the bisimulation quotient needs rates and rewards that are finite numbers")
    if len(values) > _MOST_FRACTIONS or not units < 2.0**40:
        units = 0.0
    return [meant_by(value, units) for value in values.tolist()]


def residues(values: NDArray[np.float64], units: float) -> NDArray[np.uint64]:
    """Return the fractions of distinct doubles modulo `PRIME`; see `fractions_of`."""
    found = np.empty(len(values), dtype=np.uint64)
    for place, number in enumerate(fractions_of(values, units)):
        below = number.denominator % PRIME or 1  # no number of a model is as long as that
        found[place] = number.numerator * pow(below, -1, PRIME) % PRIME
    return found


_WORK = 20_000_000
"""Entries between checks of the time and the memory that are left."""

_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A stable partition."""

    of_state: Numbers  # int64, shape (n_states,); the block of every state
    count: int
    rounds: int  # how often states were examined
    # uint64, shape (n_choices,); a hash of what every choice does; choices of one block with one hash do the
    # same
    of_choice: NDArray[np.uint64]


class WrittenChoices:
    """The choices of a model written out, in the order of the states' numbers; `stable` refines by them.

    Raises MemoryError: the arrays do not fit; with their size in bytes. Time and memory: O(states + choices +
    transitions), about 50 bytes a transition, 60 a choice, 100 a state. `units`: bound on the relative error
    of every entry, in units of 2^-53. `distinct`: the distinct entries, ascending.
    """

    def __init__(self, model: SymbolicModel) -> None:
        choices = model.n_choices or model.n_states
        needed = graph_bytes(model, True) + 32 * model.n_transitions + 64 * choices + 100 * model.n_states
        require_memory(
            needed,
            f"the list of {model.n_transitions} transitions that the bisimulation quotient is made from",
            "check without the quotient, which needs no list",
        )
        self.listed: ListedChoices = listed_choices(model)
        self.units = model.entry_units
        self.distinct, self._codes = few_values(self.listed.values)
        self._numbers = residues(self.distinct, self.units)
        self.n_states = model.n_states

    @property
    def n_choices(self) -> int:
        """Number of choices of all states together; of a chain its states."""
        return len(self.listed.starts) - 1

    @property
    def choice_starts(self) -> Numbers:
        """Index of the first choice of every state, shape (n_states + 1,); empty for chains."""
        return _NONE if self.listed.choice_starts is None else self.listed.choice_starts

    @property
    def owners(self) -> Numbers:
        """The state of every choice; empty for chains."""
        return _NONE if self.listed.choice_starts is None else self.listed.owners

    @cached_property
    def row_sums(self) -> Vector:
        """The sum of every choice's entries, off by a unit a term."""
        sums: Vector = np.add.reduceat(self.listed.values, self.listed.starts[:-1])
        return sums

    @cached_property
    def _entering(self) -> tuple[Numbers, NDArray[Any], NDArray[Any]]:
        """The entries by target: where each state's begin, their choices and their numbers' places."""
        from hybrid.models.lumping.kernels import turned_round

        starts = np.zeros(self.n_states + 1, dtype=np.int64)
        small = np.int32 if self.n_choices < 1 << 31 else np.int64
        choices = np.empty(len(self._codes), dtype=small)
        places = np.empty_like(self._codes)
        turned_round(self.listed.starts, self.listed.columns, self._codes, starts, choices, places)
        return starts, choices, places

    def stable(self, states: Numbers, choices: Numbers, skip_own: bool, seed: int) -> Blocks:
        """Return the coarsest stable partition that distinguishes some classes.

        Returns Blocks: hashes of different things may be equal by accident: see
        `hybrid.models.lumping.quotient`. Time: O(transitions log states), compiled. A state moves to another
        block at most log2(n) times. `states` (ndarray of int64, shape (n_states,)): classes of states,
        numbered from 0. `choices` (ndarray of int64, shape (n_choices,)): of a decision process, classes of
        choices; of a chain empty. `skip_own`: of a CTMC: rates into the own block need not agree. `seed`: of
        the hashes, 64 bits.
        """
        from hybrid.models.lumping.kernels import (
            BLOCKS,
            DIRTY,
            ROUNDS,
            first_hashes,
            loops_taken_off,
            refined,
        )

        n, listed, word = self.n_states, self.listed, np.uint64(seed)
        entering = self._entering
        diagonal = np.zeros(n if skip_own else 0, dtype=np.uint64)
        if skip_own:
            loops_taken_off(listed.starts, listed.columns, self._codes, self._numbers, diagonal)
        blocks = states.copy()
        hashes = np.empty(self.n_choices, dtype=np.uint64)
        first_hashes(
            listed.starts, listed.columns, self._codes, self._numbers, blocks, choices, diagonal, word, hashes
        )
        members = np.argsort(blocks, kind="stable")
        places = np.empty(n, dtype=np.int64)
        places[members] = np.arange(n)
        counts = np.bincount(blocks)
        first, sizes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        first[: len(counts)], sizes[: len(counts)] = np.cumsum(counts) - counts, counts
        record = np.zeros(3, dtype=np.int64)
        record[BLOCKS], record[DIRTY] = len(counts), n
        dirty, is_dirty = np.arange(n), np.ones(n, dtype=np.bool_)
        marks, moved, sources = (np.zeros(n, dtype=np.int64) for _ in range(3))
        signatures = np.zeros(n, dtype=np.uint64)
        while record[DIRTY]:
            check_budget()
            refined(
                record, _WORK, self.choice_starts, self.owners, *entering, self._numbers, diagonal, word,
                hashes, blocks, members, places, first, sizes, marks, dirty, is_dirty, signatures, moved,
                sources,
            )  # fmt: skip
        return Blocks(blocks, int(record[BLOCKS]), int(record[ROUNDS]), hashes)


def classes_of(values: Vector, units: float) -> Numbers:
    """Return a class for each number, from 0: one for those that may stand for one rational number."""
    distinct, places = few_values(values)
    _, classes = np.unique(residues(distinct, units), return_inverse=True)
    found: Numbers = classes.reshape(-1).astype(np.int64)[places]
    return found


def common_refinement(size: int, parts: Iterable[NDArray[np.integer] | NDArray[np.bool_]]) -> Numbers:
    """Return classes from 0 of what some classes together distinguish, shape (size,)."""
    found = np.zeros(size, dtype=np.int64)
    for part in parts:
        own = part.astype(np.int64)
        _, places = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        found = places.reshape(-1).astype(np.int64)
    return found


def distinct_choices(written: WrittenChoices, blocks: Blocks) -> tuple[Numbers, Numbers, Numbers]:
    """Return the choices of blocks: which choices of states each stands for, and where a block's begin.

    Returns `members` (ndarray of int64, shape (n_choices,)): choices of states, those that are one in the
    quotient next to each other. `classes` (ndarray of int64, shape (m + 1,)): where the members of every
    choice of the quotient begin. `starts` (ndarray of int64, shape (blocks.count + 1,)): where the choices of
    every block begin; of a chain each has one.
    """
    if written.listed.choice_starts is None:
        members = np.argsort(blocks.of_state, kind="stable")
        classes = pointers(np, np.bincount(blocks.of_state, minlength=blocks.count))
        return members, classes, np.arange(blocks.count + 1)
    owners = blocks.of_state[written.owners]
    members = np.lexsort((blocks.of_choice, owners))
    own, hashes = owners[members], blocks.of_choice[members]
    new = np.ones(len(members), dtype=np.bool_)
    new[1:] = (own[1:] != own[:-1]) | (hashes[1:] != hashes[:-1])
    classes = np.append(np.flatnonzero(new), len(members))
    return members, classes, pointers(np, np.bincount(own[new], minlength=blocks.count))


# The quotient of a model made from its decision diagrams: no state and no transition is listed.

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
            rates = choices
            with np.errstate(over="ignore"):
                choices = rates / listed.row_sums
            # lemma: underflow
            require_normal(rates, choices, lambda _: reward_name(self._name, self.number))
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
