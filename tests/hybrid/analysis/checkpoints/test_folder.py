"""What is in a folder of checkpoints is whole, and is of the check that asks for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import hybrid
import hybrid.analysis.checkpoints.checkpoint as solution_record
from hybrid.__main__ import main
from hybrid.analysis.checkpoints.checkpoint import SolutionRecord
from hybrid.analysis.checkpoints.folder import Description, model_digest
from hybrid.base.errors import CheckpointError, OptionError
from mtbdd.offset.states import StateIndex, index_states
from tests.builders.killing import Killed, Killer
from tests.source_tree import ROOT

WALK = """dtmc
const int n;
module walk
  x : [0..n] init 10;
  [] x > 0 & x < n -> 0.5 : (x'=x-1) + 0.5 : (x'=x+1);
endmodule
label "up" = x = n;
label "down" = x = 0;
"""
TEXT = 'P=? [ F "up" ]'


@pytest.fixture(autouse=True)
def _steps_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few equations are solved at once, and leave nothing."""
    monkeypatch.setattr("hybrid.solvers.direct_bounds.FEW", 0)


def walk(text: str = WALK, n: int = 30) -> Any:
    return hybrid.parse(text, constants={"n": n})


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A folder in which a check has left its state."""
    folder = tmp_path / "kept"
    with pytest.raises(Killed):
        hybrid.check(walk(), TEXT, checkpoint=folder, progress=Killer(20))
    return folder


def altered(told: dict[str, Any]) -> str:
    """A description with the check that belongs to it."""
    rest = {name: value for name, value in told.items() if name != "check"}
    return json.dumps(rest | {"check": zlib.crc32(json.dumps(rest, sort_keys=True).encode())})


def description(folder: Path) -> Path:
    (found,) = folder.glob("*-1.json")
    return found


def vectors(folder: Path) -> Path:
    (found,) = folder.glob("*.bin")
    return found


def test_a_description_names_files_that_are_whole(kept: Path) -> None:
    told = Description.of(description(kept).read_text(), kept)
    assert told.method == "optimistic" and not told.is_finished and told.states == 29
    assert [part.file for part in told.parts] == [vectors(kept).name]
    assert vectors(kept).stat().st_size == 8 * 29 * len(told.vectors)
    x = np.frombuffer(vectors(kept).read_bytes(), "<f8")[:29]
    assert (np.diff(x) >= 0.0).all() and 0.0 < x[-1] <= 29 / 30


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-8],
        lambda data: data + b"\0" * 8,
        lambda data: b"",
        lambda data: bytes([data[0] ^ 1]) + data[1:],
        lambda data: data[:-1] + bytes([data[-1] ^ 128]),
        None,
    ],
    ids=["shorter", "longer", "empty", "first bit", "last bit", "missing"],
)
def test_damaged_vectors_are_refused(damage: Any, kept: Path) -> None:
    path = vectors(kept)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"{path.name}: damaged: .*; give another folder, or remove"):
        hybrid.check(walk(), TEXT, checkpoint=kept)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: "",
        lambda told: "[]",
        lambda told: "{",
        lambda told: json.dumps(told | {"format": 2}),
        lambda told: json.dumps(told).replace('"made": ', '"made": 1'),
        lambda told: altered(told | {"format": 2}),
        lambda told: altered({k: v for k, v in told.items() if k != "numbers"}),
        lambda told: altered(told | {"numbers": {"made": "many"}}),
        lambda told: altered(told | {"vectors": ["x"]}),
        lambda told: altered(told | {"parts": [told["parts"][0] | {"file": "../check.json"}]}),
        lambda told: altered(told | {"parts": [told["parts"][0] | {"size": -1}]}),
        lambda told: altered(told | {"parts": [told["parts"][0] | {"size": 28}]}),
        lambda told: altered(told | {"parts": []}),
        lambda told: altered(told | {"parts": 3 * told["parts"]}),
    ],
)
def test_damaged_descriptions_are_refused(change: Any, kept: Path) -> None:
    path = description(kept)
    path.write_text(change(json.loads(path.read_text())))
    with pytest.raises(CheckpointError, match=r"damaged|another version"):
        hybrid.check(walk(), TEXT, checkpoint=kept)


@pytest.mark.parametrize("name", ["x", "total", "made", "iterations"])
def test_what_a_method_needs_is_there(name: str, kept: Path) -> None:
    path = description(kept)
    path.write_text(altered(json.loads(path.read_text().replace(f'"{name}"', '"other"'))))
    with pytest.raises(CheckpointError, match="damaged"):
        hybrid.check(walk(), TEXT, checkpoint=kept)


@pytest.mark.parametrize(
    ("text", "n", "options"),
    [
        (WALK, 31, {}),
        (WALK.replace("0.5 : (x'=x+1)", "0.4 : (x'=x+1) + 0.1 : true"), 30, {}),
        (WALK.replace("x = 0;", "x = 1;"), 30, {}),
        (WALK.replace("init 10", "init 11"), 30, {}),
        (WALK, 30, {"epsilon": 1e-9}),
        (WALK, 30, {"method": "interval"}),
        (WALK, 30, {"absolute": True}),
    ],
)
def test_the_folder_of_another_check_is_refused(text: str, n: int, options: Any, kept: Path) -> None:
    with pytest.raises(CheckpointError, match="of another check: its"):
        hybrid.check(walk(text, n), TEXT, checkpoint=kept, **options)


def test_another_property_begins_anew(kept: Path) -> None:
    found = hybrid.check(walk(), 'P=? [ F "down" ]', checkpoint=kept)
    assert found.lower is not None and found.upper is not None and found.lower <= 2 / 3 <= found.upper


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="expected an empty folder or one of checkpoints"):
        hybrid.check(walk(), TEXT, checkpoint=tmp_path)
    with pytest.raises(OptionError, match="no folder for checkpoints"):
        hybrid.check(walk(), TEXT, checkpoint=tmp_path / "mine.txt")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/check.json").write_text("[]")
    with pytest.raises(CheckpointError, match="damaged"):
        hybrid.check(walk(), TEXT, checkpoint=tmp_path / "other")


def test_a_disk_that_is_full_is_told_and_the_check_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> list[int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(solution_record, "write_vectors", fails)
    with pytest.warns(RuntimeWarning, match="no checkpoint could be written: .*No space left"):
        found = hybrid.check(walk(), TEXT, checkpoint=tmp_path, checkpoint_minutes=0.0)
    assert found.value == pytest.approx(1 / 3)
    assert not list(tmp_path.glob("*.bin"))


def test_a_write_that_fails_leaves_what_was_there(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in kept.iterdir()}

    def fails(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(solution_record, "put_text", fails)
    with pytest.raises(Killed), pytest.warns(RuntimeWarning):
        hybrid.check(walk(), TEXT, checkpoint=kept, progress=Killer(20))
    assert before == {path.name: path.read_bytes() for path in kept.iterdir()}


def test_files_of_older_states_go(kept: Path) -> None:
    (kept / (vectors(kept).name.replace(".1.", ".7."))).write_bytes(b"left by a killed process")
    with pytest.raises(Killed):
        hybrid.check(walk(), TEXT, checkpoint=kept, progress=Killer(20))
    assert Description.of(description(kept).read_text(), kept).generation == 2
    assert vectors(kept).name.endswith(".2.0.bin")


class _Always:
    """Writes whenever it may, and says nothing."""

    def is_due(self) -> bool:
        return True

    def written(self) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def warn(self, text: str) -> None:
        raise AssertionError(text)


def record(folder: Path, model: Any, states: StateIndex | None = None) -> SolutionRecord:
    return SolutionRecord(folder, "one", model, model.index if states is None else states, _Always())


def test_what_another_iteration_has_left_is_not_gone_on_with(tmp_path: Path) -> None:
    """Neither what another method has left, nor what was to be less close, nor values of other states."""
    model = walk()
    size = model.index.size
    first = record(tmp_path, model)
    assert first.resume(np, "steps", size, 1e-6) is None
    first.keep(lambda: ({"x": np.arange(float(size))}, {"made": 7.0}), True, 2.0)
    same = record(tmp_path, model).resume(np, "steps", size, 1e-6)
    assert same is not None and same.is_finished
    assert same.vectors["x"].tolist() == list(range(size))
    assert record(tmp_path, model).resume(np, "interval", size, 1e-6) is None
    assert record(tmp_path, model).resume(np, "steps", size, 1e-9) is None
    assert record(tmp_path, model).resume(np, "steps", size, None) is None
    fewer = index_states(model.manager, model.reachable & ~model.initial)
    assert record(tmp_path, model, fewer).resume(np, "steps", fewer.size, 1e-6) is None


def test_what_is_not_gone_on_with_is_not_written_over(tmp_path: Path) -> None:
    """A file that a description names stays as it is until there is another description."""
    model = walk()
    size = model.index.size
    first = record(tmp_path, model)
    first.resume(np, "steps", size, 1e-6)
    first.keep(lambda: ({"x": np.zeros(size)}, {}), True, 2.0)
    other = record(tmp_path, model)
    assert other.resume(np, "interval", size, 1e-6) is None
    other.keep(lambda: ({"x": np.ones(size)}, {}), True, 2.0)
    (file,) = tmp_path.glob("*.bin")
    assert file.name == "one.2.0.bin"
    found = record(tmp_path, model).resume(np, "interval", size, 1e-6)
    assert found is not None
    assert found.vectors["x"].tolist() == [1.0] * size


_DIGEST = f"""
import hybrid
from hybrid.analysis.checkpoints.folder import model_digest
for name, constants in (("kanban", {{"t": 1}}), ("coin", {{"K": 2}}), ("herman", {{}})):
    print(model_digest(hybrid.load(f"{ROOT}/examples/{{name}}.prism", constants=constants)))
