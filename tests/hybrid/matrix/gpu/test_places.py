"""Vectors over states made on the device: the host's, bit for bit; averages need none of the host."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.base import arrays
from hybrid.base.arrays import lies_on_device
from hybrid.matrix.gpu.halo import DevicePlace
from hybrid.solvers import AverageReward, Criterion
from mtbdd.build.build import build_model
from mtbdd.build.model import SymbolicModel
from mtbdd.build.rewards import enclosed_rewards
from mtbdd.language import parse_model, resolve
from mtbdd.offset.states import VectorPlace, index_states
from tests.exploring import each
from tests.gpu_kernels.devices import to_numpy
from tests.source_tree import ROOT

MODELS = {
    "kanban": {"t": 2},
    "brp": {"N": 16, "MAX": 2},
    "tandem": {"c": 7},
    "fms": {"n": 2},
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> SymbolicModel:
    text = (ROOT / f"examples/{request.param}.prism").read_text(encoding="utf-8")
    return build_model(resolve(parse_model(text), dict(MODELS[request.param])))


# Whole vectors in one block, and blocks of few states.
@pytest.fixture(params=[1 << 12, 4])
def place(request: pytest.FixtureRequest, device: Device, monkeypatch: pytest.MonkeyPatch) -> DevicePlace:
    monkeypatch.setattr(DevicePlace, "block_length", request.param)
    return DevicePlace(device)


def test_vectors_of_a_model_are_those_of_the_host(model: SymbolicModel, place: DevicePlace) -> None:
    some = index_states(model.manager, model.reachable & ~model.initial)
    for here in (model.index, some):
        there = here.at(place)
        for made in (model.exit_rates, model.self_loops):
            found = made(there)
            assert isinstance(found, place.xp.ndarray)
            np.testing.assert_array_equal(to_numpy(found), made(here))
        inside = model.manager.bdd.var(model.manager.rows[0])
        found = model.indicator(inside, there)
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(to_numpy(found), model.indicator(inside, here))


def test_rewards_are_those_of_the_host(model: SymbolicModel, place: DevicePlace) -> None:
    for structure in range(len(model.source.rewards)):
        expected, off = enclosed_rewards(model, structure, model.index)
        found, error = enclosed_rewards(model, structure, model.index.at(place))
        assert isinstance(found, place.xp.ndarray)
        np.testing.assert_array_equal(to_numpy(found), expected)
        assert (error is None) == (off is None)
        if off is not None:
            np.testing.assert_array_equal(to_numpy(error), off)


def test_vectors_without_elements_lie_there_too(model: SymbolicModel, place: DevicePlace) -> None:
    none = index_states(model.manager, model.manager.false).at(place)
    assert isinstance(model.exit_rates(none), place.xp.ndarray)
    assert len(model.indicator(model.reachable, none)) == 0


def test_a_vector_without_room_is_refused(model: SymbolicModel, place: DevicePlace) -> None:
    place._device = type("Full", (), {"free_bytes": lambda _: 8, "name": "a full card"})()
    with pytest.raises(MemoryError, match="on a full card, 8 .* are free; choose smaller constants"):
        model.exit_rates(model.index.at(place))


@pytest.mark.parametrize(
    ("engine", "method", "text"),
    each(
        [("hybrid", "auto"), ("hybrid", "jor"), ("explicit", "auto")],
        ['R{"throughput"}=? [ S ]', "S=? [ x4>0 ]"],
    ),
)
def test_averages_need_no_vector_of_the_host(
    device: Device, monkeypatch: pytest.MonkeyPatch, text: str, method: Any, engine: Any
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    expected = hybrid.check(model, text, backend="cpu", method=method, engine=engine)
    asked: list[int] = []
    written, moved, solve = VectorPlace.written, VectorPlace.array, AverageReward.solve

    def counted(*arguments: Any) -> Any:
        found = (written if len(arguments) > 2 else moved)(*arguments)
        asked.append(len(found))
        return found

    def seen(self: Any, matrix: Any, diagonal: Any, rewards: Any, *rest: Any) -> Any:
        assert device.xp is np or (lies_on_device(diagonal) and lies_on_device(rewards))
        return solve(self, matrix, diagonal, rewards, *rest)

    monkeypatch.setattr(VectorPlace, "written", counted)
    monkeypatch.setattr(VectorPlace, "array", counted)
    monkeypatch.setattr(AverageReward, "solve", seen)
    found = hybrid.check(model, text, backend="gpu", method=method, engine=engine)
    assert max(asked, default=0) < model.n_states
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert found.kind == expected.kind


def counted(monkeypatch: pytest.MonkeyPatch, device: Device) -> list[int]:
    """Elements of every vector that is made on the host or brought there, from now on."""
    moved: list[int] = []

    def counting(move: Any) -> Any:
        def move_and_count(*arguments: Any) -> Any:
            found = move(*arguments)
            moved.append(np.size(found))
            return found

        return move_and_count

    monkeypatch.setattr("hybrid.checking.formulas.KEPT", 0)
    monkeypatch.setattr(VectorPlace, "written", counting(VectorPlace.written))
    monkeypatch.setattr(VectorPlace, "array", counting(VectorPlace.array))
    if device.xp is not np:
        to_host = counting(arrays.to_host)
        for name in (
            "hybrid.base.arrays.to_host",
            "hybrid.matrix.gpu.device_space.to_host",
            "hybrid.matrix.explicit.operators.to_host",
            "hybrid.analysis.step_analysis.to_host",
            "hybrid.analysis.transient.to_host",
        ):
            monkeypatch.setattr(name, to_host)
    return moved


ENGINES = ["hybrid", "explicit"]
PATHS = [
    *product(
        ["P=? [ F x1=1 & x4=1 ]", "P=? [ x1<1 U x4=1 ]", 'R{"throughput"}=? [ F x1=1 & x4=1 ]'],
        ["auto", "interval", "jacobi", "bicgstab"],
    ),
    ("P=? [ F<=2.5 x1=1 & x4=1 ]", "auto"),
    ('R{"throughput"}=? [ C<=3 ]', "auto"),
    ('R{"throughput"}=? [ I=1.5 ]', "auto"),
    ('R{"throughput"}=? [ I=0 ]', "auto"),
]


@pytest.mark.parametrize(
    ("text", "method", "engine"),
    # Engines change from method to method, and from text to text.
    [(*asked, ENGINES[(k + k // 4) % len(ENGINES)]) for k, asked in enumerate(PATHS)],
)
def test_paths_need_no_vector_of_the_host(
    device: Device, monkeypatch: pytest.MonkeyPatch, text: str, method: Any, engine: Any
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    expected = hybrid.check(model, text, backend="cpu", method=method, engine=engine)
    moved = counted(monkeypatch, device)
    found = hybrid.check(model, text, backend="gpu", method=method, engine=engine)
    assert max(moved, default=0) < model.n_states // 2
    assert found.value == pytest.approx(expected.value, rel=1e-5)
    assert found.kind == expected.kind
    if found.lower is not None:
        assert found.lower <= expected.upper and expected.lower <= found.upper


WALK = """
dtmc
module walk
  x : [0..199] init 100;
  [] x > 0 & x < 199 -> 0.5 : (x' = x + 1) + 0.3 : (x' = x - 1) + 0.2 : (x' = x);
  [] x = 0 | x = 199 -> true;
endmodule
rewards mod(x, 7) = 0 : 1; x > 120 : 0.5; endrewards
"""


@pytest.mark.parametrize(
    ("text", "engine"),
    each(
        ["P=? [ F<=40 x=110 ]", "P=? [ F<=5 x=110 ]", "R=? [ C<=30 ]", "R=? [ I=20 ]", "P=? [ F x=199 ]"],
        ["hybrid", "explicit"],
    ),
)
def test_steps_need_no_vector_of_the_host(
    device: Device, monkeypatch: pytest.MonkeyPatch, text: str, engine: Any
) -> None:
    model = hybrid.parse(WALK)
    expected = hybrid.check(model, text, backend="cpu", engine=engine)
    moved = counted(monkeypatch, device)
    found = hybrid.check(model, text, backend="gpu", engine=engine)
    assert max(moved, default=0) < model.n_states // 2
    # Looks are as seldom as a device has them, so that a limit may be left at another step.
    assert found.value == pytest.approx(expected.value, rel=Criterion().epsilon)
    assert found.lower <= expected.upper and expected.lower <= found.upper


@pytest.mark.parametrize(
    "text",
    [
        'R{"throughput"}=? [ C<=3 ]',
        'R{"throughput"}=? [ I=1.5 ]',
        'R{"throughput"}=? [ S ]',
        'R{"throughput"}=? [ F x1=1 & x4=1 ]',
    ],
)
def test_vectors_that_were_expected_on_a_device_serve_the_host(
    device: Device, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    expected = hybrid.check(model, text, backend="cpu")
    place = DevicePlace(device)
    for name in (
        "hybrid.analysis.rewards.expected_place",
        "hybrid.analysis.long_run.expected_place",
        "hybrid.analysis.rewards.expected_place",
    ):
        monkeypatch.setattr(name, lambda *given: place)
    # As where the device has no room for the matrix.
    found = hybrid.check(model, text, backend="cpu")
    assert (found.value, found.lower, found.upper) == (expected.value, expected.lower, expected.upper)


@pytest.mark.parametrize("short", [0, 1 << 28])
@pytest.mark.parametrize("text", ['R{"throughput"}=? [ S ]', 'R{"throughput"}=? [ F x1=1 & x4=1 ]'])
def test_long_rewards_are_made_again_and_short_ones_kept(
    device: Device, monkeypatch: pytest.MonkeyPatch, text: str, short: int
) -> None:
    model = hybrid.load(ROOT / "examples/kanban.prism", constants={"t": 1})
    expected = hybrid.check(model, text, backend="cpu")
    made: list[int] = []

    def rewards(*given: Any) -> Any:
        made.append(1)
        return enclosed_rewards(*given)

    monkeypatch.setattr("hybrid.analysis.systems._SHORT", short)
    for name in ("hybrid.analysis.long_run.enclosed_rewards", "hybrid.analysis.rewards.enclosed_rewards"):
        monkeypatch.setattr(name, rewards)
    found = hybrid.check(model, text, backend="gpu")
    assert len(made) == (1 if short else 2)
    assert found.lower <= expected.upper and expected.lower <= found.upper
