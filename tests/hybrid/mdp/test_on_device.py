"""Decision processes on the device: the CPU's answers, groups and schedulers included; few looks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.operators.device_choices import DeviceChoices, device_choices
from hybrid.operators.offers import Offer
from hybrid.run.options import CheckOptions
from hybrid.solvers.choice_operator import Quotient
from mtbdd.offset import OffsetMTBDD
from tests.gpu_kernels.devices import device, to_numpy
from tests.helpers import from_dense

__all__ = ["device"]

EXAMPLES = Path(__file__).parents[3] / "examples"
COIN = {
    "optimistic": ['Pmin=? [ F "all_heads" ]', 'Pmax=? [ F<=20 "decided" ]'],
    "interval": ['Pmax=? [ F "all_heads" ]'],
    "jacobi": ['Rmin=? [ F "decided" ]'],
}


@pytest.mark.parametrize("method", COIN)
def test_the_coin_has_the_same_answers_as_on_the_cpu(device: Device, method: str) -> None:
    small = device.name == "host"
    model = hybrid.load(EXAMPLES / "coin.prism", constants={"K": 1 if small else 4})
    epsilon = 1e-2 if small else 1e-8
    for prop in COIN[method]:
        here, there = (
            hybrid.check(model, prop, method=method, backend=name, epsilon=epsilon, throw=False)
            for name in ("gpu", "cpu")
        )
        assert here.error is None, here.error
        assert here.statistics.backend == "gpu"
        if method == "jacobi":
            # Estimates from below: the device looks more rarely, so that it makes more steps.
            exact = hybrid.check(model, prop, backend="cpu", throw=False)
            assert float(there.value) <= float(here.value) <= float(exact.upper)
            continue
        assert float(here.value) == pytest.approx(float(there.value), rel=2 * epsilon)
        assert here.lower <= there.upper
        assert there.lower <= here.upper


@pytest.mark.gpu
def test_jobs_have_the_same_answers_as_on_the_cpu() -> None:
    model = hybrid.load(EXAMPLES / "jobs.prism", constants={"N": 20})
    text = (EXAMPLES / "jobs.props").read_text()
    here, there = (hybrid.check_all(model, text, backend=name) for name in ("gpu", "cpu"))
    for one, other in zip(here, there, strict=True):
        assert one.error is None, one.error
        assert float(one.value) == pytest.approx(float(other.value), rel=1e-7)


def choices(rng: np.random.Generator, maximise: bool, groups: Quotient | None) -> tuple[DeviceChoices, list]:
    """A system of 60 states with three layers, the second of which is missing in many, all lossy."""
    size = 60
    worst = -np.inf if maximise else np.inf
    offers, dense = [], []
    for layer in range(3):
        matrix = np.where(rng.random((size, size)) < 0.05, rng.choice([0.125, 0.25], (size, size)), 0.0)
        matrix /= max(1.0, 1.25 * matrix.sum(axis=1).max())
        gain = rng.choice([0.5, 0.25], size)
        if layer == 1:
            missing = rng.random(size) < 0.5
            matrix[missing], gain[missing] = 0.0, worst
        dense.append((matrix, gain))
        offers.append(Offer(layer, None, from_dense(matrix), gain, None))
    options = CheckOptions.of(backend="gpu")
    system = device_choices(offers, size, maximise, groups, 1e-14, options)
    assert system is not None
    return system, dense


@pytest.mark.parametrize("maximise", [True, False])
@pytest.mark.parametrize("grouped", [True, False])
def test_steps_and_choices_match_numpy(
    device: Device, rng: np.random.Generator, maximise: bool, grouped: bool
) -> None:
    groups = Quotient(np.array([3, 9, 11, 40, 41]), np.array([0, 3])) if grouped else None
    system, dense = choices(rng, maximise, groups)
    xp, x = device.xp, rng.random(60)
    worth = np.array([matrix @ x + gain for matrix, gain in dense])
    best = worth.max(axis=0) if maximise else worth.min(axis=0)
    if groups is not None:
        for part in ([3, 9, 11], [40, 41]):
            best[part] = best[part].max() if maximise else best[part].min()
    out = xp.empty(60)
    system.improve(xp.asarray(x), out, 0.5)
    np.testing.assert_allclose(to_numpy(out), 0.5 * best, rtol=1e-14)
    change = np.abs(0.5 * best - x)
    np.testing.assert_allclose(to_numpy(system.changes), [change.max(), (change / (0.5 * best)).max()])
    policy = system.choose(xp.asarray(x))
    system.improve(xp.asarray(x), out, policy=policy)
    np.testing.assert_allclose(to_numpy(out), best, rtol=1e-14)


@pytest.mark.parametrize("maximise", [True, False])
def test_repeated_steps_are_single_steps(device: Device, rng: np.random.Generator, maximise: bool) -> None:
    system, _ = choices(rng, maximise, None)
    xp = device.xp
    pairs = [(xp.zeros(60), xp.zeros(60)) for _ in range(2)]
    # Twenty-three: two recorded tens and three more, twice, the second time from an odd number.
    system.repeat(pairs[0], 0, 23, 0.75)
    system.repeat(pairs[0], 23, 22, 0.75)
    changes = to_numpy(system.changes).copy()
    for k in range(45):
        system.improve(pairs[1][k % 2], pairs[1][1 - k % 2], 0.75)
    np.testing.assert_array_equal(to_numpy(pairs[0][1]), to_numpy(pairs[1][1]))
    np.testing.assert_array_equal(changes, to_numpy(system.changes))


def test_offers_for_some_states_go_layer_by_layer(device: Device) -> None:
    none: OffsetMTBDD = from_dense(np.zeros((1, 2)), n_bits=1)
    offer = Offer(0, np.array([1]), none, np.zeros(1), None)
    assert device_choices([offer], 2, True, None, 1e-14, CheckOptions.of(backend="gpu")) is None
