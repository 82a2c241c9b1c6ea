"""Bounds on rewards, against budgets unfolded by definition in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hybrid.run.state_values import StateValues
from tests.builders.models import build
from tests.oracles.budgets import Choice, bounded_until
from tests.oracles.optima import assert_encloses, checked

OPTIONS = [
    {"backend": "cpu"},
    {"backend": "reference", "level": 0},
    {"engine": "explicit", "backend": "cpu"},
    {"backend": "cpu", "method": "interval"},
    {"backend": "cpu", "representation": "tasks"},
    pytest.param({"backend": "gpu"}, marks=pytest.mark.gpu),
    pytest.param({"backend": "gpu", "engine": "explicit"}, marks=pytest.mark.gpu),
]


class Drawn:
    """A random model as a text and as lists; choice c of every state is the action `c{c}`."""

    def __init__(self, rng: np.random.Generator, kind: str, unit: Fraction = Fraction(1)) -> None:
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
            + ["endrewards", "init true endinit"]
        )
        if kind == "dtmc":
            # Commands that are enabled together are equally likely.
            self.choices = [
                [[(p / len(own), r, t) for choice in own for p, r, t in choice]] for own in self.choices
            ]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["dtmc", "mdp"])
def test_random_models(kind: str, options: dict[str, object], rng: np.random.Generator) -> None:
    for number in range(25):
        unit = (Fraction(1), Fraction(1, 2), Fraction(3))[number % 3]
        drawn = Drawn(rng, kind, unit)
        model = build(drawn.text)
        every = set(range(drawn.n))
        safe = every - {int(rng.integers(0, drawn.n))} if number % 2 else every
        target = {int(rng.integers(0, drawn.n))}
        budget = int(rng.integers(0, 8))
        left = " | ".join(f"s={s}" for s in sorted(safe))
        right = " | ".join(f"s={s}" for s in sorted(target))
        bound = f"<={float(budget * unit)}" if number % 5 else f"<{float((budget + 1) * unit)}"
        spelling = (f'{{"r"}}{bound}', f'{{rew{{"r"}}{bound}}}', f"^{{rew{{1}}{bound}}}")[number % 3]
        for optimum in ("",) if kind == "dtmc" else ("min", "max"):
            exact = bounded_until(drawn.choices, safe, target, budget, optimum != "min")[budget]
            found = checked(model, f"P{optimum}=? [ ({left}) U{spelling} ({right}) ]", **options)
            assert isinstance(found, StateValues)
            assert_encloses(found, exact)
            assert_sharp(found, exact)
            # The complement of the same question.
            turned = {"": "", "min": "max", "max": "min"}[optimum]
            if safe == every:
                other = checked(model, f"P{turned}=? [ G{spelling} !({right}) ]", **options)
                assert isinstance(other, StateValues)
                assert_encloses(other, [1 - v for v in exact], 1e-6)


def assert_sharp(found: StateValues, exact: list[Fraction]) -> None:
    """Check that 0 and 1 are known exactly, and other values known to be neither."""
    for i, value in enumerate(exact):
        low, high = found.lower[i], found.upper[i]
        if value in (0, 1):
            assert low == high == value
            continue
        assert low > 0 or (found.open_lower is not None and found.open_lower[i])
        assert high < 1 or (found.open_upper is not None and found.open_upper[i])
