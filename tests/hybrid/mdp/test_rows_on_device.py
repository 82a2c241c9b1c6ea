"""Choices written out on the device: dense steps, values known by hand, the CPU's answers, memory."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device, use_device
from hybrid.errors import OptionError
from hybrid.operators.choice_rows import device_bytes, write_choices
from hybrid.operators.device_choice_rows import DeviceRows, device_rows
from hybrid.operators.offers import Offer
from hybrid.solvers.choice_operator import NO_CHOICE, Quotient
from tests.gpu_kernels.devices import device, to_numpy
from tests.gpu_kernels.host_device import HostDevice
from tests.helpers import from_dense
from tests.hybrid.mdp.models import COINS, SLOW_WAY
from tests.hybrid.mdp.test_optima_by_hand import EXACT
from tests.model_checks import build

__all__ = ["device"]

ON_DEVICE = {"engine": "explicit", "backend": "gpu"}
SIZE = 60


def layers_of(rng: np.random.Generator, maximise: bool) -> tuple[list[Offer], np.ndarray, np.ndarray]:
    """Return offers of three layers, and each layer's matrix (factors in it) and gains.

    The first has a row for every state, some without a choice; the second for some states only; the third
    has factors.  The states 50 to 59 have no choice but of the third.
    """
    worst = -np.inf if maximise else np.inf
    dense = np.where(rng.random((3, SIZE, SIZE)) < 0.05, rng.choice([0.125, 0.25], (3, SIZE, SIZE)), 0.0)
    dense /= max(1.0, 1.25 * dense.sum(axis=2).max())
    gains = rng.choice([0.5, 0.25], (3, SIZE))
    place = np.sort(rng.permutation(50)[:12])
    gains[0, 50:], gains[0, 7] = worst, worst
    dense[0, np.isinf(gains[0])] = 0.0
    dense[1] = np.where(np.isin(np.arange(SIZE), place)[:, None], dense[1], 0.0)
    gains[1] = np.where(np.isin(np.arange(SIZE), place), gains[1], worst)
    factor = rng.uniform(0.9, 1.0, SIZE)
    offers = [
        Offer(2, None, from_dense(dense[2]), gains[2], factor),
        Offer(0, None, from_dense(dense[0]), gains[0], None),
        Offer(1, place, from_dense(dense[1][place]), gains[1][place], None),
    ]
    dense[2] *= factor[:, None]
    return offers, dense, gains


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_steps_and_choices_are_dense_ones(
    device: Device, rng: np.random.Generator, maximise: bool, grouped: bool
) -> None:
    offers, dense, gains = layers_of(rng, maximise)
    parts = ([3, 9, 11], [40, 41]) if grouped else ()
    groups = Quotient(np.array([3, 9, 11, 40, 41]), np.array([0, 3])) if grouped else None
    system = device_rows(offers, SIZE, maximise, groups, 1e-14)
    xp, x, shape = device.xp, rng.random(SIZE), rng.random(SIZE)
    worth = dense @ x + gains
    plain = np.where(np.isfinite(gains), dense @ x, gains)
    best, bare = (a.max(axis=0) if maximise else a.min(axis=0) for a in (worth, plain))
    for values in (best, bare):
        for part in parts:
            values[part] = values[part].max() if maximise else values[part].min()
    out = xp.empty(SIZE)
    system.improve(xp.asarray(x), out, 0.5)
    np.testing.assert_allclose(to_numpy(out), 0.5 * best, rtol=1e-14)
    change = np.abs(0.5 * best - x)
    np.testing.assert_allclose(to_numpy(system.changes), [change.max(), (change / (0.5 * best)).max()])
    system.improve(xp.asarray(x), out, 0.75, shape=xp.asarray(shape))
    np.testing.assert_allclose(to_numpy(out), 0.75 * bare + shape, rtol=1e-14)
    policy = system.choose(xp.asarray(x))
    chosen = to_numpy(policy)
    has = chosen != NO_CHOICE
    np.testing.assert_allclose(worth[chosen[has], np.flatnonzero(has)], best[has], rtol=1e-14)
    assert int((~has).sum()) == (3 if grouped else 0)
    system.improve(xp.asarray(x), out, policy=policy)
    np.testing.assert_allclose(to_numpy(out), best, rtol=1e-14)
    assert (system.backend, system.level) == ("gpu", None)
    assert 0 < system.nbytes + system.operand_bytes <= device_bytes(offers, SIZE)


@pytest.mark.parametrize("maximise", [True, False])
def test_repeated_steps_are_single_steps(device: Device, rng: np.random.Generator, maximise: bool) -> None:
    system = device_rows(layers_of(rng, maximise)[0], SIZE, maximise, None, 1e-14)
    xp = device.xp
    pairs = [(xp.zeros(SIZE), xp.zeros(SIZE)) for _ in range(2)]
    system.repeat(pairs[0], 0, 23, 0.75)
    system.repeat(pairs[0], 23, 22, 0.75)
    changes = to_numpy(system.changes).copy()
    for k in range(45):
        system.improve(pairs[1][k % 2], pairs[1][1 - k % 2], 0.75)
    np.testing.assert_array_equal(to_numpy(pairs[0][1]), to_numpy(pairs[1][1]))
    np.testing.assert_array_equal(changes, to_numpy(system.changes))


@pytest.mark.parametrize(
    "options", [{}, {"method": "interval", "absolute": True}], ids=["default", "interval"]
)
def test_values_known_by_hand_lie_within_the_bounds(device: Device, options: dict[str, object]) -> None:
    # Emulated launches are slow: one in six there, a value of every kind of question.
    cases = EXACT[:: 6 if device.name == "host" else 1]
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
    offers, _, _ = layers_of(rng, True)
    system, written = device_rows(offers, SIZE, True, None, 1e-14), write_choices(offers, SIZE)
    assert isinstance(system, DeviceRows)
    own, starts = written.layers.astype(int), written.choice_ptr[:-1]
    # By layer within each state.
    assert (np.delete(np.diff(own), starts[1:] - 1) > 0).all()
    assert written.choice_ptr[-1] == len(written.gains) == len(written.offsets) - 1
    assert written.offsets[-1] == len(written.columns) == len(written.values)


def test_a_device_without_room_is_refused() -> None:
    with (
        use_device(HostDevice(free=100)) as host,
        pytest.raises(MemoryError, match="100 are free; use --engine hybrid"),
    ):
        hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", **ON_DEVICE)
    assert not host.launches


def test_without_a_device_the_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.core.backend.device_problem", lambda: "there is none")
    with pytest.raises(OptionError, match="there is none"):
        hybrid.check(build(SLOW_WAY), "Pmax=? [ F x=2 ]", **ON_DEVICE)
