"""Models written in Storm's format DRN."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import ExplicitModel, Numbers
from hybrid.models.interchange.text.writing import ROWS, decimals, matrix, where, whole_numbers, words
from mtbdd.language.syntax import ModelType

Bytes = NDArray[np.uint8]
Cells = list[bytes | Bytes]

_LABEL = re.compile(r'[^"\x00-\x1f\x7f]+')

_TOKEN = re.compile(r'[^\s"\[\]]+')

_WIDTH = 1 << 26
"""Bytes of the cells of states that are made together."""


def _check_names(model: ExplicitModel) -> None:
    """Refuse names that the format cannot hold."""
    for what, form, names in (
        ("label", _LABEL, list(model.labels)),
        ("action", _TOKEN, list(model.actions)),
        ("reward structure", _TOKEN, [reward.name for reward in model.rewards if reward.name is not None]),
    ):
        for name in names:
            if not form.fullmatch(name) or name.strip() != name:
                raise InterchangeError(
                    f"the {what} {name!r}: a name that fits the format DRN (no quotes or control "
                    "characters, in names of actions and rewards no blanks or brackets) expected; rename it"
                )


def _reward_names(model: ExplicitModel) -> list[str]:
    """Return a name for every reward structure; empty for one that has none."""
    names = [reward.name for reward in model.rewards]
    if names == [None]:
        return []
    taken = {name for name in names if name is not None}
    free = (f"reward{k}" for k in range(len(names) + len(taken)) if f"reward{k}" not in taken)
    return [next(free) if name is None else name for name in names]


def drn_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield a model in the format DRN, which Storm reads: a header, then the states with all that is theirs.

    Variables are written as comments ``//[x=1 & b=true]``. Reward structures without a name get one,
    ``reward0`` and so on, unless there is only one. Numbers read as the same doubles. Time: some microsecond
    a line. Raises InterchangeError: a name that the format cannot hold.
    """
    _check_names(model)
    kind = model.type.value.upper()
    yield (
        f"// Original model type: {kind}\n@type: {kind}\n@value_type: double\n@parameters\n\n@reward_models\n"
        f"{' '.join(_reward_names(model))}\n@nr_states\n{model.n_states}\n@nr_choices\n"
        f"{model.n_choices}\n@model\n"
    ).encode()
    choice_starts = model.choice_starts
    if choice_starts is None:
        choice_starts = np.arange(model.n_states + 1, dtype=np.int64)
    # Lines above every state, of which a block has some hundred thousand.
    above = np.arange(model.n_states + 1) + choice_starts + model.row_starts[choice_starts]
    wide = sum(len(name) + 3 for name in (*model.labels, "init")) + 24 * (2 + len(model.variables))
    wide += 24 * len(model.rewards) + sum(len(variable.name) for variable in model.variables)
    first = 0
    while first < model.n_states:
        end = int(np.searchsorted(above, above[first] + ROWS, side="right")) - 1
        end = min(max(end, first + 1), first + max(1, _WIDTH // wide), model.n_states)
        yield _block(model, choice_starts, first, end)
        first = end


def _block(model: ExplicitModel, choice_starts: Numbers, first: int, end: int) -> bytes:
    """Return the lines of a range of states."""
    states = np.arange(first, end)
    choices = np.arange(choice_starts[first], choice_starts[end])
    entries = (
        np.arange(model.row_starts[choices[0]], model.row_starts[choices[-1] + 1])
        if choices.size
        else choices
    )
    kinds = [
        matrix(states.size, _state_cells(model, states)),
        matrix(choices.size, _choice_cells(model, choice_starts, choices)),
        matrix(
            entries.size,
            [b"\t\t", whole_numbers(model.columns[entries]), b" : ", decimals(model.values[entries]), b"\n"],
        ),
    ]
    # Which line is of which kind follows from how many lines stand above it.
    owners = np.searchsorted(choice_starts, choices, side="right") - 1
    rows = np.searchsorted(model.row_starts, entries, side="right") - 1
    state_lines = states + choice_starts[states] + model.row_starts[choice_starts[states]]
    choice_lines = owners + 1 + choices + model.row_starts[choices]
    entry_lines = owners[rows - choices[0]] + 1 + rows + 1 + entries if entries.size else entries
    lines = [each - state_lines[0] for each in (state_lines, choice_lines, entry_lines)]
    n = sum(each.size for each in lines)
    lengths = np.zeros(n, dtype=np.int64)
    kind_of = np.zeros(n, dtype=np.int8)
    for k, (cells, own) in enumerate(zip(kinds, lines, strict=True)):
        lengths[own] = np.count_nonzero(cells, axis=1)
        kind_of[own] = k
    places = np.repeat(kind_of, lengths)
    text = np.empty(places.size, dtype=np.uint8)
    for k, cells in enumerate(kinds):
        text[places == k] = cells[cells != 0]
    return text.tobytes()


def _state_cells(model: ExplicitModel, states: Numbers) -> Cells:
    """Return the cells of the lines of states, and of the comments below them."""
    cells: Cells = [b"state ", whole_numbers(states)]
    if model.type is ModelType.CTMC:
        cells += [b" !", decimals(model.row_sums[states])]
    cells += _reward_cells([reward.states for reward in model.rewards], states)
    for name, mask in (("init", model.initial), *model.labels.items()):
        shown = f'"{name}"' if " " in name else name
        cells.append(where(np.asarray(mask)[states], f" {shown}".encode()))
    cells.append(b"\n")
    truth = words([b"false", b"true"])
    for k, variable in enumerate(model.variables):
        values = np.asarray(model.valuations[variable.name])[states].astype(np.int64)
        cells.append(("\t& " if k else "//[").encode() + f"{variable.name}=".encode())
        cells.append(truth[values] if variable.is_bool else whole_numbers(values))
    return [*cells, b"]\n"] if model.variables else cells


def _choice_cells(model: ExplicitModel, choice_starts: Numbers, choices: Numbers) -> Cells:
    """Return the cells of the lines of choices."""
    cells: Cells = [b"\taction "]
    if model.choice_actions is None:
        owners = np.searchsorted(choice_starts, choices, side="right") - 1
        cells.append(whole_numbers(choices - choice_starts[owners]))
    else:
        names = words([name.encode() for name in model.actions] + [b"__NOLABEL__"])
        cells.append(names[model.choice_actions[choices]])
    return [*cells, *_reward_cells([reward.choices for reward in model.rewards], choices), b"\n"]


def _reward_cells(rewards: list[NDArray[np.float64] | None], own: Numbers) -> Cells:
    """Return the cells of rewards in brackets; nothing if there are none."""
    cells: Cells = []
    for k, values in enumerate(rewards):
        cells += [b", " if k else b" [", b"0" if values is None else decimals(values[own])]
    return [*cells, b"]"] if cells else []
