"""Cuts of states in two by sums of variables, chosen on a sample for little to receive and equal work.

The low side of a cut has the states whose sum of some variables, each added or subtracted, is below a
bound. States at the bound are cut by their numbers. Parts are cut in two again and again (recursive
bisection). A sum of several variables has many values, and most transitions change it by one at most. So
fewer states lie beside the bound than with one variable. The diagrams of the parts have a node for every sum
that may remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.matrix.parts.sample import StateSample, count_rows
from mtbdd.build.model import SymbolicModel
from mtbdd.diagrams.manager import Node

Int64Array = NDArray[np.int64]
Float64Array = NDArray[np.float64]
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
