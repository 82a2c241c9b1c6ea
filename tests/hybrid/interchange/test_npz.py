"""NumPy archives: round trips, archives made with numpy alone, and damaged ones."""

from __future__ import annotations

import io
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.interchange import ExplicitModel, ExplicitReward, InterchangeError
from hybrid.interchange.npz.file import read_npz, write_npz
from mtbdd.language.syntax import ModelType
from tests.builders.explicit_models import example_written_out
from tests.hybrid.interchange.umb_helpers import assert_same, models

CHAIN: dict[str, Any] = {
    "format": "hybrid-explicit-model",
    "version": 1,
    "type": "dtmc",
    "row_starts": [0, 2, 3],
    "columns": [0, 1, 1],
    "values": [0.5, 0.5, 1.0],
    "initial": [True, False],
}


@settings(max_examples=60)
@given(models(), st.booleans())
def test_written_models_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, model: ExplicitModel, compress: bool
) -> None:
    model = replace(model, value_units=2.5)
    path = tmp_path_factory.getbasetemp() / "m.npz"
    write_npz(model, path, compress)
    found = read_npz(path)
    assert_same(model, found)
    assert found.actions == model.actions
    assert found.value_units == 2.5
    # It is an archive for NumPy, too.
    with np.load(path, allow_pickle=False) as archive:
        assert np.array_equal(archive["values"], model.values)


def test_units_of_rewards_are_kept(tmp_path: Path) -> None:
    model = example_written_out("kanban", t=1)
    ones = ExplicitReward(None, states=np.ones(160), units=np.inf)
    half = ExplicitReward("half", choices=np.ones(model.n_choices), units=0.5)
    model = replace(model, rewards=(*model.rewards, ones, half))
    write_npz(model, tmp_path / "m.npz")
    found = read_npz(tmp_path / "m.npz")
    assert_same(model, found)
    assert found.source == str(tmp_path / "m.npz")
    assert found.places.entry(3) == f"{found.source}: entry 3"


def test_errors_that_could_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    model = example_written_out("kanban", t=1)
    most = ExplicitReward("most", states=np.ones(160), units=2.0**26)
    write_npz(replace(model, rewards=(most,), value_units=2.0**26), tmp_path / "m.npz")
    assert read_npz(tmp_path / "m.npz").value_units == 2.0**26
    for wide in (
        replace(model, value_units=np.inf),
        replace(model, rewards=(replace(most, units=2.0**26 + 1),)),
    ):
        with pytest.raises(InterchangeError, match="expected numbers that are known to eight digits"):
            write_npz(wide, tmp_path / "m.npz")


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    model = example_written_out("kanban", t=1)
    for name in ("a.npz", "b.npz"):
        write_npz(model, tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def saved(folder: Path, **changes: Any) -> Path:
    arrays = {name: value for name, value in (CHAIN | changes).items() if value is not None}
    np.savez(folder / "m.npz", **arrays)
    return folder / "m.npz"


def test_archives_made_with_numpy(tmp_path: Path) -> None:
    """Integers of any width, other byte orders, and columns first."""
    found = read_npz(
        saved(
            tmp_path,
            type="mdp",
            row_starts=np.array([0, 2, 3], dtype=np.uint16),
            columns=np.array([0, 1, 1], dtype=">i4"),
            values=np.array([0.5, 0.5, 1.0], dtype=np.float32),
            choice_starts=[0, 1, 2],
            actions=["go"],
            choice_actions=np.array([-1, 0], dtype=np.int8),
            variables=["x", "b"],
            bounds=np.array([[0, 7], [0, 1]], order="F"),
            booleans=[False, True],
            valuation_0=np.array([7, 0], dtype=np.uint8),
            valuation_1=[True, False],
            rewards=["", "r"],
            reward_0_states=[1.0, 2.0],
        )
    )
    assert found.type is ModelType.MDP
    assert found.columns.dtype == np.int64
    assert found.columns.tolist() == [0, 1, 1]
    assert found.values.dtype == np.float64
    assert [(v.name, v.low, v.high, v.is_bool) for v in found.variables] == [
        ("x", 0, 7, False),
        ("b", 0, 1, True),
    ]
    assert [reward.name for reward in found.rewards] == [None, "r"]
    assert found.rewards[1].states is None


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"format": None}, "format: expected an array of a string, got none"),
        ({"format": "other"}, "format: expected 'hybrid-explicit-model', got 'other'"),
        ({"format": np.array(["x"])}, "format: expected the shape (), got 1"),
        ({"version": 2}, "version: expected 1, got 2"),
        ({"type": "pomdp"}, "type: expected one of dtmc, ctmc, mdp"),
        ({"initial": np.zeros(0, dtype=bool)}, "initial: expected at least one state"),
        ({"initial": [1, 0]}, "initial: expected an array of bool"),
        ({"values": [0.5, np.nan, 1.0]}, "values[1]: expected a finite number, got nan"),
        ({"values": [0.5, 0.5, np.inf]}, "values[2]: expected a finite number"),
        ({"values": np.array([1j, 0, 1])}, "values: expected an array of doubles"),
        ({"values": np.array([0.5, 0.5, 1.0], dtype=np.longdouble)}, "values: expected doubles"),
        ({"values": [[0.5], [0.5], [1.0]]}, "values: expected the shape any, got 3 x 1"),
        ({"row_starts": [0, 2, 1]}, "row_starts[2]: expected 3, got 1"),
        ({"row_starts": [1, 2, 3]}, "row_starts[0]: expected 0, got 1"),
        ({"row_starts": [0, 4, 3]}, "row_starts[1]: expected an integer from 0 to 3"),
        ({"row_starts": [0, 3]}, "row_starts: expected the shape 3, got 2"),
        ({"row_starts": [0, 2, 1, 3], "initial": [True] * 3}, "row_starts[2]: expected a number not below"),
        ({"row_starts": [0.0, 2.0, 3.0]}, "row_starts: expected an array of integers"),
        ({"columns": [0, 2, 1]}, "columns[1]: expected an integer from 0 to 1, got 2"),
        ({"columns": np.array([0, 2**64 - 1, 1], dtype=np.uint64)}, "columns[1]: expected an integer"),
        ({"columns": [0, 1]}, "columns: expected the shape 3, got 2"),
        ({"type": "mdp", "choice_starts": [0, 2, 1]}, "choice_starts[2]: expected 2"),
        ({"type": "mdp", "row_starts": np.zeros(0, dtype=int), "choice_starts": [0]}, "row_starts: expect"),
        ({"type": "mdp", "choice_starts": [0, 1, 2], "choice_actions": [0, 0]}, "choice_actions[0]:"),
        ({"labels": ["a", "a"], "label_0": [True, True], "label_1": [True, True]}, "labels: expected"),
        ({"labels": ["a"]}, "label_0: expected an array of bool, got none"),
        ({"labels": np.array(["a"], dtype=object)}, "labels: expected"),
        ({"variables": ["x"], "bounds": [[0, 1]], "booleans": [False], "valuation_0": [0, 2]}, "valuation_0"),
        ({"variables": ["x"], "bounds": [0, 1], "booleans": [False]}, "bounds: expected the shape 1 x 2"),
        ({"rewards": ["r"], "reward_0_states": [1.0]}, "reward_0_states: expected the shape 2, got 1"),
        ({"rewards": ["r"], "reward_units": [-1.0]}, "reward_units[0]: expected a number that is"),
        ({"rewards": ["r"], "reward_units": [2.0**27]}, "reward_units[0]: expected a number that is not neg"),
        ({"value_units": 2.0**26 + 1}, "value_units[0]: expected a number that is not negative, at most 2"),
        ({"value_units": np.inf}, "value_units[0]: expected a number that is not negative, at most 2^26"),
    ],
)  # fmt: skip
def test_arrays_that_are_wrong(tmp_path: Path, changes: dict[str, Any], place: str) -> None:
    path = saved(tmp_path, **changes)
    with pytest.raises(InterchangeError) as caught:
        read_npz(path)
    assert str(caught.value).startswith(f"{path}: {place}")


