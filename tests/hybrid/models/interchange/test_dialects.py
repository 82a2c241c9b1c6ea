"""Small models in the forms that PRISM and Storm write, made by hand: every reader tells their content."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid.models.interchange import ExplicitModel
from hybrid.models.interchange.text.drn import read_drn
from hybrid.models.interchange.text.prism import read_pexp, read_prism_files
from hybrid.models.interchange.umb import read_umb
from tests.builders.explicit_models import write_listed
from tests.hybrid.models.interchange.dialect_texts import EXPECTED, PRISM_DRN, PRISM_FILES, STORM_DRN

MODELS = list(EXPECTED)


def content(model: ExplicitModel) -> dict[str, Any]:
    """What `EXPECTED` tells of a model; labels of no state, as PRISM's of deadlocks, are left out."""
    starts = np.arange(model.n_states + 1) if model.choice_starts is None else model.choice_starts
    choices = []
    for choice in range(model.n_choices):
        own = slice(model.row_starts[choice], model.row_starts[choice + 1])
        choices.append(dict(zip(model.columns[own].tolist(), model.values[own].tolist(), strict=True)))
    found: dict[str, Any] = {
        "type": model.type.value,
        "rows": [choices[starts[k] : starts[k + 1]] for k in range(model.n_states)],
        "initial": np.flatnonzero(model.initial).tolist(),
        "variables": {v.name: model.valuations[v.name].tolist() for v in model.variables},
        "labels": {name: np.flatnonzero(mask).tolist() for name, mask in model.labels.items() if mask.any()},
        "rewards": {
            str(reward.name): (
                [0.0] * model.n_states if reward.states is None else reward.states.tolist(),
                [0.0] * model.n_choices if reward.choices is None else reward.choices.tolist(),
            )
            for reward in model.rewards
        },
    }
    if model.is_mdp:
        assert model.choice_actions is not None
        found["actions"] = [model.actions[k] if k >= 0 else None for k in model.choice_actions.tolist()]
    else:
        assert model.actions == () and model.choice_actions is None
    return found


def put_files(folder: Path, name: str) -> Path:
    """PRISM's files of a model, several reward structures with numbers."""
    for end, text in PRISM_FILES[name].items():
        (folder / f"{name}{'' if end[0].isdigit() else '.'}{end}").write_text(text)
    return folder / f"{name}.tra"


def combined(name: str) -> str:
    """PRISM's combined file of a model."""
    return "\n".join(PRISM_FILES[name].values())


@pytest.mark.parametrize("name", MODELS)
def test_prism_files_as_prism_writes_them(tmp_path: Path, name: str) -> None:
    model = read_prism_files(put_files(tmp_path, name))
    assert content(model) == EXPECTED[name]
    # The label of deadlocks is there, of no state.
    assert not model.labels["deadlock"].any() and "init" not in model.labels
    assert [reward.name for reward in model.rewards] == list(EXPECTED[name]["rewards"])


@pytest.mark.parametrize("name", MODELS)
def test_prism_files_are_written_as_prism_writes_them(tmp_path: Path, name: str) -> None:
    model = read_prism_files(put_files(tmp_path, name))
    texts = PRISM_FILES[name]
    for end in ("tra", "sta", "lab"):
        text = texts[end]
        if end == "tra" and not model.is_mdp:
            text = text.replace(" enter", "").replace(" break", "").replace(" light", "")
        assert write_listed(model, tmp_path / f"w.{end}").read_text() == text
    if "srew" in texts:
        assert len(model.rewards) == 1
        for end in ("srew", "trew"):
            assert write_listed(model, tmp_path / f"w.{end}").read_text() == texts[end]
    if name == "game":
        assert write_listed(model, tmp_path / "w.pexp").read_text() == combined(name)


