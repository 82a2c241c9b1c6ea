"""The index of a UMB file, and the members that it speaks of, loaded after a check of their sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import Bytes, ByteSource, JsonValue, TarSource, parsed_json
from mtbdd.base.memory import require_memory
from mtbdd.language.syntax import ModelType

FORMAT_VERSION = 1
_LARGEST = 2**63 - 1
_IDENTIFIER = re.compile(r"[0-9a-z_-]+")

# Sizes in bits where none is given.
_SIZES = {
    "bool": 1,
    "int": 64,
    "uint": 64,
    "double": 64,
    "string": 64,
    "rational": 128,
    "int-interval": 128,
    "uint-interval": 128,
    "double-interval": 128,
    "rational-interval": 256,
}

_ENTITIES = ("states", "choices", "branches", "observations", "players")


@dataclass(frozen=True)
class ValueType:
    """The type of the values of an array: its name in the format, and bits a value."""

    name: str
    bits: int


@dataclass(frozen=True)
class StoredAnnotation:
    """Labels or rewards: the folder's name, the name for users, what has values, and their type."""

    identifier: str
    alias: str | None
    entities: tuple[str, ...]
    type: ValueType


@dataclass(frozen=True)
class PackedField:
    """A variable in the bits of a valuation; `start` counts from the least significant bit.

    An optional variable has a bit in front, at ``start - 1``, that says whether it has a value.
    """

    name: str
    type: ValueType
    start: int
    is_optional: bool
    lower: int | None
    upper: int | None
    offset: int


@dataclass(frozen=True)
class PackedClass:
    """Valuations of one layout: bytes a valuation, and the variables in them."""

    n_bytes: int
    fields: tuple[PackedField, ...]


@dataclass(frozen=True)
class UmbIndex:
    """The index of a DTMC, CTMC or MDP."""

    type: ModelType
    n_states: int
    n_initial: int
    n_choices: int
    n_actions: int
    n_branches: int
    probability_type: ValueType
    rate_type: ValueType | None
    labels: tuple[StoredAnnotation, ...]
    rewards: tuple[StoredAnnotation, ...]
    n_annotations: int
    classes: tuple[PackedClass, ...]

    def count(self, entity: str) -> int:
        """Return the number of states, choices or branches."""
        return {"states": self.n_states, "choices": self.n_choices, "branches": self.n_branches}[entity]


def checked_index(top: JsonValue) -> UmbIndex:
    """Return what an index says, if it follows the format and describes a model of a known kind.

    Raises InterchangeError: entries that are missing or of another type, another version of the format, or a
    model that is no DTMC, CTMC or MDP with numbers as probabilities.
    """
    version = top.entry("format-version")
    if version.integer(0, 2**32 - 1) != FORMAT_VERSION:
        raise version.fault(
            f"version {FORMAT_VERSION} of the format", "write the model again in that version"
        )
    top.entry("format-revision").integer(0, 2**32 - 1)
    system = top.entry("transition-system")
    n_states = system.entry("#states").integer(1, _LARGEST)
    probability_type = _numbers(system, "branch-probability-type")
    kind = _model_type(system)
    rate_type = _numbers(system, "exit-rate-type")
    if (rate_type is None) == (kind is ModelType.CTMC):
        raise InterchangeError(
            f"{system.place}.exit-rate-type: expected a type in continuous time and none in discrete time, "
            f"got {'none' if rate_type is None else rate_type.name}; correct it"
        )
    if probability_type is None:
        raise InterchangeError(
            f"{system.place}.branch-probability-type: expected a type, got none, as in a labelled transition "
            "system; give a DTMC, a CTMC or an MDP"
        )
    annotations = top.optional("annotations")
    groups = dict(annotations.entries()) if annotations is not None else {}
    valuations = top.optional("valuations")
    states = valuations.optional("states") if valuations is not None else None
    return UmbIndex(
        type=kind,
        n_states=n_states,
        n_initial=system.entry("#initial-states").integer(0, n_states),
        n_choices=system.entry("#choices").integer(0, _LARGEST),
        n_actions=system.entry("#choice-actions").integer(0, 2**32 - 1),
        n_branches=system.entry("#branches").integer(0, _LARGEST),
        probability_type=probability_type,
        rate_type=rate_type,
        labels=_annotations(groups.get("aps"), ("bool",), ("states",)),
        rewards=_annotations(
            groups.get("rewards"), ("double", "rational"), ("states", "choices", "branches")
        ),
        n_annotations=sum(len(group.entries()) for group in groups.values()),
        classes=_classes(states) if states is not None else (),
    )


def _model_type(system: JsonValue) -> ModelType:
    time = system.entry("time").name(("discrete", "stochastic", "urgent-stochastic"))
    players = system.entry("#players").integer(0, 2**32 - 1)
    system.entry("#branch-actions").integer(0, 2**32 - 1)
    if system.entry("#observations").integer(0, _LARGEST):
        raise system.entry("#observations").fault(
            "no observations, as in a DTMC, a CTMC or an MDP", "partially observable models are not read"
        )
    if time == "urgent-stochastic":
        raise system.entry("time").fault("'discrete' or 'stochastic'", "Markov automata are not read")
    if players > 1:
        raise system.entry("#players").fault("0 or 1", "games are not read")
    if time == "stochastic" and players:
        raise system.entry("#players").fault("0 in continuous time", "CTMDPs are not read")
    return ModelType.CTMC if time == "stochastic" else ModelType.MDP if players else ModelType.DTMC


