"""Files in the Unified Markov Binary format (UMB, https://pmc-tools.github.io/umb), read and written."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import TarSink, written
from hybrid.models.interchange.explicit_model import (
    ExplicitModel,
    ExplicitReward,
    Mask,
    Numbers,
    Places,
    Vector,
    folded,
)
from hybrid.models.interchange.umb.schema import FORMAT_VERSION, StoredAnnotation, UmbIndex, load_members
from hybrid.models.interchange.umb.values import (
    FOLDER,
    UmbArrays,
    layout_of,
    packed,
    probabilities_and_exits,
    rates_of_products,
    unpacked,
)
from mtbdd.language.syntax import ModelType

__all__ = ["read_umb", "write_umb"]

Array = NDArray[Any]
_DOUBLE = {"type": "double", "size": 64}
_BOOL = {"type": "bool", "size": 1}

# With it, all names of members fit into the 100 bytes of a header.
_LONGEST_IDENTIFIER = 48


class _Members:
    """The members of a file that is written, in order, before they are put into the archive."""

    def __init__(self) -> None:
        self.contents: list[tuple[str, list[bytes | Array]]] = []

    def add(self, name: str, *parts: bytes | Array) -> None:
        self.contents.append((name, list(parts)))

    def add_set(self, name: str, mask: Array) -> None:
        """Add a set: a bit an element, whole words of 64 bits."""
        bits = np.packbits(mask, bitorder="little")
        self.add(name, bits, bytes(-bits.size % 8))


def write_umb(model: ExplicitModel, path: str | os.PathLike[str], compression: str | None = "gzip") -> None:
    """Write a model into a UMB file, version 1, that PRISM and Storm read.

    Parameters
    ----------
    model : ExplicitModel
        One that has been checked; Storm takes a target that comes twice in a row for one, with both rewards.
    path : path-like
        Is replaced once the new file is whole.
    compression : {"gzip", "xz", None}
        gzip at level 1, xz at preset 1, or none.

    Raises
    ------
    InterchangeError
        Rates of a state too far apart to be probabilities of doubles, or values of variables beyond their
        bounds.
    OptionError
        Another compression.
    OSError
        The file cannot be written.

    Notes
    -----
    Rates of a CTMC become probabilities and exit rates whose products, rounded, are the rates to the bit
    wherever there are such doubles (see `hybrid.models.interchange.umb.values`); elsewhere they are off by
    one unit in the last place. All other numbers are written as they are. Rewards of choices in chains are
    written as equal rewards of all branches, since PRISM reads only these; a state without branches loses
    them. A reward structure without anything gets zeros for all states. Names of actions are kept if choices
    have actions.

    Time: O(bytes); `xz` takes some ten times as long as `gzip`.
    """
    index: dict[str, Any] = {
        "format-version": FORMAT_VERSION,
        "format-revision": 0,
        "file-data": _file_data(),
        "transition-system": _system(model),
    }
    members = _Members()
    try:
        _add_transitions(model, members)
        _add_actions(model, members)
        annotations = {
            group: found
            for group, found in (
                ("aps", _add_labels(model, members)),
                ("rewards", _add_rewards(model, members)),
            )
            if found
        }
        if annotations:
            index["annotations"] = annotations
        if model.variables:
            index["valuations"] = {"states": _add_valuations(model, members)}
        text = json.dumps(index, indent=2).encode("ascii")
    except UnicodeEncodeError as error:
        raise InterchangeError(
            f"{model.source}: expected names in Unicode, got {error.object[:80]!r}; rename it"
        ) from None
    with written(path, compression) as sink:
        archive = TarSink(sink)
        archive.add("index.json", [text])
        for name, parts in members.contents:
            archive.add(name, parts)
        archive.finish()


def _file_data() -> dict[str, str]:
    try:
        return {"tool": "hybrid-model-checker", "tool-version": version("hybrid-model-checker")}
    except PackageNotFoundError:
        return {"tool": "hybrid-model-checker"}


def _has_unnamed(model: ExplicitModel) -> bool:
    """Return whether some choices of a model with actions have none."""
    return model.choice_actions is not None and bool((model.choice_actions < 0).any())


def _system(model: ExplicitModel) -> dict[str, Any]:
    has_actions = model.is_mdp and model.choice_actions is not None
    found: dict[str, Any] = {
        "time": "stochastic" if model.type is ModelType.CTMC else "discrete",
        "#players": int(model.is_mdp),
        "#states": model.n_states,
        "#initial-states": int(np.count_nonzero(model.initial)),
        "#choices": model.n_choices,
        "#choice-actions": len(model.actions) + _has_unnamed(model) if has_actions else 0,
        "#branches": model.n_entries,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": _DOUBLE,
    }
    if model.type is ModelType.CTMC:
        found["exit-rate-type"] = _DOUBLE
    return found


def _add_transitions(model: ExplicitModel, members: _Members) -> None:
    probabilities = model.values
    if model.type is ModelType.CTMC:
        probabilities, exits, wrong = probabilities_and_exits(model.values, model.row_starts)
        if wrong is not None:
            raise InterchangeError(
                f"{model.places.choice(wrong)}: expected rates whose sum and quotients are normal doubles, "
                "got others; rescale the rates, or choose a format without exit rates"
            )
        members.add("state-to-exit-rate.bin", exits.astype("<f8", copy=False))
    if model.choice_starts is not None:
        members.add("state-to-choices.bin", model.choice_starts.astype("<u8", copy=False))
    members.add("choice-to-branches.bin", _unsigned(model.row_starts))
    members.add("branch-to-target.bin", _unsigned(model.columns))
    members.add("branch-to-probability.bin", probabilities.astype("<f8", copy=False))
    members.add_set("state-is-initial.bin", model.initial)


def _unsigned(numbers: Array) -> Array:
    """Return numbers as the format has them, without a copy where they are so already."""
    return numbers.astype("<i8", copy=False).view("<u8")


def _add_actions(model: ExplicitModel, members: _Members) -> None:
    """Add names of actions and every choice's; the empty name, the first one, for choices without."""
    if not model.is_mdp or model.choice_actions is None:
        return
    unnamed = _has_unnamed(model)
    names = [name.encode("utf-8") for name in ([""] * unnamed + list(model.actions))]
    ends = np.cumsum([0, *(len(name) for name in names)])
    members.add("actions/choices/values.bin", (model.choice_actions + unnamed).astype("<u4"))
    members.add("actions/choices/string-mapping.bin", ends.astype("<u8"))
    members.add("actions/choices/strings.bin", b"".join(names))


