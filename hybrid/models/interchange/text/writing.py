"""Texts that are written as columns of bytes: MatrixMarket, Storm's format DRN, PRISM's explicit files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import written
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers, Vector
from hybrid.models.interchange.text.source import NAME
from mtbdd.language.syntax import ModelType

_PACKED = {".gz": "gzip", ".xz": "xz"}
_EFFORTS = {None: 0, "gzip": 6, "xz": 2}


def write_text(path: str | Path, blocks: Iterable[bytes]) -> None:
    """Write a text, compressed if the name ends with ``.gz`` or ``.xz``.

    `path`: an old file is replaced once the new one is whole, which gets its mode; a device or a pipe is
    written to. Raises OSError: the file cannot be written.
    """
    compression = _PACKED.get(Path(path).suffix)
    with written(path, compression, _EFFORTS[compression]) as sink:
        for block in blocks:
            sink.write(block)


Bytes = NDArray[np.uint8]

ROWS = 1 << 17
"""Rows that are written together."""


def whole_numbers(values: Numbers) -> Bytes:
    """Return whole numbers as text, shape (n, width)."""
    below = values < 0
    left = np.abs(values).astype(np.uint64)
    width = len(str(int(left.max()))) if left.size else 1
    cells = np.zeros((values.size, width + 1), dtype=np.uint8)
    for k in range(width, 0, -1):
        if k < width:
            live = left > 0
            if not live.any():
                break
        rest = left // 10
        digit = (left - 10 * rest).astype(np.uint8) + 48
        cells[:, k] = digit if k == width else np.where(live, digit, 0)
        left = rest
    if below.any():
        # Zeros between sign and digits are dropped with the others.
        cells[below, 0] = ord("-")
        return cells
    return cells[:, 1:]


def decimals(values: Vector) -> Bytes:
    """Return doubles as the shortest text that reads as the same double, shape (n, width).

    Numbers without a fraction are written without a point, as PRISM and Storm do.
    """
    bits = values.view(np.int64)
    known = np.unique(bits)
    if known.size * 4 <= bits.size:
        return words(_texts(known.view(np.float64)))[np.searchsorted(known, bits)]
    return words(_texts(values))


def _texts(values: Vector) -> list[bytes]:
    """Return the text of every number."""
    return [text.removesuffix(".0").encode() for text in map(repr, values.tolist())]


def words(texts: Sequence[bytes]) -> Bytes:
    """Return texts as a matrix, shape (n, width)."""
    table = np.array(texts, dtype="S") if texts else np.zeros(0, dtype="S1")
    return table.view(np.uint8).reshape(len(texts), -1)


def text_of_rows(n: int, parts: Sequence[bytes | Bytes]) -> bytes:
    """Return rows of cells as text.

    `n`: number of rows. `parts` (sequence of bytes or ndarray of uint8, shape (n, width)): cells of every
    row, or what stands in all rows.
    """
    return matrix(n, parts).tobytes().translate(None, b"\0")


def matrix(n: int, parts: Sequence[bytes | Bytes]) -> Bytes:
    """Return rows of cells as one matrix, shape (n, sum of widths)."""
    columns = [
        np.broadcast_to(np.frombuffer(part, dtype=np.uint8), (n, len(part)))
        if isinstance(part, bytes)
        else part
        for part in parts
    ]
    return np.concatenate(columns, axis=1)


def where(mask: NDArray[np.bool_], text: bytes) -> Bytes:
    """Return a text in the rows of a mask, shape (n, len(text))."""
    return np.where(mask[:, None], np.frombuffer(text, dtype=np.uint8)[None, :], np.uint8(0))


_MOST_STARTS = 1000


def matrix_blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the transition matrix as MatrixMarket, coordinate real general.

    Rows are choices: of a chain its states, of an MDP the choices of state 0, then those of state 1, and so
    on; a comment shows where the choices of each state begin, if there are few. Rows and columns count from
    1, entries come by row. Numbers read as the same doubles; of entries at one place the format leaves open
    what they mean, most readers add them up. Time: some microsecond an entry.
    """
    what = "rates" if model.type.value == "ctmc" else "probabilities"
    rows = "choices" if model.is_mdp else "states"
    lines = [
        f"%%MatrixMarket matrix coordinate real general\n% {what} of a {model.type.value}; rows are {rows}\n"
    ]
    if model.choice_starts is not None and model.n_states <= _MOST_STARTS:
        starts = (model.choice_starts[:-1] + 1).tolist()
        lines += [f"% state {state}: rows from {row}\n" for state, row in enumerate(starts, 1)]
    lines.append(f"{model.n_choices} {model.n_states} {model.n_entries}\n")
    yield "".join(lines).encode()
    for first in range(0, model.n_entries, ROWS):
        end = min(first + ROWS, model.n_entries)
        own = np.searchsorted(model.row_starts, np.arange(first, end), side="right")
        columns = model.columns[first:end] + 1
        yield text_of_rows(
            end - first,
            [
                whole_numbers(own),
                b" ",
                whole_numbers(columns),
                b" ",
                decimals(model.values[first:end]),
                b"\n",
            ],
        )


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
