"""PRISM's explicit files as models: ``.tra`` with its neighbours, or all tables in one ``.pexp``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    StateVariable,
    unless_zero,
)
from hybrid.models.interchange.text.prism_tables import (
    read_state_rewards,
    read_transition_rewards,
    read_transitions,
)
from hybrid.models.interchange.text.rows import Rows, read_rows
from hybrid.models.interchange.text.source import (
    NAME,
    Section,
    chunks,
    first_repeated,
    read_head,
    read_section,
    require,
    require_label_room,
    shown,
    split_initial,
)
from mtbdd.language.syntax import ModelType

# PRISM's tables of states and labels: files ``.sta`` and ``.lab``, or sections of a file ``.pexp``.

_LABEL = re.compile(rb'\s*(\d+)="([^"]*)"')

# Other programs write more behind a state, such as its labels.
_LINE = re.compile(rb"(\d+)[ \t]*+:[ \t]*+\(([^()]*)\)(?:[ \t].*)?")
_VALUE = re.compile(rb"-?\d+|true|false")

# Possessive repetitions keep the search linear.
_LABEL_LINE = re.compile(rb"(\d{1,18})[ \t]*+:((?:[ \t]*+\d{1,18}+(?![^ \t]))*+)[ \t]*")
_SPACES = bytes.maketrans(b":,", b"  ")
_NEWLINES = bytes.maketrans(b" ", b"\n")


def read_states(section: Section, n_states: int) -> dict[str, NDArray[Any]]:
    """Read a table of states.

    `n_states`: of the transitions. Raises InterchangeError: not every state once, or a line with other values
    than its neighbours. Returns dict of str to ndarray, shape (n_states,): the values of every variable:
    booleans if they are written ``true`` and ``false``, else integers.
    """
    head = read_head(section, "a line '(variable,...)'")
    line = head.line.strip()
    inside = line.removeprefix(b"(").removesuffix(b")").decode("utf-8").strip()
    names = [name.strip() for name in inside.split(",")]
    place = head.place
    if line[:1] != b"(" or line[-1:] != b")" or not all(NAME.fullmatch(name) for name in names):
        raise InterchangeError(f"{place}: variables as '(x,y)' expected, got {shown(line)}; mend this line")
    if (twice := first_repeated(names)) is not None:
        raise InterchangeError(f"{place}: every variable once expected, got {twice!r} twice; rename one")
    body = _with_whole_lines(head.body, len(names))
    logical: list[bool] | None = None
    for chunk in chunks(body):
        logical = _booleans(chunk, len(names), logical)
    logical = logical or [False] * len(names)
    data = _with_digits(body.data) if any(logical) else body.data
    data = data.translate(_SPACES, b"()")
    rows = read_rows(body.with_text(data), "i" * (1 + len(names)), ", ".join(["state", *names]))
    order = _every_state_once(body, rows, n_states)
    columns = [values if order is None else values[order] for values in rows.columns[1:]]
    named = zip(names, columns, logical, strict=True)
    return {name: own.astype(bool) if is_bool else own for name, own, is_bool in named}


def _with_whole_lines(body: Section, n_variables: int) -> Section:
    """Return the section without comments and odd blanks, after brackets and commas have been examined."""
    data = body.data
    pattern = b":(" + b"," * (n_variables - 1) + b")\n"
    kept = data.translate(None, b"0123456789-aeflrstu")
    if kept == pattern * (len(kept) // len(pattern)) and not any(
        odd in data for odd in (b"(,", b",,", b",)", b"()", b"\n:")
    ):
        if not data.startswith(b":"):
            return body
    # Some line is odd: blanks and comments may be, the rest is a fault.
    lines = []
    for number, line in enumerate(data.split(b"\n")):
        bare = line.strip()
        if not bare or bare.startswith(b"#"):
            lines.append(b"")
            continue
        match = _LINE.fullmatch(bare)
        values = [] if match is None else [value.strip() for value in match[2].split(b",")]
        if match is None or len(values) != n_variables or not all(map(_VALUE.fullmatch, values)):
            raise InterchangeError(
                f"{body.place(number)}: a state as 'number:(values)' with {n_variables} values, whole "
                f"numbers, 'true' or 'false', expected, got {shown(bare)}; mend this line"
            )
        lines.append(match[1] + b":(" + b",".join(values) + b")")
    return body.with_text(b"\n".join(lines))


def _with_digits(data: bytes) -> bytes:
    """Return lines with 1 and 0 for the values ``true`` and ``false``; parts of other words stay."""
    for word, letter, digit in ((b"true", b"T", b"1"), (b"false", b"F", b"0")):
        data = data.replace(b"," + word, b"," + letter).replace(b"(" + word, b"(" + letter)
        data = data.replace(letter + b",", digit + b",").replace(letter + b")", digit + b")")
    return data


def _booleans(chunk: Section, n_variables: int, before: list[bool] | None) -> list[bool] | None:
    """Return which variables are booleans; refuse columns that are only sometimes."""
    data = np.frombuffer(chunk.data.translate(_SPACES, b"()"), dtype=np.uint8)
    inside = data > 32
    starts = np.flatnonzero(inside & ~np.append(False, inside[:-1]))
    if not starts.size:
        return before
    # Every line has a number and then the values.
    letters = data[starts].reshape(-1, n_variables + 1)[:, 1:]
    logical = (letters == ord("t")) | (letters == ord("f"))
    expected = logical[0] if before is None else np.array(before)
    mixed = logical != expected
    if mixed.any():
        row, column = (int(k) for k in np.argwhere(mixed)[0])
        line = int(np.count_nonzero(data[: starts[row * (n_variables + 1)]] == 10))
        raise InterchangeError(
            f"{chunk.place(line)}: value {column + 1} as in the first state ('true' and 'false', or whole "
            "numbers) "
            "expected, got the other kind; mend this line"
        )
    return [bool(k) for k in expected]


def _every_state_once(body: Section, rows: Rows, n_states: int) -> Numbers | None:
    """Return the rows by state, None if they are in order."""
    states = rows.columns[0]
    if states.size == n_states and (states == np.arange(n_states)).all():
        return None
    wrong = (states < 0) | (states >= n_states)
    if not wrong.any():
        order = np.argsort(states, kind="stable")
        wrong[order[1:]] = states[order[1:]] == states[order[:-1]]
    advice = "mend this line, or give the states of the same model"
    require(~wrong, rows.place, f"every state from 0 to {n_states - 1} once", states, advice)
    if states.size != n_states:
        raise InterchangeError(
            f"{body.place(max(0, body.n_lines - 1))}: {n_states} states expected, got {states.size}; give "
            "the states of the same model"
        )
    return order


def read_labels(section: Section, n_states: int) -> tuple[dict[str, Mask], Mask]:
    """Read a table of labels.

    `n_states`: of the transitions. Returns `labels` (dict of str to ndarray of bool, shape (n_states,)):
    without ``init``. `initial`: ndarray of bool, shape (n_states,). Raises InterchangeError: numbers of
    states or labels that do not exist, names twice, or no ``init``.
    """
    head = read_head(section, "a line '0=\"init\" ...'")
    place = head.place
    names = _label_names(place, head.line)
    require_label_room(place, len(names), len(names) * n_states)
    masks = {name: np.zeros(n_states, dtype=bool) for name in names}
    for chunk in chunks(head.body):
        states, numbers = _label_pairs(chunk, n_states, len(names))
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(names) + 1))
        for k in np.unique(numbers).tolist():
            masks[names[k]][states[order[ends[k] : ends[k + 1]]]] = True
    return split_initial(place, masks)


def _label_names(place: str, line: bytes) -> list[str]:
    """Return the names in the first line."""
    names: dict[str, None] = {}
    line, end = line.rstrip(), 0
    while end < len(line):
        match = _LABEL.match(line, end)
        n = len(names)
        if match is None or match[1] != str(n).encode() or not match[2]:
            raise InterchangeError(
                f"{place}: label {n} as '{n}=\"name\"' expected, got {shown(line[end:])}; number the "
                "labels from 0 "
                "without gaps"
            )
        name = match[2].decode("utf-8")
        if name in names:
            raise InterchangeError(f"{place}: every label once expected, got {name!r} twice; rename one")
        names[name] = None
        end = match.end()
    return list(names)


def _label_pairs(body: Section, n_states: int, n_labels: int) -> tuple[Numbers, Numbers]:
    """Return states and numbers of labels, a pair for every label of a state."""
    text = _numbers_alone(body)
    data = np.frombuffer(text, dtype=np.uint8)
    digit = data > 32
    starts = np.flatnonzero(digit & ~np.append(False, digit[:-1]))
    line_of = np.searchsorted(np.flatnonzero(data == 10), starts)
    leads = np.append(True, np.diff(line_of) != 0)[: line_of.size]
    # Every number on a line of its own is a table again.
    one_a_line = body.with_text(text.translate(_NEWLINES))
    numbers = read_rows(one_a_line, "i", "state or label", comments=b"").columns[0]
    limits = np.where(leads, n_states, n_labels)
    wrong = numbers >= limits
    if wrong.any():
        k = int(np.argmax(wrong))
        what = "state" if leads[k] else "label"
        raise InterchangeError(
            f"{body.place(int(line_of[k]))}: a {what} from 0 to {limits[k] - 1} expected, got {numbers[k]}; "
            "mend this line"
        )
    states = numbers[leads][np.cumsum(leads) - 1]
    return states[~leads], numbers[~leads]


def _numbers_alone(body: Section) -> bytes:
    """Return the lines without colons and comments, after their form has been examined."""
    data = body.data
    if data.translate(None, b"0123456789 ") == b":\n" * body.n_lines and not any(
        odd in data for odd in (b"  ", b" \n", b"\n ", b" :", b"\n:")
    ):
        text = np.frombuffer(data, dtype=np.uint8)
        ends = np.flatnonzero((text == 32) | (text == 10))
        firsts = ends[np.append(True, text[ends[:-1]] == 10)[: ends.size]]
        if (text[firsts - 1] == ord(":")).all() and data[:1] not in (b":", b" "):
            return data.translate(None, b":")
    found = []
    for number, line in enumerate(data.split(b"\n")[: body.n_lines]):
        bare = line.strip()
        if not bare or bare.startswith(b"#"):
            found.append(b"\n")
            continue
        match = _LABEL_LINE.fullmatch(bare)
        if match is None:
            raise InterchangeError(
                f"{body.place(number)}: a state and its labels as '5: 0 2' expected, got {shown(bare)}; "
                "mend this line"
            )
        found.append(b" ".join([match[1], *match[2].split()]) + b"\n")
    return b"".join(found)


PACKED = (".gz", ".xz")
"""Endings of compressed files."""

_MOST_REWARDS = 10_000


def read_prism_files(
    tra: str | Path,
    *,
    sta: str | Path | None = None,
    lab: str | Path | None = None,
    srew: Sequence[str | Path] = (),
    trew: Sequence[str | Path] = (),
    type: ModelType | None = None,
) -> ExplicitModel:
    """Read a model that PRISM wrote as explicit files.

    Returns ExplicitModel: rewards of transitions are folded into what their choice earns on average. Names of
    actions of chains are dropped. Raises InterchangeError: a file that cannot be read, is damaged, or belongs
    to another model. Time: below a microsecond a transition. Memory: the largest text once or twice, the
    arrays some three times.

    `tra`: transitions. Every file may be compressed, ``m.tra.gz`` or ``m.tra.xz``. `sta`, `lab`: states and
    labels; by default the neighbours of the same name. Without a file of labels, state 0 is the initial one,
    as PRISM has it. `srew`, `trew`: rewards of states and of transitions, number k of both for reward
    structure k; by default the neighbours: ``m.srew``, or ``m1.srew``, ``m2.srew`` ... of several structures.
    `type`: what the model is; by default what the file's first comment says, or an MDP if there are three
    counts.
    """
    tra = Path(tra)
    stem = _stem(tra)
    if srew or trew:
        n = max(len(srew), len(trew))
        paths: list[tuple[str | Path | None, str | Path | None]] = [
            (srew[k] if k < len(srew) else None, trew[k] if k < len(trew) else None) for k in range(n)
        ]
    else:
        paths = [*_reward_neighbours(tra, stem)]
    sta = sta or _neighbour(tra, f"{stem}.sta")
    lab = lab or _neighbour(tra, f"{stem}.lab")
    pairs = [(_opened(of_states), _opened(of_transitions)) for of_states, of_transitions in paths]
    return assembled(read_section(tra), _opened(sta), _opened(lab), pairs, type)


def assembled(
    transitions: Section,
    states: Section | None,
    labels: Section | None,
    rewards: Sequence[tuple[Section | None, Section | None]],
    type: ModelType | None,
) -> ExplicitModel:
    """Return the model of tables.

    `rewards`: of states and of transitions.
    """
    model = read_transitions(transitions, type)
    if states is not None:
        found = read_states(states, model.n_states)
        variables = tuple(StateVariable.of(*item) for item in found.items())
        model = replace(model, variables=variables, valuations=found)
    if labels is not None:
        masks, initial = read_labels(labels, model.n_states)
        model = replace(model, labels=masks, initial=initial)
    structures = []
    for of_states, of_transitions in rewards:
        own = None if of_states is None else read_state_rewards(of_states, model.n_states)
        moved = None if of_transitions is None else read_transition_rewards(of_transitions, model)
        structures.append(_joined(own, moved, of_transitions or of_states))
    return replace(model, rewards=tuple(structures))


def _joined(
    own: ExplicitReward | None, moved: ExplicitReward | None, section: Section | None
) -> ExplicitReward:
    """Return the reward structure of two tables."""
    if own is not None and moved is not None and own.name != moved.name and section is not None:
        raise InterchangeError(
            f"{section.place(0)}: the reward structure {own.name!r} expected, got {moved.name!r}; give the "
            "files of states and transitions in the same order"
        )
    name = own.name if own is not None else moved.name if moved is not None else None
    # lemma: entry-units
    units = max([table.units for table in (own, moved) if table is not None], default=0.0)
    states = None if own is None else unless_zero(own.states)
    choices = None if moved is None else unless_zero(moved.choices)
    return ExplicitReward(name, states, choices, units)


def _opened(path: str | Path | None) -> Section | None:
    """Return a file's text; None for no file."""
    return None if path is None else read_section(path)