def _identifier(name: str, taken: dict[str, Any]) -> str:
    """Return the name of an annotation's folder, another one than those that are taken."""
    plain = re.sub(r"[^0-9a-z_-]", "_", name.lower())[:_LONGEST_IDENTIFIER] or "_"
    found, number = plain, 1
    while found in taken:
        number += 1
        found = f"{plain}_{number}"
    return found


def _add_labels(model: ExplicitModel, members: _Members) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, mask in model.labels.items():
        identifier = _identifier(name, found)
        found[identifier] = {"alias": name, "applies-to": ["states"], "type": _BOOL}
        members.add_set(f"annotations/aps/{identifier}/states/values.bin", mask)
    return found


def _add_rewards(model: ExplicitModel, members: _Members) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, reward in enumerate(model.rewards, start=1):
        identifier = _identifier(str(number) if reward.name is None else reward.name, found)
        arrays = _reward_arrays(model, reward)
        found[identifier] = {"applies-to": list(arrays), "type": _DOUBLE}
        if reward.name is not None:
            found[identifier]["alias"] = reward.name
        for entity, values in arrays.items():
            place = f"annotations/rewards/{identifier}/{entity}/values.bin"
            members.add(place, values.astype("<f8", copy=False))
    return found


def _reward_arrays(model: ExplicitModel, reward: ExplicitReward) -> dict[str, Array]:
    found: dict[str, Array] = {}
    if reward.states is not None or reward.choices is None:
        found["states"] = np.zeros(model.n_states) if reward.states is None else reward.states
    if reward.choices is not None:
        if model.is_mdp:
            found["choices"] = reward.choices
        else:
            found["branches"] = np.repeat(reward.choices, np.diff(model.row_starts))
    return found


