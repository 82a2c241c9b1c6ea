"""Random models with two rewards, the same with counters in their text, and bounds in both spellings."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

BOUNDS = {
    "<={}": "c{} <= {}", "<{}": "c{} < {}", ">={}": "c{} >= {}", ">{}": "c{} > {}", "={}": "c{} = {}",
    "[{},4]": "c{1} >= {0} & c{1} <= 4",
}  # fmt: skip
PATHS = {"F{} ({})": "F ({1} & {0})", "({2}) U{} ({})": "({2}) U ({1} & {0})", "G{} !({})": "G !({1} & {0})"}


class TwoRewards:
    """A random model with two rewards, and the same model with a counter of each in its text."""

    def __init__(self, rng: np.random.Generator, kind: str, units: tuple[Fraction, Fraction]) -> None:
        self.n = int(rng.integers(2, 5))
        of_states = rng.choice([0, 0, 1, 2], size=(2, self.n)) * (kind != "ctmc")
        of_actions = rng.choice([0, 0, 1, 3], size=(2, 2))
        commands, counting = [], []
        for s in range(self.n):
            for c in range(int(rng.integers(1, 3))):
                targets = rng.permutation(self.n)[: int(rng.integers(1, 3))].tolist()
                weights = rng.integers(1, 5, size=len(targets)).tolist()
                counts = "".join(
                    f"&(c{i}'=min(c{i}+{of_states[i, s] + of_actions[i, c]},9))" for i in range(2)
                )
                parts = [f"{w}/{sum(weights)}:(s'={t})" for w, t in zip(weights, targets, strict=True)]
                commands.append(f"[a{c}] s={s} -> {' + '.join(parts)};")
                counting.append(f"[a{c}] s={s} -> {' + '.join(part + counts for part in parts)};")
        head = f"{kind} module m s : [0..{self.n - 1}];"
        items = [
            "".join(f"s={s} : {r * unit}; " for s, r in enumerate(states))
            + "".join(f"[a{c}] true : {r * unit}; " for c, r in enumerate(actions))
            for unit, states, actions in zip(units, of_states.tolist(), of_actions.tolist(), strict=True)
        ]
        ends = [f'rewards "{name}" {own} endrewards\n' for name, own in zip("xy", items, strict=True)]
        never = "[a0] s<0 -> true; [a1] s<0 -> true;"
        self.text = "\n".join([head, *commands, never, "endmodule", *ends])
        self.counting = "\n".join([head, "c0:[0..9]; c1:[0..9];", *counting, never, "endmodule"])
        self.units = units

    def bound(self, i: int, kept: str, number: int) -> tuple[str, str]:
        """Return one of `BOUNDS` for a reward, as a property has it, and of its counter."""
        unit, text = self.units[i], BOUNDS[kept]
        shown = kept.replace("4", str(float(4 * unit))).format(float(number * unit))
        if "{1}" in text:
            return shown, text.format(number, i).replace("c{1}", f"c{i}")
        return shown, text.format(i, number)


def filled(path: str, bounds: str, target: str, safe: str) -> str:
    """Return a path formula with its parts filled in: bounds have braces of their own."""
    return path.replace("{2}", safe).replace("{}", "\0", 1).replace("{}", target).replace("\0", bounds)
