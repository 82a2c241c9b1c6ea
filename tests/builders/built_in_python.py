"""Case studies of `examples/`, written with the builder of Python."""

from __future__ import annotations

import hybrid

__all__ = ["coin", "kanban"]

_GOOD, _BAD, _BACK = (0.84, 0.98, 0.91, 0.77), (0.36, 0.42, 0.39, 0.33), 0.3


def kanban(t: int) -> hybrid.ModelBuilder:
    """Return `examples/kanban.prism`."""
    m = hybrid.ModelBuilder("ctmc", name="kanban")
    cells = [[m.variable(f"{name}{i}", 0, t) for name in "wxyz"] for i in range(1, 5)]
    for i, (w, x, y, z) in enumerate(cells):
        cell = m.module(f"cell{i + 1}")
        entering = w < t if i == 0 else (w < t) & (x < t)
        rate = 1.0 if i == 0 else None
        cell.command(entering, {w: w + 1, x: x + 1}, rate=rate, action=("in", "to2", "to2", "to4")[i])
        cell.command((x > 0) & (z < t), {x: x - 1, z: z + 1}, rate=_GOOD[i])
        cell.command((x > 0) & (y < t), {x: x - 1, y: y + 1}, rate=_BAD[i])
        cell.command((y > 0) & (x < t), {y: y - 1, x: x + 1}, rate=_BACK)
        rate = (0.4, 0.5, None, 0.9)[i]
        action = ("to2", "to4", "to4", None)[i]
        cell.command((z > 0) & (w > 0), {z: z - 1, w: w - 1}, rate=rate, action=action)
    m.reward("throughput", value=1.0, action="in")
    return m


def coin(k: int) -> hybrid.ModelBuilder:
    """Return `examples/coin.prism`, for two processes."""
    m = hybrid.ModelBuilder("mdp", name="coin")
    wall, line = 2 * (k + 1), 2 * k
    counter = m.variable("counter", -wall, wall, initial=0)
    decided, heads = [], []
    for i in (1, 2):
        at, side = m.variable(f"at{i}", 0, 3), m.boolean(f"heads{i}")
        process = m.module(f"process{i}")
        process.command(at == 0, updates=[(0.5, {side: False, at: 1}), (0.5, {side: True, at: 1})])
        process.command((at == 1) & ~side & (counter > -wall), {counter: counter - 1, at: 2})
        process.command((at == 1) & side & (counter < wall), {counter: counter + 1, at: 2, side: False})
        process.command((at == 2) & (counter <= -line), {at: 3})
        process.command((at == 2) & (counter >= line), {at: 3, side: True})
        process.command((at == 2) & (abs(counter) < line), {at: 0})
        process.command(at == 3, action="rest")
        decided.append(at == 3)
        heads.append(side)
    m.label("decided", decided[0] & decided[1])
    m.label("all_heads", decided[0] & decided[1] & heads[0] & heads[1])
    m.label("all_tails", decided[0] & decided[1] & ~heads[0] & ~heads[1])
    m.reward("steps")
    return m
