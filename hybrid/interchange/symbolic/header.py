"""The header of a symbolic file: what it says, every word of it checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid.interchange.explicit_model import MOST_UNITS
from mtbdd.language.syntax import ModelType

_MOST_NAME = 10_000
_MOST_BITS = 4096


@dataclass(frozen=True)
class VariableEntry:
    """A variable: its name, its range, whether it is a boolean."""

    name: str
    low: int
    high: int
    is_bool: bool


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
    """What a symbolic file says about its functions.

    Attributes
    ----------
    type : ModelType
    source : str
        Name of the file that the model was made from.
    constants : dict of str to bool, int or float
    variables : tuple of VariableEntry
        In the order of their bits.
    order : tuple of str
        Their names in the order of the source.
    initial, reachable, deadlocks : int
        Roots of sets.
    layers : tuple of LayerEntry
    labels : dict of str to int
    rewards : tuple of RewardEntry
    """

    type: ModelType
    source: str
    constants: dict[str, bool | int | float]
    variables: tuple[VariableEntry, ...]
    order: tuple[str, ...]
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
    def read(cls, given: dict[str, Any], n_roots: int) -> Header:
        """Return a header out of JSON.

        Raises
        ------
        ValueError
            Something is missing or is not what it should be.
        """
        reader = _Reader(n_roots)
        missing = [k for k in ("type", "source", "constants", "variables", "order", "sets") if k not in given]
        missing += [k for k in ("layers", "labels", "rewards") if k not in given]
        if missing:
            raise ValueError(f"expected '{missing[0]}' in the header, got none")
        kinds = {kind.value: kind for kind in ModelType}
        if not isinstance(given["type"], str) or given["type"] not in kinds:
            raise ValueError(f"type: expected one of {', '.join(kinds)}, got {given['type']!r:.100}")
        kind = kinds[given["type"]]
        variables = tuple(reader.variable(v) for v in _list(given["variables"], "variables"))
        names = [v.name for v in variables]
        order = [reader.name(name, "order") for name in _list(given["order"], "order")]
        if len(set(names)) != len(names) or sorted(order) != sorted(names):
            raise ValueError("variables: expected different names, and the same in 'order'")
        if sum((v.high - v.low).bit_length() for v in variables) > _MOST_BITS:
            raise ValueError(f"variables: expected at most {_MOST_BITS} bits, got more")
        initial, reachable, deadlocks = (reader.root(k, "sets") for k in _list(given["sets"], "sets", 3))
        layers = tuple(reader.layer(x) for x in _list(given["layers"], "layers"))
        if not layers or (kind is not ModelType.MDP and len(layers) != 1):
            raise ValueError(f"layers: expected one, in an mdp at least one, got {len(layers)}")
        labels = _object(given["labels"], "labels")
        constants = _object(given["constants"], "constants")
        return cls(
            kind,
            reader.name(given["source"], "source"),
            {reader.name(k, "constants"): _number(v, "constants") for k, v in constants.items()},
            variables,
            tuple(order),
            initial,
            reachable,
            deadlocks,
            layers=layers,
            labels={_label(reader.name(k, "labels")): reader.root(v, "labels") for k, v in labels.items()},
            rewards=tuple(reader.reward(r, len(layers)) for r in _list(given["rewards"], "rewards")),
        )


def _pair(function: FunctionEntry | None) -> list[float] | None:
    return None if function is None else [function.root, function.units]


@dataclass(frozen=True)
class _Reader:
    """Turns pieces of JSON into entries."""

    n_roots: int

    def root(self, given: Any, what: str) -> int:
        if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < self.n_roots:
            raise ValueError(
                f"{what}: expected the number of a function below {self.n_roots}, got {given!r:.100}"
            )
        return given

    def name(self, given: Any, what: str) -> str:
        if not isinstance(given, str) or not given.isprintable() or not 0 < len(given) <= _MOST_NAME:
            raise ValueError(f"{what}: expected a name, got {given!r:.100}")
        return given

    def function(self, given: Any, what: str) -> FunctionEntry:
        root, units = _list(given, what, 2)
        number = float(_number(units, what))
        if not 0 <= number <= MOST_UNITS:  # lemma: entry-units
            raise ValueError(
                f"{what}: expected units from 0 to 2^26, numbers that are known to eight digits, "
                f"got {units!r:.100}"
            )
        return FunctionEntry(self.root(root, what), number)

    def variable(self, given: Any) -> VariableEntry:
        name, low, high, is_bool = _list(given, "variables", 4)
        for bound in (low, high):
            if not isinstance(bound, int) or isinstance(bound, bool) or abs(bound) >= 1 << 62:
                raise ValueError(f"variables: expected a bound of 62 bits, got {bound!r:.100}")
        if low > high or not isinstance(is_bool, bool) or (is_bool and (low, high) != (0, 1)):
            raise ValueError(f"variables: expected a range, of a boolean 0..1, got {low}..{high}")
        return VariableEntry(self.name(name, "variables"), low, high, is_bool)

    def layer(self, given: Any) -> LayerEntry:
        matrix, enabled, parts = _list(given, "layers", 3)
        found = []
        for part in _list(parts, "layers"):
            action, states = _list(part, "layers", 2)
            found.append(
                (None if action is None else self.name(action, "layers"), self.root(states, "layers"))
            )
        return LayerEntry(self.function(matrix, "layers"), self.root(enabled, "layers"), tuple(found))

    def reward(self, given: Any, n_layers: int) -> RewardEntry:
        name, states, choices = _list(given, "rewards", 3)
        return RewardEntry(
            None if name is None else self.name(name, "rewards"),
            None if states is None else self.function(states, "rewards"),
            tuple(
                None if own is None else self.function(own, "rewards")
                for own in _list(choices, "rewards", n_layers)
            ),
        )


def _list(given: Any, what: str, length: int | None = None) -> Sequence[Any]:
    if not isinstance(given, list) or length not in (None, len(given)):
        raise ValueError(
            f"{what}: expected a list{'' if length is None else f' of {length}'}, got {given!r:.100}"
        )
    return given


def _object(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError(f"{what}: expected an object, got {given!r:.100}")
    return given


def _number(given: Any, what: str) -> bool | int | float:
    if not isinstance(given, (bool, int, float)) or (isinstance(given, float) and not math.isfinite(given)):
        raise ValueError(f"{what}: expected a number, got {given!r:.100}")
    if isinstance(given, int) and abs(given) >= 1 << 1000:
        raise ValueError(f"{what}: expected a smaller number, got one of {given.bit_length()} bits")
    return given


def _label(name: str) -> str:
    if '"' in name or name in ("init", "deadlock"):
        raise ValueError(f"labels: expected names without quotes, other than init and deadlock, got {name!r}")
    return name
