"""Models as PRISM's explicit files: ``.tra`` with its neighbours, or all tables in one ``.pexp``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers
from hybrid.models.interchange.text.source import NAME
from hybrid.models.interchange.text.writing import ROWS, decimals, text_of_rows, where, whole_numbers, words


def transition_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the table of transitions, in the order of the model; PRISM adds up those with the same ends.

    Numbers are written so that they read as the same doubles. Time: some microsecond a transition. Raises
    InterchangeError: the name of an action is none of PRISM's.
    """
    if model.is_mdp and not np.diff(model.row_starts).all():
        choice = int(np.argmin(np.diff(model.row_starts)))
        raise InterchangeError(
            f"{model.places.choice(choice)}: choices with transitions expected, as PRISM's files have no "
            "others, got one without; remove it"
        )
    counts = [model.n_states, *([model.n_choices] if model.is_mdp else []), model.n_entries]
    yield f"# Transitions ({model.type.value.upper()})\n{' '.join(map(str, counts))}\n".encode()
    named = model.choice_actions is not None and bool((model.choice_actions >= 0).any())
    if named:
        _require_names("action", model.actions)
        # The last row is that of no action.
        texts = words([b" " + name.encode() for name in model.actions] + [b""])
    for first, end, choices in _entry_chunks(model):
        parts = [*_owners(model, choices), b" ", whole_numbers(model.columns[first:end])]
        parts += [b" ", decimals(model.values[first:end])]
        if named and model.choice_actions is not None:
            parts.append(texts[model.choice_actions[choices]])
        yield text_of_rows(end - first, [*parts, b"\n"])


def state_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the table of states; a model without variables gets one, ``x``, the number of the state."""
    _require_names("variable", [variable.name for variable in model.variables])
    names = [variable.name for variable in model.variables] or ["x"]
    yield f"# States\n({','.join(names)})\n".encode()
    truth = words([b"false", b"true"])
    for first in range(0, model.n_states, ROWS):
        numbers = np.arange(first, min(first + ROWS, model.n_states))
        parts: list[bytes | NDArray[np.uint8]] = [whole_numbers(numbers), b":("]
        for k, name in enumerate(names):
            values = np.asarray(model.valuations[name])[numbers] if model.variables else numbers
            logical = bool(model.variables) and model.variables[k].is_bool
            cells = truth[values.astype(np.int64)] if logical else whole_numbers(values.astype(np.int64))
            parts += [b"," if k else b"", cells]
        yield text_of_rows(numbers.size, [*parts, b")\n"])


def label_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the table of labels: ``init``, then ``deadlock`` if the model has it, then the others."""
    masks = {"init": model.initial}
    if "deadlock" in model.labels:
        masks["deadlock"] = model.labels["deadlock"]
    masks.update(model.labels)
    _require_names("label", list(masks))
    yield ("# Labels\n" + " ".join(f'{k}="{name}"' for k, name in enumerate(masks)) + "\n").encode()
    rows = max(1, min(ROWS, (1 << 26) // (8 * len(masks))))
    for first in range(0, model.n_states, rows):
        own = [mask[first : first + rows] for mask in masks.values()]
        kept = np.flatnonzero(np.logical_or.reduce(own))
        parts: list[bytes | NDArray[np.uint8]] = [whole_numbers(kept + first), b":"]
        parts += [where(mask[kept], f" {k}".encode()) for k, mask in enumerate(own)]
        if kept.size:
            yield text_of_rows(kept.size, [*parts, b"\n"])


def state_reward_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the table of states' rewards, for a model with one reward structure."""
    (reward,) = model.rewards
    kept = np.zeros(0, np.int64) if reward.states is None else np.flatnonzero(reward.states)
    yield f"{_reward_title(reward)}# State rewards\n{model.n_states} {kept.size}\n".encode()
    for first in range(0, kept.size, ROWS):
        own = kept[first : first + ROWS]
        if reward.states is not None:
            yield text_of_rows(own.size, [whole_numbers(own), b" ", decimals(reward.states[own]), b"\n"])


def transition_reward_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the table of transitions' rewards, for a model with one reward structure.

    Every transition earns what its choice earns (in a CTMC a jump). That is the same in every expected
    measure: a choice's transitions have probabilities that add up to 1. The distribution of what is earned
    on a path differs where a source had unequal rewards.
    """
    (reward,) = model.rewards
    lengths = np.diff(model.row_starts)
    earned = np.zeros(model.n_choices) if reward.choices is None else reward.choices
    n = int(lengths[earned != 0].sum())
    counts = [model.n_states, *([model.n_choices] if model.is_mdp else []), n]
    yield f"{_reward_title(reward)}# Transition rewards\n{' '.join(map(str, counts))}\n".encode()
    if not n:
        return
    for first, _, choices in _entry_chunks(model):
        kept = np.flatnonzero(earned[choices])
        if kept.size:
            own = choices[kept]
            cells = [*_owners(model, own), b" ", whole_numbers(model.columns[first + kept])]
            yield text_of_rows(own.size, [*cells, b" ", decimals(earned[own]), b"\n"])


def _reward_title(reward: ExplicitReward) -> str:
    if reward.name is None:
        return "# Reward structure\n"
    _require_names("reward structure", [reward.name])
    return f'# Reward structure "{reward.name}"\n'


def _require_names(what: str, names: list[str] | tuple[str, ...]) -> None:
    """Refuse names that PRISM does not read."""
    for name in names:
        if not NAME.fullmatch(name):
            raise InterchangeError(
                f"the {what} {name!r}: a name of letters, digits and '_' expected in PRISM's files; rename "
                "it, or write another format"
            )


def _entry_chunks(model: ExplicitModel) -> Iterator[tuple[int, int, Numbers]]:
    """Yield ranges of entries with the choices that they belong to."""
    for first in range(0, model.n_entries, ROWS):
        end = min(first + ROWS, model.n_entries)
        yield first, end, np.searchsorted(model.row_starts, np.arange(first, end), side="right") - 1


def _owners(model: ExplicitModel, choices: Numbers) -> list[bytes | NDArray[np.uint8]]:
    """Return the cells of state, and number of the choice in an MDP."""
    if model.choice_starts is None:
        return [whole_numbers(choices)]
    states = model.state_of_choice[choices]
    return [whole_numbers(states), b" ", whole_numbers(choices - model.choice_starts[states])]


def combined_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield all tables as the sections of one file, with an empty line between them.

    Every transition of a choice gets the choice's reward, as `transition_reward_blocks` says.
    """
    yield from transition_blocks(model)
    if model.variables:
        yield b"\n"
        yield from state_blocks(model)
    yield b"\n"
    yield from label_blocks(model)
    for reward in model.rewards:
        alone = replace(model, rewards=(reward,))
        yield b"\n"
        yield from state_reward_blocks(alone)
        yield b"\n"
        yield from transition_reward_blocks(alone)
