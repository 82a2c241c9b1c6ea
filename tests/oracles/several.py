"""Several objectives by one linear program: how often each choice is taken, on an MDP written out.

States are pairs of a state and the targets visited so far, and, where a reward counts for some steps only, of
the step.  Some day a run turns to choices that earn nothing in total, and stays in an end component by these:
then it counts how often they are taken in the long run (Kallenberg's program, 1983, for several classes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import networkx
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from mtbdd.language import load_model, resolve
from tests.oracles.mdps import explore_mdp

Array = NDArray[np.float64]
Row = dict[int, Fraction]
Pair = tuple[int, int, int]
Column = tuple[int, int, dict[int, Fraction]]  # place, number of the choice, places it leads to


@dataclass
class SmallMdp:
    """Choices of every state, what each earns of every reward, and the sets that are to be visited.

    `steps` is, by reward, for how many steps it counts; None for ever. `averages` has what choices earn of
    which long-run averages are asked. `again` has sets to be visited again and again ("G F"), or some day for
    ever ("F G").
    """

    choices: list[list[Row]]
    rewards: list[list[list[int]]]
    targets: list[set[int]]
    steps: list[int | None]
    averages: list[list[list[int]]] = field(default_factory=list)
    again: list[tuple[str, set[int]]] = field(default_factory=list)


class OccupationProgram:
    """Values of all objectives as linear functions of how often choices are taken.

    Targets come first, then rewards, what is visited again and again, and averages.
    """

    def __init__(self, mdp: SmallMdp) -> None:
        self._mdp = mdp
        horizon = max((k for k in mdp.steps if k is not None), default=0)
        pairs: dict[Pair, int] = {}
        waiting = [self._pair(0, 0, 0)]
        pairs[waiting[0]] = 0
        columns: list[Column] = []
        for pair in waiting:
            s, seen, step = pair
            for number, row in enumerate(mdp.choices[s]):
                entries = {}
                for t, p in row.items():
                    after = self._pair(t, seen, min(step + 1, horizon))
                    if after not in pairs:
                        pairs[after] = len(pairs)
                        waiting.append(after)
                    entries[pairs[after]] = entries.get(pairs[after], Fraction(0)) + p
                columns.append((pairs[pair], number, entries))
        self._pairs = waiting
        free = [
            k
            for k, (place, number, _) in enumerate(columns)
            if not any(self._earned(j, waiting[place], number) for j in range(len(mdp.rewards)))
        ]
        homes = [(won, self._winning(won, columns, free)) for won in _subsets(len(mdp.again))]
        homes = [(won, own) for won, own in homes if own]
        n_targets, n_rewards, n_again = len(mdp.targets), len(mdp.rewards), len(mdp.again)
        m = len(columns) + sum(len(own) for _, own in homes)
        self.flow = np.zeros((len(pairs) * (1 + len(homes)), m))
        self.values = np.zeros((n_targets + n_rewards + n_again + len(mdp.averages), m))
        for k, (place, number, entries) in enumerate(columns):
            self._flows(0, k, place, entries)
            for j in range(n_rewards):
                self.values[n_targets + j, k] = self._earned(j, waiting[place], number)
        k = len(columns)
        for row, (won, own) in enumerate(homes, start=1):
            for place, number, entries in (columns[c] for c in own):
                self._flows(row * len(pairs), k, place, entries)
                self.flow[place, k] += 1.0
                state, seen, _ = waiting[place]
                for i in range(n_targets):
                    self.values[i, k] = seen >> i & 1
                for i in won:
                    self.values[n_targets + n_rewards + i, k] = 1.0
                for j, earned in enumerate(mdp.averages):
                    self.values[n_targets + n_rewards + n_again + j, k] = earned[state][number]
                k += 1
        self.start = np.eye(len(self.flow))[0]

    def _flows(self, first: int, column: int, place: int, entries: dict[int, Fraction]) -> None:
        """Let a column leave a place and enter others, in rows from the first on."""
        self.flow[first + place, column] += 1.0
        for after, p in entries.items():
            self.flow[first + after, column] -= float(p)

    def _winning(self, won: Sequence[int], columns: list[Column], free: list[int]) -> list[int]:
        """Return the columns of the end components in which some sets are visited as they should be."""
        asked = [self._mdp.again[i] for i in won]
        state = [self._pairs[place][0] for place, _, _ in columns]
        inside = [k for k in free if all(state[k] in own for kind, own in asked if kind == "F G")]
        found = []
        for component in end_components(columns, inside):
            if all({state[k] for k in component} & own for _, own in asked):
                found += component
        return found

    def _pair(self, state: int, seen: int, step: int) -> Pair:
        for i, target in enumerate(self._mdp.targets):
            if state in target:
                seen |= 1 << i
        return state, seen, step

    def _earned(self, j: int, pair: Pair, number: int) -> int:
        steps = self._mdp.steps[j]
        return self._mdp.rewards[j][pair[0]][number] if steps is None or pair[2] < steps else 0

    def best(self, weights: Sequence[float], demands: Sequence[tuple[int, str, float]] = ()) -> float:
        """Return the greatest weighted sum under demands (objective, ">=" or "<=", bound).

        Infinite if there is none; minus infinity if nothing meets the demands.
        """
        signs = [-1.0 if sense == ">=" else 1.0 for _, sense, _ in demands]
        rows = [sign * self.values[i] for sign, (i, _, _) in zip(signs, demands, strict=True)]
        most = [sign * bound for sign, (_, _, bound) in zip(signs, demands, strict=True)]
        found = linprog(
            -(np.array(weights) @ self.values), np.array(rows) if rows else None, most or None,
            self.flow, self.start, method="highs", options={"presolve": False},
        )  # fmt: skip
        if found.status == 2:
            return -np.inf
        if found.status == 3:
            return np.inf
        assert found.status == 0, found.message
        return float(-found.fun)


def _subsets(n: int) -> list[tuple[int, ...]]:
    return [won for size in range(n + 1) for won in combinations(range(n), size)]


def end_components(columns: Sequence[Column], within: Sequence[int]) -> list[list[int]]:
    """Return the maximal end components that some columns make, each by the columns that stay in it."""
    kept = list(within)
    while True:
        graph = networkx.DiGraph((columns[k][0], after) for k in kept for after in columns[k][2])
        label = {s: n for n, own in enumerate(networkx.strongly_connected_components(graph)) for s in own}
        active = {columns[k][0] for k in kept}
        staying = [
            k
            for k in kept
            if all(after in active and label[after] == label[columns[k][0]] for after in columns[k][2])
        ]
        if len(staying) == len(kept):
            parts: dict[int, list[int]] = {}
            for k in kept:
                parts.setdefault(label[columns[k][0]], []).append(k)
            return list(parts.values())
        kept = staying


def occupation_program(
    path: Path, constants: Mapping[str, float], labels: list[str], n_rewards: int
) -> OccupationProgram:
    """Return the oracle of an example, its labels as targets."""
    mdp = explore_mdp(resolve(load_model(str(path)), constants))
    (start,) = mdp.graph.initial
    order = [start, *(i for i in range(mdp.graph.n_states) if i != start)]
    place = {old: new for new, old in enumerate(order)}
    choices = [[{place[t]: p for t, p in row.items()} for _, row in mdp.choices[i]] for i in order]
    rewards: list[list[list[int]]] = []
    actions = {a for own in mdp.choices for a, _ in own}
    for j in range(n_rewards):
        by_action = {a: mdp.choice_rewards(j, a) for a in actions}
        rewards.append([[int(by_action[a][i]) for a, _ in mdp.choices[i]] for i in order])
    source = {label.name: label.expression for label in mdp.graph.source.labels}
    targets = [{place[i] for i in mdp.graph.where(source[name])} for name in labels]
    return OccupationProgram(SmallMdp(choices, rewards, targets, [None] * n_rewards))


def random_small_mdp(
    rng: np.random.Generator,
    n_targets: int,
    n_rewards: int,
    counted: bool,
    n_again: int = 0,
    n_averages: int = 0,
) -> SmallMdp:
    """Return a random MDP of up to six states: loops, end components, free and costly choices."""
    n = int(rng.integers(2, 7))
    choices, rewards = [], [[] for _ in range(n_rewards)]
    for s in range(n):
        own = []
        for _ in range(int(rng.integers(1, 4))):
            successors = rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
            weights = [int(w) for w in rng.integers(1, 4, size=len(successors))]
            own.append({t: Fraction(w, sum(weights)) for t, w in zip(successors, weights, strict=True)})
        choices.append(own)
        for earned in rewards:
            earned.append([int(rng.integers(0, 3)) * int(rng.integers(0, 2)) for _ in own])
        if s == n - 1 or rng.integers(0, 4) == 0:
            choices[s] = [*own, {s: Fraction(1)}]
            for earned in rewards:
                earned[s].append(0)
    targets = [
        set(rng.choice(n, size=int(rng.integers(1, 3)), replace=False).tolist()) for _ in range(n_targets)
    ]
    steps = [int(rng.integers(0, 4)) if counted and rng.integers(0, 2) else None for _ in range(n_rewards)]
    subsets = [
        set(rng.choice(n, size=int(rng.integers(1, 4)) % n + 1, replace=False).tolist())
        for _ in range(n_again)
    ]
    again = [(("G F", "F G")[int(rng.integers(0, 2))], own) for own in subsets]
    averages = [
        [[int(x) for x in rng.integers(0, 4, size=len(own))] for own in choices] for _ in range(n_averages)
    ]
    return SmallMdp(choices, rewards, targets, steps, averages, again)


def small_mdp_text(mdp: SmallMdp) -> str:
    """Return an MDP as a text, with labels t0, t1, ... and reward structures r0, r1, ..."""
    lines = ["mdp", "module m", f"s : [0..{len(mdp.choices) - 1}];"]
    for s, own in enumerate(mdp.choices):
        for k, row in enumerate(own):
            lines.append(f"[a{k}] s={s} -> " + " + ".join(f"{p}:(s'={t})" for t, p in row.items()) + ";")
    lines.append("endmodule")
    for i, target in enumerate(mdp.targets):
        lines.append(f'label "t{i}" = ' + " | ".join(f"s={s}" for s in sorted(target)) + ";")
    for i, (_, states) in enumerate(mdp.again):
        lines.append(f'label "g{i}" = ' + " | ".join(f"s={s}" for s in sorted(states)) + ";")
    named = [(f"r{j}", own) for j, own in enumerate(mdp.rewards)]
    named += [(f"v{j}", own) for j, own in enumerate(mdp.averages)]
    for name, earned in named:
        items = [f"[a{k}] s={s} : {r};" for s, own in enumerate(earned) for k, r in enumerate(own) if r]
        lines.append(f'rewards "{name}" ' + " ".join(items or ["false : 0;"]) + " endrewards")
    return "\n".join(lines)


class AskedObjectives:
    """Objectives of an MDP in random directions, and the oracle's values in terms of `multi`."""

    def __init__(self, rng: np.random.Generator, mdp: SmallMdp) -> None:
        self.mdp, self.program = mdp, OccupationProgram(mdp)
        self.maximise = [bool(rng.integers(0, 2)) for _ in self.program.values]
        first = len(mdp.targets) + len(mdp.rewards)
        # What is to happen again and again is asked for, or its contrary is to be rare.
        self.contrary = [first <= i < first + len(mdp.again) and not up for i, up in enumerate(self.maximise)]
        self.most = [1.0 if letter == "P" else math.inf for letter, _ in map(self._asked, range(self.count))]

    @property
    def count(self) -> int:
        """How many objectives there are."""
        return len(self.maximise)

    def _asked(self, i: int) -> tuple[str, str]:
        """Return the letter of an objective, and what stands in its brackets."""
        mdp = self.mdp
        if i < len(mdp.targets):
            return "P", f'[ F "t{i}" ]'
        i -= len(mdp.targets)
        if i < len(mdp.rewards):
            return f'R{{"r{i}"}}', f"[ C{'' if mdp.steps[i] is None else f'<={mdp.steps[i]}'} ]"
        i -= len(mdp.rewards)
        if i >= len(mdp.again):
            return f'R{{"v{i - len(mdp.again)}"}}', "[ S ]"
        kind = mdp.again[i][0]
        is_contrary = self.contrary[len(mdp.targets) + len(mdp.rewards) + i]
        return "P", f'[ {kind[::-1]} !"g{i}" ]' if is_contrary else f'[ {kind} "g{i}" ]'

    def text(self, i: int, bound: float | None = None) -> str:
        """Return an objective as `multi` has it, with a bound or without."""
        letter, rest = self._asked(i)
        if bound is None:
            return f"{letter}{'max' if self.maximise[i] else 'min'}=? {rest}"
        return f"{letter}{'>=' if self.maximise[i] else '<='}{bound!r} {rest}"

    def alone(self, i: int) -> str:
        """Return an objective's question about a chain."""
        return "{}=? {}".format(*self._asked(i))

    def weights(self, given: Sequence[float]) -> tuple[Array, float]:
        """Return weights of objectives as those of the oracle's values, and what is to be added."""
        own = np.where(self.contrary, -1.0, 1.0) * np.array(given)
        return own, float(np.array(given) @ np.array(self.contrary, float))

    def best(self, i: int, demands: Sequence[tuple[int, float]] = ()) -> float:
        """Return the optimum of an objective under demands, turned so that more is better."""
        sign = 1.0 if self.maximise[i] else -1.0
        return self.optimum(sign * np.eye(self.count)[i], demands)

    def optimum(self, weights: Sequence[float], demands: Sequence[tuple[int, float]] = ()) -> float:
        """Return the greatest weighted sum of objectives under demands, `>=` of those that are maximised."""
        senses = [
            (k, ">=" if self.maximise[k] or self.contrary[k] else "<=", 1.0 - b if self.contrary[k] else b)
            for k, b in demands
        ]
        own, more = self.weights(weights)
        return self.program.best(own, senses) + more

    @property
    def is_endless(self) -> bool:
        """Whether some greatest reward is infinite."""
        return any(up and self.best(i) == math.inf for i, up in enumerate(self.maximise))

    @property
    def is_hopeless(self) -> bool:
        """Whether no scheduler keeps all rewards finite."""
        return self.best(0) == -math.inf