def _add_valuations(model: ExplicitModel, members: _Members) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    layout = layout_of(model.variables)
    for variable, (kind, bits) in zip(model.variables, layout, strict=True):
        field: dict[str, Any] = {"name": variable.name, "type": {"type": kind, "size": bits}}
        if not variable.is_bool:
            field |= {"lower": variable.low, "upper": variable.high}
        fields.append(field)
    if padding := -sum(bits for _, bits in layout) % 8:
        fields.append({"padding": padding})
    members.add(f"{FOLDER}/valuations.bin", packed(model.variables, model.valuations, model.n_states))
    return {"unique": False, "classes": [{"variables": fields}]}


@dataclass(frozen=True, eq=False)
class RewardReader:
    """Reads the reward structures of a model."""

    arrays: UmbArrays
    index: UmbIndex
    row_starts: Numbers  # int64; of the model: a row a choice, in a chain a row a state
    probabilities: Vector  # float64, shape (n_branches,); of branches, before exit rates make them rates
    units: float  # their relative error in units of 2^-53
    # int64, shape (n_states + 1,); of a chain some of whose states have no choice: where the choices of its
    # states begin
    state_choices: Numbers | None

    def all(self) -> tuple[ExplicitReward, ...]:
        """Return all reward structures, in the order of the index."""
        return tuple(self._reward(stored) for stored in self.index.rewards)

    def _numbers(self, stored: StoredAnnotation, entity: str) -> tuple[Vector, float] | None:
        if entity not in stored.entities:
            return None
        place = f"annotations/rewards/{stored.identifier}/{entity}/values.bin"
        found = self.arrays.numbers(place, stored.type)
        return (np.zeros(self.index.count(entity)), 0.0) if found is None else found

    def _reward(self, stored: StoredAnnotation) -> ExplicitReward:
        states = self._numbers(stored, "states")
        choices = self._numbers(stored, "choices")
        branches = self._numbers(stored, "branches")
        if choices is not None and self.state_choices is not None:
            has_choice = np.diff(self.state_choices) > 0
            of_states = np.zeros(self.index.n_states)
            of_states[has_choice] = choices[0]
            choices = of_states, choices[1]
        if branches is not None:
            expected = self._folded(*branches)
            choices = expected if choices is None else _sum(choices, expected)
        # PRISM numbers structures without a name.
        name = stored.alias if stored.alias is not None else stored.identifier
        return ExplicitReward(
            name=None if stored.alias is None and name.isdigit() else name,
            states=None if states is None else states[0],
            choices=None if choices is None else choices[0],
            units=max(0.0 if part is None else part[1] for part in (states, choices)),
        )

    def _folded(self, rewards: Vector, units: float) -> tuple[Vector, float]:
        """Return what choices earn on average; where all branches of a choice earn the same, exactly that."""
        starts = self.row_starts
        filled = np.flatnonzero(np.diff(starts))
        expected = np.zeros(len(starts) - 1)
        if not filled.size:
            return expected, 0.0
        least = np.minimum.reduceat(rewards, starts[filled])
        is_same = least == np.maximum.reduceat(rewards, starts[filled])
        if is_same.all():
            expected[filled] = least
            return expected, units
        # Conditional on the jump, so that neither exit rates nor sums a little beside 1 count.
        expected, lost = folded(starts, self.probabilities, rewards, per_jump=True)
        inherited = units + 2.0 * self.units  # lemma: entry-units
        if inherited:
            # Relative errors of the numbers bound that of a sum of one sign alone.
            most = np.maximum.reduceat(rewards, starts[filled])
            if ((least < 0) & (most > 0)).any():
                return expected, math.inf
        return expected, (lost + inherited) * (1.0 + 2.0**-40)  # lemma: entry-units


