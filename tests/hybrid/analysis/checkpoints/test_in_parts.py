"""What some processes have kept, others go on with, however many they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hybrid
import hybrid.analysis.checkpoints.checkpoint as solution_record
from gpu_kernels import Device
from hybrid.analysis.checkpoints.checkpoint import Checkpoint
from hybrid.base.errors import CheckpointError
from hybrid.checking.in_parts import in_parts
from mtbdd.build.model import SymbolicModel
from mtbdd.offset.states import index_states, states_from
from tests.builders.killing import Killed, Killer
from tests.exploring import each
from tests.source_tree import ROOT

QUEUE = """ctmc
module queue
  x : [0..8];
  [] x < 8 -> 1 : (x'=x+1);
  [] x > 0 -> 1.1 : (x'=x-1);
endmodule
rewards "length" true : x; endrewards
"""
PAIRS = [(1, 2), (2, 1), (2, 2), (2, 3), (2, 1), (3, 2)]
MORE = [(1, 4, 3), (2, 3, 1), (3, 1, 3), (4, 3, 2), (5, 4, 3)]
CASES = [
    ("kanban", {"t": 1}, 'R{"throughput"}=? [ S ]', "auto"),
    ("kanban", {"t": 1}, 'R{"throughput"}=? [ S ]', "jor"),
    ("brp", {"N": 2, "MAX": 2}, "P=? [ F s=FAILED & srep=DONT_KNOW ]", "auto"),
    ("brp", {"N": 2, "MAX": 2}, "P=? [ F s=FAILED & srep=DONT_KNOW ]", "interval"),
    ("coin", {"K": 1}, 'Pmin=? [ F "decided" & "all_heads" ]', "auto"),
    ("kanban", {"t": 1}, "P=? [ F<=20 z4=1 ]", "auto"),
]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solution_record, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(solution_record, "_BYTES_PER_SECOND", float("inf"))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("case", "before", "after"),
    [
        *each(range(len(CASES)), PAIRS),
        *(pytest.param(*case, marks=pytest.mark.nightly) for case in MORE),
    ],
)
def test_others_go_on(
    case: int, before: int, after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, constants, text, method = CASES[case]
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=constants)
    options: dict[str, Any] = {"method": method, "epsilon": 1e-6}
    whole = Killer()
    expected = hybrid.check(model, text, progress=whole, ranks=after, **options)
    kept = {"checkpoint": tmp_path, "checkpoint_minutes": 1e6} | options
    at = max(whole.looks // 2, 2)
    killer = Killer(at)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(
            Checkpoint, "is_due", lambda c: c._all.any(not c._all.rank and killer.looks >= at - 2)
        )
        hybrid.check(model, text, progress=killer, ranks=before, **kept)
    assert len(list(tmp_path.glob("*.bin"))) == before
    rest = Killer()
    found = hybrid.check(model, text, progress=rest, ranks=after, **kept)
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    if expected.lower is not None and expected.upper is not None:
        assert found.lower is not None and found.upper is not None
        assert found.lower <= expected.upper and expected.lower <= found.upper
    assert len(list(tmp_path.glob("*.bin"))) == after
    assert rest.looks <= 0.7 * whole.looks + 5


@pytest.mark.usefixtures("quick")
def test_what_a_processor_has_kept_devices_go_on_with(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = hybrid.parse(QUEUE)
    text, kept = 'R{"length"}=? [ S ]', {"checkpoint": tmp_path, "checkpoint_minutes": 1e6}
    whole = Killer()
    # Few iterations: emulated devices take long.
    given_: dict[str, Any] = {"method": "jor", "epsilon": 1e-3}
    expected = hybrid.check(model, text, progress=whole, ranks=2, backend="cpu", **given_)
    backends: list[Any] = ["cpu", "gpu"]
    for before, after in (backends, backends[::-1]):
        killer = Killer(whole.looks // 2)
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(
                Checkpoint,
                "is_due",
                lambda c, killer=killer: c._all.any(not c._all.rank and killer.looks >= whole.looks // 2 - 2),
            )
            hybrid.check(model, text, progress=killer, ranks=2, backend=before, **given_, **kept)
        assert len(list(tmp_path.glob("*.bin"))) == 2
        rest = Killer()
        found = hybrid.check(model, text, progress=rest, ranks=2, backend=after, **given_, **kept)
        assert found.value == pytest.approx(expected.value, rel=1e-2)
        assert found.statistics.backend == after and rest.looks <= 0.7 * whole.looks + 5
        for path in tmp_path.iterdir():
            path.unlink()


@pytest.mark.usefixtures("quick")
@settings(max_examples=6)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**32))
def test_every_element_comes_to_its_state(
    tmp_path_factory: pytest.TempPathFactory, before: int, after: int, seed: int
) -> None:
    model = hybrid.load(ROOT / "examples/brp.prism", constants={"N": 2, "MAX": 1})
    rng = np.random.default_rng(seed)
    some = states_from(model.manager, model.index, rng.random(model.n_states) < 0.6)
    x = rng.random(index_states(model.manager, some).size)
    folder = tmp_path_factory.mktemp("kept")

    def record(part: SymbolicModel) -> Any:
        states = index_states(part.manager, some)
        checkpoint = Checkpoint(folder, 0.0, part, {}).begin("x")
        whole = index_states(part.manager.whole, some)
        share = part.manager.share
        own = whole if share is None else index_states(part.manager.whole, some & share.own)
        return checkpoint.following(None, states).record, states.size, x[whole.places(own)]

    def write(part: SymbolicModel) -> None:
        kept, size, own = record(part)
        assert kept.resume(np, "method", size, None) is None
        kept.keep(lambda: ({"x": own, "twice": 2.0 * own}, {"made": 3}), seconds=1.0)

    def read(part: SymbolicModel) -> None:
        kept, size, own = record(part)
        found = kept.resume(np, "method", size, None)
        assert found is not None and found.numbers["made"] == 3
        np.testing.assert_array_equal(found.vectors["x"], own)
        np.testing.assert_array_equal(found.vectors["twice"], 2.0 * own)
        assert kept.resume(np, "another", size, None) is None

    in_parts(model, before, write)
    in_parts(model, after, read)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("after", [1, 2])
def test_another_division_is_refused(after: int, tmp_path: Path) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    half = states_from(model.manager, model.index, np.arange(model.n_states) % 2 == 0)
    owners = (half, model.reachable & ~half)

    def run(part: SymbolicModel) -> Any:
        checkpoint = Checkpoint(tmp_path, 0.0, part, {}).begin("x")
        states = part.index
        record = checkpoint.following(None, states).record
        assert record is not None
        found = record.resume(np, "method", states.size, None)
        record.keep(lambda: ({"x": np.arange(float(states.size))}, {}), seconds=1.0)
        return found

    in_parts(model, 2, run, owners)
    with pytest.raises(CheckpointError, match="its states are not those that such a process has"):
        in_parts(model, after, run)


@pytest.mark.parametrize("after", [1, 2])
def test_damage_is_told_to_all(after: int, tmp_path: Path) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    given: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_minutes": 0.0}
    with pytest.raises(Killed):
        hybrid.check(model, 'R{"throughput"}=? [ S ]', progress=Killer(2), ranks=2, **given)
    (path,) = tmp_path.glob("*.1.bin")
    data = bytearray(path.read_bytes())
    data[5] ^= 16
    path.write_bytes(bytes(data))
    with pytest.raises(CheckpointError, match=f"{path.name}: damaged"):
        hybrid.check(model, 'R{"throughput"}=? [ S ]', ranks=after, **given)
    with pytest.raises(CheckpointError, match="of another check: its epsilon"):
        hybrid.check(model, 'R{"throughput"}=? [ S ]', ranks=after, epsilon=1e-3, **given)
