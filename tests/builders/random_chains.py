"""Random chains over one variable, as text and as exact rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

__all__ = ["RandomChain"]

WEIGHTS = ["1/3", "0.1", "0.25", "2/7", "0.9", "1e-3", "1", "3.7", "1e-4", "12345.678"]


class RandomChain:
    """A chain over x = 0..n-1 that may have several bottom components, loops and dead ends.

    Attributes
    ----------
    text : str
    rates : list of dict
        Of a DTMC scaled to add up to one.
    rewards : list of Fraction
        A step, or a unit of time.
    """

    def __init__(self, rng: np.random.Generator, continuous: bool, sparse: bool = True) -> None:
        n = int(rng.integers(2, 9))
        self.size, self.continuous = n, continuous
        commands, self.rates, earned = [], [], []
        for s in range(n):
            count = int(rng.integers(0 if sparse else 1, 4))
            targets = rng.choice(n, size=min(count, n), replace=False).tolist()
            weights = [str(rng.choice(WEIGHTS)) for _ in targets]
            if not continuous and targets:
                parts = [int(rng.integers(1, 9)) for _ in targets]
                weights = [f"{part}/{sum(parts)}" for part in parts]
            row = {t: Fraction(w) for t, w in zip(targets, weights, strict=True)}
            if row:
                updates = " + ".join(f"{w}:(x'={t})" for t, w in zip(targets, weights, strict=True))
                commands.append(f"[] x={s} -> {updates};")
            state, moved = (int(rng.integers(0, 3)) for _ in range(2))
            commands.append("")
            earned.append((state, moved))
            self.rates.append(row or {s: Fraction(1)})
            self._dead = None if row else s
        dead = {
            s for s, row in enumerate(self.rates) if row == {s: Fraction(1)} and not self._moves(commands, s)
        }
        self.rewards = [
            Fraction(state) + (0 if s in dead else moved * sum(self.rates[s].values()))
            for s, (state, moved) in enumerate(earned)
        ]
        items = [f"x={s} : {a}; [] x={s} : {b};" for s, (a, b) in enumerate(earned)]
        kind = "ctmc" if continuous else "dtmc"
        body = "\n".join(c for c in commands if c)
        self.text = (
            f"{kind}\nmodule m\nx : [0..{n - 1}];\n{body}\nendmodule\ninit true endinit\n"
            f"rewards\n{' '.join(items)}\nendrewards\n"
        )

    @staticmethod
    def _moves(commands: list[str], state: int) -> bool:
        return any(c.startswith(f"[] x={state} ->") for c in commands)


def chain_text(kind, rows, rewards):
    lines = [kind, "module m", f"  s : [0..{len(rows) - 1}];"]
    for i, row in enumerate(rows):
        updates = " + ".join(f"{w.numerator}/{w.denominator} : (s'={j})" for j, w in row.items())
        lines.append(f"  [] s={i} -> {updates};")
    lines += ["endmodule", "init s>=0 endinit", "rewards"]
    lines += [f"  s={i} : {r};" for i, r in enumerate(rewards)]
    return "\n".join([*lines, "endrewards"])


@st.composite
def chains(draw, kind=None):
    """Draw a chain: its kind, its text and two disjoint sets of states."""
    kind = draw(st.sampled_from(["dtmc", "ctmc"])) if kind is None else kind
    size = draw(st.integers(2, 7))
    rows = []
    for _ in range(size):
        successors = draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3, unique=True))
        weights = [Fraction(draw(st.sampled_from([1, 2, 3, 7, 40, 1000]))) for _ in successors]
        scale = sum(weights) if kind == "dtmc" else Fraction(draw(st.sampled_from([1, 5, 100])))
        rows.append({j: w / scale for j, w in zip(successors, weights, strict=True)})
    rewards = [draw(st.integers(0, 5)) for _ in range(size)]
    roles = [draw(st.sampled_from(["safe", "target", "other"])) for _ in range(size)]
    safe = {i for i, role in enumerate(roles) if role == "safe"}
    target = {i for i, role in enumerate(roles) if role == "target"}
    return kind, chain_text(kind, rows, rewards), safe, target


def condition(states):
    return " | ".join(f"s={i}" for i in sorted(states)) or "false"
