"""Decision processes on the device: the CPU's answers, groups and schedulers included; few looks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hybrid
from gpu_kernels import Device
from hybrid.analysis.run.options import CheckOptions
from hybrid.matrix.operators.device_choices import device_choices
from hybrid.matrix.operators.layer_choices import LayerChoices
from hybrid.matrix.space.choice_operator import ChoiceProblem
from mtbdd.offset.offset import OffsetMTBDD
from tests.builders.matrices import from_dense

EXAMPLES = Path(__file__).parents[4] / "examples"
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


def test_offers_for_some_states_go_layer_by_layer(device: Device) -> None:
    none: OffsetMTBDD = from_dense(np.zeros((1, 2)), n_bits=1)
    offer = LayerChoices(0, np.array([1]), none, np.zeros(1), None)
    assert (
        device_choices(
            [offer], ChoiceProblem(2, True, None, 1e-14), CheckOptions.of(backend="gpu").matrix_backend()
        )
        is None
    )