def _stem(tra: Path) -> str:
    """Return the model's name."""
    name = tra.name
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.removesuffix(".tra")


def _neighbour(tra: Path, name: str) -> Path | None:
    """Return a file of the same folder, compressed or not, if there is one."""
    for suffix in ("", *PACKED):
        path = tra.with_name(name + suffix)
        if path.is_file():
            return path
    return None


def _reward_neighbours(tra: Path, stem: str) -> list[tuple[Path | None, Path | None]]:
    """Return the files of rewards beside a file of transitions, by reward structure."""
    single = _neighbour(tra, f"{stem}.srew"), _neighbour(tra, f"{stem}.trew")
    if any(single):
        return [single]
    pairs = []
    for number in range(1, _MOST_REWARDS):
        pair = _neighbour(tra, f"{stem}{number}.srew"), _neighbour(tra, f"{stem}{number}.trew")
        if not any(pair):
            break
        other = _neighbour(tra, f"{stem}{number}.tra")
        if other is not None:
            raise InterchangeError(
                f"{pair[0] or pair[1]}: rewards of one model expected, got a file of structure {number} of "
                f"{tra.name} or of {other.name}; give the files of rewards by name"
            )
        pairs.append(pair)
    return pairs


_TITLE = re.compile(rb"#[ \t]*([A-Za-z][^\n]*)\n")
_KINDS = (b"Transitions", b"States", b"Labels", b"Reward structure", b"Observations")


