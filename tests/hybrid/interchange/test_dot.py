"""Drawings: every state, choice and transition is there, and large models are refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from hybrid.interchange import InterchangeError
from hybrid.interchange.dot import write_dot
from hybrid.interchange.prism_files import read_prism_files
from mtbdd.language.syntax import ModelType
from tests.builders.text_models import random_model

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize("kind", ModelType)
def test_dot_has_all_states_and_transitions(
    tmp_path: Path, rng: np.random.Generator, kind: ModelType
) -> None:
    model = random_model(rng, kind)
    text = write_dot(model, tmp_path / "m.dot").read_text()
    assert text.startswith(f"digraph {kind.value} {{") and text.endswith("}\n")
    assert text.count("[label=") - text.count("-> s") == model.n_states
    assert text.count("-> s") == model.n_entries
    assert text.count("shape=point") == (model.n_choices if model.is_mdp else 0)
    assert text.count("peripheries=2") == int(model.initial.sum())


def test_dot_names_variables_labels_and_actions(tmp_path: Path) -> None:
    model = read_prism_files(FILES / "coin2.tra.gz")
    text = write_dot(model, tmp_path / "m.dot").read_text()
    node = r's0 [label="0\ncounter=1, pc1=2, coin1=0, pc2=2, coin2=0\n{all_coins_equal_0, agree}"];'
    assert node in text
    assert 's3 -> c4 [dir=none, label="done"];' in text
    odd = dataclasses.replace(model, labels={'a "b" \\': model.initial})
    assert r"{a \"b\" \\}" in write_dot(odd, tmp_path / "m.dot").read_text()


def test_dot_of_large_models_must_be_forced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.interchange.dot._MOST", 50)
    model = read_prism_files(FILES / "tandem3.tra.gz")
    with pytest.raises(InterchangeError, match=r"m\.dot: a model of at most 50 states and transitions"):
        write_dot(model, tmp_path / "m.dot")
    assert not (tmp_path / "m.dot").exists()
    assert write_dot(model, tmp_path / "m.dot", force=True).exists()
