"""The benchmark of sweeps over choices runs on a machine without a device, and both sides agree."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gpu_kernels import use_device
from tests.gpu_kernels.host_device import COMPILER, HostDevice

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def test_sweeps_are_measured_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    if COMPILER is None:
        pytest.skip("no C++ compiler (g++) to run the kernels on the host with")
    monkeypatch.setattr(sys, "path", [str(FOLDER), str(FOLDER.parent / "examples"), *sys.path])
    import mdp_sweep

    monkeypatch.setattr(mdp_sweep, "REPEATS", 1)
    monkeypatch.setattr(mdp_sweep, "RECORDED", 2)
    monkeypatch.setattr(mdp_sweep, "LANES", ((1, 1),))
    with use_device(HostDevice()):
        row = mdp_sweep.measure(mdp_sweep.QUICK[1], with_cpu=True)
    assert row["difference"] <= 1e-12
    assert row["transitions"] == 410
    assert min(row[key] for key in ("seconds", "explicit_seconds", "cpu_hybrid_seconds", "bytes")) > 0
    assert json.loads(json.dumps(row))["model"] == "relay"
    assert "relay" in mdp_sweep.table([row])
