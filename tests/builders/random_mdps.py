"""Random small MDPs for Hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

__all__ = ["mdps"]

_ACTIONS = ("", "a", "b")


@st.composite
def mdps(draw: st.DrawFn) -> str:
    """Draw the text of an MDP of up to six states, with up to three choices each, loops and dead ends."""
    n = draw(st.integers(2, 6))
    commands = ["[a] x<0 -> true;", "[b] x<0 -> true;"]
    for s in range(n):
        for _ in range(draw(st.integers(0, 3 if n < 6 else 2))):
            action = draw(st.sampled_from(_ACTIONS))
            targets = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
            weights = draw(st.lists(st.integers(1, 3), min_size=len(targets), max_size=len(targets)))
            total = sum(weights)
            updates = " + ".join(f"{w}/{total}:(x'={t})" for w, t in zip(weights, targets, strict=True))
            commands.append(f"[{action}] x={s} -> {updates};")
    rewards = [f"x={s} : {draw(st.integers(0, 2))};" for s in range(n)]
    rewards += [f"[{a}] x={s} : {draw(st.integers(0, 2))};" for a in _ACTIONS for s in range(n)]
    free = draw(st.sets(st.integers(0, n - 1)))
    body = "\n".join(commands)
    paid = "\n".join(r for r in rewards if int(r.split("x=")[1].split(" ")[0]) not in free)
    return (
        f"mdp\nmodule m\nx : [0..{n - 1}];\n{body}\nendmodule\n"
        f"init true endinit\nrewards\n{paid}\nx<0 : 1;\nendrewards\n"
    )


SPLITS = ((1.0,), (0.5, 0.5), (0.25, 0.75), (0.25, 0.25, 0.5))


@st.composite
def flat(draw: st.DrawFn) -> str:
    """Draw an MDP of up to six states, each with one to three choices; half of the lines are labelled."""
    n = draw(st.integers(2, 6))
    lines = []
    for state in range(n):
        for _ in range(draw(st.integers(1, 3 if n < 6 else 2))):
            split = draw(st.sampled_from(SPLITS))
            updates = " + ".join(f"{p}:(x'={draw(st.integers(0, n - 1))})" for p in split)
            lines.append(f"[{draw(st.sampled_from(('', 'a', 'b')))}] x={state} -> {updates};")
    return (
        f"mdp module m x : [0..{n - 1}]; {' '.join(draw(st.permutations(lines)))} endmodule init true endinit"
    )


def random_mdp(rng: np.random.Generator, least: int = 0) -> str:
    """The text of an MDP of up to six states with up to three choices each, loops, end components.

    `least` is what states earn at least.
    """
    n = int(rng.integers(2, 6))
    commands, rewards = [], []
    for s in range(n):
        for choice in range(int(rng.integers(0, 4))):
            targets = rng.choice(n, size=int(rng.integers(1, min(n, 3) + 1)), replace=False).tolist()
            parts = [int(rng.integers(1, 4)) for _ in targets]
            updates = " + ".join(f"{p}/{sum(parts)}:(x'={t})" for p, t in zip(parts, targets, strict=True))
            action = "ab"[choice % 2] if rng.random() < 0.5 else ""
            commands.append(f"[{action}] x={s} -> {updates};")
        if rng.random() < 0.6:
            rewards.append(f"x={s} : {int(rng.integers(least, 3))}; [a] x={s} : {int(rng.integers(0, 2))};")
    body, earned = "\n".join(commands), "\n".join(rewards)
    return (
        f"mdp\nmodule m\nx : [0..{n - 1}];\n[a] x<0 -> true;\n{body}\nendmodule\ninit true endinit\n"
        f"rewards\n{earned}\nx<0 : 1;\nendrewards\n"
    )
