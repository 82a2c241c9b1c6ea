"""Small random chains and decision processes whose states show letters, as texts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

__all__ = ["LABELS", "NAMES", "LabelledModel", "Row", "random_labelled", "random_row"]

NAMES = ("a", "b", "c")
LABELS = tuple(f'"{name}"' for name in NAMES)
Row = dict[int, Fraction]


@dataclass(frozen=True)
class LabelledModel:
    """A chain or a decision process: rows by state and choice; bit i of a state's letter is `NAMES[i]`."""

    kind: str
    choices: list[list[Row]]
    letters: list[int]

    @property
    def n_states(self) -> int:
        return len(self.choices)

    @property
    def rows(self) -> list[Row]:
        """The rows of a chain."""
        return [own[0] for own in self.choices]

    def text(self, rewards: str = "") -> str:
        """The model in PRISM's language, a variable `s`, every state initial; with rewards the k-th choice
        of a state has the action `ck`."""
        lines = [
            f"[{f'c{k}' if rewards else ''}] s={s} -> "
            + " + ".join(f"{p}:(s'={t})" for t, p in row.items())
            + ";"
            for s, own in enumerate(self.choices)
            for k, row in enumerate(own)
        ]
        labels = [
            f"label {label} = "
            + (" | ".join(f"s={s}" for s, x in enumerate(self.letters) if x >> i & 1) or "false")
            + ";"
            for i, label in enumerate(LABELS)
        ]
        body = [f"s : [0..{self.n_states - 1}];", *lines, "endmodule", "init true endinit", *labels, rewards]
        return "\n".join([self.kind, "module m", *body])

    def letters_for(self, names: tuple[str, ...]) -> list[int]:
        """The states' letters in an automaton's own order of propositions."""
        return [sum((x >> NAMES.index(p) & 1) << i for i, p in enumerate(names)) for x in self.letters]


def random_row(rng: np.random.Generator, n: int) -> Row:
    targets = rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
    weights = [int(w) for w in rng.integers(1, 4, size=len(targets))]
    return {t: Fraction(w, sum(weights)) for t, w in zip(targets, weights, strict=True)}


def random_labelled(rng: np.random.Generator, kind: str) -> LabelledModel:
    """A chain of 2 to 5 states, or a decision process of 2 to 4 with up to three choices."""
    if kind != "mdp":
        n = int(rng.integers(2, 6))
        choices = [[random_row(rng, n)] for _ in range(n)]
    else:
        n = int(rng.integers(2, 5))
        choices = [[random_row(rng, n) for _ in range(int(rng.integers(1, 4)))] for _ in range(n)]
    return LabelledModel(kind, choices, rng.integers(0, 8, size=n).tolist())
