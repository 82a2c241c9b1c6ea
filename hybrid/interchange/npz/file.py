"""Models as NumPy archives (`.npz`): arrays under fixed names, none of which is a pickled object.

An archive has these arrays; those in brackets may be missing. Integers may have any width.

=====================  ===========================  ====================================================
name                   type, shape                  what
=====================  ===========================  ====================================================
``format``             string                       ``hybrid-explicit-model``
``version``            integer                      1
``type``               string                       ``dtmc``, ``ctmc`` or ``mdp``
``row_starts``         integers, n_choices + 1      entries of a choice (of a chain: of a state)
``columns``            integers, n_entries          the states that the entries lead to
``values``             doubles, n_entries           probabilities, in a CTMC rates
``initial``            bool, n_states
[``choice_starts``]    integers, n_states + 1       of an MDP only: choices of a state
[``actions``]          strings, n_actions           of an MDP only
[``choice_actions``]   integers, n_choices          numbers in ``actions``, -1 for none
[``variables``]        strings, n_variables         names
[``bounds``]           integers, n_variables x 2    least and largest value of every variable
[``booleans``]         bool, n_variables            which variables are booleans
[``valuation_K``]      integers or bool, n_states   the values of variable K, counted from 0
[``labels``]           strings, n_labels            names
[``label_K``]          bool, n_states               the states that have label K
[``rewards``]          strings, n_rewards           names; the empty one for none
[``reward_K_states``]  doubles, n_states            rewards of states, a step or a unit of time
[``reward_K_choices``] doubles, n_choices           rewards of choices (of a chain: of leaving a state)
[``reward_units``]     doubles, n_rewards           relative errors in units of 2^-53; else 0
[``value_units``]      double                       relative error of ``values``; else 0
=====================  ===========================  ====================================================

Units are at most 2^26; those of rewards may be infinite, which says that nothing is known of their errors.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid.errors import InterchangeError
from hybrid.interchange.explicit_model import (
    MOST_UNITS,
    ArrayPlaces,
    ExplicitModel,
    ExplicitReward,
    StateVariable,
)
from hybrid.interchange.npz.arrays import NpzArrays
from mtbdd.language.syntax import ModelType

FORMAT = "hybrid-explicit-model"
VERSION = 1

_TYPES = {"dtmc": ModelType.DTMC, "ctmc": ModelType.CTMC, "mdp": ModelType.MDP}

# Entries of archives have the time of their writing; a fixed one makes equal models equal files.
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BLOCK = 1 << 22


def read_npz(path: str | os.PathLike[str]) -> ExplicitModel:
    """Read a model from a NumPy archive.

    Parameters
    ----------
    path : path-like
        An archive with the arrays that this module lists, compressed or not.

    Raises
    ------
    InterchangeError
        No such archive, or arrays that are missing, damaged, or of another type or shape.
    MemoryError
        No room for the arrays.
    OSError
        The file cannot be read.

    Notes
    -----
    Checked are types, shapes, that starts ascend, that states and actions exist and that numbers are finite;
    sums of rows are not. Nothing in the file is executed. Time: O(bytes).
    """
    source = str(path)
    with NpzArrays(Path(path)) as arrays:
        if (name := arrays.text("format")) != FORMAT:
            raise arrays.fault("format", f"{FORMAT!r}", repr(name))
        if (version := arrays.integer("version")) != VERSION:
            raise arrays.fault("version", str(VERSION), str(version))
        kind = _TYPES.get(arrays.text("type"))
        if kind is None:
            raise arrays.fault("type", f"one of {', '.join(_TYPES)}", repr(arrays.text("type")))
        initial = arrays.mask("initial", None)
        n_states = len(initial)
        if not n_states:
            raise arrays.fault("initial", "at least one state", "none")
        values = arrays.doubles("values", None)
        n_entries = len(values)
        row_starts = arrays.starts("row_starts", None if kind is ModelType.MDP else n_states, n_entries)
        n_choices = len(row_starts) - 1
        choice_starts = None
        if kind is ModelType.MDP:
            choice_starts = arrays.starts("choice_starts", n_states, n_choices)
        actions, choice_actions = _actions(arrays, n_choices) if kind is ModelType.MDP else ((), None)
        variables, valuations = _variables(arrays, n_states)
        names = arrays.strings("labels")
        return ExplicitModel(
            type=kind,
            n_states=n_states,
            row_starts=row_starts,
            columns=arrays.numbers("columns", n_entries, 0, n_states - 1),
            values=values,
            initial=initial,
            choice_starts=choice_starts,
            actions=actions,
            choice_actions=choice_actions,
            variables=variables,
            valuations=valuations,
            labels={name: arrays.mask(f"label_{k}", n_states) for k, name in enumerate(names)},
            rewards=_rewards(arrays, n_states, n_choices),
            value_units=arrays.units("value_units", ())[0] if arrays.has("value_units") else 0.0,
            source=source,
            places=ArrayPlaces(source),
        )


def _actions(arrays: NpzArrays, n_choices: int) -> tuple[tuple[str, ...], NDArray[np.int64] | None]:
    actions = arrays.strings("actions")
    if not arrays.has("choice_actions"):
        return actions, None
    return actions, arrays.numbers("choice_actions", n_choices, -1, len(actions) - 1)


def _variables(arrays: NpzArrays, n_states: int) -> tuple[tuple[StateVariable, ...], dict[str, NDArray[Any]]]:
    names = arrays.strings("variables")
    if not names:
        return (), {}
    bounds = arrays.table("bounds", len(names), 2)
    booleans = arrays.mask("booleans", len(names))
    variables, valuations = [], {}
    for k, name in enumerate(names):
        low, high = bounds[k].tolist()
        place = f"valuation_{k}"
        if booleans[k]:
            low, high = 0, 1
        values: NDArray[Any] = (
            arrays.mask(place, n_states) if booleans[k] else arrays.numbers(place, n_states, low, high)
        )
        valuations[name] = values
        variables.append(StateVariable(name, low, high, bool(booleans[k])))
    return tuple(variables), valuations


def _rewards(arrays: NpzArrays, n_states: int, n_choices: int) -> tuple[ExplicitReward, ...]:
    names = arrays.strings("rewards", unnamed=True)
    count = len(names)
    units = [0.0] * count
    if arrays.has("reward_units"):
        units = arrays.units("reward_units", (count,), unknown=True)
    found = []
    for k, name in enumerate(names):
        states, choices = (
            arrays.doubles(place, length) if arrays.has(place) else None
            for place, length in ((f"reward_{k}_states", n_states), (f"reward_{k}_choices", n_choices))
        )
        found.append(ExplicitReward(name or None, states, choices, units[k]))
    return tuple(found)


# ------------------------------------------------------------------ writing


def write_npz(model: ExplicitModel, path: str | os.PathLike[str], compress: bool = False) -> None:
    """Write a model into a NumPy archive with the arrays that this module lists.

    Parameters
    ----------
    model : ExplicitModel
    path : path-like
        Is overwritten.
    compress : bool
        Deflate the arrays, at level 1; some ten times slower.

    Raises
    ------
    InterchangeError
        A name that ends with NUL characters, which arrays of strings do not keep, an empty one of a reward,
        or numbers with errors that no archive may declare.
    OSError
        The file cannot be written.

    Notes
    -----
    Reading gives back every number to the bit. Time: O(bytes).
    """
    method = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    arrays = list(_arrays(model))
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
        for name, array in arrays:
            _add(archive, f"{name}.npy", array, method)


def _arrays(model: ExplicitModel) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the names and the arrays of an archive."""
    yield "format", np.array(FORMAT)
    yield "version", np.array(VERSION)
    yield "type", np.array(next(name for name, kind in _TYPES.items() if kind is model.type))
    yield "row_starts", model.row_starts
    yield "columns", model.columns
    yield "values", model.values
    yield "initial", model.initial
    _require_known(model, "probabilities or rates", model.value_units)
    yield "value_units", np.array(float(model.value_units))
    if model.choice_starts is not None:
        yield "choice_starts", model.choice_starts
        yield "actions", _names(model, model.actions)
        if model.choice_actions is not None:
            yield "choice_actions", model.choice_actions
    if model.variables:
        yield "variables", _names(model, [variable.name for variable in model.variables])
        bounds = [(variable.low, variable.high) for variable in model.variables]
        yield "bounds", np.array(bounds, dtype=np.int64)
        yield "booleans", np.array([variable.is_bool for variable in model.variables])
        for k, variable in enumerate(model.variables):
            yield f"valuation_{k}", model.valuations[variable.name]
    if model.labels:
        yield "labels", _names(model, list(model.labels))
        for k, mask in enumerate(model.labels.values()):
            yield f"label_{k}", mask
    if model.rewards:
        if any(reward.name == "" for reward in model.rewards):
            raise InterchangeError(f"{model.source}: expected names of rewards, got an empty one; rename it")
        for reward in model.rewards:
            if reward.units != np.inf:
                _require_known(model, f"rewards {reward.name or ''}".rstrip(), reward.units)
        yield "rewards", _names(model, [reward.name or "" for reward in model.rewards])
        yield "reward_units", np.array([reward.units for reward in model.rewards], dtype=np.float64)
        for k, reward in enumerate(model.rewards):
            if reward.states is not None:
                yield f"reward_{k}_states", reward.states
            if reward.choices is not None:
                yield f"reward_{k}_choices", reward.choices


def _require_known(model: ExplicitModel, what: str, units: float) -> None:
    """Refuse what could not be read again."""
    if not units <= MOST_UNITS:
        raise InterchangeError(
            f"{model.source}: {what}: expected numbers that are known to eight digits, got errors of "
            f"{units:g} units of 2^-53; sums that nearly cancel cost digits"
        )


def _names(model: ExplicitModel, names: list[str] | tuple[str, ...]) -> NDArray[np.str_]:
    for name in names:
        if name.endswith("\0"):
            raise InterchangeError(f"{model.source}: expected names without NUL, got {name!r}; rename it")
    return np.array(names, dtype=np.str_)


def _add(archive: zipfile.ZipFile, name: str, array: NDArray[Any], method: int) -> None:
    whole = np.ascontiguousarray(array).reshape(array.shape)
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = method
    with archive.open(entry, "w", force_zip64=whole.nbytes >= 1 << 31) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(whole))
        view = memoryview(whole.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        for start in range(0, len(view), _BLOCK):
            file.write(view[start : start + _BLOCK])
