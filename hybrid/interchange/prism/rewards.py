"""PRISM's tables of rewards: files ``.srew`` and ``.trew``, or sections of a file ``.pexp``."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.folding import folded
from hybrid.interchange.prism.transitions import TransitionTable
from hybrid.interchange.text.heads import Head, read_counts, read_head, require_count
from hybrid.interchange.text.rows import Rows, read_rows
from hybrid.interchange.text.source import Section
from mtbdd.language.syntax import ModelType

Numbers = NDArray[np.int64]
Vector = NDArray[np.float64]

_TITLE = re.compile(r'Reward structure(?: "([^"]*)")?')


@dataclass(frozen=True, eq=False)
class RewardTable:
    """Rewards of all states or of all choices, with a bound on their relative error in units of 2^-53."""

    name: str | None
    rewards: Vector
    units: float


def read_state_rewards(section: Section, n_states: int) -> RewardTable:
    """Read a table of rewards of states.

    Parameters
    ----------
    section : Section
    n_states : int
        Of the transitions.

    Returns
    -------
    RewardTable
        Rewards of shape (n_states,), 0 where the table has none.

    Raises
    ------
    InterchangeError
        The table of another model, a state twice, or no finite number.
    """
    head = read_head(section, "counts of states and rewards")
    name = _name(section, head, "State rewards")
    counts = read_counts(section, head, ("states rewards",))
    _require_states(section, head, counts[0], n_states)
    rows = read_rows(head.body, "if", "state, reward")
    require_count(section, head, counts[1], len(rows.words), "rewards")
    states, rewards = rows.columns
    _require_below(head.body, rows, 0, "state", n_states)
    total = np.zeros(n_states)
    total[states] = rewards
    _require_once(head.body, rows, states)
    return RewardTable(name, total, rows.units)


def read_transition_rewards(section: Section, model: TransitionTable) -> RewardTable:
    """Read a table of rewards of transitions, folded into what choices earn on average.

    Parameters
    ----------
    section : Section
    model : TransitionTable

    Returns
    -------
    RewardTable
        Rewards of shape (n_choices,). Where all transitions of a choice earn the same, that is its reward.

    Raises
    ------
    InterchangeError
        The table of another model, a transition that does not exist, or one that is not the only one.
    """
    head = read_head(section, "counts of states and rewards")
    name = _name(section, head, "Transition rewards")
    is_mdp = model.type is ModelType.MDP
    forms = ("states choices rewards", "states rewards") if is_mdp else ("states rewards",)
    counts = read_counts(section, head, forms)
    _require_states(section, head, counts[0], model.n_states)
    n_choices = len(model.row_starts) - 1
    if len(counts) == 3 and counts[1] != n_choices:
        raise InterchangeError(
            f"{section.place(head.number)}: {n_choices} choices expected, got {counts[1]}; give the rewards "
            "of the same model"
        )
    if is_mdp:
        rows = read_rows(head.body, "iiif", "state, choice, target, reward")
    else:
        rows = read_rows(head.body, "iif", "state, target, reward")
    require_count(section, head, counts[-1], len(rows.words), "rewards")
    _require_below(head.body, rows, 0, "state", model.n_states)
    _require_below(head.body, rows, len(rows.columns) - 2, "target", model.n_states)
    choices = _choices(head.body, rows, model)
    entries = _entries(head.body, rows, choices, model)
    rewards = np.zeros(len(model.values))
    rewards[entries] = rows.columns[-1]
    expected, units = expected_rewards(model.row_starts, model.values, rewards, model.type)
    # What rounding fractions adds: of a rate it counts twice, in the sum too; no bound where signs meet.
    # lemma: entry-units
    if extra := rows.units + model.units * (2.0 if units else 0.0):
        cancels = bool((rewards < 0).any() and (rewards > 0).any())
        # lemma: entry-units
        units = math.inf if cancels else (units + extra) * (1.0 + 2.0**-40)
    return RewardTable(name, expected, units)


def expected_rewards(
    row_starts: Numbers, values: Vector, rewards: Vector, type: ModelType
) -> tuple[Vector, float]:
    """Return what choices earn on average, and a bound on the relative error.

    Where all transitions of a choice earn the same number, that number stands for it, as it is.

    Parameters
    ----------
    row_starts : ndarray of int64, shape (n_choices + 1,)
    values, rewards : ndarray of float64, shape (n_entries,)
    type : ModelType

    Returns
    -------
    expected : ndarray of float64, shape (n_choices,)
    units : float
        In units of 2^-53.
    """
    expected = np.zeros(len(row_starts) - 1)
    lengths = np.diff(row_starts)
    filled = np.flatnonzero(lengths)
    if not filled.size or not rewards.any():
        return expected, 0.0
    first = row_starts[filled]
    equal = np.minimum.reduceat(rewards, first) == np.maximum.reduceat(rewards, first)
    expected[filled[equal]] = rewards[first[equal]]
    mixed = np.where(np.repeat(equal, lengths[filled]), 0.0, rewards)
    rest, units = folded(row_starts, values, mixed, type is ModelType.CTMC)
    return expected + rest, units


def _name(section: Section, head: Head, kind: str) -> str | None:
    """Return the reward structure's name, after the comments have been looked at."""
    name = None
    for comment in head.comments:
        if match := _TITLE.fullmatch(comment):
            name = match[1]
        elif comment in ("State rewards", "Transition rewards") and comment != kind:
            raise InterchangeError(
                f"{section.place(0)}: {kind.lower()} expected, got {comment.lower()}; give the other file"
            )
    return name


