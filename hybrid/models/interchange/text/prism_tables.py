"""PRISM's tables of transitions and of rewards: ``.tra``, ``.srew``, ``.trew``, sections of ``.pexp``."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward, Numbers, Vector, folded
from hybrid.models.interchange.text.rows import Rows, read_rows, require_below, require_not_negative
from hybrid.models.interchange.text.source import (
    MODEL_TYPES,
    NAME,
    Head,
    Section,
    TextPlaces,
    read_counts,
    read_head,
    require,
    require_count,
    require_room,
)
from mtbdd.base.errors import option
from mtbdd.language.syntax import ModelType

Place = Callable[[int], str]
_TITLE = re.compile(r"Transitions \(([^()]*)\)")


def read_transitions(section: Section, type: ModelType | None) -> ExplicitModel:
    """Read a table of transitions.

    `type`: what the model is; None: what the file says. Returns ExplicitModel: entries by state and choice,
    within one in the order of the file; state 0 is the initial one. Raises InterchangeError: other counts,
    states or choices than announced, a negative number, or a kind of model that is not offered. Rows of four
    numbers are those of an MDP also where choices are not counted, as in schedulers that PRISM writes; a
    question mark stands there for the count of transitions.
    """
    head = read_head(section, "counts of states and transitions")
    forms = ("states transitions", "states choices transitions", "states choices transitions observations")
    told = head.line.split()
    uncounted = len(told) == 2 and told[1] == b"?"
    numbers = read_counts(replace(head, line=told[0] + b" 0") if uncounted else head, forms)
    kind = _kind(section, head, type, len(numbers))
    n_states, n_entries = numbers[0], numbers[-1]
    require_room(head.place, n_states, head.body.n_lines)
    if kind is ModelType.MDP:
        rows = read_rows(head.body, "iiif", "state, choice, target, probability", word=True)
    else:
        value = "rate" if kind is ModelType.CTMC else "probability"
        rows = read_rows(head.body, "iif", f"state, target, {value}", word=True)
    if not uncounted:
        require_count(head, n_entries, len(rows.words), "transitions")
    _check(rows, n_states)
    order = _order(rows.columns[:-2])
    return _arranged(section, head, kind, numbers, rows, order)


def _kind(section: Section, head: Head, type: ModelType | None, n_counts: int) -> ModelType:
    """Return the kind of model."""
    place = head.place
    named = None
    for comment in head.comments:
        if match := _TITLE.fullmatch(comment):
            named = match[1]
    if type is None and named is not None:
        if named not in MODEL_TYPES:
            raise InterchangeError(
                f"{section.place(0)}: a DTMC, CTMC or MDP expected, got {named!r}; other models are not "
                "offered"
            )
        type = MODEL_TYPES[named]
    if type is None and (n_counts == 3 or _numbers_of_row(head.body) == 4):
        type = ModelType.MDP
    if n_counts == 4:
        raise InterchangeError(
            f"{place}: two or three counts expected, got four, those of a POMDP; POMDPs are not offered"
        )
    if type is None:
        raise InterchangeError(
            f"{place}: a comment '# Transitions (DTMC)' or '# Transitions (CTMC)' above expected, got none; "
            f"give the type of the model, {option('type', 'dtmc', 'ctmc')}"
        )
    if type is not ModelType.MDP and n_counts == 3:
        raise InterchangeError(
            f"{place}: two counts of a {type.value.upper()} expected, got 3; give the type of the model, "
            f"{option('type', 'mdp')}, or another file"
        )
    return type


def _numbers_of_row(body: Section) -> int:
    """Return how many numbers the first row has; a name behind them is none."""
    for line in io.BytesIO(body.data):
        fields = line.split()
        if fields and not fields[0].startswith(b"#"):
            return sum(not NAME.fullmatch(field.decode("utf-8")) for field in fields)
    return 0


def _check(rows: Rows, n_states: int) -> None:
    """Refuse numbers that no state or choice has, negative values and names that PRISM does not have."""
    advice = "mend this line or the counts"
    require_below(rows, 0, "state", n_states, advice)
    require_below(rows, len(rows.columns) - 2, "target", n_states, advice)
    if len(rows.columns) == 4:
        choices = rows.columns[1]
        require(choices >= 0, rows.place, "a choice from 0 or more", choices, advice)
    require_not_negative(rows)
    for number, name in enumerate(rows.names):
        if not NAME.fullmatch(name):
            row = int(np.argmax(rows.words == number))
            raise InterchangeError(
                f"{rows.place(row)}: the name of an action (letters, digits, '_') expected, got {name!r}; "
                "mend this line"
            )


def _order(keys: tuple[Numbers, ...]) -> Numbers | None:
    """Return the stable order by state (and choice); None if rows are in order."""
    ascending = True
    tie = np.ones(max(0, keys[0].size - 1), dtype=bool)
    for key in keys:
        step = np.diff(key)
        ascending = ascending and not bool((tie & (step < 0)).any())
        tie &= step == 0
    return None if ascending else np.lexsort(keys[::-1])


def _arranged(
    section: Section, head: Head, kind: ModelType, numbers: tuple[int, ...], rows: Rows, order: Numbers | None
) -> ExplicitModel:
    """Return the model of a table with starts of rows."""
    if order is not None:
        lines = rows.lines + np.arange(order.size) if isinstance(rows.lines, int) else rows.lines
        columns = tuple(column[order] for column in rows.columns)
        rows = replace(rows, columns=columns, words=rows.words[order], lines=lines[order])
    columns, words = rows.columns, rows.words
    states, n_states = columns[0], numbers[0]
    choice_starts: Numbers | None = None
    choice_actions: Numbers | None = None
    actions: tuple[str, ...] = ()
    if kind is ModelType.MDP:
        begins = _first_entries(states, columns[1])
        _check_choices(rows.place, states[begins], columns[1][begins], begins)
        if len(numbers) == 3:
            require_count(head, numbers[1], begins.size, "choices")
        row_starts = np.append(begins, np.int64(words.size))
        choice_starts = np.searchsorted(states[begins], np.arange(n_states + 1)).astype(np.int64)
        choice_actions, actions = _actions(rows.place, words.astype(np.int64), row_starts, rows.names)
    else:
        row_starts = np.searchsorted(states, np.arange(n_states + 1)).astype(np.int64)
    return ExplicitModel(
        kind,
        n_states,
        row_starts,
        columns[-2],
        columns[-1],
        np.arange(n_states) == 0,
        choice_starts,
        actions,
        choice_actions,
        value_units=rows.units,
        source=section.source,
        places=TextPlaces(
            section.source,
            entries=rows.lines,
            row_starts=row_starts,
            choice_starts=choice_starts,
            fallback=head.body.first - 1,
        ),
    )


def _first_entries(states: Numbers, choices: Numbers) -> Numbers:
    """Return the first entry of every choice."""
    if not states.size:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.append(True, (np.diff(states) != 0) | (np.diff(choices) != 0)))


def _check_choices(place: Place, states: Numbers, choices: Numbers, begins: Numbers) -> None:
    """Refuse choices of a state that are not numbered from 0 without gaps."""
    fresh = np.append(True, np.diff(states) != 0)[: states.size]
    expected = np.where(fresh, 0, np.append(0, choices[:-1])[: choices.size] + 1)
    if (choices != expected).any():
        k = int(np.argmax(choices != expected))
        raise InterchangeError(
            f"{place(int(begins[k]))}: choice {expected[k]} of state {states[k]} expected, got "
            f"{choices[k]}; number the choices of a state from 0 without gaps"
        )


def _actions(
    place: Place, words: Numbers, row_starts: Numbers, names: tuple[str, ...]
) -> tuple[Numbers | None, tuple[str, ...]]:
    """Return the action of every choice."""
    own = words[row_starts[:-1]]
    same = words == np.repeat(own, np.diff(row_starts))
    if not same.all():
        entry = int(np.argmin(same))
        raise InterchangeError(
            f"{place(entry)}: the same action in all lines of a choice expected, got another one than in "
            "the line before; mend this line or its choice"
        )
    return (own, names) if names else (None, ())


_REWARD_TITLE = re.compile(r'Reward structure(?: "([^"]*)")?')


def read_state_rewards(section: Section, n_states: int) -> ExplicitReward:
    """Read a table of rewards of states.

    `n_states`: of the transitions. Returns ExplicitReward: of states, 0 where the table has none. Raises
    InterchangeError: the table of another model, a state twice, or no finite number.
    """
    head = read_head(section, "counts of states and rewards")
    name = _name(section, head, "State rewards")
    counts = read_counts(head, ("states rewards",))
    _require_states(head, counts[0], n_states)
    rows = read_rows(head.body, "if", "state, reward")
    require_count(head, counts[1], len(rows.words), "rewards")
    states, rewards = rows.columns
    require_below(rows, 0, "state", n_states)
    total = np.zeros(n_states)
    total[states] = rewards
    _require_once(rows, states)
    return ExplicitReward(name, total, None, rows.units)


def read_transition_rewards(section: Section, model: ExplicitModel) -> ExplicitReward:
    """Read a table of rewards of transitions, folded into what choices earn on average.

    Returns ExplicitReward: of choices. Where all transitions of a choice earn the same, that is its reward.
    Raises InterchangeError: the table of another model, a transition that does not exist, or one that is not
    the only one.
    """
    head = read_head(section, "counts of states and rewards")
    name = _name(section, head, "Transition rewards")
    is_mdp = model.type is ModelType.MDP
    forms = ("states choices rewards", "states rewards") if is_mdp else ("states rewards",)
    counts = read_counts(head, forms)
    _require_states(head, counts[0], model.n_states)
    if len(counts) == 3 and counts[1] != model.n_choices:
        raise InterchangeError(
            f"{head.place}: {model.n_choices} choices expected, got {counts[1]}; give the rewards of the "
            "same model"
        )
    if is_mdp:
        rows = read_rows(head.body, "iiif", "state, choice, target, reward")
    else:
        rows = read_rows(head.body, "iif", "state, target, reward")
    require_count(head, counts[-1], len(rows.words), "rewards")
    require_below(rows, 0, "state", model.n_states)
    require_below(rows, len(rows.columns) - 2, "target", model.n_states)
    choices = _choices(rows, model)
    entries = _entries(rows, choices, model)
    rewards = np.zeros(len(model.values))
    rewards[entries] = rows.columns[-1]
    expected, units = expected_rewards(model.row_starts, model.values, rewards, model.type)
    # Units that rounding fractions adds: of a rate it counts twice, in the sum too; no bound where signs
    # meet.
    # lemma: entry-units
    if extra := rows.units + model.value_units * (2.0 if units else 0.0):
        cancels = bool((rewards < 0).any() and (rewards > 0).any())
        # lemma: entry-units
        units = math.inf if cancels else (units + extra) * (1.0 + 2.0**-40)
    return ExplicitReward(name, None, expected, units)


def expected_rewards(
    row_starts: Numbers, values: Vector, rewards: Vector, type: ModelType
) -> tuple[Vector, float]:
    """Return what choices earn on average, and a bound on the relative error.

    Where all transitions of a choice earn the same number, that number stands for it, as it is. `row_starts`:
    ndarray of int64, shape (n_choices + 1,). `values`, `rewards`: ndarray of float64, shape (n_entries,).
    Returns `expected`: ndarray of float64, shape (n_choices,). `units`: in units of 2^-53.
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
    """Return the reward structure's name, after the comments have been examined."""
    name = None
    for comment in head.comments:
        if match := _REWARD_TITLE.fullmatch(comment):
            name = match[1]
        elif comment in ("State rewards", "Transition rewards") and comment != kind:
            raise InterchangeError(
                f"{section.place(0)}: {kind.lower()} expected, got {comment.lower()}; give the other file"
            )
    return name