@pytest.mark.parametrize("name", MODELS)
def test_combined_files_as_prism_writes_them(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.pexp"
    path.write_text(combined(name))
    assert content(read_pexp(path)) == EXPECTED[name]


@pytest.mark.parametrize("name", MODELS)
def test_drn_as_prism_writes_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.drn"
    path.write_text(PRISM_DRN[name])
    found = content(read_drn(path))
    # PRISM tells no valuations.
    assert found.pop("variables") == {}
    assert found == {key: value for key, value in EXPECTED[name].items() if key != "variables"}


@pytest.mark.parametrize("name", MODELS)
def test_drn_as_storm_writes_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.drn"
    path.write_text(STORM_DRN[name])
    assert content(read_drn(path)) == EXPECTED[name]
    (tmp_path / "m.drn.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert content(read_drn(tmp_path / "m.drn.gz")) == EXPECTED[name]


# ------------------------------------------------------------------ UMB

_DOUBLE = {"type": "double", "size": 64}


def words(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u8").tobytes()


def doubles(numbers: list[float]) -> bytes:
    return np.array(numbers, dtype="<f8").tobytes()


def bits(states: list[int]) -> bytes:
    return words(sum(1 << state for state in states))


def umb_of(name: str, tool: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The index and the arrays of a model as a tool writes them.

    PRISM names the actions of a chain's branches and folds no rewards of branches; its integers have neither
    bounds nor offsets. Storm sorts the keys, names the actions of a chain's choices, and stores variables
    less their lower bounds.
    """
    model, is_storm = EXPECTED[name], tool == "Storm"
    rows = [row for choices in model["rows"] for row in choices]
    exits = [sum(row.values()) for row in rows]
    is_rates, is_mdp = model["type"] == "ctmc", model["type"] == "mdp"
    members = {
        "choice-to-branches.bin": words(*np.cumsum([0, *map(len, rows)]).tolist()),
        "branch-to-target.bin": words(*(target for row in rows for target in row)),
        "branch-to-probability.bin": doubles(
            [v / (e if is_rates else 1) for row, e in zip(rows, exits, strict=True) for v in row.values()]
        ),
        "state-is-initial.bin": bits(model["initial"]),
    }
    n_branches = sum(map(len, rows))
    system: dict[str, Any] = {
        "time": "stochastic" if is_rates else "discrete", "#players": int(is_mdp), "#states": 3,
        "#initial-states": 1, "#choices": len(rows), "#choice-actions": 0, "#branches": n_branches,
        "#branch-actions": 0, "#observations": 0, "branch-probability-type": _DOUBLE,
    }  # fmt: skip
    if is_rates:
        system["exit-rate-type"] = _DOUBLE
        members["state-to-exit-rate.bin"] = doubles(exits)
    if is_mdp:
        members["state-to-choices.bin"] = words(*np.cumsum([0, *map(len, model["rows"])]).tolist())
        names = ["", "go", "stop"]
        numbers = [names.index(action or "") for action in model["actions"]]
        of, count = "choices", "#choice-actions"
    else:
        names = ["", "enter"]
        of, count = ("choices", "#choice-actions") if is_storm else ("branches", "#branch-actions")
        numbers = [k % 2 for k in range(len(rows) if is_storm else n_branches)]
    system[count] = len(names)
    members[f"actions/{of}/values.bin"] = np.array(numbers, dtype="<u4").tobytes()
    members[f"actions/{of}/string-mapping.bin"] = words(*np.cumsum([0, *map(len, names)]).tolist())
    members[f"actions/{of}/strings.bin"] = "".join(names).encode()
    fields, data = valuations(model["variables"], is_storm)
    members["valuations/states/valuations.bin"] = data
    annotations: dict[str, Any] = {"aps": {}, "rewards": {}}
    for label, states in model["labels"].items():
        members[f"annotations/aps/{label}/states/values.bin"] = bits(states)
        annotations["aps"][label] = {
            "alias": label, "applies-to": ["states"], "type": {"type": "bool", "size": 1},
        }  # fmt: skip
    for reward, (of_states, of_choices) in model["rewards"].items():
        entry = {"alias": reward, "applies-to": ["states"], "type": _DOUBLE} | (
            {"lower": 0} if is_storm else {}
        )
        values = of_states
        if any(of_choices):
            entry["applies-to"], values = ["choices"], of_choices
            if not is_storm and is_rates:
                # Branches 1 to 0 and 2 to 1 earn 1.
                entry["applies-to"], values = ["branches"], [0.0, 1.0, 0.0, 1.0]
        members[f"annotations/rewards/{reward}/{entry['applies-to'][0]}/values.bin"] = doubles(values)
        annotations["rewards"][reward] = entry
    index = {
        "format-version": 1, "format-revision": 0, "model-data": {},
        "file-data": {"tool": tool, "creation-date": 1_700_000_000},
        "transition-system": system, "annotations": annotations,
        "valuations": {"states": {"unique": not is_storm, "classes": [{"variables": fields}]}},
    }  # fmt: skip
    return index, members


def valuations(variables: dict[str, list[Any]], is_storm: bool) -> tuple[list[dict[str, Any]], bytes]:
    """The fields of a state's values, the first one in the lowest bits, and the values of three states."""
    fields: list[dict[str, Any]] = []
    total, rows = 0, [0, 0, 0]
    for name, values in variables.items():
        if isinstance(values[0], bool):
            field: dict[str, Any] = {"name": name, "type": {"type": "bool", "size": 1}}
            low = 0
        elif is_storm:
            low, high = min(values), max(values)
            size = max(1, (high - low).bit_length())
            kind = {"type": "uint", "size": size}
            field = {"lower": low, "name": name, "offset": low, "type": kind, "upper": high}
        else:
            low, size = 0, 3
            field = {"name": name, "type": {"type": "int" if min(values) < 0 else "uint", "size": size}}
        size = field["type"]["size"]
        for state, value in enumerate(values):
            rows[state] |= (int(value) - low & (1 << size) - 1) << total
        total += size
        fields.append(field)
    fields.append({"padding": 8 - total})
    return fields, bytes(rows)


def packed(index: dict[str, Any], members: dict[str, bytes], is_storm: bool) -> bytes:
    """An archive packed with gzip; Storm's has folders, and files that anyone may do anything with."""
    file = io.BytesIO()
    text = json.dumps(index, indent=4, sort_keys=True) if is_storm else json.dumps(index, indent=2)
    known: set[str] = set()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as out:
        for name, data in {"index.json": text.encode(), **members}.items():
            parts = name.split("/")[:-1]
            for depth in range(1, len(parts) + 1) if is_storm else ():
                folder = "/".join(parts[:depth]) + "/"
                if folder not in known and folder != "actions/":
                    known.add(folder)
                    info = tarfile.TarInfo(folder)
                    info.type, info.mode = tarfile.DIRTYPE, 0o777
                    out.addfile(info)
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o777 if is_storm else 0o644
            out.addfile(info, io.BytesIO(data))
    return gzip.compress(file.getvalue())


@pytest.mark.parametrize("tool", ["PRISM", "Storm"])
@pytest.mark.parametrize("name", MODELS)
def test_umb_as_prism_and_storm_write_it(tmp_path: Path, name: str, tool: str) -> None:
    path = tmp_path / "m.umb"
    path.write_bytes(packed(*umb_of(name, tool), tool == "Storm"))
    model = read_umb(path)
    assert content(model) == EXPECTED[name]
    # Storm declares bounds; of PRISM's they are those of the values.
    assert [(v.low, v.high) for v in model.variables] == [
        (min(values), max(values)) for values in EXPECTED[name]["variables"].values()
    ]
