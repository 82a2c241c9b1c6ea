"""Several objectives on the device, or on its emulator."""

from __future__ import annotations

import pytest

import hybrid
from gpu_kernels import Device
from tests.builders.models import build

WAY = """mdp
module way
  s : [0..3];
  [a] s=0 -> 1/2 : (s'=1) + 1/2 : (s'=2);
  [b] s=0 -> 1/4 : (s'=1) + 3/4 : (s'=0);
  [c] s=1 -> (s'=3);
  [back] s=2 -> 1/2 : (s'=0) + 1/2 : (s'=2);
  [end] s=3 | s=2 -> true;
endmodule
rewards "cost" [a] true : 1; [b] true : 2; endrewards
"""


@pytest.mark.parametrize("engine", ["hybrid", pytest.param("explicit", marks=pytest.mark.nightly)])
def test_a_value_under_a_bound(device: Device, engine: str) -> None:
    # Surely by [a] again and again costs 2, by [b] 8, and half the way 1.
    model = build(WAY)
    text = 'multi(Pmax=? [ F s=3 ], R{"cost"}<=1.5 [ C ])'
    answer = hybrid.check(model, text, engine=engine, backend="gpu", epsilon=1e-4)
    assert answer.lower <= 0.75 <= answer.upper
    assert answer.upper - answer.lower < 1e-3
    assert answer.statistics.backend == "gpu"
