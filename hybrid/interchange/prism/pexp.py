"""PRISM's combined explicit file ``.pexp``: the tables of all explicit files, one below the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hybrid.interchange.explicit_model import ExplicitModel
from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.prism.files import assembled
from hybrid.interchange.prism.tables import (
    label_blocks,
    state_blocks,
    state_reward_blocks,
    transition_blocks,
    transition_reward_blocks,
)
from hybrid.interchange.text.source import Section, read_section, write_text
from mtbdd.language.syntax import ModelType

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


def write_pexp(model: ExplicitModel, path: str | Path) -> Path:
    """Write a model as one explicit file that PRISM reads.

    Every transition of a choice gets the choice's reward, as `write_trew` says.

    Parameters
    ----------
    model : ExplicitModel
    path : str or Path
        Compressed if it ends with ``.gz`` or ``.xz``.

    Returns
    -------
    Path

    Raises
    ------
    InterchangeError
        A name that PRISM does not have, or a file that cannot be written.

    Notes
    -----
    Time: some microsecond a transition.
    """
    write_text(path, _blocks(model))
    return Path(path)


def _blocks(model: ExplicitModel) -> Iterator[bytes]:
    """Yield the sections, with an empty line between them."""
    yield from transition_blocks(model)
    if model.variables:
        yield b"\n"
        yield from state_blocks(model)
    yield b"\n"
    yield from label_blocks(model)
    for reward in model.rewards:
        yield b"\n"
        yield from state_reward_blocks(model, reward)
        yield b"\n"
        yield from transition_reward_blocks(model, reward)
