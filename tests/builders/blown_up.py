"""Random models of which several states do the same: a small model, its states in copies.

What a copy does with a block is written as one decimal number, or as several for the block's copies: sums
that are one number on paper, and seldom one double.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["BlownUp", "blown_up"]

# Tenths of a probability, by how they may be written.
_WAYS = {
    1: ("0.1",),
    2: ("0.2", "0.1 0.1"),
    3: ("0.3", "0.1 0.2", "0.2 0.1"),
    4: ("0.4", "0.1 0.3", "0.3 0.1"),
    5: ("0.5", "0.2 0.3"),
    6: ("0.6", "0.1 0.5", "0.2 0.4"),
    7: ("0.7", "0.1 0.6"),
    8: ("0.8", "0.1 0.7"),
    9: ("0.9", "0.2 0.7"),
    10: ("1.0", "0.3 0.7"),
}


@dataclass(frozen=True)
class BlownUp:
    """A model, and what its states are copies of.

    Attributes
    ----------
    text : str
        With labels "goal" and "bad", and rewards of states and of transitions.
    block_of : list of int
        The state of the small model that every state x copies.
    """

    text: str
    block_of: list[int]


def blown_up(rng: np.random.Generator, kind: str, blocks: int = 4, copies: int = 3) -> BlownUp:
    """Return a random dtmc, ctmc or mdp; all states are initial states."""
    block_of = [b for b in range(blocks) for _ in range(int(rng.integers(1, copies + 1)))]
    members = [[x for x, own in enumerate(block_of) if own == b] for b in range(blocks)]
    rows = [
        [_tenths(rng, blocks) for _ in range(int(rng.integers(1, 3)) if kind == "mdp" else 1)]
        for _ in range(blocks)
    ]
    state_rewards, move_rewards = rng.integers(0, 3, blocks), rng.integers(0, 3, blocks)
    marked = rng.random((2, blocks)) < 0.3
    lines, earned = [], []
    for x, b in enumerate(block_of):
        order = rng.permutation(len(rows[b])).tolist()
        # A choice more that does as another is none more.
        chosen = [*order, *order[: int(rng.integers(0, 2)) if kind == "mdp" else 0]]
        for k in chosen:
            lines.append(f"[] x={x} -> {_written(rng, rows[b][k], members)};")
        earned.append(f"x={x} : {state_rewards[b]}*0.1; [] x={x} : {move_rewards[b]}*0.3;")
    goal, bad = (_condition([x for x, b in enumerate(block_of) if own[b]]) for own in marked)
    text = (
        f"{kind}\nmodule m\nx : [0..{len(block_of) - 1}];\n" + "\n".join(lines) + "\nendmodule\n"
        f'init true endinit\nlabel "goal" = {goal};\nlabel "bad" = {bad};\n'
        f'rewards "cost"\n{" ".join(earned)}\nendrewards\n'
    )
    return BlownUp(text, block_of)


def _tenths(rng: np.random.Generator, blocks: int) -> dict[int, int]:
    """Return a distribution over one to three blocks, in tenths."""
    targets = rng.choice(blocks, size=int(rng.integers(1, min(blocks, 3) + 1)), replace=False).tolist()
    cuts = [0, *sorted(rng.choice(np.arange(1, 10), size=len(targets) - 1, replace=False).tolist()), 10]
    return {t: high - low for t, low, high in zip(targets, cuts, cuts[1:], strict=False)}


def _written(rng: np.random.Generator, row: dict[int, int], members: list[list[int]]) -> str:
    """Return a row as text, each block's share given to one copy or two."""
    updates = []
    for block, tenths in row.items():
        ways = [way.split() for way in _WAYS[tenths] if len(way.split()) <= len(members[block])]
        parts = ways[int(rng.integers(len(ways)))]
        targets = rng.permutation(members[block])[: len(parts)].tolist()
        updates += [f"{p}:(x'={t})" for p, t in zip(parts, targets, strict=True)]
    return " + ".join(updates)


def _condition(states: list[int]) -> str:
    return " | ".join(f"x={x}" for x in states) or "false"
