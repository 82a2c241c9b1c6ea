"""Several objectives by one linear program: how often each choice is taken, on an MDP written out.

States are pairs of a state and the targets visited so far, and, where a reward counts for some steps only, of
the step.  Runs end where they can stay for ever, earn nothing and visit nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

from mtbdd.language import load_model, resolve
from tests.oracles.mdps import explore_mdp

Row = dict[int, Fraction]
Pair = tuple[int, int, int]


@dataclass
class SmallMdp:
    """Choices of every state, what each earns of every reward, and the sets that are to be visited.

    `steps` is, by reward, for how many steps it counts; None for ever.
    """

    choices: list[list[Row]]
    rewards: list[list[list[int]]]
    targets: list[set[int]]
    steps: list[int | None]


class OccupationProgram:
    """Values of all objectives, targets first, as linear functions of how often choices are taken."""

    def __init__(self, mdp: SmallMdp) -> None:
        self._mdp = mdp
        horizon = max((k for k in mdp.steps if k is not None), default=0)
        pairs: dict[Pair, int] = {}
        waiting = [self._pair(0, 0, 0)]
        pairs[waiting[0]] = 0
        columns: list[tuple[int, int, dict[int, Fraction]]] = []
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
        ends = self._ends(waiting, pairs, columns)
        m, n_targets = len(columns) + len(ends), len(mdp.targets)
        self.flow = np.zeros((len(pairs), m))
        self.values = np.zeros((n_targets + len(mdp.rewards), m))
        for k, (place, number, entries) in enumerate(columns):
            self.flow[place, k] += 1.0
            for after, p in entries.items():
                self.flow[after, k] -= float(p)
            for j in range(len(mdp.rewards)):
                self.values[n_targets + j, k] = self._earned(j, waiting[place], number)
        for k, place in enumerate(ends, start=len(columns)):
            self.flow[place, k] = 1.0
            for i in range(n_targets):
                self.values[i, k] = waiting[place][1] >> i & 1
        self.start = np.eye(len(pairs))[0]

    def _pair(self, state: int, seen: int, step: int) -> Pair:
        for i, target in enumerate(self._mdp.targets):
            if state in target:
                seen |= 1 << i
        return state, seen, step

    def _earned(self, j: int, pair: Pair, number: int) -> int:
        steps = self._mdp.steps[j]
        return self._mdp.rewards[j][pair[0]][number] if steps is None or pair[2] < steps else 0

    def _ends(
        self, pairs: list[Pair], places: dict[Pair, int], columns: list[tuple[int, int, dict[int, Fraction]]]
    ) -> list[int]:
        staying = set(range(len(pairs)))
        while True:
            kept = {
                place
                for place, number, entries in columns
                if place in staying
                and all(after in staying and pairs[after][1] == pairs[place][1] for after in entries)
                and not any(self._earned(j, pairs[place], number) for j in range(len(self._mdp.rewards)))
            }
            if kept == staying:
                return sorted(staying)
            staying = kept

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


def random_small_mdp(rng: np.random.Generator, n_targets: int, n_rewards: int, counted: bool) -> SmallMdp:
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
    return SmallMdp(choices, rewards, targets, steps)


def small_mdp_text(mdp: SmallMdp) -> str:
    """Return an MDP as a text, with labels t0, t1, ... and reward structures r0, r1, ..."""
    lines = ["mdp", "module m", f"s : [0..{len(mdp.choices) - 1}];"]
    for s, own in enumerate(mdp.choices):
        for k, row in enumerate(own):
            lines.append(f"[a{k}] s={s} -> " + " + ".join(f"{p}:(s'={t})" for t, p in row.items()) + ";")
    lines.append("endmodule")
    for i, target in enumerate(mdp.targets):
        lines.append(f'label "t{i}" = ' + " | ".join(f"s={s}" for s in sorted(target)) + ";")
    for j, earned in enumerate(mdp.rewards):
        items = [f"[a{k}] s={s} : {r};" for s, own in enumerate(earned) for k, r in enumerate(own) if r]
        lines.append(f'rewards "r{j}" ' + " ".join(items or ["false : 0;"]) + " endrewards")
    return "\n".join(lines)