def _require_states(section: Section, head: Head, counted: int, n_states: int) -> None:
    if counted != n_states:
        raise InterchangeError(
            f"{section.place(head.number)}: {n_states} states expected, got {counted}; give the rewards "
            "of the same model"
        )


def _require_below(body: Section, rows: Rows, column: int, what: str, limit: int) -> None:
    numbers = rows.columns[column]
    wrong = (numbers < 0) | (numbers >= limit)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InterchangeError(
            f"{body.place(rows.line(row))}: a {what} from 0 to {limit - 1} expected, got {numbers[row]}; "
            "mend this line"
        )


def _require_once(body: Section, rows: Rows, states: Numbers) -> None:
    order = np.argsort(states, kind="stable")
    again = states[order[1:]] == states[order[:-1]]
    if again.any():
        row = int(order[1:][again].min())
        raise InterchangeError(
            f"{body.place(rows.line(row))}: one reward of state {states[row]} expected, got another one; "
            "mend this line"
        )


def _choices(body: Section, rows: Rows, model: TransitionTable) -> Numbers:
    """Return the choice of every row."""
    states = rows.columns[0]
    if model.choice_starts is None:
        return states
    choices: Numbers = rows.columns[1]
    n_own = model.choice_starts[states + 1] - model.choice_starts[states]
    wrong = (choices < 0) | (choices >= n_own)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InterchangeError(
            f"{body.place(rows.line(row))}: one of the {n_own[row]} choices of state {states[row]} "
            f"expected, got {choices[row]}; mend this line"
        )
    found: Numbers = model.choice_starts[states] + choices
    return found


def _entries(body: Section, rows: Rows, choices: Numbers, model: TransitionTable) -> Numbers:
    """Return the transition of every row; of parallel ones all must have their row."""
    keys = choices * model.n_states + rows.columns[-2]
    owners = np.repeat(np.arange(len(model.row_starts) - 1), np.diff(model.row_starts))
    known = owners * model.n_states + model.columns
    order = np.argsort(known, kind="stable")
    known = known[order]
    own_order = np.argsort(keys, kind="stable")
    sorted_keys = keys[own_order]
    left = np.searchsorted(known, sorted_keys, "left")
    n_known = np.searchsorted(known, sorted_keys, "right") - left
    own_left = np.searchsorted(sorted_keys, sorted_keys, "left")
    n_own = np.searchsorted(sorted_keys, sorted_keys, "right") - own_left
    wrong = n_known != n_own
    if wrong.any():
        k = int(np.argmax(wrong))
        row = int(own_order[k])
        raise InterchangeError(
            f"{body.place(rows.line(row))}: a reward for each of the {n_known[k]} transitions from state "
            f"{rows.columns[0][row]} to {rows.columns[-2][row]} expected, got {n_own[k]}; mend this line"
        )
    entries = np.empty(keys.size, dtype=np.int64)
    entries[own_order] = order[left + np.arange(keys.size) - own_left]
    return entries
