"""Exact solution of ``x = A x + b`` by the elimination of states.

A is non-negative and from every state the system is left almost surely, so that no pivot vanishes.  A state
is eliminated by sending what enters it on to where it leads (J. Kemeny and J. L. Snell, Finite Markov chains,
1960; C. Daws, Symbolic and parametric model checking of discrete-time Markov chains, ICTAC 2004).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from hybrid.base.errors import NotExactError
from mtbdd.base.budget import check_budget

_LOOK_EVERY = 20_000


@dataclass
class Budget:
    """Operations that may still be done, each on numbers of up to 256 bits; `left` None is without limit.

    Not the budget of the check (time and memory, `mtbdd.base.budget`), which `spend` looks at every 20,000
    operations, with a limit or without.
    """

    left: int | None
    looked: int = 0

    def spend(self, operations: int, size: Fraction) -> None:
        """Take operations on numbers as long as `size`.

        Raises
        ------
        NotExactError
            None are left.
        BudgetError
        """
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
    rows: Sequence[Mapping[int, Fraction]], right: Sequence[Sequence[Fraction]], budget: Budget
) -> list[list[Fraction]]:
    """Return x for every right-hand side b at once.

    Parameters
    ----------
    rows : sequence of mappings, length n
        Row i of A: column -> entry.
    right : sequence of sequences, shape (n, m)
        Row i of the m right-hand sides.
    budget : Budget

    Returns
    -------
    list of lists, shape (n, m)

    Raises
    ------
    NotExactError
    ZeroDivisionError
        A state cannot leave the system.

    Notes
    -----
    The state with the fewest paths through it goes first.  Time: O(n^3) operations at worst, far fewer on the
    sparse systems of models.
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
