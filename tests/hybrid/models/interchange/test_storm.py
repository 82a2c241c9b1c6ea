"""Hand-over to Storm and back: files that it reads, and files that it writes, have equal values.

Skipped where stormpy is not installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybrid
from hybrid.models.interchange.formats import read_model, targets_of, write_model
from tests.source_tree import ROOT

stormpy: Any = pytest.importorskip("stormpy", reason="stormpy is not installed")

CASES = [
    ("herman", {}, 'R{"steps"}=? [ F "stable" ]'),
    ("herman", {}, 'P=? [ F<=2 "stable" ]'),
    ("kanban", {"t": 1}, "P=? [ F<=0.5 x1=1 ]"),
    ("tandem", {"c": 3}, "P=? [ F<=1.5 sm=2 ]"),
    ("coin", {"K": 2}, 'Pmin=? [ F "all_heads" ]'),
    ("coin", {"K": 2}, 'Pmax=? [ F "decided" & !"all_heads" & !"all_tails" ]'),
    ("coin", {"K": 2}, 'R{"steps"}max=? [ F "decided" ]'),
]


def _storm_values(model: Any, text: str) -> np.ndarray:
    (asked,) = stormpy.parse_properties(text)
    result = stormpy.model_checking(model, asked, only_initial_states=False)
    return np.array(result.get_value_vector())


def _values(model: hybrid.SymbolicModel, text: str) -> np.ndarray:
    return np.asarray(hybrid.check(model, text, epsilon=1e-9).values)


@pytest.mark.parametrize("suffix", [".umb", ".drn"])
@pytest.mark.parametrize(("name", "constants", "text"), CASES)
def test_storm_reads_what_is_written(
    tmp_path: Path, name: str, constants: dict[str, int], text: str, suffix: str
) -> None:
    model = hybrid.load(ROOT / "examples" / f"{name}.prism", constants=constants)
    path = tmp_path / f"model{suffix}"
    label = text[text.index(" F") :].partition(" ")[2]
    write_model(model, targets_of(path, len(model.source.rewards)))
    build = stormpy.build_model_from_umb if suffix == ".umb" else stormpy.build_model_from_drn
    storm = build(str(path))
    assert (storm.nr_states, storm.nr_transitions) == (model.n_states, model.n_transitions)
    if "=" in label.replace("<=", "").replace("=?", ""):
        return  # variables are not known to a model that Storm has read
    np.testing.assert_allclose(_storm_values(storm, text), _values(model, text), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("suffix", [".umb", ".drn"])
@pytest.mark.parametrize(("name", "constants", "text"), CASES)
def test_what_storm_writes_is_read(
    tmp_path: Path, name: str, constants: dict[str, int], text: str, suffix: str
) -> None:
    path, ours = tmp_path / f"storm{suffix}", ROOT / "examples" / f"{name}.prism"
    program = stormpy.parse_prism_program(str(ours), prism_compatibility=True)
    given = ",".join(f"{key}={value}" for key, value in constants.items())
    program, _ = stormpy.instantiate_constants(program, given)
    options = stormpy.BuilderOptions()
    options.set_build_state_valuations()
    options.set_build_all_labels()
    options.set_build_all_reward_models()
    storm = stormpy.build_model(program, options=options)
    if suffix == ".umb":
        stormpy.io.export_to_umb(storm, str(path))
    else:
        stormpy.io.export_to_drn(storm, str(path))
    text_model, read = hybrid.load(ours, constants=constants), read_model(path)
    assert (read.n_states, read.n_transitions) == (text_model.n_states, text_model.n_transitions)
    assert read.statistics.terminals == text_model.statistics.terminals
    expected, found = hybrid.check(text_model, text), hybrid.check(read, text)
    assert found.lower == pytest.approx(expected.lower, rel=1e-6, abs=1e-12)
    assert found.upper == pytest.approx(expected.upper, rel=1e-6, abs=1e-12)
    assert found.kind == expected.kind


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    book = json.loads((ROOT / "examples" / "storm.ipynb").read_text(encoding="utf-8"))
    monkeypatch.chdir(ROOT / "examples")
    names: dict[str, Any] = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
