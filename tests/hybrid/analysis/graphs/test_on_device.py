"""Decompositions on the device: the same answers as on the host, variants by name, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_kernels import Device
from hybrid.analysis.graphs import (
    decompose,
    mec_decomposition,
    model_graph,
)
from hybrid.analysis.graphs.components import (
    DeviceGraph,
    device_options,
)
from tests.builders.mdp_texts import GRAPHS
from tests.builders.models import build


@pytest.mark.parametrize("variant", ["auto", "max-id", "fb", "fbt", "bfbt"])
def test_device_and_host_agree(device: Device, variant: str) -> None:
    options = device_options(variant)
    for text in GRAPHS.values():
        graph = model_graph(build(text))
        there = DeviceGraph.of(graph)
        assert there.seconds > 0
        found, seconds = there.decompose(options)
        assert seconds > 0
        assert found.labels.tolist() == decompose(graph).labels.tolist()
        ends, _ = there.mec_decomposition(options)
        expected = mec_decomposition(graph)
        assert ends.labels.tolist() == expected.labels.tolist()
        assert ends.choice_kept.tolist() == expected.choice_kept.tolist()


def test_device_without_room_is_refused(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = model_graph(build(GRAPHS["dice"]))
    monkeypatch.setattr(type(device), "free_bytes", lambda self: 100)
    with pytest.raises(MemoryError, match="needs [0-9]+ bytes .* 100 are available; use backend='cpu'"):
        DeviceGraph.of(graph)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tarjan", "variant: expected one of"),
        (
            "fbt,bounded",
            "gone, got 'fbt,bounded'; use auto, .* \\(bfbt for fbt,bounded",
        ),
        ("multistep", "'multistep' is gone; use 'auto'"),
    ],
)
def test_variants_that_are_not_there_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        device_options(text)


def test_without_a_device_the_refusal_names_the_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    reason: Any = "there is no card"
    monkeypatch.setattr("gpu_kernels.device_problem", lambda: reason)
    with pytest.raises(ValueError, match="there is no card; or use 'cpu' or 'symbolic'"):
        DeviceGraph.of(model_graph(build(GRAPHS["dice"])))
