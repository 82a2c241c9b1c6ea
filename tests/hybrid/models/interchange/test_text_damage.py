"""Random damage to text formats: a model whose arrays fit together, or a message with file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hybrid.models.interchange import ExplicitModel, InterchangeError
from hybrid.models.interchange.text.drn import read_drn
from hybrid.models.interchange.text.prism import read_pexp
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import write_listed
from tests.builders.text_models import random_model
from tests.exploring import rounds

_SPARE = [
    *"0 1 -1 # [ ] , : ( ) = nan inf 1e999 1/3 1/0 $x // true ! & @ é init".encode().split(),
    *(
        b"99999999999999999999",
        b"state ",
        b"action ",
        b"# States\n",
        b" ",
        b"\n",
        b"\t",
        b"\r",
        b"\0",
        b"\xff",
    ),
]

_FORMATS: dict[str, Callable[[Path], ExplicitModel]] = {"pexp": read_pexp, "drn": read_drn}


def damaged(rng: np.random.Generator, text: bytes) -> bytes:
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(text) + 1))
        drop = int(rng.integers(6)) if rng.random() < 0.6 else 0
        spare = _SPARE[int(rng.integers(len(_SPARE)))] if rng.random() < 0.6 else b""
        text = text[:at] + spare + text[at + drop :]
        if rng.random() < 0.05:
            text = text[:at]
    return text


def check(model: ExplicitModel) -> None:
    assert model.row_starts.shape == (model.n_choices + 1,) and model.row_starts[0] == 0
    assert model.row_starts[-1] == len(model.columns) == len(model.values)
    assert (np.diff(model.row_starts) >= 0).all()
    assert ((model.columns >= 0) & (model.columns < model.n_states)).all()
    assert np.isfinite(model.values).all() and (model.values >= 0).all()
    if model.choice_starts is not None:
        assert model.choice_starts[-1] == model.n_choices and (np.diff(model.choice_starts) >= 0).all()
    for mask in (model.initial, *model.labels.values(), *model.valuations.values()):
        assert mask.shape == (model.n_states,)
    for reward in model.rewards:
        assert reward.states is None or reward.states.shape == (model.n_states,)
        assert reward.choices is None or reward.choices.shape == (model.n_choices,)
    for state in range(model.n_states):
        assert re.search(r":\d+$", model.places.state(state))


@pytest.mark.parametrize("kind", ModelType)
@pytest.mark.parametrize("name", _FORMATS)
def test_text_damage_gives_messages_or_models(
    tmp_path: Path, rng: np.random.Generator, name: str, kind: ModelType
) -> None:
    reader = _FORMATS[name]
    path = tmp_path / f"m.{name}"
    refused = 0
    for _ in range(rounds(60)):
        text = write_listed(random_model(rng, kind), path).read_bytes()
        path.write_bytes(damaged(rng, text))
        try:
            check(reader(path))
        except InterchangeError as fault:
            refused += 1
            assert re.match(rf"{re.escape(str(path))}:\d+: .*expected, got .*; ", str(fault)), fault
    assert refused > rounds(60) // 6
