"""Transitions that come as a list, brought back to the few moves that a model's text has, and their matrix.

A move changes variables by fixed amounts and has one value: `x'=x+1` at rate 2. A model of a million
transitions has dozens. Its sources are mostly a box, a product of sets of values, cut to the states. A box
that holds no other state than the sources says the same with a small diagram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.runtime.coded import pointers
from hybrid.base.arrays import few_values
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    Mask,
    Numbers,
    StateVariable,
    Vector,
    narrowed,
)
from mtbdd.build.diagram_parts import BitRows, diagram_of
from mtbdd.build.model_from_diagrams import variable_of_range
from mtbdd.diagrams.encoding import EncodedVariable, Encoding
from mtbdd.diagrams.manager import Manager, Node
from mtbdd.diagrams.matrix import SymbolicMatrix, merge_close
from mtbdd.diagrams.partition import Partition
from mtbdd.diagrams.relation import Relation
from mtbdd.language.syntax import ModelType, ResolvedVariable
from mtbdd.offset.states import StateIndex, index_states, states_from

# States that come as a list of valuations: their variables and numbers, and their set as a diagram.


@dataclass(frozen=True, eq=False)
class StateColumns:
    """Distinct valuations, variables in the order of the source."""

    source: str
    n_states: int
    variables: tuple[StateVariable, ...]
    # integers, shape (n_states,); every variable's value less its least one, by the source's state numbers
    numbers: tuple[NDArray[Any], ...]
    rows: BitRows  # the states' bits, ascending
    # int64, shape (n_states,); the source's number of each of these; None if they are equal
    order: Numbers | None

    def sizes(self) -> list[int]:
        """Return the numbers of values."""
        return [v.high - v.low + 1 for v in self.variables]

    def sorted_bits(self, places: Sequence[int]) -> tuple[BitRows, Numbers | None]:
        """Return the states' bits with the variables in another order, ascending, and the states' numbers."""
        if list(places) == list(range(len(self.variables))):
            return self.rows, self.order
        return _sorted(_packed(self.variables, self.numbers, places, self.n_states))


def state_columns(model: ExplicitModel) -> StateColumns:
    """Return the states of a model as numbers of variables.

    If several states have the same values a variable ``copy`` distinguishes them. Without valuations one
    variable ``state`` holds their numbers. Time: O(states x variables), and that of sorting where the
    valuations do not ascend.
    """
    variables = list(model.variables)
    numbers = [narrowed(np.asarray(model.valuations[v.name]).astype(np.int64) - v.low) for v in variables]
    if not variables:
        variables = [StateVariable("state", 0, model.n_states - 1)]
        numbers = [np.arange(model.n_states, dtype=np.int64)]
    every = range(len(variables))
    rows, order = _sorted(_packed(variables, numbers, every, model.n_states))
    if rows.n_bits and bool((rows.first_difference() == rows.n_bits).any()):
        copies = _copies(rows, order, model.n_states)
        taken = {v.name for v in variables}
        name = next(n for n in ("copy", *(f"copy{i}" for i in range(len(taken) + 1))) if n not in taken)
        variables.append(StateVariable(name, 0, int(copies.max())))
        numbers.append(copies)
        rows, order = _sorted(_packed(variables, numbers, range(len(variables)), model.n_states))
    return StateColumns(model.source, model.n_states, tuple(variables), tuple(numbers), rows, order)


def _packed(
    variables: Sequence[StateVariable], numbers: Sequence[NDArray[Any]], places: Sequence[int], size: int
) -> BitRows:
    """Return the states' bits, variables in some order."""
    widths = [(variables[k].high - variables[k].low).bit_length() for k in places]
    return BitRows.packed([numbers[k] for k in places], widths, size)


def _sorted(rows: BitRows) -> tuple[BitRows, Numbers | None]:
    """Return assignments in lexicographic order, and their places before; None if they are in that order."""
    order = rows.order()
    return (rows, None) if order is None else (rows.at(order), order)


def _copies(rows: BitRows, order: Numbers | None, size: int) -> Numbers:
    """Return how many states with the same values come before each, by the source's numbers."""
    first = rows.first_difference() < rows.n_bits
    places = np.flatnonzero(first)
    counted = np.arange(size, dtype=np.int64) - np.repeat(places, np.diff(np.append(places, size)))
    if order is None:
        return counted
    copies = np.empty(size, dtype=np.int64)
    copies[order] = counted
    return copies


