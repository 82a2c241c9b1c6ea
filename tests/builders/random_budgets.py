"""Random chains and decision processes whose steps earn whole multiples of a unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.oracles.budgets import Choice


class DrawnRewards:
    """A random model as a text and as lists; choice c of every state is the action `c{c}`."""

    def __init__(
        self, rng: np.random.Generator, kind: str, unit: Fraction, initial: int | None = None
    ) -> None:
        self.kind, self.n = kind, int(rng.integers(2, 5))
        states = [int(r) for r in rng.choice([0, 0, 0, 1, 2], size=self.n)]
        moves = [int(r) for r in rng.choice([0, 0, 1, 3], size=2)]
        self.choices: list[list[Choice]] = []
        commands = []
        for s in range(self.n):
            own = []
            for c in range(int(rng.integers(1, 3))):
                targets = rng.permutation(self.n)[: int(rng.integers(1, 4))]
                weights = rng.integers(1, 5, size=targets.size)
                p = [Fraction(int(w), int(weights.sum())) for w in weights]
                text = " + ".join(f"{a}:(s'={t})" for a, t in zip(p, targets, strict=True))
                commands.append(f"[c{c}] s={s} -> {text};")
                earned = states[s] + moves[c]
                own.append([(a, earned, int(t)) for a, t in zip(p, targets, strict=True)])
            self.choices.append(own)
        items = [f"s={s} : {r * unit};" for s, r in enumerate(states)]
        most = max(map(len, self.choices))
        items += [f"[c{c}] true : {r * unit};" for c, r in enumerate(moves[:most])]
        self.text = "\n".join(
            [kind, f"module m s : [0..{self.n - 1}];", *commands, "endmodule", 'rewards "r"', *items]
            + ["endrewards", f"init {'true' if initial is None else f's={initial}'} endinit"]
        )
        if kind == "dtmc":
            # Commands that are enabled together are equally likely.
            self.choices = [
                [[(p / len(own), r, t) for choice in own for p, r, t in choice]] for own in self.choices
            ]