def _sum(left: tuple[Vector, float], right: tuple[Vector, float]) -> tuple[Vector, float]:
    """Return the sum of what choices earn themselves and of what their branches earn."""
    total = left[0] + right[0]
    units = max(left[1], right[1])
    both = (left[0] != 0) & (right[0] != 0)
    if not both.any():
        return total, units
    if units and ((left[0] < 0) != (right[0] < 0))[both].any():
        return total, math.inf
    return total, (units + 1.0) * (1.0 + 2.0**-40)  # lemma: entry-units


def read_umb(path: str | os.PathLike[str]) -> ExplicitModel:
    """Read a DTMC, a CTMC or an MDP from a UMB file, plain or compressed with gzip or xz.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    ExplicitModel
        Rates are products of probabilities and exit rates. Rewards of branches count for their choice, on
        average. Actions of branches, and of choices in chains, are left out, as are variables that are
        neither boolean nor integer, and annotations of other kinds.

    Raises
    ------
    InterchangeError
        No UMB file of version 1, a damaged one, one whose arrays are not those that its index promises, or a
        model of another kind (intervals, games, observations, Markov automata, CTMDPs).
    MemoryError
        No room for the arrays.
    OSError
        The file cannot be read.

    Notes
    -----
    What the format promises is checked: fields, lengths, that intervals ascend, that targets exist, that
    numbers are finite and probabilities not negative. Sums of rows are not.

    Time: O(bytes). Memory: the arrays, and a fraction of them.
    """
    path = Path(path)
    source = str(path)
    members = load_members(path)
    index = members.index
    arrays = UmbArrays(members.contents, source)
    row_starts, choice_starts, state_choices = _structure(arrays, index)
    columns = arrays.targets("branch-to-target.bin", index.n_states)
    if columns is None:
        if index.n_branches:
            raise arrays.missing("branch-to-target.bin", "the targets of the branches")
        columns = np.zeros(0, dtype=np.int64)
    found = arrays.numbers("branch-to-probability.bin", index.probability_type, least=0.0)
    values, units = (np.ones(index.n_branches), 0.0) if found is None else found
    rewards = RewardReader(arrays, index, row_starts, values, units, state_choices).all()
    if index.type is ModelType.CTMC:
        units = _as_rates(arrays, index, row_starts, values, units)
    initial = _initial(arrays, index, source)
    actions, choice_actions = _actions(arrays, index)
    labels = _labels(arrays, index, initial, source)
    variables, valuations = unpacked(arrays, index.classes, index.n_states)
    return ExplicitModel(
        type=index.type,
        n_states=index.n_states,
        row_starts=row_starts,
        columns=columns,
        values=values,
        initial=initial,
        choice_starts=choice_starts,
        actions=actions,
        choice_actions=choice_actions,
        variables=variables,
        valuations=valuations,
        labels=labels,
        rewards=rewards,
        value_units=units,
        source=source,
        places=Places(source, "choice", "branch"),
    )