@dataclass(frozen=True)
class EncodedStates:
    """The states of a model that came written out."""

    variables: tuple[ResolvedVariable, ...]  # in the order of the source
    encoding: Encoding
    rows: BitRows  # the states' row bits in index order
    index: StateIndex
    # int64, shape (n_states,); the source's number of the state with each index; None if they are equal
    order: Numbers | None
    rank: Numbers | None  # int64, shape (n_states,); the index of each of the source's states

    @property
    def node(self) -> Node:
        """The set of all states, over row bits."""
        return self.index.states

    def by_index(self, vector: NDArray[Any]) -> NDArray[Any]:
        """Return a vector over the source's states in index order."""
        return vector if self.order is None else vector[self.order]

    def indices(self, states: Numbers) -> Numbers:
        """Return the indices of some of the source's states."""
        return states if self.rank is None else self.rank[states]

    def set_of(self, mask: Mask) -> Node:
        """Return the states that a mask over the source's states marks.  Time: O(states)."""
        return states_from(self.encoding.manager, self.index, self.by_index(mask))

    def function_of(self, vector: Vector, units: float = 0.0) -> SymbolicMatrix | None:
        """Return a vector over the source's states as a function of row bits; None if it is zero.

        Time: O(distinct prefixes at every bit), and one package call a distinct node.
        """
        values = self.by_index(np.asarray(vector, dtype=np.float64))
        terminals, numbers = few_values(values)
        kept = terminals != 0
        if not bool(kept.any()):
            return None
        manager = self.encoding.manager
        leaf = np.where(kept, np.cumsum(kept), 0)
        own = terminals[kept]
        bits = manager.index_bits((len(own) - 1).bit_length())
        leaves = [manager.false, *manager.cubes(bits, len(own))]
        node = diagram_of(manager, manager.rows, self.rows, leaf[numbers], leaves)
        return SymbolicMatrix(manager, node, own, units)

    def variable(self, number: int) -> EncodedVariable:
        """Return a variable by its place in the source."""
        return self.encoding.by_name[self.variables[number].name]

    def number_sets(self, variable: int, numbers: list[int]) -> Node:
        """Return the states-to-be in which a variable has one of some stored numbers."""
        manager = self.encoding.manager
        names = self.encoding.row_names(self.variable(variable))
        return manager.disjunction(manager.cube(names, number) for number in numbers)

    def between(self, variable: int, low: int, high: int) -> Node:
        """Return the states-to-be in which a variable's stored number lies within bounds."""
        v, encoding = self.variable(variable), self.encoding
        found = encoding.at_most(v, high) if high < (1 << len(v.bits)) - 1 else encoding.manager.true
        return found & ~encoding.at_most(v, low - 1) if low > 0 else found


def encode_states(columns: StateColumns, places: Sequence[int], package: str = "auto") -> EncodedStates:
    """Return states as a set of assignments.

    `places`: the variables in the order of their bits, by their places in the source. `package` ({"auto",
    "cudd", "autoref"}): back end of `dd`. Time: O(states x bits), and that of sorting where the valuations do
    not ascend in this order.
    """
    declared = tuple(
        variable_of_range(v.name, v.low, v.high, v.is_bool, columns.source) for v in columns.variables
    )
    encoding = Encoding([declared[k] for k in places], package, [v.name for v in declared])
    rows, order = columns.sorted_bits(places)
    manager = encoding.manager
    every = np.ones(columns.n_states, dtype=np.int64)
    node = diagram_of(manager, manager.rows, rows, every, [manager.false, manager.true])
    rank = None
    if order is not None:
        rank = np.empty(columns.n_states, dtype=np.int64)
        rank[order] = np.arange(columns.n_states, dtype=np.int64)
    return EncodedStates(declared, encoding, rows, index_states(manager, node), order, rank)


# lemma: entry-units
_NEAR = 2.0**-50  # of 1: probabilities that add up so closely only have rounding errors
_NEAR_UNITS = 8.0
_EXACT_GRID = 2.0**40  # multiples of its inverse below 2^12 add up without rounding


