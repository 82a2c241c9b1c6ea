"""Random models written out, with all that text formats hold, and models compared."""

from __future__ import annotations

import numpy as np

from hybrid.models.interchange import ExplicitModel, ExplicitReward, StateVariable
from mtbdd.language.syntax import ModelType

_NAMES = ("a", "done", "a_long_name_of_an_action", "eight_by", "nine_byte")

_VALUES = np.array([0.5, 0.25, 1.0, 1e-300, 5e-324, 0.1, 3e7, 1.7976931348623157e308, 2.0**-52])


def random_model(rng: np.random.Generator, kind: ModelType, n_rewards: int = 2) -> ExplicitModel:
    """Draw a model; its numbers are any that are not negative, because formats do not look at sums."""
    n = int(rng.integers(1, 12))
    is_mdp = kind is ModelType.MDP
    per_state = rng.integers(1, 4, n) if is_mdp else np.ones(n, np.int64)
    choice_starts = np.append(0, np.cumsum(per_state))
    n_choices = int(choice_starts[-1])
    lengths = rng.integers(1, min(n, 4) + 1, n_choices)
    row_starts = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([np.sort(rng.choice(n, k, replace=False)) for k in lengths])
    values = rng.random(columns.size)
    if kind is not ModelType.CTMC:
        values = np.where(rng.random(columns.size) < 0.5, values, rng.choice(_VALUES, columns.size))
    initial = rng.random(n) < 0.3
    initial[rng.integers(n)] = True
    # Names are numbered as they are met, and one at least has a choice.
    words = rng.integers(-1, len(_NAMES), n_choices) if is_mdp and rng.random() < 0.7 else None
    actions: tuple[str, ...] = ()
    if words is not None and (words >= 0).any():
        met = list(dict.fromkeys(words[words >= 0].tolist()))
        actions = tuple(_NAMES[k] for k in met)
        words = np.array([met.index(k) if k >= 0 else -1 for k in words.tolist()])
    else:
        words = None
    integers = rng.integers(-5, 2000, n)
    truth = rng.random(n) < 0.5
    variables = (
        StateVariable("x", int(integers.min()), int(integers.max())),
        StateVariable("on", 0, 1, True),
    )
    labels = {"deadlock": rng.random(n) < 0.2, "goal": rng.random(n) < 0.5, "goal2": rng.random(n) < 0.5}
    rewards = tuple(
        ExplicitReward(f"r{k}", _sparse(rng, n), _sparse(rng, n_choices)) for k in range(n_rewards)
    )
    return ExplicitModel(
        type=kind,
        n_states=n,
        row_starts=row_starts,
        columns=columns,
        values=values,
        initial=initial,
        choice_starts=choice_starts if is_mdp else None,
        actions=actions,
        choice_actions=words,
        variables=variables,
        valuations={"x": integers, "on": truth},
        labels={name: mask for name, mask in labels.items() if mask.any()},
        rewards=rewards,
    )


def _sparse(rng: np.random.Generator, n: int) -> np.ndarray | None:
    """Draw rewards of which many are 0; None for nothing but zeros."""
    rewards = np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n))
    return rewards if rewards.any() else None


def assert_same(one: ExplicitModel, other: ExplicitModel, *, but: tuple[str, ...] = ()) -> None:
    """Two models have equal arrays, to the bit, and equal names."""
    for name in ("type", "n_states", "actions", "variables", "value_units"):
        if name not in but:
            assert getattr(one, name) == getattr(other, name), name
    for name in ("row_starts", "columns", "values", "initial", "choice_starts", "choice_actions"):
        if name not in but:
            assert_equal_arrays(getattr(one, name), getattr(other, name), name)
    for name in ("labels", "valuations"):
        if name not in but:
            first, second = getattr(one, name), getattr(other, name)
            assert first.keys() == second.keys(), name
            for key in first:
                assert_equal_arrays(first[key], second[key], f"{name}[{key}]")
    if "rewards" not in but:
        assert [reward.name for reward in one.rewards] == [reward.name for reward in other.rewards]
        for mine, theirs in zip(one.rewards, other.rewards, strict=True):
            assert_equal_arrays(mine.states, theirs.states, f"rewards {mine.name}")
            assert_equal_arrays(mine.choices, theirs.choices, f"rewards {mine.name}")
            assert mine.units == theirs.units


def assert_equal_arrays(one: np.ndarray | None, other: np.ndarray | None, what: str) -> None:
    """Both are missing, or equal with equal types."""
    assert (one is None) == (other is None), what
    if one is not None and other is not None:
        assert one.dtype == other.dtype, what
        assert one.shape == other.shape, what
        same = one.view(np.int64) == other.view(np.int64) if one.dtype == np.float64 else one == other
        assert same.all(), what


def renumbered(model: ExplicitModel, like: ExplicitModel) -> np.ndarray:
    """The state of `like` for every state of `model`, found by the values of their variables."""
    names = [variable.name for variable in model.variables]
    assert sorted(names) == sorted(variable.name for variable in like.variables)
    keys, own = (
        list(zip(*(each.valuations[name].tolist() for name in names), strict=True)) for each in (like, model)
    )
    places = {key: k for k, key in enumerate(keys)}
    return np.array([places[key] for key in own])


def rows_of(model: ExplicitModel, to: np.ndarray, k: int | None = None) -> list[list[tuple]]:
    """What every state's choices do after renumbering, sorted, with what reward structure k earns for it."""
    found: list[list[tuple]] = [[] for _ in range(model.n_states)]
    reward = None if k is None else model.rewards[k]
    for choice, state in enumerate(model.state_of_choice.tolist()):
        own = slice(int(model.row_starts[choice]), int(model.row_starts[choice + 1]))
        row = sorted(zip(to[model.columns[own]].tolist(), model.values[own].tolist(), strict=True))
        named = -1 if model.choice_actions is None else int(model.choice_actions[choice])
        earned = 0.0
        if reward is not None:
            earned += 0.0 if reward.states is None else float(reward.states[state])
            earned += 0.0 if reward.choices is None else float(reward.choices[choice])
        action = model.actions[named] if named >= 0 else ""
        # Storm writes some eight digits.
        found[int(to[state])].append((action, tuple(row), round(earned, 6)))
    return [sorted(rows) for rows in found]
