"""PRISM's explicit files as models: ``.tra`` with its neighbours, or all tables in one ``.pexp``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward
from hybrid.models.interchange.prism.states import read_labels, read_states
from hybrid.models.interchange.prism.transitions import (
    RewardTable,
    read_state_rewards,
    read_transition_rewards,
    read_transitions,
)
from hybrid.models.interchange.text.source import Section, read_section
from mtbdd.language.syntax import ModelType

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

    Parameters
    ----------
    tra : str or Path
        Transitions. Every file may be compressed, ``m.tra.gz`` or ``m.tra.xz``.
    sta, lab : str or Path, optional
        States and labels; by default the neighbours of the same name. Without a file of labels, state 0 is
        the initial one, as PRISM has it.
    srew, trew : sequence of str or Path
        Rewards of states and of transitions, number k of both for reward structure k; by default the
        neighbours: ``m.srew``, or ``m1.srew``, ``m2.srew`` ... of several structures.
    type : ModelType, optional
        What the model is; by default what the file's first comment says, or an MDP if there are three counts.

    Returns
    -------
    ExplicitModel
        Rewards of transitions are folded into what their choice earns on average. Names of actions of chains
        are dropped.

    Raises
    ------
    InterchangeError
        A file that cannot be read, is damaged, or belongs to another model.

    Notes
    -----
    Time: below a microsecond a transition. Memory: the largest text once or twice, the arrays some three
    times.
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

    Parameters
    ----------
    transitions, states, labels : Section
    rewards : sequence of pairs of Section
        Of states and of transitions.
    type : ModelType or None

    Returns
    -------
    ExplicitModel

    Raises
    ------
    InterchangeError
    """
    model = read_transitions(transitions, type)
    table = None if states is None else read_states(states, model.n_states)
    if labels is None:
        masks: dict[str, NDArray[np.bool_]] = {}
        initial = np.zeros(model.n_states, dtype=bool)
        initial[0] = True
    else:
        masks, initial = read_labels(labels, model.n_states)
    structures = []
    for of_states, of_transitions in rewards:
        own = None if of_states is None else read_state_rewards(of_states, model.n_states)
        moved = None if of_transitions is None else read_transition_rewards(of_transitions, model)
        structures.append(_joined(own, moved, of_transitions or of_states))
    return ExplicitModel(
        type=model.type,
        n_states=model.n_states,
        row_starts=model.row_starts,
        columns=model.columns,
        values=model.values,
        initial=initial,
        choice_starts=model.choice_starts,
        actions=model.actions,
        choice_actions=model.choice_actions,
        variables=() if table is None else table.variables,
        valuations={} if table is None else table.valuations,
        labels=masks,
        rewards=tuple(structures),
        value_units=model.units,
        source=transitions.source,
        places=model.places,
    )


def _joined(own: RewardTable | None, moved: RewardTable | None, section: Section | None) -> ExplicitReward:
    """Return the reward structure of two tables."""
    if own is not None and moved is not None and own.name != moved.name and section is not None:
        raise InterchangeError(
            f"{section.place(0)}: the reward structure {own.name!r} expected, got {moved.name!r}; give the "
            "files of states and transitions in the same order"
        )
    name = own.name if own is not None else moved.name if moved is not None else None
    # lemma: entry-units
    units = max([table.units for table in (own, moved) if table is not None], default=0.0)
    states = own.rewards if own is not None and own.rewards.any() else None
    choices = moved.rewards if moved is not None and moved.rewards.any() else None
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

    Parameters
    ----------
    path : str or Path
        Sections begin with the comments ``# Transitions (MDP)``, ``# States``, ``# Labels`` and
        ``# Reward structure "name"``, this one followed by ``# State rewards`` or ``# Transition rewards``.
        Transitions come first; the others may be left out. May be compressed.
    type : ModelType, optional
        What the model is; by default what the file says.

    Returns
    -------
    ExplicitModel

    Raises
    ------
    InterchangeError
        A damaged file, a section twice or one that is not offered.

    Notes
    -----
    Time: some half a microsecond a line.
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
    # What stands before the first title is a table of transitions.
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
