"""The time of iterations is not that of compiling kernels."""

from __future__ import annotations

import pytest

from gpu_kernels import seconds_loading
from gpu_kernels.runtime import _loader
from hybrid.matrix.space.base import Clock
from mtbdd.base.budget import add_seconds_compiling, seconds_compiling


def test_a_clock_leaves_out_the_compiling_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("hybrid.matrix.space.base.time.perf_counter", lambda: now[0])
    clock = Clock(None)
    now[0] += 5.0
    before = seconds_compiling()
    add_seconds_compiling(4.0)
    assert (clock.seconds, seconds_compiling() - before) == (1.0, 4.0)


def test_a_clock_leaves_out_the_loading_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("hybrid.matrix.space.base.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(_loader, "_seconds", 3.0)
    clock = Clock(None)
    now[0] += 5.0
    assert clock.seconds == 5.0
    monkeypatch.setattr(_loader, "_seconds", 3.0 + 4.0)
    assert (clock.seconds, seconds_loading()) == (1.0, 7.0)
