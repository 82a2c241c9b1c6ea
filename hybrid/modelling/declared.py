"""What a builder has been told, each thing with the place of the call."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.errors import ModellingError
from hybrid.modelling.quantities import ModelVariable, Quantity
from mtbdd.language.syntax import Position
from mtbdd.language.tokens import RESERVED

_ROOM = __name__.rpartition(".")[0]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 200


@dataclass(frozen=True)
class WrittenUpdate:
    """One branch of a command: its weight, None for 1, and what it assigns."""

    weight: Quantity | None
    assigned: tuple[tuple[ModelVariable, Quantity], ...]


@dataclass(frozen=True)
class WrittenCommand:
    """One command."""

    action: str | None
    guard: Quantity
    updates: tuple[WrittenUpdate, ...]
    position: Position


@dataclass(frozen=True)
class WrittenLabel:
    """A set of states with a name."""

    condition: Quantity
    position: Position


@dataclass(frozen=True)
class WrittenReward:
    """One item of a reward structure: earned in states, or by the transitions (choices) of an action."""

    guard: Quantity
    value: Quantity
    of_transitions: bool
    action: str | None
    position: Position


def place_of_call() -> Position:
    """Return the file and the line outside of this room that called into it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_ROOM):
        frame = frame.f_back
    return Position(Path(frame.f_code.co_filename).name, frame.f_lineno, 1)


def check_name(name: Any, what: str, taken: Iterable[str], place: Position) -> str:
    """Return a name that properties can say, and that is not taken.

    Raises
    ------
    ModellingError
        It is another thing, a word of the language of properties, or taken.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ModellingError(
            f"{place}: expected a name of a {what} of letters, digits and underscores, got {name!r}"
        )
    if name in RESERVED:
        raise ModellingError(f"{place}: '{name}' is a word of the language of properties; rename the {what}")
    if name in set(taken):
        raise ModellingError(f"{place}: {what} '{name}' is declared a second time; rename one of them")
    return name


def check_integer(number: Any, what: str, place: Position) -> int:
    """Return an integer that is far from the ends of 64 bits."""
    try:
        if isinstance(number, bool):
            raise TypeError
        found = number.__index__()
    except (TypeError, AttributeError):
        raise ModellingError(f"{place}: {what}: expected an integer, got {number!r}") from None
    if not abs(found) < 1 << 53:
        raise ModellingError(f"{place}: {what}: expected an integer of less than 2^53, got {found}")
    return int(found)