def terminals_of(model: ExplicitModel) -> tuple[NDArray[np.integer], Vector, float]:
    """Return the distinct numbers of a model's entries.

    Values within 4 units in the last place are united: rates that were split into factors come back so. Time:
    O(entries log entries) in NumPy. Returns `numbers` (ndarray of integers, shape (n_entries,)): a number in
    `terminals` for every entry. `terminals` (ndarray of float64, ascending): of rows of probabilities divided
    by their sums. `units`: bound on the relative error of every entry, in units of 2^-53.
    """
    values, units = model.values, model.value_units
    if model.type is not ModelType.CTMC:
        values, units = _scaled(model)
    different, places = few_values(values)
    united = merge_close(different.tolist())
    representatives = np.array([united[v] for v in different.tolist()], dtype=np.float64)
    moved = np.abs(representatives - different) / different
    # lemma: entry-units
    distance = float(moved.max(initial=0.0)) * 2.0**53 * (1 + 2.0**-40)
    terminals, numbers = np.unique(representatives, return_inverse=True)
    # lemma: entry-units
    units += distance * (1 + units * 2.0**-53)
    kind = np.uint16 if len(terminals) <= 1 << 16 else np.int64
    return numbers.reshape(-1).astype(kind)[places], terminals, units


def _scaled(model: ExplicitModel) -> tuple[Vector, float]:
    """Return probabilities of rows that add up to 1, and their error in units.

    A row means its doubles divided by their sum. Where that is 1 but for rounding, the doubles stay.
    """
    values, sums = model.values, model.row_sums
    lengths = np.diff(model.row_starts)
    filled = lengths > 0
    grid = values * _EXACT_GRID
    if bool((grid == np.floor(grid)).all()) and bool((sums[filled] == 1.0).all()):
        return values, model.value_units
    most = float(lengths.max(initial=1))
    # The sum is off by as much as its terms are.
    # lemma: entry-units
    units = 2.0 * model.value_units + _NEAR_UNITS + most + 2.0
    far = filled & (np.abs(sums - 1.0) > _NEAR)
    if bool(far.any()):
        divisors = np.where(far, sums, 1.0)
        values = values / np.repeat(divisors, lengths)
    # lemma: entry-units
    return values, units * (1 + 2.0**-40)


_MOST_MOVES = 4096
_MOST_VALUES = 63  # of a variable whose sets of values are words of bits
_KEY_LIMIT = 1 << 62
_PART = 1 << 18  # entries that are processed together


@dataclass(frozen=True)
class Moves:
    """Transitions by move."""

    order: Numbers  # int64, shape (n_entries,); the entries, those of a move next to each other
    starts: Numbers  # int64, shape (n_moves + 1,); where each move's entries lie in `order`
    numbers: NDArray[np.integer]  # uint16, shape (n_entries,); every entry's move
    changes: Numbers  # int64, shape (n_moves, n_variables); what a move adds to every variable
    values: Numbers  # int64, shape (n_moves,); the number of its value


def find_moves(
    columns: StateColumns, sources: Numbers, targets: Numbers, values: NDArray[np.integer]
) -> Moves | None:
    """Return the moves of some transitions, None if there are so many that they save nothing.

    `sources`, `targets` (ndarray of int64, shape (n_entries,)): by the source's state numbers. `values`
    (ndarray of integers, shape (n_entries,)): numbers of values. A state's variables are packed into one
    number (several where they are many) by radices wide enough that differences of states are differences of
    numbers. Time: O(entries log entries) in NumPy.
    """
    most = min(_MOST_MOVES, 32 + int(1e-5 * len(sources) * columns.rows.n_bits))
    keys: NDArray[np.integer] = np.asarray(values)
    for word in _packings(columns):
        change = np.empty(len(targets), dtype=np.int64)
        for part in _parts(len(targets)):
            change[part] = word[targets[part]] - word[sources[part]]
        changes, ids = few_values(change)
        del change
        if len(changes) > most:
            return None
        pairs = keys.astype(np.int64)
        pairs *= max(len(changes), 1)
        pairs += ids
        _, keys = few_values(pairs)
        del pairs
    n_moves = int(keys.max(initial=0)) + 1 if len(keys) else 0
    if n_moves > most:
        return None
    keys = keys.astype(np.uint16)  # sorted by digits, in linear time
    order = np.argsort(keys, kind="stable")
    counts = np.zeros(n_moves, dtype=np.int64)
    for part in _parts(len(keys)):
        counts += np.bincount(keys[part], minlength=n_moves)
    starts = pointers(np, counts)
    first = order[starts[:-1]]
    ends = targets[first], sources[first]
    moved = [np.subtract(*(column[end].astype(np.int64) for end in ends)) for column in columns.numbers]
    stacked = np.stack(moved, axis=1) if moved else np.zeros((n_moves, 0), dtype=np.int64)
    return Moves(order, starts, keys, stacked, np.asarray(values)[first])


