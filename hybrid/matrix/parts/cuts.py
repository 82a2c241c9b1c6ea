"""Cuts of states in two by sums of variables, chosen on a sample for little to receive and equal work.

The low side of a cut has the states whose sum of some variables, each added or subtracted, is below a
bound. States at the bound are cut by their numbers. Parts are cut in two again and again (recursive
bisection). A sum of several variables has many values, and most transitions change it by one at most. So
fewer states lie beside the bound than with one variable. The diagrams of the parts have a node for every sum
that may remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node
from mtbdd.offset.offset import OffsetMTBDD
from mtbdd.offset.states import StateIndex, index_states
from mtbdd.offset.tuples import distinct_rows

# A sample of a model's states: entries of their rows, and the rows that use their columns.

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]

MOST_STATES = 1 << 13
"""States of a sample at most, where no more are needed for the number of parts."""

_STATES_OF_A_PART = 1 << 9
_LEAST_STATES = 1 << 12
_FEWEST_OF_A_PART = 16

_MOST_USES = 1 << 20
"""Entries of the columns of a sample, about, beyond which it has fewer states."""

ROW_ENTRIES = 3.0
"""Cost of a row without entries, in entries: reading x, writing y and the steps of a solver."""

BLOCK_ROWS = 512
"""Rows that a card multiplies as one block, at least: with bits above them alone a cut goes around blocks."""

_MOST_VARIABLES = 64
"""Variables that sums may have: the first ones of a model."""


@dataclass(frozen=True, eq=False)
class StateSample:
    """States drawn at random, all of them where there are few.

    Attributes
    ----------
    states : int
        States of the model.
    names : tuple of str
        Variables, in the order of the diagram.
    nodes : ndarray, shape (variables,), float64
        Nodes of the matrices that test a variable.
    above : ndarray, shape (variables,), bool
        Whether a variable is tested above blocks of `BLOCK_ROWS` rows.
    number : ndarray, shape (k,), int64
        The states, ascending.
    value : ndarray, shape (variables, k), int64
        Values of their variables, counted from the least.
    work : ndarray, shape (k,), float64
        Predicted time of their rows, in entries: whole numbers.
    column : ndarray, shape (uses,), int64
        Place in the sample of every use of a column, ascending.
    user : ndarray, shape (uses,), int64
        The state whose row uses the column.
    user_value : ndarray, shape (variables, uses), int64
        Values of its variables.
    """

    states: int
    names: tuple[str, ...]
    nodes: Float64Array
    above: NDArray[np.bool_]
    number: Int64Array
    value: Int64Array
    work: Float64Array
    column: Int64Array
    user: Int64Array
    user_value: Int64Array


def sample_states(model: SymbolicModel, parts: int, most: int = MOST_STATES) -> StateSample:
    """Draw states of a model, with the entries of their rows and columns.

    Parameters
    ----------
    model : SymbolicModel
    parts : int
        Parts that the states will be cut into.
    most : int
        States at most.

    Notes
    -----
    The seed is fixed: the same model has the same sample.  Time: O(nodes log nodes) for the transposed
    matrices, and O(entries of the sampled rows and columns) in numpy for every bit.
    """
    index = model.index
    matrices = [model.layer_transitions(layer) for layer in range(len(model.layers))]
    mean = sum(matrix.n_entries for matrix in matrices) / max(index.size, 1)
    wanted = min(most, max(_LEAST_STATES, _STATES_OF_A_PART * parts), int(_MOST_USES / max(mean, 1.0)))
    wanted = max(wanted, _FEWEST_OF_A_PART * parts)
    if index.size <= wanted:
        number = np.arange(index.size, dtype=np.int64)
    else:
        # One of every stretch of states, so that stretches are shared out as they are.
        drawn = np.arange(wanted) + np.random.default_rng(0).random(wanted)
        number = np.unique(np.minimum((drawn * (index.size / wanted)).astype(np.int64), index.size - 1))
    bits = index.bits_at(number)
    work = np.full(len(number), ROW_ENTRIES)
    column, user = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for matrix in matrices:
        work += np.bincount(entries_in_rows(matrix, bits)[0], minlength=len(number))
        places, rows = entries_in_rows(matrix.transpose(), bits)
        column.append(places)
        user.append(rows)
    columns, users = np.concatenate(column), np.concatenate(user)
    order = np.lexsort((users, columns))
    columns, users = columns[order], users[order]
    variables = [v for v in model.encoding.variables if v.bits][:_MOST_VARIABLES]
    variables.sort(key=lambda variable: variable.bits[0])
    fields = [variable.bits for variable in variables]
    distinct, place = np.unique(users, return_inverse=True)
    prefixes = prefix_counts(index)
    nodes = [sum(m.nodes[2 * bit] + m.nodes[2 * bit + 1] for m in matrices for bit in f) for f in fields]
    return StateSample(
        index.size,
        tuple(variable.name for variable in variables),
        np.array(nodes, np.float64),
        np.array([BLOCK_ROWS * prefixes[f[-1] + 1] <= index.size for f in fields], bool),
        number,
        values_of(bits, fields),
        work,
        columns,
        users,
        values_of(index.bits_at(distinct), fields)[:, place.reshape(-1)],
    )


def prefix_counts(index: StateIndex) -> list[float]:
    """Return in how many ways the states begin, by the number of bits.  Time: O(nodes)."""
    paths = np.ones(min(index.size, 1))
    found = [float(paths.sum())]
    for bit in range(index.n_bits):
        below = np.zeros(len(index.counts[bit + 1]))
        for links in (index.low[bit], index.high[bit]):
            np.add.at(below, links[links >= 0], paths[links >= 0])
        paths = below
        found.append(float(paths.sum()))
    return found


def entries_in_rows(matrix: OffsetMTBDD, bits: NDArray[np.bool_]) -> tuple[Int64Array, Int64Array]:
    """Find the entries of some rows.

    Parameters
    ----------
    matrix : OffsetMTBDD
    bits : ndarray, shape (rows, bits of a row), bool

    Returns
    -------
    place, column : ndarray, shape (entries,), int64
        Place of the row among those given, and the column.
    """
    place: Int64Array = np.arange(len(bits) if matrix.nodes[0] else 0)
    node, column = np.zeros_like(place), np.zeros_like(place)
    for bit in range(matrix.n_levels // 2):
        outer, inner = matrix.levels[2 * bit : 2 * bit + 2]
        middle = np.where(bits[place, bit], outer.high[node], outer.low[node])
        place, column, middle = (array[middle >= 0] for array in (place, column, middle))
        low, high = inner.low[middle], inner.high[middle]
        left, right = np.flatnonzero(low >= 0), np.flatnonzero(high >= 0)
        node = np.concatenate((low[left], high[right])).astype(np.int64)
        column = np.concatenate((column[left], column[right] + inner.offset[middle[right]]))
        place = np.concatenate((place[left], place[right]))
    return place, column


def values_of(bits: NDArray[np.bool_], fields: Sequence[Sequence[int]]) -> Int64Array:
    """Return the numbers that fields of bits spell, shape (fields, states)."""
    found = np.zeros((len(fields), len(bits)), np.int64)
    for value, field in zip(found, fields, strict=True):
        for bit in field:
            value *= 2
            value += bits[:, bit]
    return found


# Exact counts of rows, on the diagrams.


class RowCounts(NamedTuple):
    """Nodes and entries of the rows of some states, in the matrices of all layers together."""

    states: int
    nodes: int
    entries: int

    @property
    def work(self) -> float:
        """Predicted time, in entries."""
        return self.entries + ROW_ENTRIES * self.states


def count_rows(model: SymbolicModel, states: Node, first_level: int = 0) -> RowCounts:
    """Count nodes, from a level on, and entries of the rows of a set of states.  Time: see `rows_of`."""
    rows = index_states(model.manager, states)
    counts = [
        rows_of(model.layer_transitions(layer), rows, first_level) for layer in range(len(model.layers))
    ]
    return RowCounts(rows.size, sum(nodes for nodes, _ in counts), sum(entries for _, entries in counts))


def rows_of(matrix: OffsetMTBDD, rows: StateIndex, first_level: int = 0) -> tuple[int, int]:
    """Return the nodes, from a level on, and the entries of some rows of a matrix, a set of its states.

    Notes
    -----
    Pairs of a node of the matrix and one of the set go down level by level, with their paths.  Time: O(pairs
    log pairs).
    """
    node: Int64Array = np.zeros(1 if matrix.nodes[0] and rows.size else 0, np.int64)
    inside, paths, nodes = node, np.ones(len(node), np.int64), 0
    for k, level in enumerate(matrix.levels):
        if k >= first_level:
            nodes += len(np.unique(node))
        child = np.concatenate((level.low[node], level.high[node])).astype(np.int64)
        if k % 2 == 0:
            below = np.concatenate((rows.low[k // 2][inside], rows.high[k // 2][inside])).astype(np.int64)
        else:
            below = np.tile(inside, 2)
        kept = np.flatnonzero((child >= 0) & (below >= 0))
        first, place = distinct_rows((child[kept], below[kept]))
        total = np.zeros(len(first), np.int64)
        np.add.at(total, place, np.tile(paths, 2)[kept])
        node, inside, paths = child[kept][first], below[kept][first], total
    return nodes, int(paths.sum())


Flags = NDArray[np.bool_]
Sums = NDArray[np.signedinteger]

_EXCHANGED = 16.0
"""Entries of a card that take as long as an element that it receives from another one beside it."""

_HIDDEN = 0.2
"""Share of an exchange that is hidden where rows that need nothing of others take as long: 0.05 to 0.84 were
measured on two and four cards."""

_GROWTH = 0.02
"""Share of the own work that a cut costs where it multiplies the nodes of the matrix by two."""

_GAIN = 0.005
"""Gain from which a variable is added to a sum, or left out of it."""

_PLAIN = 0.02
"""Gain from which states are not cut by their order."""

_STARTS = 3
"""Variables that sums begin with at most, the best by themselves."""

_SEARCHES = 24
"""Begins for all parts together, but for one each: with many parts there are many cuts to seek."""

_ROUNDS = 12
"""Changes of a sum at most."""

_UNEVEN = 0.005
"""Share of the work of a side up to which it is not made more even."""

_MOVES = 3
"""Moves of a bound at most."""

_CLASSES = 64
"""Values of the first variables by which rows that wait are found where the order of states is cut."""


@dataclass(frozen=True)
class Cut:
    """The states below a bound.

    Attributes
    ----------
    signs : tuple of int
        -1, 0 or 1 for every variable of the sample.
    bound : int
        States with a sum below it are in, values counted from the least of each variable.
    last : int
        Of states whose sum is the bound, those with this number or a smaller one.
    """

    signs: tuple[int, ...]
    bound: int
    last: int

    def holds(self, value: Int64Array, number: Int64Array) -> Flags:
        """Return which states are in; `value` has shape (variables, states)."""
        return self.below(np.array(self.signs, np.int64) @ value, number)

    def below(self, total: Sums, number: Int64Array) -> Flags:
        """Return which states are in, by their sums."""
        inside: Flags = total < self.bound
        inside |= (total == self.bound) & (number <= self.last)
        return inside

    def states(self, model: SymbolicModel) -> Node:
        """Return the codes that are in, as a set over row bits; those of no state among them.

        Time: O(bits * values of the sum).
        """
        variables = sorted((v for v in model.encoding.variables if v.bits), key=lambda v: v.bits[0])
        weights = {
            bit: sign << place
            for variable, sign in zip(variables, self.signs, strict=False)
            for place, bit in enumerate(reversed(variable.bits))
            if sign
        }
        manager = model.manager
        code = model.index.bits_at(np.array([self.last], np.int64))[0]
        number = int("".join("1" if bit else "0" for bit in code) or "0", 2)
        at_bound = sums_at_most(model, weights, self.bound) & manager.at_most(manager.rows, number)
        return sums_at_most(model, weights, self.bound - 1) | at_bound

    def describe(self, names: tuple[str, ...]) -> str:
        """Return what is compared with the bound, in words."""
        terms = [
            (" - " if sign < 0 else " + ") + name
            for sign, name in zip(self.signs, names, strict=True)
            if sign
        ]
        return "".join(terms).removeprefix(" + ").strip() or "the order of states"


def sums_at_most(model: SymbolicModel, weights: dict[int, int], bound: int) -> Node:
    """Return the codes for which the weights of their row bits that are set add up to a bound at most."""
    manager, bits = model.manager, sorted(weights)
    least, most = [0], [0]
    for bit in reversed(bits):
        least.insert(0, least[0] + min(weights[bit], 0))
        most.insert(0, most[0] + max(weights[bit], 0))
    # What is left of the bound before every bit, where neither all sums nor none are small enough.
    left: list[set[int]] = [{bound}]
    for place, bit in enumerate(bits):
        below = {rest - moved for rest in left[-1] for moved in (0, weights[bit])}
        left.append({rest for rest in below if least[place + 1] <= rest < most[place + 1]})
    nodes: dict[int, Node] = {}

    def of(place: int, rest: int) -> Node:
        """Return the set of those whose remaining bits add up to `rest` at most."""
        return manager.true if most[place] <= rest else manager.false if rest < least[place] else nodes[rest]

    for place in reversed(range(len(bits))):
        variable = manager.bdd.var(manager.rows[bits[place]])
        weight = weights[bits[place]]
        nodes = {
            rest: manager.bdd.ite(variable, of(place + 1, rest - weight), of(place + 1, rest))
            for rest in left[place]
        }
    return of(0, bound)


class Bisection:
    """States of a sample that a cut is sought for.

    Parameters
    ----------
    sample : StateSample
    states : ndarray, shape (k,), int64
        Their places in the sample, ascending.
    users : ndarray, shape (u,), int64
        Uses of columns by their rows, ascending.
    late : ndarray, shape (k,), bool
        Rows that wait for an exchange because of the cuts before.
    factor : ndarray, shape (variables,), float64
        By how much these cuts multiply the nodes of every variable.
    parts : tuple of int
        Parts on both sides of the cut.
    """

    def __init__(
        self,
        sample: StateSample,
        states: Int64Array,
        users: Int64Array,
        late: Flags,
        factor: Float64Array,
        parts: tuple[int, int],
    ) -> None:
        self._sample, self._states, self._users = sample, states, users
        self._late, self._factor, self._parts = late, factor, parts
        self._number, self._work, self._user = sample.number[states], sample.work[states], sample.user[users]
        # In few bytes, which sort and add sooner.
        most = int(sample.user_value.max(initial=0)) + int(sample.value.max(initial=0))
        kind = np.int16 if most * len(sample.names) < 2**15 else np.int64
        self._value = sample.value[:, states].astype(kind)
        self._user_value = sample.user_value[:, users].astype(kind)
        columns, self._first, self._column = np.unique(
            sample.column[users], return_index=True, return_inverse=True
        )
        place = np.minimum(np.searchsorted(states, columns), len(states) - 1)
        self._own = states[place] == columns
        self._place = place[self._own]
        self._span = np.ptp(self._value, axis=1).astype(np.int64)
        self._classes = self._leading(sample.value[:, states]), self._leading(sample.user_value[:, users])
        none = (0,) * len(self._span)
        self._base: tuple[tuple[int, ...], Sums, Sums] = (
            none,
            np.zeros(len(states), kind),
            np.zeros(len(users), kind),
        )

    def best(self, starts: int) -> Cut:
        """Return the best cut that a few changes of a sum lead to.

        Begins are so many variables by themselves; the order of states is compared with what they lead to.

        Time: O(rounds * variables * (k log k + u)).
        """
        none = (0,) * len(self._span)
        useful = np.flatnonzero(self._span > 0).tolist()
        first = sorted(useful, key=lambda v: self.cost(_changed(none, v, 1)))[:starts]
        best, least = none, (1.0 - _PLAIN) * self.cost(none)
        for signs in (_changed(none, v, 1) for v in first):
            own = self.cost(signs)
            for _ in range(_ROUNDS):
                self._base = signs, *self._sums(signs)
                found, better = (1.0 - _GAIN) * own, signs
                for other in (_changed(signs, v, sign) for v in useful for sign in (1, -1, 0)):
                    cost = self.cost(other, found) if other != signs else own
                    if cost < found:
                        found, better = cost, other
                if better == signs:
                    break
                own, signs = found, better
            if own < least:
                best, least = signs, own
        return self.cut(best)

    def sides(self, cut: Cut) -> tuple[tuple[Int64Array, Int64Array, Flags, Float64Array], ...]:
        """Return states, users, late rows and factors of both sides of a cut, as for a `Bisection`."""
        total, by = self._sums(cut.signs)
        low, by_low = cut.below(total, self._number), cut.below(by, self._user)
        late = self._late | self._late_by(cut, low, by_low)
        factor = self._factor * self._factors(cut.signs)
        return tuple(
            (self._states[own], self._users[by_own], late[own], factor)
            for own, by_own in ((low, by_low), (~low, ~by_low))
        )

    def cut(self, signs: tuple[int, ...], more: float = 0.0) -> Cut:
        """Return the cut by a sum with work in proportion to the parts.

        The low side has so much `more`, as a share of all work.
        """
        total = self._sums(signs)[0]
        order = np.argsort(total, kind="stable")
        work = self._work[order]
        done = np.cumsum(work)
        wanted = done[-1] * (self._parts[0] / sum(self._parts) + more)
        place = int(np.searchsorted(done - 0.5 * work, wanted))
        last = order[min(max(place, self._parts[0]), len(order) - self._parts[1]) - 1]
        return Cut(signs, int(total[last]), int(self._number[last]))

    def cost(self, signs: tuple[int, ...], limit: float = np.inf) -> float:
        """Predict a step of the slower side, in entries a state, of parts that all receive alike.

        From `limit` on any number that is not less is returned.
        """
        nodes, size = self._sample.nodes, len(self._states) / sum(self._parts)
        growth = float(nodes @ (self._factor * self._factors(signs))) / max(float(nodes @ self._factor), 1.0)
        mean = float(self._work.sum()) / len(self._states)
        own_time = mean * (1.0 + _GROWTH * (growth - 1.0))
        if own_time >= limit:
            return own_time
        cut, (total, by) = self.cut(signs), self._sums(signs)
        low, by_low = cut.below(total, self._number), cut.below(by, self._user)
        sides, exchanges = ((low, by_low), (~low, ~by_low)), []
        for (own, by_own), parts in zip(sides, self._parts, strict=True):
            received = np.logical_or.reduceat(by_own, self._first) if len(by_own) else by_own
            received[self._own] &= ~own[self._place]
            exchanges.append(_EXCHANGED * float(np.count_nonzero(received)) / (parts * size))
        least = own_time + (1.0 - _HIDDEN) * max(exchanges)
        if least >= limit:
            return least
        early = ~(self._late | self._late_by(cut, low, by_low))
        times = []
        for (own, _), exchange in zip(sides, exchanges, strict=True):
            share = float(self._work[own & early].sum() / self._work[own].sum())
            times.append(own_time + exchange - _HIDDEN * min(exchange, mean * share))
        # Of cuts whose slower sides are alike that whose other side is faster.
        return max(times) + 1e-3 * min(times)

    def _sums(self, signs: tuple[int, ...]) -> tuple[Sums, Sums]:
        """Return the sums of all states and users; those beside the last ones take one addition."""
        begin, total, by = self._base
        for variable, (old, new) in enumerate(zip(begin, signs, strict=True)):
            if old != new:
                total = total + (new - old) * self._value[variable]
                by = by + (new - old) * self._user_value[variable]
        return total, by

    def _late_by(self, cut: Cut, low: Flags, by_low: Flags) -> Flags:
        """Return which rows wait for the other side: all whose sum is that of one that does.

        Rows of a block go together, so that all wait if the sum has variables within blocks.
        """
        used = np.flatnonzero(cut.signs)
        if not self._sample.above[used].all():
            return np.ones(len(low), bool)
        of, by = self._sums(cut.signs) if len(used) else self._classes
        on_low, inside = np.zeros((2, len(self._own)), bool)
        on_low[self._own], inside[self._own] = low[self._place], True
        crossing = inside[self._column] & (by_low != on_low[self._column])
        late: Flags = np.isin(of, by[crossing])
        return late

    def _leading(self, value: Int64Array) -> Int64Array:
        """Return the values of the first variables as one number each, of few."""
        found, width = np.zeros(value.shape[1], np.int64), 1
        for own, span, above in zip(
            value, self._sample.value.max(axis=1, initial=0) + 1, self._sample.above, strict=True
        ):
            width *= int(span)
            if width > _CLASSES or not above:
                break
            found = found * int(span) + own
        return found

    def _factors(self, signs: tuple[int, ...]) -> Float64Array:
        """Return by how much a cut multiplies the nodes of every variable: the sums that may remain there."""
        width = np.abs(signs) * self._span
        before = np.cumsum(width) - width
        found: Float64Array = 1.0 + np.minimum(before, width.sum() - before)
        return found


def _changed(signs: tuple[int, ...], variable: int, sign: int) -> tuple[int, ...]:
    return (*signs[:variable], sign, *signs[variable + 1 :])


def bisect(model: SymbolicModel, sample: StateSample, parts: int) -> tuple[tuple[Node, ...], list[Cut]]:
    """Cut states in two until there are so many parts.

    Parameters
    ----------
    model : SymbolicModel
    sample : StateSample
        Of its states; as many as parts, or more.
    parts : int

    Returns
    -------
    owners : tuple of Node
        The states of every part, disjoint sets over row bits.
    cuts : list of Cut
        Those of halves before those of quarters on their low side.

    Notes
    -----
    Sums are chosen on the sample. Their bounds are moved until the work of both sides, which is counted on
    the diagrams, is in proportion.
    """
    every = np.arange(len(sample.number)), np.arange(len(sample.user))
    begin = *every, np.zeros(len(sample.number), bool), np.ones(len(sample.names))
    owners: list[Node] = [model.manager.false] * parts
    starts = min(_STARTS, max(1, _SEARCHES // parts))
    cuts, left = [], [(0, parts, model.reachable, count_rows(model, model.reachable).work, begin)]
    while left:
        first, end, whole, work, of = left.pop()
        if end - first < 2:
            owners[first] = whole
            continue
        middle = (first + end) // 2
        bisection = Bisection(sample, *of, (middle - first, end - middle))
        cut, wanted, more = bisection.best(starts), (middle - first) / (end - first), 0.0
        for _ in range(_MOVES + 1):
            low = whole & cut.states(model)
            own = count_rows(model, low).work
            off = wanted - own / work
            if abs(off) <= _UNEVEN * wanted or sample.states == len(sample.number):
                break
            more += off
            cut = bisection.cut(cut.signs, more)
        cuts.append(cut)
        lower, upper = bisection.sides(cut)
        left += [(middle, end, whole & ~low, work - own, upper), (first, middle, low, own, lower)]
    return tuple(owners), cuts
