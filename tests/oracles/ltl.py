"""Probabilities of linear temporal logic on small models, in rational numbers.

On chains by splitting states (C. Courcoubetis, M. Yannakakis, The complexity of probabilistic verification,
Journal of the ACM 42(4), 1995, pp. 857-907), without automata: for one temporal operator after another, every
state becomes two, one where the operator holds and one where it does not.  On decision processes by the
product with an automaton, end components for every set of marks that is avoided, and policy iteration.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from hybrid.properties.automata.automaton import DeterministicAutomaton
from tests.oracles.chains import until_probabilities
from tests.oracles.lasso_words import Tree

Row = dict[int, Fraction]
ONE = Fraction(1)


class SplitChain:
    """A chain whose states are split as operators are resolved."""

    def __init__(self, rows: Sequence[Row], letters: Sequence[int]) -> None:
        self.rows = [dict(row) for row in rows]
        self.letters = list(letters)
        self.origins = [(s, ONE) for s in range(len(rows))]
        self.kept: list[list[bool]] = []

    def truth(self, tree: Tree) -> list[bool]:
        """Resolve a formula: its truth in the states that there are then."""
        kind = tree[0]
        if kind == "p":
            return [bool(letter >> tree[1] & 1) for letter in self.letters]
        if kind == "F":
            return self.until(("|", tree[1], ("!", tree[1])), tree[1])
        if kind == "G":
            return [not t for t in self.truth(("F", ("!", tree[1])))]
        if kind == "W":
            left, right = tree[1:]
            none = ("&", ("!", left), ("!", right))
            return [not t for t in self.until(("&", left, ("!", right)), none)]
        if kind == "R":
            return [not t for t in self.until(("!", tree[1]), ("!", tree[2]))]
        if kind == "U":
            return self.until(tree[1], tree[2])
        if kind == "X":
            inner = self.truth(tree[1])
            q = [sum((p for t, p in row.items() if inner[t]), Fraction(0)) for row in self.rows]
            return self.split(q, lambda i, held, j, _: inner[j] == held)
        left = self.truth(tree[1])
        if kind == "!":
            return [not t for t in left]
        self.kept.append(left)
        right = self.truth(tree[2])
        left = self.kept.pop()
        joined = {
            "&": lambda a, b: a and b,
            "|": lambda a, b: a or b,
            "=>": lambda a, b: not a or b,
            "<=>": lambda a, b: a == b,
        }[kind]
        return [joined(a, b) for a, b in zip(left, right, strict=True)]

    def until(self, left: Tree, right: Tree) -> list[bool]:
        first = self.truth(left)
        self.kept.append(first)
        goal = self.truth(right)
        stay = self.kept.pop()
        n = range(len(self.rows))
        q = until_probabilities(self.rows, {i for i in n if stay[i]}, {i for i in n if goal[i]})
        return self.split(q, lambda i, held, _, then: goal[i] or not stay[i] or held == then)

    def split(self, q, follows) -> list[bool]:
        """Split states by whether an operator holds, with probability q; `follows(i, held, j, then)`."""
        new = [(i, held) for i, p in enumerate(q) for held in (True, False) if (p if held else 1 - p) > 0]
        place = {pair: k for k, pair in enumerate(new)}

        def share(i: int, held: bool) -> Fraction:
            return q[i] if held else 1 - q[i]

        rows = []
        for i, held in new:
            row = {}
            for j, p in self.rows[i].items():
                for then in (True, False):
                    if (j, then) in place and follows(i, held, j, then):
                        row[place[j, then]] = p * share(j, then)
            total = sum(row.values())
            rows.append({k: p / total for k, p in row.items()})
        self.rows = rows
        self.letters = [self.letters[i] for i, _ in new]
        self.origins = [(self.origins[i][0], self.origins[i][1] * share(i, held)) for i, held in new]
        self.kept = [[values[i] for i, _ in new] for values in self.kept]
        return [held for _, held in new]


def chain_probabilities(rows: Sequence[Row], letters: Sequence[int], tree: Tree) -> list[Fraction]:
    """The probability of a formula from every state of a chain; states show letters."""
    found = [Fraction(0)] * len(rows)
    chain = SplitChain(rows, letters)
    held = chain.truth(tree)
    for (origin, weight), true in zip(chain.origins, held, strict=True):
        found[origin] += weight if true else 0
    return found


def greatest_probabilities(
    choices: Sequence[Sequence[Row]], letters: Sequence[int], automaton: DeterministicAutomaton, negate: bool
) -> list[Fraction]:
    """The greatest probability over all schedulers that a run of a decision process is accepted (`negate`:
    is not), from every state."""
    pairs = [(s, 0) for s in range(len(choices))]
    place = {pair: k for k, pair in enumerate(pairs)}
    rows: list[list[Row]] = []
    marks: list[int] = []
    for s, q in pairs:
        then = int(automaton.successors[q, letters[s]])
        marks.append(int(automaton.marks[q, letters[s]]))
        own = []
        for row in choices[s]:
            for t in row:
                if (t, then) not in place:
                    place[t, then] = len(pairs)
                    pairs.append((t, then))
            own.append({place[t, then]: p for t, p in row.items()})
        rows.append(own)
    target: set[int] = set()
    numbers = [i for i in range(automaton.n_marks) if automaton.acceptance.marks >> i & 1]
    for size in range(len(numbers) + 1):
        for avoided in combinations(numbers, size):
            bad = sum(1 << i for i in avoided)
            allowed = {k for k, met in enumerate(marks) if not met & bad}
            for component in end_components(rows, allowed):
                met = 0
                for k in component:
                    met |= marks[k]
                if automaton.acceptance.holds(met) != negate:
                    target |= component
    return greatest_reachability(rows, target)[: len(choices)]


def end_components(rows: Sequence[Sequence[Row]], allowed: set[int]) -> list[set[int]]:
    """Maximal end components inside a set: components of the graph of choices that stay, until all do."""
    waiting, found = [set(allowed)], []
    while waiting:
        inside = waiting.pop()
        staying = {k: [r for r in rows[k] if r.keys() <= inside] for k in inside}
        kept = {k for k in inside if staying[k]}
        if kept != inside:
            waiting.append(kept)
            continue
        ahead = {k: closure(k, staying) for k in inside}
        parts = {frozenset(j for j in ahead[k] if k in ahead[j]) for k in inside}
        if len(parts) == 1:
            found.append(inside)
        else:
            waiting += [set(part) for part in parts]
    return [part for part in found if part]


def closure(state: int, rows: dict[int, list[Row]]) -> set[int]:
    found, waiting = {state}, [state]
    while waiting:
        for row in rows[waiting.pop()]:
            waiting += row.keys() - found
            found |= row.keys()
    return found


def greatest_reachability(rows: Sequence[Sequence[Row]], target: set[int]) -> list[Fraction]:
    """Policy iteration: a policy that no choice improves is optimal, as its values are a fixed point."""
    policy = [0] * len(rows)
    while True:
        chain = [rows[k][policy[k]] for k in range(len(rows))]
        value = until_probabilities(chain, set(range(len(rows))), target)
        better = False
        for k, own in enumerate(rows):
            for number, row in enumerate(own):
                if k not in target and sum(p * value[t] for t, p in row.items()) > value[k]:
                    policy[k], better = number, True
                    break
        if not better:
            return value
