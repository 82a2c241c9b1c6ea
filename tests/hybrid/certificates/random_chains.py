"""Random chains over one variable, as text and as exact rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

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