def _parts(size: int) -> Iterator[slice]:
    """Yield stretches of so many entries, one after the other: what is made of one is no array of all."""
    for begin in range(0, size, _PART):
        yield slice(begin, begin + _PART)


def _packings(columns: StateColumns) -> list[Numbers]:
    """Return numbers of the states whose differences encode the differences of all variables."""
    words: list[Numbers] = []
    radix = _KEY_LIMIT
    for size, column in zip(columns.sizes(), columns.numbers, strict=True):
        width = 2 * size
        if radix * width >= _KEY_LIMIT:
            words.append(np.zeros(len(column), dtype=np.int64))
            radix = 1
        words[-1] += column.astype(np.int64) * radix
        radix *= width
    return words


ValueSets = list[tuple[int, int]]
"""By move: the values that a variable has in its sources, as a word of bits and 0; of a variable with many
values the least and the greatest."""


def value_sets(columns: StateColumns, moves: Moves, sources: Numbers) -> list[ValueSets]:
    """Return, for every variable, its values in the sources of every move.

    Time: O(entries x variables) in NumPy. `sources`: ndarray of int64, shape (n_entries,).
    """
    sorted_sources = sources[moves.order]
    first = moves.starts[:-1]
    found: list[ValueSets] = []
    for size, column in zip(columns.sizes(), columns.numbers, strict=True):
        narrow = column.astype(np.min_scalar_type(size))
        held = np.empty(len(sorted_sources), narrow.dtype)
        for part in _parts(len(held)):
            held[part] = narrow[sorted_sources[part]]
        if size <= _MOST_VALUES:
            word = np.min_scalar_type((1 << size) - 1)
            sets = np.bitwise_or.reduceat(np.left_shift(word.type(1), held, dtype=word), first)
            found.append([(mask, 0) for mask in sets.tolist()])
        else:
            low, high = np.minimum.reduceat(held, first), np.maximum.reduceat(held, first)
            found.append(list(zip(low.tolist(), high.tolist(), strict=True)))
    return found


def source_sets(
    states: EncodedStates, moves: Moves, sources: Numbers, values: Sequence[ValueSets]
) -> list[Node]:
    """Return, for every move, a set whose states are its sources; it may hold assignments that are no states.

    `sources` (ndarray of int64, shape (n_entries,)): distinct within a move. `values`: see `value_sets`.
    Time: for every move that of counting a set's states, and O(states) for each whose sources are no box.
    """
    manager = states.encoding.manager
    counts = np.diff(moves.starts)
    boxes = [manager.true] * len(counts)
    for number, keys in enumerate(values):
        size = states.variable(number).size
        known: dict[tuple[int, int], Node] = (
            {((1 << size) - 1, 0): manager.true} if size <= _MOST_VALUES else {}
        )
        for move, key in enumerate(keys):
            if key not in known:
                if size > _MOST_VALUES:
                    known[key] = states.between(number, *key)
                else:
                    own = [value for value in range(size) if key[0] >> value & 1]
                    known[key] = states.number_sets(number, own)
            boxes[move] = boxes[move] & known[key]
    found = []
    for move, box in enumerate(boxes):
        if index_states(manager, box & states.node).size == counts[move]:
            found.append(box)
            continue
        members = moves.order[moves.starts[move] : moves.starts[move + 1]]
        mask = np.zeros(states.index.size, dtype=np.bool_)
        mask[sources[members]] = True
        found.append(states.set_of(mask))
    return found


def shifted(manager: Manager, rows: list[str], columns: list[str], amount: int) -> Node:
    """Return the relation "column number = row number + amount", modulo the numbers that the bits hold.

    `rows`, `columns`: bits, most significant first. Time: O(bits).
    """
    bdd = manager.bdd
    amount %= 1 << len(rows)
    carried = [manager.true, manager.false]  # by the carry that the bits below hand on
    for place, (row, column) in enumerate(zip(reversed(rows), reversed(columns), strict=True)):
        digit = amount >> place & 1
        x, y = bdd.var(row), bdd.var(column)
        found = [manager.false, manager.false]
        for bit in (0, 1):
            for carry in (0, 1):
                total = bit + digit + carry
                here = (x if bit else ~x) & (y if total & 1 else ~y) & carried[carry]
                found[total >> 1] = found[total >> 1] | here
        carried = found
    return carried[0] | carried[1]


