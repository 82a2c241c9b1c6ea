"""Models in Storm's format DRN, as Storm and PRISM write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.drn.header import DrnHeader, read_header
from hybrid.interchange.drn.labels import read_state_labels
from hybrid.interchange.drn.lines import (
    DrnLines,
    Heads,
    PickedSection,
    read_heads,
    read_transition_lines,
    split_lines,
)
from hybrid.interchange.drn.valuations import read_valuations, unread_valuations
from hybrid.interchange.explicit_model import ExplicitModel, ExplicitReward
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.places import TextPlaces
from hybrid.interchange.text.rows import Rows
from hybrid.interchange.text.source import read_section
from mtbdd.language.syntax import ModelType

Numbers = NDArray[np.int64]

_NO_NAME = "__NOLABEL__"

_RATE_TOLERANCE = 1e-3
"""An exit rate may be written with few digits."""


def read_drn(path: str | Path) -> ExplicitModel:
    """Read a model in the format DRN.

    Parameters
    ----------
    path : str or Path
        May be compressed. Values may be fractions, which mean the nearest double, and placeholders.

    Returns
    -------
    ExplicitModel
        Variables are those that comments ``//[x=1 & b=true]`` below the states tell; a warning says why there
        are none although there are such comments. Choices have no actions where all are called
        ``__NOLABEL__``, or by their number within the state. Names of actions of chains are dropped.

    Raises
    ------
    InterchangeError
        A damaged file; parameters, intervals, or a kind of model that is not offered.

    Notes
    -----
    Time: below a microsecond a line. Memory: the text some three times, and the arrays.
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
        np.searchsorted(lines.transitions.lines, lines.actions.lines), lines.transitions.lines.size
    ).astype(np.int64)
    _check_owners(lines, choice_starts, row_starts)
    columns, values = entries.columns
    _check_entries(lines.transitions, columns, values, header.n_states)
    if header.type is ModelType.CTMC:
        _check_rates(lines.states, heads, row_starts, values)
    labels, initial = read_state_labels(heads.rest, header.n_states)
    variables, valuations = read_valuations(lines.comments, lines.states.lines)
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
            lines.transitions.lines,
            row_starts,
            choice_starts if is_mdp else None,
            choices=lines.actions.lines,
            states=lines.states.lines,
        ),
        warnings=() if unread is None else (unread,),
    )


def _check_states(header: DrnHeader, section: PickedSection, heads: Heads) -> None:
    """Refuse states that are not numbered from 0 as announced."""
    n = section.lines.size
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
    n = lines.actions.lines.size
    if header.n_choices is not None and n != header.n_choices:
        raise InterchangeError(
            f"{header.body.place(-1)}: {header.n_choices} actions, as '@nr_choices' says, expected, got "
            f"{n}; mend the count or the actions"
        )
    starts = np.append(np.searchsorted(lines.actions.lines, lines.states.lines), n).astype(np.int64)
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
    before = np.searchsorted(lines.transitions.lines, lines.states.lines)
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


def _check_entries(
    section: PickedSection, columns: Numbers, values: NDArray[np.float64], n_states: int
) -> None:
    """Refuse targets that do not exist and negative values."""
    wrong = (columns < 0) | (columns >= n_states)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InterchangeError(
            f"{section.place(row)}: a target from 0 to {n_states - 1} expected, got {columns[row]}; mend "
            "this line"
        )
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise InterchangeError(
            f"{section.place(row)}: a number that is not negative expected, got {values[row]!r}; mend this "
            "line"
        )


def _check_rates(
    section: PickedSection, heads: Heads, row_starts: Numbers, values: NDArray[np.float64]
) -> None:
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
            f"{section.place(row)}: the exit rate {sums[row]!r}, the sum of the rates, expected, got "
            f"{rates[row]!r}; mend this line or the rates (a CTMC's transitions have rates, not "
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
        states = _column(heads.rows, k - heads.n_rewards)
        choices = _column(moves.rows, k - heads.n_rewards)
        name = header.rewards[k] if header.rewards else None
        # lemma: entry-units
        found.append(ExplicitReward(name, states, choices, max(heads.rows.units, moves.rows.units)))
    return tuple(found)


def _column(rows: Rows, number: int) -> NDArray[np.float64] | None:
    """Return a column of rewards, None for nothing but zeros."""
    column: NDArray[np.float64] = rows.columns[number]
    return column if column.any() else None
