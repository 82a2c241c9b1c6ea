"""Decompositions ask for memory before they begin: refusals say how much, and it is as much as is taken."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from gpu_kernels.graph import ComponentOptions, Graph, attractor, mec, part_of, scc
from tests.gpu_kernels.graph_cases import RUNNING_EXAMPLE, random_process
from tests.gpu_kernels.host_device import COMPILER, HostDevice
from tests.gpu_kernels.metered import assert_room_is_asked_for

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++) to run the kernels with")

FBT = ComponentOptions("fbt")
OPTIONS = {
    "auto": ComponentOptions(),
    "max-id": ComponentOptions("max-id"),
    "fbt": FBT,
    "fbt, no segments": replace(FBT, segment_interval=0),
    "fbt, no transposed graph": replace(FBT, transpose=False),
}


@functools.cache
def graph(n: int = 900) -> Graph:
    """A graph on a device that has room for it."""
    return random_process(np.random.default_rng(20260), n, 3, 3, 5).graph(HostDevice())


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_decompositions_that_do_not_fit_say_so(name: str, transposed: bool, wide: bool) -> None:
    small = RUNNING_EXAMPLE.graph(HostDevice(), wide)
    if transposed:
        small = small.with_transpose(HostDevice())
    for decompose in (scc, mec):
        device = HostDevice(free=150)
        with pytest.raises(
            MemoryError, match=r"components, besides the graph, needs \d+ bytes and 150 are free on"
        ):
            decompose(device, small, OPTIONS[name])
        assert device.launches == []


@pytest.mark.parametrize("name", OPTIONS)
def test_what_components_ask_for_covers_the_peak(name: str) -> None:
    # The published searches take thousands of steps, and more memory.
    own = graph(300) if "fbt" in name else graph()
    assert_room_is_asked_for(lambda device: scc(device, own, OPTIONS[name]), slack=3.5)


# Without segments so little is taken that what Python takes for hundreds of launches would count.
@pytest.mark.parametrize("name", ["auto", "max-id", "fbt"])
def test_what_end_components_ask_for_covers_the_peak(name: str) -> None:
    own = graph(250) if "fbt" in name else graph()
    assert_room_is_asked_for(lambda device: mec(device, own, OPTIONS[name]), slack=3.5)


def test_parts_and_attractors_that_do_not_fit_say_so() -> None:
    own, device = graph(), HostDevice(free=1000)
    every, choices = np.ones(own.n_states, np.bool_), np.ones(own.n_choices, np.uint32)
    with pytest.raises(MemoryError, match=r"the part of the graph needs \d+ bytes and 1000 are free"):
        part_of(device, own, every, choices)
    with pytest.raises(MemoryError, match=r"the attractor needs \d+ bytes and 200 are free"):
        attractor(HostDevice(free=200), own, every)
