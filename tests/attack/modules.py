"""Random models of two or three modules that act together."""

from __future__ import annotations

from random import Random

from tests.attack.numerals import numeral, rate, reward, tiny_decimals, weights
from tests.attack.spec import Command, Guard, Module, RewardItem, Spec

__all__ = ["module_spec"]


def module_spec(rng: Random, kind: str) -> Spec:
    """Return a model of modules with two or three states each, sharing the actions a and b."""
    highest = [
        rng.randint(1, 2 if kind != "mdp" else 1)
        for _ in range(2 if kind == "mdp" else rng.choice((2, 2, 3)))
    ]
    if len(highest) == 3:
        highest = [1, 1, 1]
    style = rng.choice(("dyadic", "decimal", "fraction", "tiny"))
    # Products of two of these are still numbers in double precision.
    tiny = tuple(t for t in tiny_decimals(rng) if float(t) > 1e-140) or ("1e-9",)
    rates = rng.choice(("plain", "stiff"))
    modules = []
    for i, high in enumerate(highest):
        name = f"x{i}"
        other = (i + 1) % len(highest)
        commands = []
        for value in range(high + 1):
            for _ in range(1 if rng.random() < (0.8 if kind == "mdp" else 0.5) else 2):
                guard: Guard = ((name, "=", value),)
                if rng.random() < 0.3:
                    guard = (
                        *guard,
                        (f"x{other}", rng.choice(("=", "!=", "<=")), rng.randint(0, highest[other])),
                    )
                targets = rng.sample(range(high + 1), rng.randint(1, min(2, high + 1)))
                if kind == "ctmc":
                    numbers = [rate(rng, rates) if rng.random() < 0.7 else numeral("1") for _ in targets]
                else:
                    numbers = weights(rng, len(targets), style, tiny)
                updates = tuple(
                    (p, () if t == value and rng.random() < 0.5 else ((name, t),))
                    for p, t in zip(numbers, targets, strict=True)
                )
                commands.append(Command(rng.choice(("", "a", "a", "b")), guard, updates))
        modules.append(Module(f"m{i}", ((name, 0, high, rng.randint(0, high)),), tuple(commands)))
    guards: list[Guard] = [
        (),
        *((("x0", "=", v),) for v in range(highest[0] + 1)),
        (("x0", "=", 1), ("x1", "=", 1)),
    ]
    signed = () if kind == "mdp" else ("signed",)
    reward_style = rng.choice(("whole", "fraction", "huge", *signed))
    items = tuple(
        RewardItem(rng.choice((None, None, "", "a", "b")), rng.choice(guards), reward(rng, reward_style))
        for _ in range(rng.randint(1, 4))
    )
    return Spec(kind, "modules", tuple(modules), (items,), rng.random() < 0.15)
