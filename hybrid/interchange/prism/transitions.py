"""PRISM's table of transitions: a file ``.tra``, or the first section of a file ``.pexp``."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.heads import Head, read_counts, read_head, require_count, require_room
from hybrid.interchange.text.places import TextPlaces
from hybrid.interchange.text.rows import Rows, read_rows
from hybrid.interchange.text.source import Section
from mtbdd.language.syntax import ModelType
from mtbdd.wording import option

Numbers = NDArray[np.int64]
Vector = NDArray[np.float64]
Place = Callable[[int], str]

_TITLE = re.compile(r"Transitions \(([^()]*)\)")

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

_TYPES = {"DTMC": ModelType.DTMC, "CTMC": ModelType.CTMC, "MDP": ModelType.MDP}


@dataclass(frozen=True, eq=False)
class TransitionTable:
    """What a table of transitions says; the attributes are those of `ExplicitModel`."""

    type: ModelType
    n_states: int
    row_starts: Numbers
    columns: Numbers
    values: Vector
    choice_starts: Numbers | None
    actions: tuple[str, ...]
    choice_actions: Numbers | None
    units: float
    places: TextPlaces


def read_transitions(section: Section, type: ModelType | None) -> TransitionTable:
    """Read a table of transitions.

    Parameters
    ----------
    section : Section
    type : ModelType or None
        What the model is; None: what the file says.

    Returns
    -------
    TransitionTable
        Entries by state and choice, within one in the order of the file.

    Raises
    ------
    InterchangeError
        Other counts, states or choices than announced, a negative number, or a kind of model that is not
        offered.

    Notes
    -----
    Rows of four numbers are those of an MDP also where choices are not counted, as in schedulers that PRISM
    writes; a question mark stands there for the count of transitions.
    """
    head = read_head(section, "counts of states and transitions")
    forms = ("states transitions", "states choices transitions", "states choices transitions observations")
    told = head.line.split()
    uncounted = len(told) == 2 and told[1] == b"?"
    numbers = read_counts(section, replace(head, line=told[0] + b" 0") if uncounted else head, forms)
    kind = _kind(section, head, type, len(numbers))
    n_states, n_entries = numbers[0], numbers[-1]
    require_room(section.place(head.number), n_states, head.body.n_lines)
    if kind is ModelType.MDP:
        rows = read_rows(head.body, "iiif", "state, choice, target, probability", word=True)
    else:
        value = "rate" if kind is ModelType.CTMC else "probability"
        rows = read_rows(head.body, "iif", f"state, target, {value}", word=True)
    if not uncounted:
        require_count(section, head, n_entries, len(rows.words), "transitions")
    _check(head.body, rows, n_states)
    order = _order(rows.columns[:-2])
    return _arranged(section, head, kind, numbers, rows, order)


def _kind(section: Section, head: Head, type: ModelType | None, n_counts: int) -> ModelType:
    """Return the kind of model."""
    place = section.place(head.number)
    named = None
    for comment in head.comments:
        if match := _TITLE.fullmatch(comment):
            named = match[1]
    if type is None and named is not None:
        if named not in _TYPES:
            raise InterchangeError(
                f"{section.place(0)}: a DTMC, CTMC or MDP expected, got {named!r}; other models are not "
                "offered"
            )
        type = _TYPES[named]
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
            return sum(not _NAME.fullmatch(field.decode("utf-8")) for field in fields)
    return 0


def _check(body: Section, rows: Rows, n_states: int) -> None:
    """Refuse numbers that no state or choice has, negative values and names that PRISM does not have."""
    names = ("state", "target") if len(rows.columns) == 3 else ("state", "choice", "target")
    for name, column in zip(names, rows.columns, strict=False):
        limit = None if name == "choice" else n_states
        wrong = column < 0 if limit is None else (column < 0) | (column >= limit)
        if wrong.any():
            row = int(np.argmax(wrong))
            expected = "0 or more" if limit is None else f"0 to {limit - 1}"
            raise InterchangeError(
                f"{body.place(rows.line(row))}: a {name} from {expected} expected, got {column[row]}; mend "
                "this line or the counts"
            )
    values = rows.columns[-1]
    if (values < 0).any():
        row = int(np.argmax(values < 0))
        raise InterchangeError(
            f"{body.place(rows.line(row))}: a number that is not negative expected, got {values[row]!r}; "
            "mend this line"
        )
    for number, name in enumerate(rows.names):
        if not _NAME.fullmatch(name):
            row = int(np.argmax(rows.words == number))
            raise InterchangeError(
                f"{body.place(rows.line(row))}: the name of an action (letters, digits, '_') expected, got "
                f"{name!r}; mend this line"
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
) -> TransitionTable:
    """Return the table with starts of rows."""
    columns = rows.columns if order is None else tuple(column[order] for column in rows.columns)
    words = rows.words if order is None else rows.words[order]
    states, n_states = columns[0], numbers[0]
    if order is None and rows.lines is None:
        lines: int | Numbers = head.body.first
    else:
        own = np.arange(words.size, dtype=np.int64) if rows.lines is None else rows.lines
        lines = head.body.first + (own if order is None else own[order])

    def place(entry: int) -> str:
        return f"{section.source}:{lines + entry if isinstance(lines, int) else lines[entry]}"

    choice_starts: Numbers | None = None
    choice_actions: Numbers | None = None
    actions: tuple[str, ...] = ()
    if kind is ModelType.MDP:
        begins = _first_entries(states, columns[1])
        _check_choices(place, states[begins], columns[1][begins], begins)
        if len(numbers) == 3:
            require_count(section, head, numbers[1], begins.size, "choices")
        row_starts = np.append(begins, np.int64(words.size))
        choice_starts = np.searchsorted(states[begins], np.arange(n_states + 1)).astype(np.int64)
        choice_actions, actions = _actions(place, words.astype(np.int64), row_starts, rows.names)
    else:
        row_starts = np.searchsorted(states, np.arange(n_states + 1)).astype(np.int64)
    places = TextPlaces(
        section.source, lines, row_starts, choice_starts, fallback=section.first + head.number
    )
    return TransitionTable(
        kind,
        n_states,
        row_starts,
        columns[-2],
        columns[-1],
        choice_starts,
        actions,
        choice_actions,
        rows.units,
        places,
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
