"""Random models written out, and UMB archives put together by hand."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hybrid.models.interchange import ExplicitModel, ExplicitReward, StateVariable
from mtbdd.language.syntax import ModelType

__all__ = ["archive", "assert_same", "chain_members", "index_of", "models", "put"]

_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@st.composite
def models(draw: st.DrawFn) -> ExplicitModel:
    """Any model that passes as one: rows of probabilities or rates, a few of everything else."""
    kind = draw(st.sampled_from(list((ModelType.DTMC, ModelType.CTMC, ModelType.MDP))))
    n = draw(st.integers(1, 130))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    choices = rng.integers(1, 4, n) if kind is ModelType.MDP else np.ones(n, dtype=np.int64)
    n_choices = int(choices.sum())
    lengths = rng.integers(0 if kind is ModelType.CTMC else 1, 5, n_choices)
    row_starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    values = rng.random(int(lengths.sum())) + 1e-3
    if kind is ModelType.CTMC:
        values *= 10.0 ** rng.integers(-200, 200) * 10.0 ** rng.integers(-6, 6, values.size)
    else:
        values /= np.repeat(np.add.reduceat(values, row_starts[:-1]), lengths)
    actions = tuple(draw(st.lists(_NAMES, max_size=3, unique=True))) if kind is ModelType.MDP else ()
    variables = tuple(draw(_variables(name)) for name in draw(st.lists(_NAMES, max_size=4, unique=True)))
    rewarded = np.where(lengths > 0, rng.normal(size=n_choices), 0.0)
    rewards = [
        ExplicitReward(
            name,
            rng.normal(size=n) if draw(st.booleans()) or name is None else None,
            rewarded * number if draw(st.booleans()) or name is not None else None,
        )
        for number, name in enumerate(draw(st.lists(st.none() | _NAMES, max_size=3, unique=True)))
    ]
    return ExplicitModel(
        kind,
        n,
        row_starts,
        rng.integers(0, n, values.size),
        values,
        rng.random(n) < 0.1,
        choice_starts=np.concatenate(([0], np.cumsum(choices))) if kind is ModelType.MDP else None,
        actions=actions,
        choice_actions=rng.permutation(np.arange(n_choices) % (len(actions) + 1)) - 1 if actions else None,
        variables=variables,
        valuations={
            v.name: rng.random(n) < 0.5 if v.is_bool else rng.integers(v.low, v.high, n, endpoint=True)
            for v in variables
        },
        labels={
            name: rng.random(n) < 0.3
            for name in draw(st.lists(_NAMES.filter(lambda text: text != "init"), max_size=3, unique=True))
        },
        rewards=tuple(rewards),
    )


@st.composite
def _variables(draw: st.DrawFn, name: str) -> StateVariable:
    if draw(st.booleans()):
        return StateVariable(name, 0, 1, is_bool=True)
    bounds = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
    low, high = sorted((draw(bounds), draw(bounds)))
    return StateVariable(name, low, high)


def assert_same(left: ExplicitModel, right: ExplicitModel) -> None:
    """Compare two models to the bit, but for where they come from and the units of CTMCs."""
    assert (left.type, left.n_states, left.variables) == (right.type, right.n_states, right.variables)
    for name in ("row_starts", "columns", "values", "initial"):
        assert_same_array(getattr(left, name), getattr(right, name))
    for name in ("choice_starts", "choice_actions"):
        assert_same_array(getattr(left, name), getattr(right, name))
    assert list(left.labels) == list(right.labels)
    for name, mask in left.labels.items():
        assert_same_array(mask, right.labels[name])
    assert set(left.valuations) == set(right.valuations)
    for name, values in left.valuations.items():
        other = right.valuations[name]
        assert values.dtype.kind == other.dtype.kind  # of as many bytes as they need
        assert np.array_equal(values, other)
    assert [reward.name for reward in left.rewards] == [reward.name for reward in right.rewards]
    for one, other in zip(left.rewards, right.rewards, strict=True):
        assert_same_array(one.states, other.states)
        assert_same_array(one.choices, other.choices)
        assert one.units == other.units


def assert_same_array(left: Any, right: Any) -> None:
    """Compare arrays with their types, or None with None."""
    if left is None or right is None:
        assert left is right
        return
    assert left.dtype == right.dtype
    assert np.array_equal(left, right)


# ------------------------------------------------------------------ archives


def index_of(**changes: Any) -> dict[str, Any]:
    """The index of a DTMC of three states and four branches; changes are of its transition system."""
    system = {
        "time": "discrete",
        "#players": 0,
        "#states": 3,
        "#initial-states": 1,
        "#choices": 3,
        "#choice-actions": 0,
        "#branches": 4,
        "#branch-actions": 0,
        "#observations": 0,
        "branch-probability-type": {"type": "double"},
    }
    system |= changes
    return {
        "format-version": 1,
        "format-revision": 0,
        "transition-system": {key: value for key, value in system.items() if value is not None},
    }


def chain_members(**changes: Any) -> dict[str, bytes]:
    """The arrays that belong to `index_of()`."""
    found = {
        "choice-to-branches.bin": np.array([0, 2, 3, 4], dtype="<u8").tobytes(),
        "branch-to-target.bin": np.array([1, 2, 1, 0], dtype="<u8").tobytes(),
        "branch-to-probability.bin": np.array([0.25, 0.75, 1.0, 1.0]).tobytes(),
        "state-is-initial.bin": np.array([1], dtype="<u8").tobytes(),
    }
    found |= changes
    return found


def archive(index: Any, members: dict[str, bytes], compression: str = "") -> bytes:
    """Put an archive together with another implementation than the one under test."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{compression}") as out:  # type: ignore[call-overload]
        text = index if isinstance(index, bytes) else json.dumps(index).encode()
        for name, content in {"index.json": text, **members}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return file.getvalue()


def put(folder: Path, data: bytes) -> Path:
    """Write a file and return its path."""
    path = folder / "m.umb"
    path.write_bytes(data)
    return path