@dataclass(frozen=True)
class ListedEntries:
    """Transitions of which no two have the same source and target."""

    # sources and targets: integers, shape (n_entries,); by the source's state numbers
    sources: Numbers
    targets: Numbers
    numbers: NDArray[np.integer]  # integers, shape (n_entries,); numbers of their values
    terminals: Vector  # float64; the values, ascending
    units: float  # bound on their relative error, in units of 2^-53

    def at(self, places: Numbers) -> ListedEntries:
        """Return some of the transitions."""
        return ListedEntries(
            self.sources[places], self.targets[places], self.numbers[places], self.terminals, self.units
        )


def listed_matrix(
    states: EncodedStates, entries: ListedEntries, moves: Moves | None, values: Sequence[ValueSets]
) -> tuple[SymbolicMatrix, list[Relation]]:
    """Return the matrix of some transitions, and its graph in parts by the variables that moves change.

    Time: with moves that of `source_sets`; else that of sorting the entries by all row and column bits, and
    O(distinct prefixes at every bit).
    """
    if moves is not None:
        return _moved_matrix(states, entries, moves, values)
    matrix = _bitwise_matrix(states, entries)
    return matrix, [Relation.whole(states.encoding.manager, matrix.support())]


def _moved_matrix(
    states: EncodedStates, entries: ListedEntries, moves: Moves, values: Sequence[ValueSets]
) -> tuple[SymbolicMatrix, list[Relation]]:
    """Return the matrix of moves: those that change the same variables are put together."""
    encoding = states.encoding
    manager = encoding.manager
    groups: dict[tuple[int, ...], list[int]] = {}
    for move, changes in enumerate(moves.changes != 0):
        groups.setdefault(tuple(np.flatnonzero(changes).tolist()), []).append(move)
    sets = source_sets(states, moves, entries.sources, values)
    known: dict[tuple[int, int], Node] = {}
    parts: list[tuple[Partition, Node]] = []
    relations: list[Relation] = []
    for touched, members in groups.items():
        bits = [bit for number in touched for bit in states.variable(number).bits]
        pieces: dict[float, list[Node]] = {}
        for move in members:
            relation = sets[move]
            for number in touched:
                amount = int(moves.changes[move, number])
                if (number, amount) not in known:
                    variable = states.variable(number)
                    names = encoding.row_names(variable), encoding.column_names(variable)
                    known[number, amount] = shifted(manager, *names, amount)
                relation = relation & known[number, amount]
            pieces.setdefault(float(entries.terminals[moves.values[move]]), []).append(relation)
        united = {value: manager.disjunction(nodes) for value, nodes in pieces.items()}
        partition = Partition(manager, united, entries.units)
        parts.append((partition, manager.equal_but(bits)))
        relations.append(Relation(manager, partition.support & states.node, tuple(sorted(bits))))
    matrix = SymbolicMatrix.from_disjoint(manager, parts, unite=False).only(states.node)
    return matrix, relations


def _bitwise_matrix(states: EncodedStates, entries: ListedEntries) -> SymbolicMatrix:
    """Return the matrix of entries without structure, from their list."""
    manager = states.encoding.manager
    rows, columns = states.indices(entries.sources), states.indices(entries.targets)
    bits = []
    for bit in range(manager.n_bits):
        bits += [states.rows.bit(bit, rows), states.rows.bit(bit, columns)]
    packed = BitRows.packed(bits, [1] * len(bits), len(rows))
    used, leaves = few_values(entries.numbers)
    leaves = leaves.astype(np.int64) + 1
    order = packed.order()
    if order is not None:
        packed, leaves = packed.at(order), leaves[order]
    names = [name for pair in zip(manager.rows, manager.columns, strict=True) for name in pair]
    index = manager.index_bits(max(len(used) - 1, 0).bit_length())
    cubes = [manager.false, *manager.cubes(index, len(used))]
    node = diagram_of(manager, names, packed, leaves, cubes)
    return SymbolicMatrix(manager, node, entries.terminals[used], entries.units)
