"""The header of Storm's format DRN."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.text.heads import first_repeated, require_room, shown
from hybrid.interchange.text.source import Section
from mtbdd.language.syntax import ModelType

_TYPES = {"DTMC": ModelType.DTMC, "CTMC": ModelType.CTMC, "MDP": ModelType.MDP}

_NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+/\d+")

_COUNT = re.compile(rb"\d{1,18}")

_PLACEHOLDER = re.compile(rb"\$([^\s:]+)\s*:\s*(\S.*)")


@dataclass(frozen=True)
class DrnHeader:
    """What stands before the states.

    Attributes
    ----------
    type : ModelType
    rewards : tuple of str
        Names of the reward structures; fewer than there are if they have none.
    n_states : int
    n_choices : int or None
    placeholders : dict of bytes to bytes
        Numbers under their names, each as text.
    body : Section
    """

    type: ModelType
    rewards: tuple[str, ...]
    n_states: int
    n_choices: int | None
    placeholders: dict[bytes, bytes]
    body: Section


@dataclass
class _Found:
    """What has been read so far, under the keys of the format."""

    values: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    placeholders: dict[bytes, bytes] = field(default_factory=dict)


def read_header(whole: Section) -> DrnHeader:
    """Read the header.

    Parameters
    ----------
    whole : Section
        The file.

    Returns
    -------
    DrnHeader

    Raises
    ------
    InterchangeError
        A line that the format does not have, parameters, intervals, or a kind of model that is not offered.
    """
    found = _Found()
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
    """Return a key with what stands behind it."""
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


def _complete(whole: Section, found: _Found, place: str, body: Section) -> DrnHeader:
    """Return the header after its values have been looked at."""
    number, kind = found.values.get("type", (0, b""))
    name = kind.decode("utf-8").upper()
    if name not in _TYPES:
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
    return DrnHeader(_TYPES[name], rewards, n_states, n_choices, found.placeholders, body)


def _count(whole: Section, found: _Found, key: str, place: str) -> int | None:
    """Return a count of the header, None if it is not there."""
    if key not in found.values:
        return None
    number, value = found.values[key]
    if not _COUNT.fullmatch(value):
        raise InterchangeError(
            f"{whole.place(number)}: a number below '@{key}' expected, got {shown(value)}; mend this line"
        )
    return int(value)