def header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        header("(1000000000000,)"),
        header("(-1,)"),
        header("(1000000000000,)", "<U0"),
        header("(3,)") + bytes(23),
        header("(3,)") + bytes(25),
        header("(3,)", "|O") + b"cos\nsystem\n(S'true'\ntR.",
        header("(" * 4000),
        header("__import__('os').system('true')"),
        header("3"),
        b"\x93NUMPY\x09\x00" + header("(3,)")[8:] + bytes(24),
        b"",
        b"x" * 100,
    ],
    ids=range(12),
)
def test_contents_that_are_no_arrays(tmp_path: Path, content: bytes) -> None:
    path = saved(tmp_path, values=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("values.npy", content)
    with pytest.raises(InterchangeError, match="values: expected"):
        read_npz(path)


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    whole = saved(tmp_path).read_bytes()
    path = tmp_path / "n.npz"
    for length in range(0, len(whole), 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InterchangeError, match="n.npz"):
            read_npz(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(tmp_path / "m.npz", "a") as archive:
            archive.writestr("values.npy", b"")
    with pytest.raises(InterchangeError, match="got two of one"):
        read_npz(tmp_path / "m.npz")
    # The directory says that it lies further behind than it does, so that entries begin before the file.
    place = len(whole) - 6
    assert whole[-22:-18] == b"PK\5\6"
    path.write_bytes(whole[:place] + (whole[place] + 4096).to_bytes(4, "little") + whole[place + 4 :])
    with pytest.raises(InterchangeError, match="entries inside the file, got 'format.npy' at byte -"):
        read_npz(path)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes_make_a_model_or_are_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[float, int]]
) -> None:
    file = io.BytesIO()
    np.savez(file, **CHAIN)
    data = bytearray(file.getvalue())
    for place, value in changes:
        data[int(place * len(data))] = value
    path = tmp_path_factory.getbasetemp() / "flipped.npz"
    path.write_bytes(data)
    try:
        read_npz(path)
    except InterchangeError as error:
        assert str(path) in str(error)


def test_what_cannot_be_written_is_told(tmp_path: Path) -> None:
    model = read_npz(saved(tmp_path))
    with pytest.raises(InterchangeError, match="without NUL"):
        write_npz(replace(model, labels={"a\0": model.initial}), tmp_path / "x.npz")
    with pytest.raises(InterchangeError, match="got an empty one"):
        write_npz(replace(model, rewards=(ExplicitReward("", model.initial * 1.0),)), tmp_path / "x.npz")
