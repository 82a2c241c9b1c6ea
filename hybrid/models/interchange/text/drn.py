"""Models in Storm's format DRN, as Storm and PRISM write it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers, unless_zero
from hybrid.models.interchange.text.drn_lines import (
    DrnLines,
    Heads,
    read_heads,
    read_state_labels,
    read_transition_lines,
    read_valuations,
    split_lines,
    unread_valuations,
)
from hybrid.models.interchange.text.rows import require_below, require_not_negative
from hybrid.models.interchange.text.source import (
    MODEL_TYPES,
    Section,
    TextPlaces,
    first_repeated,
    read_section,
    require_room,
    shown,
)
from mtbdd.language.syntax import ModelType

_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+/\d+")
_COUNT = re.compile(rb"\d{1,18}")
_PLACEHOLDER = re.compile(rb"\$([^\s:]+)\s*:\s*(\S.*)")


@dataclass(frozen=True)
class DrnHeader:
    """The header of a DRN file, before its states."""

    type: ModelType
    rewards: tuple[str, ...]  # names of the reward structures; fewer than there are if they have none
    n_states: int
    n_choices: int | None
    placeholders: dict[bytes, bytes]  # numbers under their names, each as text
    body: Section


@dataclass
class _HeaderEntries:
    """Entries of the header read so far, under the keys of the format."""

    values: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    placeholders: dict[bytes, bytes] = field(default_factory=dict)


def read_header(whole: Section) -> DrnHeader:
    """Read the header.

    `whole`: the file. Raises InterchangeError: a line that the format does not have, parameters, intervals,
    or a kind of model that is not offered.
    """
    found = _HeaderEntries()
    data, start, number = whole.data, 0, 0
    key: str | None = None
    while start < len(data):
        end = data.index(b"\n", start)
        line = data[start:end].strip()
        start, number = end + 1, number + 1
        place = whole.place(number - 1)
        if line == b"@model":
            body = Section(whole.source, data[start:], whole.first + number)
            return _complete(whole, found, place, body)
        if line.startswith(b"//"):
            continue
        if line.startswith(b"@"):
            key, value = _key(place, line)
            if key in found.values:
                raise InterchangeError(f"{place}: '@{key}' once expected, got it again; remove one")
            found.values[key] = number - 1, value
        elif key == "placeholders" and line:
            _add_placeholder(place, line, found.placeholders)
        elif key in ("parameters", "reward_models", "nr_states", "nr_choices") and not found.values[key][1]:
            found.values[key] = number - 1, line
            key = None if line else key
        elif line:
            raise InterchangeError(
                f"{place}: a line of a DRN header ('@type: MDP', '@nr_states' ...) expected, got "
                f"{shown(line)}; mend this line"
            )
    raise InterchangeError(
        f"{whole.place(max(0, number - 1))}: '@model' expected, got the end of the file; write the file again"
    )


def _key(place: str, line: bytes) -> tuple[str, bytes]:
    """Return a key with the text after it."""
    name, _, value = line[1:].partition(b":")
    key = name.strip().decode("utf-8")
    if key not in (
        "type",
        "value_type",
        "parameters",
        "placeholders",
        "reward_models",
        "nr_states",
        "nr_choices",
    ):
        raise InterchangeError(
            f"{place}: a key of the DRN format ('@type', '@nr_states' ...) expected, got {shown(line)}; "
            "mend this line"
        )
    return key, value.strip()


def _add_placeholder(place: str, line: bytes, placeholders: dict[bytes, bytes]) -> None:
    """Keep the number of a placeholder."""
    match = _PLACEHOLDER.fullmatch(line)
    value = None if match is None else placeholders.get(match[2].strip().removeprefix(b"$"), match[2].strip())
    if match is None or value is None or not _NUMBER.fullmatch(value):
        raise InterchangeError(
            f"{place}: a placeholder as '$name : number' expected, got {shown(line)}; functions of "
            "parameters are not offered"
        )
    if match[1] in placeholders:
        raise InterchangeError(f"{place}: '${match[1].decode()}' once expected, got it again; remove one")
    placeholders[match[1]] = value


def _complete(whole: Section, found: _HeaderEntries, place: str, body: Section) -> DrnHeader:
    """Return the header after its values have been examined."""
    number, kind = found.values.get("type", (0, b""))
    name = kind.decode("utf-8").upper()
    if name not in MODEL_TYPES:
        raise InterchangeError(
            f"{whole.place(number)}: '@type:' with DTMC, CTMC or MDP expected, got {shown(kind)}; other "
            "models are not offered"
        )
    number, value_type = found.values.get("value_type", (0, b"double"))
    if value_type not in (b"double", b"rational"):
        raise InterchangeError(
            f"{whole.place(number)}: '@value_type:' with double or rational expected, got "
            f"{shown(value_type)}; intervals and functions of parameters are not offered"
        )
    number, parameters = found.values.get("parameters", (0, b""))
    if parameters:
        raise InterchangeError(
            f"{whole.place(number)}: no parameters expected, got {shown(parameters)}; give the parameters "
            "values"
        )
    n_states = _count(whole, found, "nr_states", place)
    if n_states is None:
        raise InterchangeError(
            f"{place}: '@nr_states' above expected, got none; add it with the number of states"
        )
    require_room(whole.place(found.values["nr_states"][0]), n_states, body.n_lines)
    rewards = tuple(found.values.get("reward_models", (0, b""))[1].decode("utf-8").split())
    if (twice := first_repeated(rewards)) is not None:
        line = found.values["reward_models"][0]
        raise InterchangeError(
            f"{whole.place(line)}: every reward structure once expected, got {twice!r} again; rename one"
        )
    n_choices = _count(whole, found, "nr_choices", place)
    return DrnHeader(MODEL_TYPES[name], rewards, n_states, n_choices, found.placeholders, body)


def _count(whole: Section, found: _HeaderEntries, key: str, place: str) -> int | None:
    """Return a count of the header, None if it is not there."""
    if key not in found.values:
        return None
    number, value = found.values[key]
    if not _COUNT.fullmatch(value):
        raise InterchangeError(
            f"{whole.place(number)}: a number below '@{key}' expected, got {shown(value)}; mend this line"
        )
    return int(value)


_NO_NAME = "__NOLABEL__"

_RATE_TOLERANCE = 1e-3
"""An exit rate may be written with few digits."""


def read_drn(path: str | Path) -> ExplicitModel:
    """Read a model in the format DRN.

    `path`: may be compressed. Values may be fractions, which mean the nearest double, and placeholders.
    Raises InterchangeError: a damaged file; parameters, intervals, or a kind of model that is not offered.
    Time: below a microsecond a line. Memory: the text some three times, and the arrays.

    Returns ExplicitModel: variables are those of comments ``//[x=1 & b=true]`` below the states; a warning
    says why there are none although there are such comments. Choices have no actions where all are called
    ``__NOLABEL__``, or by their number within the state. Names of actions of chains are dropped.
    """
    whole = read_section(path)
    header = read_header(whole)
    lines = split_lines(header.body, header.placeholders)
    entries = read_transition_lines(lines.transitions)
    heads = read_heads(
        lines.states, b"state", 1 + (header.type is ModelType.CTMC), len(header.rewards) or None
    )
    _check_states(header, lines.states, heads)
    moves = read_heads(lines.actions, b"action", 0, heads.n_rewards)
    choice_starts = _starts(header, lines)
    row_starts = np.append(
        np.searchsorted(lines.transitions.numbers, lines.actions.numbers), lines.transitions.numbers.size
    ).astype(np.int64)
    _check_owners(lines, choice_starts, row_starts)
    columns, values = entries.columns
    require_below(entries, 0, "target", header.n_states)
    require_not_negative(entries)
    if header.type is ModelType.CTMC:
        _check_rates(lines.states, heads, row_starts, values)
    labels, initial = read_state_labels(heads.rest, header.n_states)
    variables, valuations = read_valuations(lines.comments, lines.states.numbers)
    unread = None if variables else unread_valuations(lines.comments, lines.states)
    is_mdp = header.type is ModelType.MDP
    actions, choice_actions = _actions(moves, choice_starts) if is_mdp else ((), None)
    return ExplicitModel(
        type=header.type,
        n_states=header.n_states,
        row_starts=row_starts,
        columns=columns,
        values=values,
        initial=initial,
        choice_starts=choice_starts if is_mdp else None,
        actions=actions,
        choice_actions=choice_actions,
        variables=variables,
        valuations=valuations,
        labels=labels,
        rewards=_rewards(header, heads, moves),
        value_units=entries.units,
        source=whole.source,
        places=TextPlaces(
            whole.source,
            entries=lines.transitions.numbers,
            row_starts=row_starts,
            choice_starts=choice_starts if is_mdp else None,
            choices=lines.actions.numbers,
            states=lines.states.numbers,
        ),
        warnings=() if unread is None else (unread,),
    )


def _check_states(header: DrnHeader, section: Section, heads: Heads) -> None:
    """Refuse states that are not numbered from 0 as announced."""
    n = section.numbers.size
    if n != header.n_states:
        place = section.place(header.n_states) if n > header.n_states else header.body.place(-1)
        raise InterchangeError(
            f"{place}: {header.n_states} states, as '@nr_states' says, expected, got {n}; mend the count or "
            "the states"
        )
    numbers = heads.rows.columns[0]
    wrong = numbers != np.arange(n)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InterchangeError(
            f"{section.place(row)}: state {row} expected, got {numbers[row]}; number the states from 0 in "
            "the order of the file"
        )


def _starts(header: DrnHeader, lines: DrnLines) -> Numbers:
    """Return the first choice of every state."""
    n = lines.actions.numbers.size
    if header.n_choices is not None and n != header.n_choices:
        raise InterchangeError(
            f"{header.body.place(-1)}: {header.n_choices} actions, as '@nr_choices' says, expected, got "
            f"{n}; mend the count or the actions"
        )
    starts = np.append(np.searchsorted(lines.actions.numbers, lines.states.numbers), n).astype(np.int64)
    if starts[0]:
        raise InterchangeError(
            f"{lines.actions.place(0)}: a state expected, got an action; add the line 'state 0'"
        )
    if header.type is not ModelType.MDP and (np.diff(starts) != 1).any():
        state = int(np.argmax(np.diff(starts) != 1))
        raise InterchangeError(
            f"{lines.states.place(state)}: one action of a state of a {header.type.value.upper()} expected, "
            f"got {starts[state + 1] - starts[state]}; mend this state or the type"
        )
    return starts


def _check_owners(lines: DrnLines, choice_starts: Numbers, row_starts: Numbers) -> None:
    """Refuse transitions above the first action of a state."""
    before = np.searchsorted(lines.transitions.numbers, lines.states.numbers)
    stray = before != row_starts[choice_starts[:-1]]
    if stray.any():
        first = int(before[int(np.argmax(stray))])
        raise InterchangeError(
            f"{lines.transitions.place(first)}: an action expected, got a transition; add a line 'action "
            "name' above it"
        )
    if before[0]:
        raise InterchangeError(
            f"{lines.transitions.place(0)}: a state expected, got a transition; add the line 'state 0'"
        )


def _check_rates(section: Section, heads: Heads, row_starts: Numbers, values: NDArray[np.float64]) -> None:
    """Refuse exit rates that are not the sums of the rates."""
    rates = heads.rows.columns[1]
    sums = np.zeros(rates.size)
    filled = np.flatnonzero(np.diff(row_starts))
    if filled.size:
        sums[filled] = np.add.reduceat(values, row_starts[filled])
    wrong = ~(np.abs(rates - sums) <= _RATE_TOLERANCE * np.maximum(np.abs(rates), sums))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InterchangeError(
            f"{section.place(row)}: the exit rate {sums[row]}, the sum of the rates, expected, got "
            f"{rates[row]}; mend this line or the rates (a CTMC's transitions have rates, not "
            "probabilities)"
        )


def _actions(moves: Heads, choice_starts: Numbers) -> tuple[tuple[str, ...], Numbers | None]:
    """Return the names of actions, and the number of each choice's."""
    words, names = moves.words, moves.names
    if all(name.isdecimal() and len(name) < 18 for name in names):
        numbers = np.array([int(name) for name in names], dtype=np.int64)[words]
        own = np.arange(words.size) - np.repeat(choice_starts[:-1], np.diff(choice_starts))
        if (numbers == own).all():
            return (), None
    if _NO_NAME in names:
        # The name of no action gives its number up.
        gone = names.index(_NO_NAME)
        words = np.where(words == gone, -1, words - (words > gone))
        names = tuple(name for name in names if name != _NO_NAME)
    return (names, words) if names else ((), None)


def _rewards(header: DrnHeader, heads: Heads, moves: Heads) -> tuple[ExplicitReward, ...]:
    """Return the reward structures in the order of the header."""
    found = []
    for k in range(heads.n_rewards):
        states, choices = (unless_zero(x.rows.columns[k - heads.n_rewards]) for x in (heads, moves))
        name = header.rewards[k] if header.rewards else None
        # lemma: entry-units
        found.append(ExplicitReward(name, states, choices, max(heads.rows.units, moves.rows.units)))
    return tuple(found)
