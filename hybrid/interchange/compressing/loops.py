"""Self-loops for states of a written-out model that have no choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpu_kernels.ragged import pointers
from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward, Mask, Numbers, Vector


def with_loops(model: ExplicitModel) -> tuple[ExplicitModel, Mask]:
    """Return a model whose deadlocks have a choice that leads back with weight 1, and the deadlocks.

    Notes
    -----
    Time: O(states); where there are deadlocks, O(entries) for copies of the arrays.
    """
    counts = np.diff(model.row_starts if model.choice_starts is None else model.choice_starts)
    deadlocks: Mask = counts == 0
    where = np.flatnonzero(deadlocks)
    if not where.size:
        return model, deadlocks
    first = where if model.choice_starts is None else model.choice_starts[where]
    places = model.row_starts[first]
    lengths = np.diff(model.row_starts)
    if model.choice_starts is None:
        lengths = lengths + deadlocks
        return replace(
            model,
            row_starts=pointers(np, lengths),
            columns=np.insert(model.columns, places, where),
            values=np.insert(model.values, places, 1.0),
        ), deadlocks
    actions, commands = model.choice_actions, model.choice_commands
    return replace(
        model,
        row_starts=pointers(np, np.insert(lengths, first, 1)),
        choice_starts=pointers(np, counts + deadlocks),
        columns=np.insert(model.columns, places, where),
        values=np.insert(model.values, places, 1.0),
        choice_actions=None if actions is None else np.insert(actions, first, -1),
        choice_commands=None if commands is None else np.insert(commands, first, -1),
        rewards=tuple(_with_zeros(reward, first) for reward in model.rewards),
    ), deadlocks


def _with_zeros(reward: ExplicitReward, places: Numbers) -> ExplicitReward:
    """Return a reward structure in which new choices earn nothing."""
    choices: Vector | None = reward.choices
    return reward if choices is None else replace(reward, choices=np.insert(choices, places, 0.0))
