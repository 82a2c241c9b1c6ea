"""The header and the bytes of a symbolic file: what it says, every word of it checked.

All numbers are little-endian. After the magic line stand the version (4 bytes) and the lengths of the header
and of the compressed arrays (8 bytes each). The SHA-256 of all that follows comes next, 32 bytes. The arrays
are one LZMA stream: the values, the nodes per level, the roots, then the children and the numbering. The last
two are split into planes of bytes, lowest bytes first, because planes of equal significance compress well.
The else children ascend within a level, so that their differences are stored; of the then children, the
distance from the node.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybrid.models.interchange.container import DAMAGE, JsonValue, decompressed, parsed_json
from hybrid.models.interchange.explicit_model import MOST_UNITS, Numbers, StateVariable
from mtbdd.base.memory import require_memory
from mtbdd.diagrams.value_diagrams import MOST_NODES, Forest
from mtbdd.language.syntax import ModelType

MAGIC = b"symbolic model .dd\r\n\x1a\n"
"""Begins every file; the line break shows what a transfer as text has done to it."""

VERSION = 1
_FIXED = struct.Struct("<IQQ32s")
_MOST_HEADER = 1 << 26
_WORK = 1 << 26  # bytes that unpacking may take beside its result


def file_bytes(header: dict[str, Any], forest: Forest, numbering: Numbers | None) -> bytes:
    """Return a header and a forest as the bytes of a file.

    `header`: what JSON can hold; the sizes of the arrays are added. `numbering` (ndarray of int64, shape
    (n,), or None): the order of the states in their source.
    """
    sizes = {
        "values": forest.values.size,
        "bits": forest.levels.size,
        "nodes": forest.low.size,
        "roots": forest.roots.size,
        "numbering": None if numbering is None else numbering.size,
    }
    text = json.dumps(header | {"sizes": sizes}, allow_nan=False, separators=(",", ":")).encode()
    own = np.arange(forest.low.size, dtype=np.int64) + forest.values.size
    arrays = [
        forest.values.astype("<f8").tobytes(),
        forest.levels.astype("<i8").tobytes(),
        forest.roots.astype("<i8").tobytes(),
        _planes(np.diff(forest.low, prepend=0)),
        _planes(own - forest.high),
        b"" if numbering is None else _planes(np.diff(numbering, prepend=0)),
    ]
    data = lzma.compress(b"".join(arrays), format=lzma.FORMAT_XZ, check=lzma.CHECK_NONE)
    checksum = hashlib.sha256(text + data).digest()
    return MAGIC + _FIXED.pack(VERSION, len(text), len(data), checksum) + text + data


def file_parts(content: bytes) -> tuple[JsonValue, Forest, Numbers | None]:
    """Return the header, the forest and the numbering of a file; neither is checked further.

    Raises ValueError: not such a file, another version, cut short, damaged, or sizes that its arrays do not
    have. Raises MemoryError: the arrays do not fit into memory.
    """
    if not content.startswith(MAGIC):
        raise ValueError(
            "expected a symbolic model, which begins with 'symbolic model .dd', got something else"
        )
    place = len(MAGIC)
    if len(content) < place + _FIXED.size:
        raise ValueError("expected a whole file, got one that ends within its first lines; write it again")
    version, text_size, data_size, checksum = _FIXED.unpack_from(content, place)
    if version != VERSION:
        raise ValueError(
            f"expected version {VERSION}, got {version}; write the file with this program's version"
        )
    place += _FIXED.size
    if len(content) - place != text_size + data_size:
        raise ValueError(
            f"expected {text_size + data_size} bytes after the checksum, got {len(content) - place}; "
            "the file is cut short or damaged: copy or write it again"
        )
    if hashlib.sha256(memoryview(content)[place:]).digest() != checksum:
        raise ValueError("the checksum does not match: the file is damaged; copy or write it again")
    if text_size > _MOST_HEADER:
        raise ValueError(f"expected a header of at most {_MOST_HEADER} bytes, got {text_size}")
    header = parsed_json(content[place : place + text_size], "header")
    return header, *_arrays(header, content[place + text_size :])


def _arrays(header: JsonValue, data: bytes) -> tuple[Forest, Numbers | None]:
    """Return the arrays of the sizes that a header names."""
    sizes = header.entry("sizes")
    names = ("values", "bits", "nodes", "roots")
    values, bits, nodes, roots = (sizes.entry(name).integer(0, MOST_NODES) for name in names)
    states = sizes.optional("numbering")
    numbering = None if states is None else states.integer(0, MOST_NODES)
    lengths = [8 * values, 8 * bits, 8 * roots, 4 * nodes, 4 * nodes, 4 * (numbering or 0)]
    total = sum(lengths)
    require_memory(
        8 * total + _WORK, f"a symbolic file of {nodes} nodes", "read it on a machine with more memory"
    )
    raw = _decompressed(data, total)
    cuts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    pieces = [raw[begin:end] for begin, end in zip(cuts, cuts[1:], strict=False)]
    own = np.arange(nodes, dtype=np.int64) + values
    forest = Forest(
        np.frombuffer(pieces[0], dtype="<f8").astype(np.float64),
        np.frombuffer(pieces[1], dtype="<i8").astype(np.int64),
        np.cumsum(_from_planes(pieces[3])),
        own - _from_planes(pieces[4]),
        np.frombuffer(pieces[2], dtype="<i8").astype(np.int64),
    )
    return forest, None if numbering is None else np.cumsum(_from_planes(pieces[5]))


def _decompressed(data: bytes, size: int) -> bytearray:
    """Return a stream of a known size; no more than a block beyond it is unpacked."""
    raw = bytearray()
    try:
        for block in decompressed(io.BytesIO(data)):
            raw += block
            if len(raw) > size:
                break
    except DAMAGE as error:
        raise ValueError(
            f"the arrays cannot be unpacked ({error}): the file is damaged; write it again"
        ) from None
    if len(raw) != size:
        raise ValueError(f"expected arrays of {size} bytes, got {'more' if len(raw) > size else 'fewer'}")
    return raw


def _planes(numbers: Numbers) -> bytes:
    """Return numbers of 32 bits as four planes of bytes; differences may be negative."""
    return numbers.astype("<i4").view(np.uint8).reshape(-1, 4).T.tobytes()


def _from_planes(data: bytearray) -> Numbers:
    """Return the numbers of four planes of bytes."""
    planes = np.frombuffer(data, dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<i4").reshape(-1).astype(np.int64)


_MOST_NAME = 10_000
_MOST_BITS = 4096
_BOUND = 1 << 62


@dataclass(frozen=True)
class FunctionEntry:
    """A function: the number of its root, and the units of its values."""

    root: int
    units: float


@dataclass(frozen=True)
class LayerEntry:
    """A layer of choices: matrix, states with a choice, and what the choices are called where."""

    matrix: FunctionEntry
    enabled: int
    parts: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True)
class RewardEntry:
    """A reward structure; None where nothing is earned."""

    name: str | None
    states: FunctionEntry | None
    choices: tuple[FunctionEntry | None, ...]


@dataclass(frozen=True)
class Header:
    """The header of a symbolic file: variables, functions, labels and rewards."""

    type: ModelType
    source: str  # name of the file that the model was made from
    constants: dict[str, bool | int | float]
    variables: tuple[StateVariable, ...]  # in the order of their bits
    order: tuple[str, ...]  # their names in the order of the source
    # initial, reachable and deadlocks: roots of sets
    initial: int
    reachable: int
    deadlocks: int
    layers: tuple[LayerEntry, ...]
    labels: dict[str, int]
    rewards: tuple[RewardEntry, ...]

    def written(self) -> dict[str, Any]:
        """Return the header as what JSON holds."""
        return {
            "type": self.type.value,
            "source": self.source,
            "constants": self.constants,
            "variables": [[v.name, v.low, v.high, v.is_bool] for v in self.variables],
            "order": list(self.order),
            "sets": [self.initial, self.reachable, self.deadlocks],
            "layers": [[_pair(x.matrix), x.enabled, [list(part) for part in x.parts]] for x in self.layers],
            "labels": self.labels,
            "rewards": [[r.name, _pair(r.states), [_pair(c) for c in r.choices]] for r in self.rewards],
        }

    @classmethod
    def read(cls, given: JsonValue, n_roots: int) -> Header:
        """Return a header out of JSON.

        Raises ValueError: something is missing or is not what it should be.
        """
        reader = _HeaderReader(n_roots)
        kinds = {kind.value: kind for kind in ModelType}
        kind = kinds[given.entry("type").name(kinds)]
        variables = tuple(reader.variable(v) for v in given.entry("variables").elements())
        names = [v.name for v in variables]
        order = [name.text(_MOST_NAME) for name in given.entry("order").elements()]
        if len(set(names)) != len(names) or sorted(order) != sorted(names):
            raise ValueError("variables: expected different names, and the same in 'order'")
        if sum((v.high - v.low).bit_length() for v in variables) > _MOST_BITS:
            raise ValueError(f"variables: expected at most {_MOST_BITS} bits, got more")
        initial, reachable, deadlocks = (reader.root(k) for k in given.entry("sets").elements(3))
        layers = tuple(reader.layer(x) for x in given.entry("layers").elements())
        if not layers or (kind is not ModelType.MDP and len(layers) != 1):
            raise ValueError(f"layers: expected one, in an mdp at least one, got {len(layers)}")
        return cls(
            kind,
            given.entry("source").text(_MOST_NAME),
            {_key(v, k): v.number() for k, v in given.entry("constants").entries()},
            variables,
            tuple(order),
            initial,
            reachable,
            deadlocks,
            layers=layers,
            labels={_label(v, k): reader.root(v) for k, v in given.entry("labels").entries()},
            rewards=tuple(reader.reward(r, len(layers)) for r in given.entry("rewards").elements()),
        )


def _pair(function: FunctionEntry | None) -> list[float] | None:
    return None if function is None else [function.root, function.units]


@dataclass(frozen=True)
class _HeaderReader:
    """Turns values of JSON into entries."""

    n_roots: int

    def root(self, given: JsonValue) -> int:
        return given.integer(0, self.n_roots - 1, f"the number of a function below {self.n_roots}")

    def function(self, given: JsonValue) -> FunctionEntry:
        root, units = given.elements(2)
        number = float(units.number())
        if not 0 <= number <= MOST_UNITS:  # lemma: entry-units
            raise units.fault("units from 0 to 2^26, numbers that are known to eight digits")
        return FunctionEntry(self.root(root), number)

    def variable(self, given: JsonValue) -> StateVariable:
        name, *bounds, is_bool = given.elements(4)
        low, high = (bound.integer(1 - _BOUND, _BOUND - 1, "a bound of 62 bits") for bound in bounds)
        if low > high or (is_bool.flag() and (low, high) != (0, 1)):
            raise ValueError(f"{given.place}: expected a range, of a boolean 0..1, got {low}..{high}")
        return StateVariable(name.text(_MOST_NAME), low, high, is_bool.flag())

    def layer(self, given: JsonValue) -> LayerEntry:
        matrix, enabled, parts = given.elements(3)
        found = []
        for part in parts.elements():
            action, states = part.elements(2)
            found.append((_name(action), self.root(states)))
        return LayerEntry(self.function(matrix), self.root(enabled), tuple(found))

    def reward(self, given: JsonValue, n_layers: int) -> RewardEntry:
        name, states, choices = given.elements(3)
        own = tuple(self._optional(choice) for choice in choices.elements(n_layers))
        return RewardEntry(_name(name), self._optional(states), own)

    def _optional(self, given: JsonValue) -> FunctionEntry | None:
        return None if given.unless_null() is None else self.function(given)


def _name(given: JsonValue) -> str | None:
    return None if given.unless_null() is None else given.text(_MOST_NAME)


def _key(value: JsonValue, key: str) -> str:
    """Return the key of an entry that is a name."""
    return JsonValue(key, value.place).text(_MOST_NAME)


def _label(value: JsonValue, name: str) -> str:
    if '"' in name or name in ("init", "deadlock"):
        raise ValueError(f"labels: expected names without quotes, other than init and deadlock, got {name!r}")
    return _key(value, name)
