"""The members of a UMB file, loaded after a look at their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hybrid.interchange.faults import InterchangeError
from hybrid.interchange.umb.json_values import parsed_json
from hybrid.interchange.umb.schema import UmbIndex, ValueType, checked_index
from hybrid.interchange.umb.streams import ByteSource
from hybrid.interchange.umb.tar import TarSource
from mtbdd.language.syntax import ModelType
from mtbdd.memory import require_memory

Bytes = NDArray[np.uint8]

INDEX = "index.json"

# Limits on what the index does not give the size of.
_LONGEST_INDEX = 1 << 23
_LONGEST_TEXT = 1 << 26
_BEFORE_INDEX = 1 << 32
_BESIDES = 1 << 26

_TEXTS = ("actions/choices/strings.bin",)
_VALUATIONS = "valuations/states/valuations.bin"
_CLASSES = "valuations/states/valuation-to-class.bin"


@dataclass(frozen=True)
class UmbMembers:
    """What a UMB file has of a model: its index, and the bytes of the arrays that are read."""

    index: UmbIndex
    contents: dict[str, Bytes]


def load_members(path: Path) -> UmbMembers:
    """Load the index and the arrays that it speaks of.

    Raises
    ------
    InterchangeError
        No archive, no index or one that does not follow the format, members of other sizes than the index
        promises, or members twice.
    MemoryError
        Arrays for which there is no room.

    Notes
    -----
    An array is allocated after its size has been compared with the index and with what the file can hold.
    Members that are not needed are passed over; the index bounds them, too.
    """
    with path.open("rb") as file:
        name = str(path)
        source = ByteSource(file, name)
        index, is_first = _index(TarSource(source, name), name)
        expected = _sizes(index)
        if 8 * index.n_branches > source.most_bytes:
            raise InterchangeError(
                f"{name}: {INDEX}: transition-system.#branches: expected a number of branches that a file of "
                f"{source.file_bytes} bytes can hold, got {index.n_branches}; get the whole file"
            )
        _require(index, expected)
        file.seek(0)
        source = ByteSource(file, name)
        return UmbMembers(index, _contents(source, index, expected, name, is_first))


def _index(archive: TarSource, name: str) -> tuple[UmbIndex, bool]:
    """Return the index, and whether it is the first member, as it should be."""
    passed = 0
    for number, member in enumerate(archive.members()):
        if member.name == INDEX:
            if member.size > _LONGEST_INDEX:
                raise InterchangeError(
                    f"{name}: {INDEX}: expected at most {_LONGEST_INDEX} bytes, got {member.size}; shorten it"
                )
            return checked_index(parsed_json(bytes(archive.content()), f"{name}: {INDEX}")), number == 0
        passed += member.size + 512
        if passed > _BEFORE_INDEX:
            break
    raise InterchangeError(
        f"{name}: expected a member {INDEX}, the first one as a rule, got none; give a UMB file"
    )


def _sizes(index: UmbIndex) -> dict[str, int | None]:
    """Return the size that every member must have; None where the index does not say it."""
    states, choices, branches = index.n_states, index.n_choices, index.n_branches
    found: dict[str, int | None] = {
        "state-to-choices.bin": 8 * (states + 1),
        "choice-to-branches.bin": 8 * (choices + 1),
        "branch-to-target.bin": 8 * branches,
        "branch-to-probability.bin": size_of_values(index.probability_type, branches),
        "state-is-initial.bin": size_of_bits(states),
    }
    if index.rate_type is not None:
        found["state-to-exit-rate.bin"] = size_of_values(index.rate_type, states)
    if index.type is ModelType.MDP and index.n_actions:
        found["actions/choices/values.bin"] = 4 * choices
        found["actions/choices/string-mapping.bin"] = 8 * (index.n_actions + 1)
        found[_TEXTS[0]] = None
    for label in index.labels:
        found[f"annotations/aps/{label.identifier}/states/values.bin"] = size_of_bits(states)
    for reward in index.rewards:
        for entity in reward.entities:
            place = f"annotations/rewards/{reward.identifier}/{entity}/values.bin"
            found[place] = size_of_values(reward.type, index.count(entity))
    if index.classes:
        found[_CLASSES] = 4 * states
        found[_VALUATIONS] = states * index.classes[0].n_bytes if len(index.classes) == 1 else None
    return found


def size_of_values(kind: ValueType, count: int) -> int:
    """Return the bytes of an array of doubles or rationals."""
    return kind.bits // 8 * count


def size_of_bits(count: int) -> int:
    """Return the bytes of a set of so many elements: whole words of 64 bits."""
    return (count + 63) // 64 * 8


def _largest_valuations(index: UmbIndex) -> int:
    return index.n_states * max((kind.n_bytes for kind in index.classes), default=0)


def _require(index: UmbIndex, expected: dict[str, int | None]) -> None:
    """Look whether the arrays, and what is made of them, fit into memory."""
    most = sum(8 * size if "/aps/" in name else size for name, size in expected.items() if size is not None)
    variables = max((len(kind.fields) for kind in index.classes), default=0)
    require_memory(
        most + 8 * index.n_states * variables + 8 * index.n_branches,
        f"a model of {index.n_states} states and {index.n_branches} branches",
        "free memory, or take a smaller model",
    )


def _contents(
    source: ByteSource, index: UmbIndex, expected: dict[str, int | None], name: str, is_first: bool
) -> dict[str, Bytes]:
    """Return the bytes of the members that are needed."""
    found: dict[str, Bytes] = {}
    seen: set[str] = set()
    entities = index.n_states + index.n_choices + index.n_branches
    besides = _BESIDES + 64 * entities * (1 + index.n_annotations) + (0 if is_first else _BEFORE_INDEX)
    archive = TarSource(source, name)
    for member in archive.members():
        if member.name in seen:
            raise InterchangeError(f"{name}: {member.name}: expected one member, got two; remove one")
        seen.add(member.name)
        if member.name not in expected:
            besides -= member.size + 512
            if besides < 0:
                raise InterchangeError(
                    f"{name}: {member.name}: expected members of the sizes that {INDEX} promises, got "
                    f"{member.size} bytes more; remove what is not part of the model"
                )
            continue
        size = expected[member.name]
        if size is None:
            most = _largest_valuations(index) if member.name == _VALUATIONS else _LONGEST_TEXT
            is_right, wanted = member.size <= most, f"at most {most}"
        else:
            is_right, wanted = member.size == size, str(size)
        if not is_right:
            raise InterchangeError(
                f"{name}: {member.name}: expected {wanted} bytes, as {INDEX} has it, got {member.size}; "
                "write the file again"
            )
        if member.size > source.most_bytes:
            raise InterchangeError(
                f"{name}: {member.name}: expected at most {source.most_bytes} bytes in a file of "
                f"{source.file_bytes}, got {member.size}; get the whole file"
            )
        found[member.name] = archive.content()
    return found