def read_pexp(path: str | Path, *, type: ModelType | None = None) -> ExplicitModel:
    """Read a model that PRISM wrote as one explicit file.

    Raises InterchangeError: a damaged file, a section twice or one that is not offered. Time: some half a
    microsecond a line. `path`: sections begin with the comments ``# Transitions (MDP)``, ``# States``, ``#
    Labels`` and ``# Reward structure "name"``, this one followed by ``# State rewards`` or ``# Transition
    rewards``. Transitions come first; the others may be left out. May be compressed. `type`: what the model
    is; by default what the file says.
    """
    whole = read_section(path)
    found: dict[bytes, Section] = {}
    states: list[Section] = []
    moves: list[Section] = []
    for kind, section in _sections(whole):
        if kind == b"Reward structure":
            (states if _is_of_states(section) else moves).append(section)
        elif kind in found:
            raise InterchangeError(
                f"{section.place(0)}: one section '# {kind.decode()}' expected, got another one; remove one"
            )
        elif kind == b"Observations":
            raise InterchangeError(
                f"{section.place(0)}: states, labels and rewards expected, got observations; models that "
                "are observed in part are not offered"
            )
        else:
            found[kind] = section
    n = max(len(states), len(moves))
    rewards = [
        (states[k] if k < len(states) else None, moves[k] if k < len(moves) else None) for k in range(n)
    ]
    return assembled(found[b"Transitions"], found.get(b"States"), found.get(b"Labels"), rewards, type)