def _require_states(head: Head, counted: int, n_states: int) -> None:
    if counted != n_states:
        raise InterchangeError(
            f"{head.place}: {n_states} states expected, got {counted}; give the rewards of the same model"
        )


def _require_once(rows: Rows, states: Numbers) -> None:
    order = np.argsort(states, kind="stable")
    again = states[order[1:]] == states[order[:-1]]
    if again.any():
        row = int(order[1:][again].min())
        raise InterchangeError(
            f"{rows.place(row)}: one reward of state {states[row]} expected, got another one; mend this line"
        )


def _choices(rows: Rows, model: ExplicitModel) -> Numbers:
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
            f"{rows.place(row)}: one of the {n_own[row]} choices of state {states[row]} "
            f"expected, got {choices[row]}; mend this line"
        )
    found: Numbers = model.choice_starts[states] + choices
    return found


def _entries(rows: Rows, choices: Numbers, model: ExplicitModel) -> Numbers:
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
            f"{rows.place(row)}: a reward for each of the {n_known[k]} transitions from state "
            f"{rows.columns[0][row]} to {rows.columns[-2][row]} expected, got {n_own[k]}; mend this line"
        )
    entries = np.empty(keys.size, dtype=np.int64)
    entries[own_order] = order[left + np.arange(keys.size) - own_left]
    return entries
