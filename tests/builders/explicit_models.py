"""Models as arrays: random ones with variables, labels and rewards, and the examples written out."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import hybrid
from hybrid.models.interchange import ExplicitModel, ExplicitReward, StateVariable
from hybrid.models.interchange.formats import targets_of, write_target
from hybrid.models.interchange.write_out import written_out
from mtbdd.language.syntax import ModelType
from tests.source_tree import ROOT

__all__ = ["example_written_out", "random_explicit_model", "write_listed"]


@cache
def example_written_out(name: str, **constants: int) -> ExplicitModel:
    """Return an example of the project with every state and transition; do not change its arrays."""
    return written_out(hybrid.load(ROOT / "examples" / f"{name}.prism", constants, order="model"))


def write_listed(model: ExplicitModel, path: Path, *, force: bool = False) -> Path:
    """Write a model in the format that a name tells; return the first file, of several reward structures."""
    targets = targets_of(path, len(model.rewards))
    for target in targets:
        write_target(model, target, force=force)
    return targets[0].path


def random_explicit_model(
    rng: np.random.Generator, kind: str, *, most_states: int = 9, with_variables: bool | None = None
) -> ExplicitModel:
    """Return a model of a few states, some without transitions, some with equal valuations, in any order."""
    n = int(rng.integers(1, most_states + 1))
    counts = rng.integers(0, 4, n) if kind == "mdp" else np.ones(n, dtype=np.int64)
    n_choices = int(counts.sum())
    lengths = rng.integers(1, 4, n_choices)
    if kind != "mdp":
        lengths[rng.random(n) < 0.15] = 0
    targets, values = [], []
    for length in lengths.tolist():
        chosen = rng.choice(n, min(length, n), replace=False)
        weights = rng.choice([1.0, 2.0, 3.0, 0.1, 1e-6, 7.25], len(chosen))
        targets.append(rng.permutation(chosen))
        values.append(weights if kind == "ctmc" else weights / weights.sum())
    lengths = np.array([len(t) for t in targets], dtype=np.int64)
    variables: tuple[StateVariable, ...] = ()
    valuations: dict[str, Any] = {}
    if rng.random() < 0.7 if with_variables is None else with_variables:
        variables = (StateVariable("x", -1, 3), StateVariable("up", 0, 1, is_bool=True))
        valuations = {"x": rng.integers(-1, 4, n), "up": rng.random(n) < 0.5}
    state_reward, choice_reward = rng.integers(0, 4, n) / 2.0, rng.integers(0, 3, n_choices) * 0.3
    return ExplicitModel(
        ModelType(kind),
        n,
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([*targets, np.zeros(0)]).astype(np.int64),
        np.concatenate([*values, np.zeros(0)]).astype(np.float64),
        np.arange(n) == int(rng.integers(n)),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64) if kind == "mdp" else None,
        ("go", "stay") if kind == "mdp" else (),
        rng.integers(-1, 2, n_choices) if kind == "mdp" else None,
        variables,
        valuations,
        {"goal": rng.random(n) < 0.3, "some": rng.random(n) < 0.6},
        (ExplicitReward("cost", state_reward, choice_reward), ExplicitReward(None, state_reward)),
    )