def _type(value: JsonValue) -> ValueType:
    name = value.entry("type").name(_SIZES)
    size = value.optional("size")
    bits = _SIZES[name] if size is None else size.integer(1, 2**32 - 1)
    if name in ("double", "double-interval", "string") and bits != _SIZES[name]:
        assert size is not None
        raise size.fault(f"{_SIZES[name]} bits for a {name}")
    if name == "rational" and bits % 2:
        assert size is not None
        raise size.fault("an even number of bits for a rational")
    return ValueType(name, bits)


def _whole(value: JsonValue, names: tuple[str, ...]) -> ValueType:
    """Return the type of an array of its own, whose values have the usual size."""
    found = _type(value)
    if found.name not in names:
        if found.name.endswith("-interval"):
            raise value.entry("type").fault(
                f"one of {', '.join(names)}", "models with intervals are not read"
            )
        raise value.entry("type").fault(f"one of {', '.join(names)}")
    usual = _SIZES[found.name]
    if found.bits % usual or (found.name != "rational" and found.bits != usual):
        raise value.entry("size").fault(f"{usual} bits{' or a multiple' if found.name == 'rational' else ''}")
    return found


def _numbers(system: JsonValue, key: str) -> ValueType | None:
    value = system.optional(key)
    return None if value is None else _whole(value, ("double", "rational"))


def _annotations(
    group: JsonValue | None, types: tuple[str, ...], entities: tuple[str, ...]
) -> tuple[StoredAnnotation, ...]:
    found = []
    aliases: set[str] = set()
    for identifier, value in group.entries() if group is not None else []:
        if not _IDENTIFIER.fullmatch(identifier):
            raise value.fault("an identifier of the characters 0-9, a-z, _ and - as its key")
        alias = value.optional("alias")
        name = identifier if alias is None else alias.text()
        if name in aliases:
            raise value.fault(f"an alias that no other has, not {name[:80]!r}")
        aliases.add(name)
        applies = value.entry("applies-to")
        targets = tuple(element.name(_ENTITIES) for element in applies.elements())
        if not targets or len(set(targets)) < len(targets) or not set(targets) <= set(entities):
            raise applies.fault(f"some of {', '.join(entities)}")
        if value.optional("probability-type") is not None:
            raise value.entry("probability-type").fault("none", "annotations at random are not read")
        kind = _whole(value.entry("type"), types)
        found.append(StoredAnnotation(identifier, None if alias is None else name, targets, kind))
    return tuple(found)


def _classes(states: JsonValue) -> tuple[PackedClass, ...]:
    states.entry("unique").flag()
    classes = states.entry("classes")
    found = tuple(_class(value) for value in classes.elements())
    if not found:
        raise classes.fault("at least one class")
    return found


def _class(value: JsonValue) -> PackedClass:
    position = 0
    fields: dict[str, PackedField] = {}
    for element in value.entry("variables").elements():
        if (padding := element.optional("padding")) is not None:
            position += padding.integer(1, 2**40)
            continue
        name = element.entry("name").text()
        if not name or name in fields:
            raise element.entry("name").fault("a name that no other variable has")
        optional = element.optional("is-optional")
        is_optional = optional is not None and optional.flag()
        kind = _type(element.entry("type"))
        if kind.name.endswith("-interval"):
            raise element.entry("type").fault("no interval", "variables cannot be intervals")
        if kind.name in ("int", "uint") and kind.bits > 64:
            raise element.entry("type").fault("at most 64 bits", "larger integers are not read")
        position += is_optional
        low, high, offset = (
            None if (bound := element.optional(key)) is None else bound.integer(-(2**63), _LARGEST)
            for key in ("lower", "upper", "offset")
        )
        fields[name] = PackedField(name, kind, position, is_optional, low, high, offset or 0)
        position += kind.bits
    if position % 8 or position > 2**50:
        raise InterchangeError(
            f"{value.place}.variables: expected sizes that add up to a multiple of 8 bits, got {position}; "
            "add padding"
        )
    return PackedClass(position // 8, tuple(fields.values()))


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
    """Members of a UMB file: its index, and the bytes of the arrays that are read."""

    index: UmbIndex
    contents: dict[str, Bytes]


def load_members(path: Path) -> UmbMembers:
    """Load the index and the arrays that it speaks of.

    An array is allocated after its size has been compared with the index and with what the file can hold.
    Members that are not needed are passed over; the index bounds them, too. Raises InterchangeError: no
    archive, no index or one that does not follow the format, members of other sizes than the index promises,
    or members twice. Raises MemoryError: arrays for which there is no room.
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
    """Check that the arrays, and what is made of them, fit into memory."""
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
