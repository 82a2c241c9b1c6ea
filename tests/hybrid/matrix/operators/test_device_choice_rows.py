"""Choices written out on the device: values known by hand, the CPU's answers, memory."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device, use_device
from hybrid.base.errors import OptionError
from hybrid.matrix.operators.device_choices import DeviceRows, device_bytes, device_rows
from hybrid.matrix.operators.explicit_choices import write_choices
from hybrid.matrix.space.choice_operator import ChoiceProblem
from tests.builders.choice_systems import random_choices
from tests.builders.known_answers import OF_MDPS
from tests.builders.mdp_texts import COINS, SLOW_WAY
from tests.builders.models import build
from tests.gpu_kernels.host_device import HostDevice

ON_DEVICE = {"engine": "explicit", "backend": "gpu"}


@pytest.mark.parametrize(
    "options", [{}, {"method": "interval", "absolute": True}], ids=["default", "interval"]
)
def test_values_known_by_hand_lie_within_the_bounds(device: Device, options: dict[str, object]) -> None:
    # Emulated launches are slow: one in six there, a value of every kind of question.
    cases = OF_MDPS[:: 6 if device.name == "host" else 1]
    models = {text: build(text) for text, _, _ in cases}
    for text, prop, exact in cases:
        answer = hybrid.check(models[text], prop, **ON_DEVICE, **options, throw=False)
        assert answer.error is None, (prop, answer.error)
        if exact == math.inf:
            assert answer.value == answer.lower == answer.upper == math.inf, prop
            continue
        slack = 0 if text != COINS else Fraction(1, 10**15)
        assert Fraction(answer.lower) - slack <= exact <= Fraction(answer.upper) + slack, prop
        assert answer.upper - answer.lower <= 1e-7, prop


def test_estimates_and_records(device: Device) -> None:
    model = build(SLOW_WAY)
    answer = hybrid.check(model, "Pmax=? [ F x=2 ]", method="jacobi", **ON_DEVICE)
    assert answer.lower is None and answer.upper is None
    assert answer.value == pytest.approx(0.6, rel=1e-6)
    record = hybrid.check(model, "Pmax=? [ F x=2 ]", **ON_DEVICE).record()
    assert (record["engine"], record["backend"], record["level"]) == ("explicit", "gpu", None)
    assert record["representation_memory_bytes"] > 0
    assert hybrid.check(model, "Pmax=? [ F x=2 ]", engine="explicit").record()["backend"] == "cpu"


def test_schedulers_attain_the_value(device: Device) -> None:
    model = build(SLOW_WAY)
    here, there = (
        hybrid.check(model, "Pmax=? [ F x=2 ]", scheduler=True, engine="explicit", backend=backend)
        for backend in ("gpu", "cpu")
    )
    assert here.scheduler is not None and there.scheduler is not None
    np.testing.assert_array_equal(here.scheduler.layers, there.scheduler.layers)


def test_choices_that_leave_for_certain_are_solved(device: Device) -> None:
    model = build(
        "mdp module m x : [0..2]; [] x=0 -> 0.5:(x'=1) + 0.5:(x'=2); [] x=0 -> 0.25:(x'=1) + 0.75:(x'=2);"
        "[] x>0 -> true; endmodule"
    )
    for prop, exact in (("Pmax=? [ F x=1 ]", 0.5), ("Pmin=? [ F x=1 ]", 0.25)):
        answer = hybrid.check(model, prop, **ON_DEVICE)
        assert answer.lower <= exact <= answer.upper


def test_rows_lie_on_the_device_as_written(device: Device, rng: np.random.Generator) -> None:
    case = random_choices(rng, True)
    offers, size = case.offers[::-1], case.size
    system, written = device_rows(offers, ChoiceProblem(size, True, None, 1e-14)), write_choices(offers, size)
    assert isinstance(system, DeviceRows)
    own, starts = written.layers.astype(int), written.choice_ptr[:-1]
    # By layer within each state.
    assert (np.delete(np.diff(own), starts[1:] - 1) > 0).all()
    assert written.choice_ptr[-1] == len(written.gains) == len(written.offsets) - 1
    assert written.offsets[-1] == len(written.columns) == len(written.values)
    assert (system.backend, system.level) == ("gpu", None)
    assert 0 < system.nbytes + system.operand_bytes <= device_bytes(offers, size)


def test_a_device_without_room_is_refused() -> None:
    with (
        use_device(HostDevice(free=100)) as host,
        pytest.raises(MemoryError, match="100 are free; use engine='hybrid', backend='cpu'"),
    ):
        hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", **ON_DEVICE)
    assert not host.launches


def test_without_a_device_the_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.matrix.backends.device_problem", lambda: "there is none")
    with pytest.raises(OptionError, match="there is none"):
        hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", **ON_DEVICE)
