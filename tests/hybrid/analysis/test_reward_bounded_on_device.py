"""Bounds on rewards on the device, or on its emulator."""

from __future__ import annotations

import pytest

import hybrid
from gpu_kernels import Device
from tests.builders.chain_texts import FALLING_WALK
from tests.builders.mdp_texts import ROUND
from tests.builders.models import build

WALK = FALLING_WALK + 'rewards "r" s<2 : 1; endrewards'


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
@pytest.mark.parametrize(
    ("text", "asked", "exact"),
    [(WALK, 'P=? [ F{"r"}<=3 s=2 ]', 0.375), (ROUND, 'Pmax=? [ F{"r"}<=1 s=2 ]', 0.75)],
    ids=["finite sweeps", "iterations"],
)
def test_probabilities(device: Device, engine: str, text: str, asked: str, exact: float) -> None:
    answer = hybrid.check(build(text), asked, engine=engine, backend="gpu", epsilon=1e-4)
    assert answer.lower <= exact <= answer.upper
    assert answer.upper - answer.lower < 1e-3
    assert answer.statistics.backend == "gpu"


@pytest.mark.parametrize("engine", ["hybrid", "explicit"])
def test_a_quantile(device: Device, engine: str) -> None:
    answer = hybrid.check(build(WALK), 'quantile(B, P>=0.26 [ F{"r"}<=B s=2 ])', engine=engine, backend="gpu")
    assert answer.value == 3
    assert answer.statistics.backend == "gpu"