def _structure(arrays: UmbArrays, index: UmbIndex) -> tuple[Numbers, Numbers | None, Numbers | None]:
    """Return the starts of rows, those of choices, and of a chain where the choices of its states begin.

    In a chain a state has one choice, or none; the last is None if they are numbered as the states.
    """
    states, choices, branches = index.n_states, index.n_choices, index.n_branches
    of_states, of_choices = "state-to-choices.bin", "choice-to-branches.bin"
    if not arrays.has(of_states) and states != choices:
        raise arrays.missing(of_states, f"the choices of {states} states, of which there are {choices}")
    if not arrays.has(of_choices) and choices != branches:
        raise arrays.missing(of_choices, f"the branches of {choices} choices, of which there are {branches}")
    choice_starts = arrays.starts(of_states, states, choices)
    row_starts = arrays.starts(of_choices, choices, branches)
    if row_starts is None:
        row_starts = np.arange(choices + 1, dtype=np.int64)
    if index.type is ModelType.MDP:
        if choice_starts is None:
            choice_starts = np.arange(states + 1, dtype=np.int64)
        return row_starts, choice_starts, None
    if choice_starts is None:
        return row_starts, None, None
    several = np.diff(choice_starts) > 1
    if several.any():
        k = int(np.argmax(several))
        count = int(choice_starts[k + 1] - choice_starts[k])
        raise arrays.fault(of_states, k, "one choice a state where there are no players", f"{count}")
    return row_starts[choice_starts], None, choice_starts


def _as_rates(arrays: UmbArrays, index: UmbIndex, row_starts: Numbers, values: Vector, units: float) -> float:
    """Turn probabilities into rates, in place, and return their units."""
    name = "state-to-exit-rate.bin"
    assert index.rate_type is not None
    exits = arrays.numbers(name, index.rate_type, least=0.0)
    if exits is None:
        raise arrays.missing(name, "the exit rates of a CTMC")
    is_exact, wrong = rates_of_products(values, exits[0], row_starts)
    if wrong is not None:
        wanted = "a rate (probability times exit rate) among the normal doubles"
        raise arrays.fault("branch-to-probability.bin", wrong, wanted, values[wrong])
    total = units + exits[1] + (0.0 if is_exact else 1.0)  # lemma: entry-units
    # lemma: entry-units
    return total if total <= 1.0 else total * (1.0 + 2.0**-40)


def _initial(arrays: UmbArrays, index: UmbIndex, source: str) -> Mask:
    found = arrays.members_of_set("state-is-initial.bin", index.n_states)
    initial = np.zeros(index.n_states, dtype=np.bool_) if found is None else found
    count = int(np.count_nonzero(initial))
    if count != index.n_initial:
        raise InterchangeError(
            f"{source}: state-is-initial.bin: expected {index.n_initial} initial states, as the index has "
            f"it, got {count}; write the file again"
        )
    return initial


def _actions(arrays: UmbArrays, index: UmbIndex) -> tuple[tuple[str, ...], Numbers | None]:
    """Return the names of the actions of an MDP, and every choice's action; an empty name stands for none."""
    if index.type is not ModelType.MDP or not index.n_actions:
        return (), None
    values = "actions/choices/values.bin"
    names = arrays.strings("actions/choices", index.n_actions)
    found = arrays.small_numbers(values, index.n_actions)
    if names is None:
        # Actions without names are distinguished by their numbers; unused ones are not worth a name.
        used = int(found.max(initial=0)) + 1 if found is not None else 1
        names = [f"a{number}" for number in range(min(index.n_actions, used))]
    numbers: dict[str, int] = {}
    for name in names:
        if name:
            numbers.setdefault(name, len(numbers))
    renamed = np.array([numbers.get(name, -1) for name in names], dtype=np.int64)
    if found is None:
        choice_actions = np.full(index.n_choices, renamed[0], dtype=np.int64)
    else:
        choice_actions = renamed[found]
    return tuple(numbers), choice_actions if (choice_actions >= 0).any() else None


def _labels(arrays: UmbArrays, index: UmbIndex, initial: Mask, source: str) -> dict[str, Mask]:
    labels = {}
    for label in index.labels:
        place = f"annotations/aps/{label.identifier}/states/values.bin"
        found = arrays.members_of_set(place, index.n_states)
        mask = np.zeros(index.n_states, dtype=np.bool_) if found is None else found
        name = label.identifier if label.alias is None else label.alias
        if name != "init":
            labels[name] = mask
        elif not np.array_equal(mask, initial):
            raise InterchangeError(
                f"{source}: {place}: expected the label 'init' on the initial states, got it on others; "
                "rename the label"
            )
    return labels
