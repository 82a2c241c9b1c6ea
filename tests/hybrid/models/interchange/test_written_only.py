"""Formats that are only written: MatrixMarket and Graphviz's language."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from hybrid.models.interchange import InterchangeError
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import example_written_out, write_listed
from tests.builders.text_models import random_model


@pytest.mark.parametrize("kind", ModelType)
@pytest.mark.parametrize("name", ["m.mtx", "m.mtx.gz"])
def test_matrix_market_is_read_by_scipy(
    tmp_path: Path, rng: np.random.Generator, kind: ModelType, name: str
) -> None:
    model = random_model(rng, kind)
    read = scipy.io.mmread(write_listed(model, tmp_path / name), spmatrix=False).tocsr()
    shape = (model.n_choices, model.n_states)
    expected = scipy.sparse.csr_array((model.values, model.columns, model.row_starts), shape=shape)
    assert read.shape == shape
    assert (read.toarray() == expected.toarray()).all()


def test_matrix_market_says_where_states_begin(tmp_path: Path, rng: np.random.Generator) -> None:
    model = random_model(rng, ModelType.MDP)
    assert model.choice_starts is not None
    lines = write_listed(model, tmp_path / "m.mtx").read_text().splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real general"
    starts = [int(line.split()[-1]) for line in lines if line.startswith("% state")]
    assert starts == (model.choice_starts[:-1] + 1).tolist()


@pytest.mark.parametrize("kind", ModelType)
def test_dot_has_all_states_and_transitions(
    tmp_path: Path, rng: np.random.Generator, kind: ModelType
) -> None:
    model = random_model(rng, kind)
    text = write_listed(model, tmp_path / "m.dot").read_text()
    assert text.startswith("digraph {") and text.endswith("}\n")
    n_points = model.n_choices if model.is_mdp else 0
    assert text.count("shape=box") == model.n_states
    assert text.count(" -> n") == model.n_entries + n_points
    assert text.count("shape=point") == n_points
    assert text.count("peripheries=2") == int(model.initial.sum())


def test_dot_names_variables_labels_and_actions(tmp_path: Path) -> None:
    model = example_written_out("coin", K=2)
    assert model.choice_actions is not None and model.choice_starts is not None
    text = write_listed(model, tmp_path / "m.dot").read_text()
    state = int(np.flatnonzero(model.labels["all_heads"])[0])
    values = [f"{v.name}={str(model.valuations[v.name][state]).lower()}" for v in model.variables]
    assert values[0].startswith("counter=") and values[3:] == ["at2=3", "heads2=true"]
    shown = rf"{', '.join(values[:3])}\n{', '.join(values[3:])}\n{{decided, all_heads}}"
    assert rf'n{state} [label="{state}\n{shown}", shape=box' in text
    choice = int(model.choice_starts[state])
    assert model.actions[model.choice_actions[choice]] == "rest"
    assert f'n{state} -> n{model.n_states + choice} [label="rest", dir=none];' in text
    odd = dataclasses.replace(model, labels={'a "b" \\': model.initial})
    assert r"{a \"b\" \\}" in write_listed(odd, tmp_path / "m.dot").read_text()


def test_dot_of_large_models_must_be_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.models.interchange.write_out._MOST_DOT", 50)
    model = example_written_out("tandem", c=3)
    with pytest.raises(InterchangeError, match=r"m\.dot: a model of at most 50 states and transitions"):
        write_listed(model, tmp_path / "m.dot")
    assert not (tmp_path / "m.dot").exists()
    assert write_listed(model, tmp_path / "m.dot", force=True).exists()
