"""Exact solution of sparse systems ``x = A x + b``, component by component, each by its fastest method."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import NotExactError
from mtbdd.base.budget import check_budget

# Exact solution of ``x = A x + b`` by the elimination of states.
#
# A is non-negative and from every state the system is left almost surely, so that no pivot vanishes.  A state
# is eliminated by connecting its predecessors with its successors (J. Kemeny and J. L. Snell, Finite Markov
# chains, 1960; C. Daws, Symbolic and parametric model checking of discrete-time Markov chains, ICTAC 2004).

_LOOK_EVERY = 20_000


@dataclass
class OperationBudget:
    """Operations that may still be done, each on numbers of up to 256 bits; `left` None is without limit.

    Not the budget of the check (time and memory, `mtbdd.base.budget`), which `spend` checks every 20,000
    operations, with a limit or without.
    """

    left: int | None
    looked: int = 0

    def spend(self, operations: int, size: Fraction) -> None:
        """Take operations on numbers as long as `size`; refuse them where none are left."""
        cost = operations * (1 + (size.denominator.bit_length() >> 8))
        self.looked += cost
        if self.looked > _LOOK_EVERY:
            self.looked = 0
            check_budget()
        if self.left is None:
            return
        self.left -= cost
        if self.left < 0:
            raise NotExactError("the exact solution takes more operations than it is granted")


def solve_rationals(
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: OperationBudget
) -> list[list[Fraction]]:
    """Return x for every right-hand side b at once, shape (n, m), by elimination.

    Rows of A map columns to entries. The state with the fewest paths through it goes first. Time: O(n^3)
    operations at worst, far fewer on the sparse systems of models. A state that cannot leave the system is a
    ZeroDivisionError.
    """
    size = len(rows)
    after = [dict(row) for row in rows]
    x = [list(values) for values in right]
    before: list[set[int]] = [set() for _ in range(size)]
    for i, row in enumerate(after):
        for j in row:
            before[j].add(i)
    waiting = [(len(after[i]) * len(before[i]), i) for i in range(size)]
    heapq.heapify(waiting)
    order: list[int] = []
    done = [False] * size
    while waiting:
        price, s = heapq.heappop(waiting)
        if done[s]:
            continue
        now = len(after[s]) * len(before[s])
        if now > price:
            heapq.heappush(waiting, (now, s))
            continue
        done[s] = True
        order.append(s)
        factor = 1 / (1 - after[s].pop(s, Fraction(0)))
        before[s].discard(s)
        if factor != 1:
            after[s] = {j: factor * p for j, p in after[s].items()}
            x[s] = [factor * value for value in x[s]]
        budget.spend((1 + len(before[s])) * (len(after[s]) + len(x[s])), factor)
        for j in after[s]:
            before[j].discard(s)
        for i in before[s]:
            weight = after[i].pop(s)
            for j, p in after[s].items():
                after[i][j] = after[i].get(j, Fraction(0)) + weight * p
                before[j].add(i)
            x[i] = [value + weight * more for value, more in zip(x[i], x[s], strict=True)]
    for s in reversed(order):
        for j, p in after[s].items():
            budget.spend(len(x[s]), x[j][0] if x[j] else p)
            x[s] = [value + p * more for value, more in zip(x[s], x[j], strict=True)]
    return x


# Exact solution of sparse systems by digits: factors modulo a prime, lifting, reconstruction, a check.
#
# The solution of ``M x = b``, M and b integers, is found in base p digit by digit from triangular factors of
# M modulo p (J. D. Dixon, Exact solution of linear equations using p-adic expansions, Numerische Mathematik
# 40, 1982), and read as a common denominator and numerators (P. Wang, A p-adic algorithm for univariate
# partial fractions, SYMSAC 1981).  What was read is put into the equations, in integers: a wrong guess, which
# is one with too few digits, fails there and more digits are found, so that no answer is a matter of chance.
# M has no eigenvalue 0 where it has factors modulo p.

Int64Array = NDArray[np.int64]

PRIMES = (2147483647, 2147483629, 2147483587, 2147483579, 2147483563, 2147483549)
"""The largest primes below 2^31, tried in turn: a pivot may be 0 modulo one."""

_FIRST_DIGITS = 16
_SMALL = 2**30  # sums of entries of a row below it: residuals stay within 63 bits


class IntegerSystem:
    """``(I - A) x = b`` for several right-hand sides, each row multiplied until all its numbers are integers.

    Rows of A map columns to entries; `order`, shape (n,), int64, is that in which states are eliminated.
    """

    def __init__(
        self, rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], order: Int64Array
    ) -> None:
        size = len(rows)
        self.order = order
        place = np.empty(size, np.int64)
        place[self.order] = np.arange(size)
        ptr, columns, entries = [0], [], []
        self.right: list[list[int]] = []
        for s in self.order.tolist():
            row = {int(place[j]): -p for j, p in rows[s].items() if p}
            i = int(place[s])
            row[i] = 1 + row.get(i, Fraction(0))
            scale = math.lcm(*(p.denominator for p in row.values()), *(b.denominator for b in right[s]))
            for j in sorted(row):
                columns.append(j)
                entries.append(int(row[j] * scale))
            ptr.append(len(columns))
            self.right.append([int(b * scale) for b in right[s]])
        self.ptr, self.columns = np.array(ptr, np.int64), np.array(columns, np.int64)
        self.entries = entries
        self.widest = max(
            (sum(map(abs, entries[a:b])) for a, b in zip(ptr[:-1], ptr[1:], strict=True)), default=0
        )

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def product(self, x: Sequence[int]) -> list[int]:
        """Return M x in integers."""
        columns, ptr = self.columns.tolist(), self.ptr.tolist()
        return [
            sum(self.entries[e] * x[columns[e]] for e in range(a, b))
            for a, b in zip(ptr[:-1], ptr[1:], strict=True)
        ]

    def residues(self, p: int) -> Int64Array:
        """Return the entries modulo a prime."""
        return np.array([entry % p for entry in self.entries], np.int64)


def elimination_order(rows: Sequence[Mapping[int, Fraction]]) -> tuple[Int64Array, int]:
    """Return an order of the states in which elimination fills few entries in, and how many there are then.

    Least degree first.
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    size = len(rows)
    row = np.repeat(np.arange(size), [len(r) for r in rows])
    column = np.fromiter((j for r in rows for j in r), np.int64, len(row))
    # Any numbers will do that need no pivoting: the order depends on the pattern alone.
    ones, diagonal = np.full(len(row), -1.0), np.arange(size)
    pattern = csc_array(
        (
            np.concatenate((ones, np.full(size, 2.0 * size + 2.0))),
            (np.concatenate((row, diagonal)), np.concatenate((column, diagonal))),
        ),
        shape=(size, size),
    )
    factors = splu(
        pattern, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    order: Int64Array = np.argsort(factors.perm_c).astype(np.int64)
    return order, int(factors.nnz)


def solve_by_lifting(
    rows: Sequence[Mapping[int, Fraction]],
    right: Sequence[Sequence[Fraction]],
    order: Int64Array | None = None,
    primes: Sequence[int] = PRIMES,
) -> list[list[Fraction]]:
    """Return x of ``x = A x + b`` for every right-hand side b, shape (n, m).

    Rows of A map columns to entries; `order`, shape (n,), int64, is that in which states are eliminated, by
    default that of `elimination_order`. The primes below 2^31 are tried in turn, until the matrix has factors
    modulo one of them.

    Time: one elimination modulo p; for every digit one substitution and one product; digits are about twice
    the bits of numerator and denominator over 31, and at most doubled in vain.
    """
    system = IntegerSystem(rows, right, elimination_order(rows)[0] if order is None else order)
    lifting = _Factored(system, primes)
    columns = [lifting.solution([b[k] for b in system.right]) for k in range(len(right[0]) if right else 0)]
    found: list[list[Fraction]] = [[Fraction(0)] * len(columns) for _ in rows]
    for k, (numerators, denominator) in enumerate(columns):
        for s, numerator in zip(system.order.tolist(), numerators, strict=True):
            found[s][k] = Fraction(numerator, denominator)
    return found


class _Factored:
    """A system with its factors modulo the first prime for which there are some."""

    def __init__(self, system: IntegerSystem, primes: Sequence[int]) -> None:
        from hybrid.analysis.exact.modular import factor_rows

        self.system = system
        size, room = len(system), 4 * len(system.entries) + 16 * len(system)
        for p in primes:
            residues = system.residues(p)
            while True:
                check_budget()
                ptr, inverse = np.zeros(size + 1, np.int64), np.zeros(size, np.int64)
                columns, values = np.empty(room, np.int64), np.empty(room, np.int64)
                done = factor_rows(system.ptr, system.columns, residues, p, ptr, columns, values, inverse)
                if done != -1:
                    break
                room *= 2
            if done == size:
                used = int(ptr[-1])
                self.prime, self.factors = p, (ptr, columns[:used].copy(), values[:used].copy(), inverse)
                return
        raise NotExactError("the matrix of the system has no factors modulo any prime that was tried")

    def solution(self, right: Sequence[int]) -> tuple[list[int], int]:
        """Return numerators of x and their common denominator, for one right-hand side."""
        digits: list[Int64Array] = []
        residual: list[int] | Int64Array = list(right)
        x, power = [0] * len(self.system), 1
        wanted = _FIRST_DIGITS
        while True:
            residual, more = self._digits(residual, wanted - len(digits))
            found, factor = _number(more, self.prime)
            x = [low + power * high for low, high in zip(x, found, strict=True)]
            digits += more
            power *= factor
            answer = _reconstructed(x, power)
            if answer is not None and self._holds(*answer, right):
                return answer
            wanted *= 2

    def _digits(
        self, residual: list[int] | Int64Array, count: int
    ) -> tuple[list[int] | Int64Array, list[Int64Array]]:
        """Return the residual, and the next digits of x."""
        from hybrid.analysis.exact.modular import lift_digits, solve_factored

        system, p = self.system, self.prime
        found: list[Int64Array] = []
        while len(found) < count:
            check_budget()
            if isinstance(residual, list) and system.widest < _SMALL:
                if max(map(abs, residual), default=0) < 2**62:
                    residual = np.array(residual, np.int64)
            if not isinstance(residual, list):
                out = np.empty((count - len(found), len(system)), np.int64)
                entries = np.array(system.entries, np.int64)
                lift_digits(system.ptr, system.columns, entries, self.factors, residual, p, out)
                found += list(out)
                break
            digits = np.array([r % p for r in residual], np.int64)
            solve_factored(*self.factors, p, digits)
            found.append(digits)
            taken = system.product(digits.tolist())
            residual = [(r - t) // p for r, t in zip(residual, taken, strict=True)]
        return residual, found

    def _holds(self, numerators: list[int], denominator: int, right: Sequence[int]) -> bool:
        """Return whether a solution solves the equations, in integers."""
        product = self.system.product(numerators)
        return all(a == denominator * b for a, b in zip(product, right, strict=True))


def _number(digits: list[Int64Array], p: int) -> tuple[list[int], int]:
    """Return the number with some digits in base p, the lowest first, and p to the power of their count.

    Halves are joined, so that long numbers are multiplied by long ones.
    """
    if not digits:
        return [], 1
    parts: list[tuple[list[int], int]] = [(d.tolist(), p) for d in digits]
    while len(parts) > 1:
        joined = []
        for k in range(0, len(parts) - 1, 2):
            (low, base), (high, other) = parts[k], parts[k + 1]
            joined.append(([a + base * b for a, b in zip(low, high, strict=True)], base * other))
        if len(parts) % 2:
            joined.append(parts[-1])
        parts = joined
    return parts[0]


def _reconstructed(x: Sequence[int], modulus: int) -> tuple[list[int], int] | None:
    """Return numerators and a common denominator of residues modulo a number, if it is large enough."""
    limit = isqrt(modulus // 2)
    denominator, numerators = 1, []
    scales: list[int] = []
    for value in x:
        near = value * denominator % modulus
        near = near - modulus if 2 * near > modulus else near
        if abs(near) > limit:
            found = _fraction(near % modulus, modulus, limit)
            if found is None:
                return None
            near, more = found
            denominator *= more
            if denominator > limit:
                return None
        numerators.append(near)
        scales.append(denominator)
    return [n * (denominator // scale) for n, scale in zip(numerators, scales, strict=True)], denominator


def _fraction(value: int, modulus: int, limit: int) -> tuple[int, int] | None:
    """Return numerator and denominator, both up to a limit, of a fraction known modulo a number."""
    r, s = (modulus, value), (0, 1)
    while r[1] > limit:
        q = r[0] // r[1]
        r, s = (r[1], r[0] - q * r[1]), (s[1], s[0] - q * s[1])
    numerator, denominator = (r[1], s[1]) if s[1] > 0 else (-r[1], -s[1])
    return (numerator, denominator) if 0 < denominator <= limit else None


_FEW = 12
"""Unknowns up to which any pattern is eliminated in fractions."""

_THIN = 5
"""Entries of the factors over the unknowns up to which fractions are quicker: nothing is filled in."""


def solve_systems(
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: OperationBudget
) -> list[list[Fraction]]:
    """Return x of ``x = A x + b`` for every right-hand side b at once, shape (n, m).

    Rows of A map columns to entries, not negative; from every state the system is left almost surely. Where
    the budget limits operations, all is done in fractions, which it counts. Else strongly connected
    components are solved one after the other, those first that lead to no other; within one, thin patterns
    are eliminated in fractions, others by digits.
    """
    if budget.left is not None:
        return solve_rationals(rows, right, budget)
    x: list[list[Fraction]] = [[] for _ in rows]
    for members in components_in_order(rows):
        place = {s: k for k, s in enumerate(members)}
        inner: list[dict[int, Fraction]] = []
        known: list[list[Fraction]] = []
        for s in members:
            own, worth = {}, list(right[s])
            for j, p in rows[s].items():
                if j in place:
                    own[place[j]] = p
                else:
                    worth = [
                        value + p * more if more else value for value, more in zip(worth, x[j], strict=True)
                    ]
            inner.append(own)
            known.append(worth)
        solved = _solved(inner, known, budget)
        for s, values in zip(members, solved, strict=True):
            x[s] = values
    return x


def _solved(
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: OperationBudget
) -> list[list[Fraction]]:
    """Solve the system of one component."""
    if len(rows) > _FEW:
        order, filled = elimination_order(rows)
        if filled > _THIN * len(rows):
            return solve_by_lifting(rows, right, order)
    return solve_rationals(rows, right, budget)


def components_in_order(rows: Sequence[Mapping[int, Fraction]]) -> list[list[int]]:
    """Return the strongly connected components of a system's graph, those first that lead to no other."""
    if all(j == i for i, row in enumerate(rows) for j in row):
        return [[i] for i in range(len(rows))]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(rows)
    ptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    columns = np.fromiter((j for row in rows for j in row), np.int64, int(ptr[-1]))
    graph = csr_array((np.ones(len(columns)), columns, ptr), shape=(size, size))
    count, label = connected_components(graph, directed=True, connection="strong")
    owner = np.repeat(label, np.diff(ptr))
    # Kahn's algorithm on the components, from the ends.
    edges = np.unique(owner.astype(np.int64) * count + label[columns])
    source, target = edges // count, edges % count
    source, target = source[source != target], target[source != target]
    left = np.bincount(source, minlength=count)
    by_target = np.argsort(target, kind="stable")
    begins = np.searchsorted(target[by_target], np.arange(count + 1))
    sources = source[by_target].tolist()
    waiting = np.flatnonzero(left == 0).tolist()
    open_edges = left.tolist()
    members: list[list[int]] = [[] for _ in range(count)]
    for s, own in enumerate(label.tolist()):
        members[own].append(s)
    found = []
    for component in waiting:  # grows meanwhile
        found.append(members[component])
        for e in range(int(begins[component]), int(begins[component + 1])):
            open_edges[sources[e]] -= 1
            if open_edges[sources[e]] == 0:
                waiting.append(sources[e])
    return found