def _sections(whole: Section) -> list[tuple[bytes, Section]]:
    """Return the sections with their kinds, in the order of the file."""
    starts: list[tuple[int, bytes]] = []
    data = whole.data
    at = 0 if data.startswith(b"#") else data.find(b"\n#") + 1
    while at or data.startswith(b"#", at):
        match = _TITLE.match(data, at)
        kind = None if match is None else next((k for k in _KINDS if match[1].startswith(k)), None)
        if kind is not None:
            starts.append((at, kind))
        at = data.find(b"\n#", at) + 1
        if not at:
            break
    # The lines before the first title are a table of transitions.
    if not starts or starts[0][1] != b"Transitions":
        starts.insert(0, (0, b"Transitions"))
    else:
        starts[0] = (0, b"Transitions")
    ends = [start for start, _ in starts[1:]] + [len(whole.data)]
    sections, line = [], whole.first
    for (start, kind), end in zip(starts, ends, strict=True):
        section = Section(whole.source, whole.data[start:end], line)
        line += section.n_lines
        sections.append((kind, section))
    return sections


def _is_of_states(section: Section) -> bool:
    """Return whether a section of rewards is one of states."""
    lines = section.data.split(b"\n", 2)
    second = lines[1].removeprefix(b"#").strip()
    if second.startswith(b"State rewards"):
        return True
    if second.startswith(b"Transition rewards"):
        return False
    raise InterchangeError(
        f"{section.place(1)}: '# State rewards' or '# Transition rewards' expected, got "
        f"{lines[1].decode('utf-8')[:60]!r}; mend this line"
    )
