"""Matrices in MatrixMarket: SciPy reads what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import write_listed
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
