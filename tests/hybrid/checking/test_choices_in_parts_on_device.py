"""Answers of decision processes whose parts take fused steps on an emulated or a real device."""

from __future__ import annotations

from typing import Any

import pytest

import hybrid
from gpu_kernels import Device
from hybrid.matrix.operators import device_choices
from tests.builders.part_questions import agree
from tests.gpu_kernels.devices import device_of
from tests.gpu_kernels.host_device import COMPILER
from tests.source_tree import ROOT

EXAMPLES: dict[str, tuple[dict[str, Any], str]] = {
    "coin": ({"K": 1}, 'Pmin=? [ F "all_heads" ]; Pmax=? [ F<=10 "decided" ]'),
    "jobs": ({"N": 3}, 'R{"time"}min=? [ F "done" ]; R{"energy"}max=? [ F "done" ]'),
    "relay": ({"H": 3, "M": 2}, 'Pmax=? [ F "arrived" ]; Pmin=? [ F "arrived" ]; Pmax=? [ F<=10 "arrived" ]'),
    "tasks": ({"delay": 0.5}, 'R{"energy"}min=? [ F "done" ]'),
}


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("coin", 2), ("jobs", 3), ("relay", 2), pytest.param("tasks", 3, marks=pytest.mark.nightly)],
)
def test_examples_in_parts_have_the_answers_of_one(device: Device, name: str, ranks: int) -> None:
    constants, properties = EXAMPLES[name]
    model = hybrid.load(ROOT / f"examples/{name}.prism", constants=constants)
    # What one device answers is compared with a processor in tests/hybrid/matrix/gpu.
    alone = hybrid.check_all(model, properties, backend="cpu", epsilon=1e-4)
    found = hybrid.check_all(model, properties, ranks=ranks, backend="gpu", epsilon=1e-4)
    for one, many in zip(alone, found, strict=True):
        assert one.error is None and many.error is None, (one.error, many.error)
        assert agree(one, many), (one, many)
        assert many.statistics.backend == "gpu"
        assert many.statistics.backend_reason.startswith(f"{ranks} parts share the states, elements are")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels on the host with")
def test_answers_of_parts_whose_layers_go_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def build_choices(*operands: Any, **more: Any) -> Any:
        calls.append(operands)
        if len(calls) == 2:
            raise MemoryError("no room on one of them")
        return fused_build(*operands, **more)

    fused_build = device_choices.build_choices
    monkeypatch.setattr(device_choices, "build_choices", build_choices)
    model = hybrid.load(ROOT / "examples/coin.prism", constants={"K": 1})
    with device_of("host"):
        found = hybrid.check(model, 'Pmax=? [ F<=20 "decided" ]', backend="gpu", ranks=3)
    assert found.value == 0.875
    assert found.statistics.backend_reason == "asked for; layers one by one: no room on one of them"
