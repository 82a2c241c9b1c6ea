"""Decompositions on the device: the same answers as on the host, options from text, refusals."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_kernels import Device
from gpu_kernels.graph import MecOptions, SccOptions
from hybrid.graphs import decompose, mec_decomposition, model_graph
from hybrid.graphs.on_device import DeviceGraph, parse_variant
from tests.builders.mdp_texts import GRAPHS
from tests.builders.models import build


@pytest.mark.parametrize("variant", ["auto", "fbt,segment-interval=0", "max-id", "multistep"])
def test_device_and_host_agree(device: Device, variant: str) -> None:
    options = parse_variant(variant)
    for text in GRAPHS.values():
        graph = model_graph(build(text))
        there = DeviceGraph.of(graph)
        assert there.seconds > 0
        found, seconds = there.decompose(options.scc)
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


def test_variant_texts_become_options() -> None:
    assert parse_variant("auto") == MecOptions()
    assert parse_variant("fbt,bounded,segment-interval=3,trim=false,join-sets=true") == MecOptions(
        variant="attractor",
        scc=SccOptions(variant="fbt", bounded=True, segment_interval=3, trim=False),
        join_sets=True,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tarjan", "variant: expected one of"),
        ("fbt,speed=3", "expected an option among aggregate, .*, got 'speed'"),
        ("fbt,variant=3", "expected an option among"),
        ("fbt,bounded=maybe", "expected bounded=true or false, got 'maybe'"),
        ("fbt,iterations=many", "expected iterations=a number, got 'many'"),
        ("fbt,iterations=0", "iterations: expected at least 1, got 0"),
    ],
)
def test_variant_texts_that_mean_nothing_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_variant(text)


def test_without_a_device_the_refusal_names_the_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    reason: Any = "there is no card"
    monkeypatch.setattr("hybrid.graphs.on_device.device_problem", lambda: reason)
    with pytest.raises(ValueError, match="there is no card; or use 'cpu' or 'symbolic'"):
        DeviceGraph.of(model_graph(build(GRAPHS["dice"])))
