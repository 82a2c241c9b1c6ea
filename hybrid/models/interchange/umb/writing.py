"""Models as UMB files."""

from __future__ import annotations

import json
import os
import re
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.base.errors import InterchangeError
from hybrid.models.interchange.container import TarSink
from hybrid.models.interchange.explicit_model import ExplicitModel, ExplicitReward
from hybrid.models.interchange.streams import written
from hybrid.models.interchange.umb.schema import FORMAT_VERSION
from hybrid.models.interchange.umb.values import FOLDER, layout_of, packed, probabilities_and_exits
from mtbdd.language.syntax import ModelType

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
            for group, found in (("aps", _labels(model, members)), ("rewards", _rewards(model, members)))
            if found
        }
        if annotations:
            index["annotations"] = annotations
        if model.variables:
            index["valuations"] = {"states": _valuations(model, members)}
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
    """Whether some choices of a model with actions have none."""
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


def _labels(model: ExplicitModel, members: _Members) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, mask in model.labels.items():
        identifier = _identifier(name, found)
        found[identifier] = {"alias": name, "applies-to": ["states"], "type": _BOOL}
        members.add_set(f"annotations/aps/{identifier}/states/values.bin", mask)
    return found


def _rewards(model: ExplicitModel, members: _Members) -> dict[str, Any]:
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


def _valuations(model: ExplicitModel, members: _Members) -> dict[str, Any]:
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