"""


def test_a_model_has_one_digest_in_every_process() -> None:
    found = set()
    for seed in ("1", "2"):
        environment = dict(os.environ, PYTHONHASHSEED=seed, PYTHONPATH=str(ROOT))
        command = [sys.executable, "-c", _DIGEST]
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    (texts,) = found
    assert len(set(texts.split())) == 3


def test_rewards_without_a_text_count_in_the_digest() -> None:
    def built(reward: float) -> Any:
        matrix = sparse.csr_matrix(np.array([[0.5, 0.5], [0.0, 1.0]]))
        return hybrid.from_scipy(matrix, rewards={"r": np.array([reward, 0.0])})

    assert model_digest(built(1.0)) == model_digest(built(1.0))
    assert model_digest(built(1.0)) != model_digest(built(2.0))


@pytest.mark.parametrize("minutes", [-1.0, float("nan"), float("inf")])
def test_minutes_are_checked(minutes: float, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="minutes between checkpoints"):
        hybrid.check(walk(), TEXT, checkpoint=tmp_path, checkpoint_minutes=minutes)


@pytest.mark.parametrize(
    "options",
    [["--exact"], ["--bisimulation"], ["--certificate", "c"], ["--const", "n=30:31"]],
    ids=["exact", "bisimulation", "certificate", "ranges"],
)
def test_the_command_refuses_what_is_not_kept(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    given = ["check", str(tmp_path / "walk.prism"), "-pf", TEXT, "--checkpoint", str(tmp_path / "kept")]
    given += options if "--const" in options else [*options, "--const", "n=30"]
    assert main(given) == 2
    assert "--checkpoint keeps the iterations of one run; leave" in capsys.readouterr().err
    assert not (tmp_path / "kept").exists()


def test_the_constant_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "walk.prism"
    path.write_text(WALK)
    given = ["check", str(path), "-pf", TEXT, "--checkpoint", str(tmp_path / "kept"), "--const"]
    assert main([*given, "n=30"]) == 0
    assert main([*given, "n=31"]) == 2
    told = capsys.readouterr().err
    assert "of another check: its constant n is 30, not 31; give another folder, or remove" in told
    path.write_text(WALK.replace("init 10", "init 11"))
    assert main([*given, "n=30"]) == 2
    assert "of another check: its model is another one; give" in capsys.readouterr().err


def test_every_without_a_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    given = ["check", str(tmp_path / "walk.prism"), "-pf", TEXT, "--const", "n=30", "--every", "10"]
    assert main(given) == 2
    assert "error: --every says how often a folder of --checkpoint is written" in capsys.readouterr().err
    with pytest.raises(OptionError, match="checkpoint_minutes says how often a folder of checkpoint"):
        hybrid.check(hybrid.parse(WALK, {"n": 30}), TEXT, checkpoint_minutes=5.0)


def test_the_command_refuses_the_folder_of_another_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "walk.prism").write_text(WALK)
    given = ["check", str(tmp_path / "walk.prism"), "-pf", TEXT, "--const", "n=30", "--checkpoint"]
    given.append(str(tmp_path / "kept"))
    assert main(given) == 0
    assert main([*given, "--method", "jor"]) == 2
    told = capsys.readouterr().err
    assert "of another check: its method is 'auto', not 'jor'; give another folder, or remove" in told


def test_the_command_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solution_record, "_LEAST_SECONDS", 0.0)
    (tmp_path / "walk.prism").write_text(WALK)
    given = ["check", str(tmp_path / "walk.prism"), "-pf", TEXT, "--const", "n=30", "--json"]
    given += ["--checkpoint", str(tmp_path / "kept"), "--every", "60", "--method", "interval"]
    assert main([*given, "--max-iters", "20"]) == 1
    capsys.readouterr()
    assert main(given) == 0
    found = json.loads(capsys.readouterr().out)
    (answer,) = found["results"]
    assert answer["lower"] <= 1 / 3 <= answer["upper"]
